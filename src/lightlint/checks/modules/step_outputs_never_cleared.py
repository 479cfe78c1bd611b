from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.bindings import dotted_name
from lightlint.facts.classes import CALLBACK, MODULE
from lightlint.finding import Applicability
from lightlint.fixes.edits import Draft, insert_after

_STAGES = {
    "train": {"training_step", "on_train_batch_end"},
    "validation": {"validation_step", "on_validation_batch_end"},
}
_EMPTYING = {"clear", "pop", "popleft", "popitem", "remove"}
_NO_AGGREGATE = re.compile(r"plot|draw|matplotlib|json|pickle|save|write|print|len$|append|extend")
_GATHERERS = {"collections.defaultdict", "builtins.list", "builtins.dict"}


class StepOutputsNeverCleared(Check):
    def visit_Call(self, call: cst.Call) -> None:
        func = call.func
        if not isinstance(func, cst.Attribute) or func.attr.value not in {"append", "extend"} or self.tree.loops(call):
            return
        holder = self._root(func.value)
        node = self.tree.enclosing_class(call)
        if holder is None or node is None or not self.classes.is_a(node, MODULE, CALLBACK):
            return
        name = holder.attr.value
        stage, hooks = self._stage(call)
        family = self.facts.optimization.family(node)
        if not stage or not family or self.facts.optimization.subclasses(node) or self._is_emptied(name, family):
            return
        uses = [use for use in self._uses(name, node) if self._in_epoch_end(use, stage)]
        ends = [
            function for use in uses if self._is_aggregated(use) and (function := self.tree.function(use)) is not None
        ]
        if not ends or self._is_later(call, name, hooks):
            return
        end = f"on_{stage}_epoch_end"
        self.report(
            call,
            f"`self.{name}` grows from epoch to epoch: nothing empties it, and `{end}` reads all of it",
            repair=Repair(f"empty `self.{name}` at the end", self._draft(ends[-1], name), Applicability.UNSAFE),
        )

    def _root(self, holder: cst.BaseExpression) -> cst.Attribute | None:
        """The `self.x` that holds what is appended to: of `self.x.append(...)`, `self.x["key"].append(...)`."""
        while isinstance(holder, cst.Subscript):
            holder = holder.value
        return holder if isinstance(holder, cst.Attribute) and self.classes.is_self(holder.value) else None

    def _stage(self, call: cst.Call) -> tuple[str, set[str]]:
        hooks = {hook.name for hook in self.hooks.around(call)}
        stages = [stage for stage, names in _STAGES.items() if hooks & names]
        return (stages[0], hooks) if len(stages) == 1 and len(hooks) == 1 else ("", hooks)

    def _is_later(self, call: cst.Call, name: str, hooks: set[str]) -> bool:
        """Whether an earlier call of the same hook says the same of the same list."""
        node = self.tree.enclosing_class(call)
        for each in self.tree.within(node, cst.Call) if node is not None else ():
            if each is call:
                return False
            func = each.func
            if isinstance(func, cst.Attribute) and func.attr.value in {"append", "extend"}:
                root = self._root(func.value)
                if (
                    root is not None
                    and root.attr.value == name
                    and {hook.name for hook in self.hooks.around(each)} == hooks
                ):
                    return True
        return False

    def _is_emptied(self, name: str, family: tuple[cst.ClassDef, ...]) -> bool:
        """Whether anything may empty or replace the list, or it is none that starts empty in `__init__`."""
        sources = [
            value for node in family for value, path in self.classes.attribute_sources(node, name) if value and not path
        ]
        if not sources or not all(map(self._is_empty, sources)):
            return True
        changes = [*self.tree.all(cst.AssignTarget, cst.AnnAssign), *self.tree.all(cst.AugAssign, cst.Del)]
        for target in changes:
            function = self.tree.function(target)
            names = [each for each in self.tree.within(target.target, cst.Attribute) if each.attr.value == name]
            if names and (function is None or function.name.value != "__init__") and self.tree.class_of(target) is None:
                return True
        return any(self._empties(call, name) for call in self.tree.all(cst.Call))

    def _is_empty(self, value: cst.BaseExpression) -> bool:
        if isinstance(value, cst.List):
            return not value.elements
        if isinstance(value, cst.Dict):
            return all(isinstance(each.value, cst.List) and not each.value.elements for each in value.elements)
        return isinstance(value, cst.Call) and self.names.call(value) in _GATHERERS

    def _empties(self, call: cst.Call, name: str) -> bool:
        """Whether a call may empty the list: by a method of it, by setting attributes by name, or in code it is handed to."""
        method = self.names.method(call)
        words = dotted_name(call.func).split(".")
        held = [each for each in self.tree.within(call.func, cst.Attribute) if each.attr.value == name]
        if method in {"setattr", "delattr", "vars"} or "__dict__" in words or (method in _EMPTYING and held):
            return True
        handed = any(isinstance(arg.value, cst.Attribute) and arg.value.attr.value == name for arg in call.args)
        if not handed:
            return False
        callee = self.hooks.callee(call)
        known = self.names.of(call.func) or ""
        outside = "." in known and not known.startswith(f"{self.names.module}.")
        if callee is not None:
            return bool(re.search(r"clear|pop|\bdel\b|reset", self.code.text_of(callee)))
        return not outside and method not in {"append", "extend", "update"}

    def _uses(self, name: str, node: cst.ClassDef) -> Iterator[cst.Attribute]:
        for attribute in self.tree.within(node, cst.Attribute):
            if attribute.attr.value == name and self.classes.is_self(attribute.value):
                yield attribute

    def _in_epoch_end(self, use: cst.Attribute, stage: str) -> bool:
        return f"on_{stage}_epoch_end" in {hook.name for hook in self.hooks.around(use)}

    def _is_aggregated(self, use: cst.Attribute) -> bool:
        """Whether a use takes all items together: given to a library's function, or looped over."""
        held: cst.CSTNode = use
        above = self.tree.parent(held)
        while isinstance(above, cst.Subscript) and above.value is held:
            held, above = above, self.tree.parent(above)
            if any(isinstance(each.slice, cst.Slice) for each in held.slice):
                return False
        if isinstance(above, (cst.For, cst.CompFor)):
            return above.iter is held
        call = self.tree.parent(above) if isinstance(above, cst.Arg) else None
        if isinstance(call, cst.Call) and self.hooks.callee(call) is not None:
            return True
        name = self.names.call(call) if isinstance(call, cst.Call) else None
        return bool(name) and "." in (name or "") and not _NO_AGGREGATE.search(name or "")

    def _draft(self, function: cst.FunctionDef, name: str) -> Draft | None:
        last = function.body.body[-1] if isinstance(function.body, cst.IndentedBlock) else None
        if self.hooks.of(function) is None or self.tree.own(function.body, cst.Return) or last is None:
            return None
        inner = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else last
        ok = isinstance(inner, (cst.BaseSmallStatement, cst.BaseCompoundStatement))
        return insert_after(self.code, inner, f"self.{name}.clear()") if ok else None
