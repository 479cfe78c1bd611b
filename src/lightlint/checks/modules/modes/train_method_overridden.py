from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.lightning.overrides import is_changed
from lightlint.facts.objects.classes import NN_MODULE
from lightlint.facts.steps.updates import body_of
from lightlint.values.core import Class, Function

_MODES = {"train", "eval", "setattr", "__setattr__"}


class TrainMethodOverridden(Check):
    def visit_FunctionDef(self, function: cst.FunctionDef) -> None:
        node = self.tree.class_of(function) if function.name.value == "train" else None
        if node is None or is_changed(self.facts, function) or not self.classes.is_a(node, NN_MODULE):
            return
        if self._sets_mode(function) or self._is_abstract(function) or self.classes.has_method(node, "eval"):
            return
        call = next((each for each in self.tree.all(cst.Call) if self._switches(each, node)), None)
        row = self.facts.source.locate(self.facts.span(call)[0]).row if call is not None else self._switched(function)
        if row is None:
            return
        method = self.names.method(call) or "eval"
        effect = (
            "runs it, and the mode stays as it is"
            if self._takes_one(function)
            else "raises TypeError, for it hands over the mode"
        )
        self.report(
            function.name,
            f"`train` of `{node.name.value}` takes the place of the one that sets the mode: `{method}()` in line {row} {effect}",
        )

    def _switched(self, function: cst.FunctionDef) -> int | None:
        """The row where a rehearsal asks an object whose method it is for eval mode."""
        start, end = self.facts.positions.span(function)
        for event in (each for entry in self.facts.rehearsed.entries for each in entry.calls.get(".eval", ())):
            cls = event.receiver.cls if event.receiver is not None else None
            train = cls.find("train") if isinstance(cls, Class) else None
            if isinstance(train, Function) and (site := self.facts.rehearsed.nearest(event.where)) is not None:
                row, column = train.node.lineno, train.node.col_offset
                span = self.facts.rehearsed.span((train.file, row, column, row, column))
                if span is not None and start <= span[0] < end:
                    return site[1]
        return None

    def _sets_mode(self, function: cst.FunctionDef) -> bool:
        """Whether a method sets the mode in the end, of its own object or of parts of it."""
        body = body_of(function)
        if any(each.name.value in {"mode", "training"} for each in function.params.params):
            return True
        if any(each.attr.value == "training" for each in self.tree.within(body, cst.Attribute)):
            return True
        names = [each.value for each in self.tree.within(body, cst.Name)]
        calls = self.tree.within(body, cst.Call)
        return "super" in names or any(self._hands_on(call, function) for call in calls)

    def _is_abstract(self, function: cst.FunctionDef) -> bool:
        """Whether a method leaves it to subclasses what it does."""
        body = body_of(function)
        return not self.tree.within(body, cst.Call) or any(
            each.exc is not None for each in self.tree.own(body, cst.Raise)
        )

    def _hands_on(self, call: cst.Call, function: cst.FunctionDef) -> bool:
        """Whether a call sets a mode: `child.train(mode)`, `nn.Module.train(self, mode)`, `self.apply(...)`."""
        given = {name.value for arg in call.args for name in self.tree.within(arg, cst.Name)}
        own = {each.name.value for each in function.params.params[1:]}
        method = self.names.method(call)
        return method == "apply" or (method in _MODES and (bool(given & own) or self.names.call(call) is not None))

    def _switches(self, call: cst.Call, node: cst.ClassDef) -> bool:
        """Whether a call asks an instance of a class for eval mode: `model.eval()`, `model.train(False)`."""
        if not isinstance(call.func, cst.Attribute):
            return False
        method, given = call.func.attr.value, [self.names.constant(arg.value) for arg in call.args]
        if (method, given) not in (("eval", []), ("train", [False])):
            return False
        own = self.classes.self_class(call.func.value)
        if own is not None:
            below = self.hooks.subclasses.get(node, ())
            return own is node and not any("train" in self.classes.methods(each) for each in below)
        origins = self.values.origins(call.func.value)
        return bool(origins) and all(self.classes.local(each.name) is node for each in origins)

    def _takes_one(self, function: cst.FunctionDef) -> bool:
        """Whether a method can be called with one value, as `eval()` does."""
        params = [*function.params.posonly_params, *function.params.params][1:]
        needed = [each for each in params if each.default is None]
        many = isinstance(function.params.star_arg, cst.Param)
        return (
            (bool(params) or many)
            and len(needed) <= 1
            and not any(each.default is None for each in function.params.kwonly_params)
        )
