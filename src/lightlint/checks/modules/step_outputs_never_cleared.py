from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Appended, Called, Emptied
from lightlint.facts.classes import CALLBACK, MODULE
from lightlint.facts.gathered import Gathered
from lightlint.finding import Applicability
from lightlint.fixes.edits import Draft, insert_after
from lightlint.values.core import Sequence

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_STAGES = {
    "train": {"training_step", "on_train_batch_end"},
    "validation": {"validation_step", "on_validation_batch_end"},
}
_ONCE = {"test_step", "on_test_batch_end", "predict_step", "on_predict_batch_end"}


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
        if (
            not stage
            or not family
            or self.facts.optimization.subclasses(node)
            or Gathered(self.facts).is_emptied(name, family)
        ):
            return
        uses = [use for use in self._uses(name, node) if self._in_epoch_end(use, stage)]
        ends = [
            function
            for use in uses
            if Gathered(self.facts).takes_all(use) and (function := self.tree.function(use)) is not None
        ]
        if not ends or self._is_later(call, name, hooks):
            return
        end = f"on_{stage}_epoch_end"
        self.report(
            call,
            f"`self.{name}` grows from epoch to epoch: nothing empties it, and `{end}` reads all of it",
            repair=self._repair(ends[-1], name, family),
        )

    def _root(self, holder: cst.BaseExpression) -> cst.Attribute | None:
        """The `self.x` that holds what is appended to: of `self.x.append(...)`, `self.x["key"].append(...)`."""
        while isinstance(holder, cst.Subscript):
            holder = holder.value
        return holder if isinstance(holder, cst.Attribute) and self.classes.is_self(holder.value) else None

    def _stage(self, call: cst.Call) -> tuple[str, set[str]]:
        hooks = {hook.name for hook in self.hooks.around(call)}
        stages = [stage for stage, names in _STAGES.items() if hooks & names]
        # a test runs once, and adds to what validation leaves
        only = len(hooks) == 1 or (len(hooks - _ONCE) == 1 and hooks - _ONCE <= self._sure(call))
        return (stages[0], hooks) if len(stages) == 1 and only else ("", hooks)

    def _sure(self, node: cst.CSTNode) -> set[str]:
        return {hook.name for hook in self.facts.logs.sure_hooks(node)}

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

    def _uses(self, name: str, node: cst.ClassDef) -> Iterator[cst.Attribute]:
        for attribute in self.tree.within(node, cst.Attribute):
            if attribute.attr.value == name and self.classes.is_self(attribute.value):
                yield attribute

    def _in_epoch_end(self, use: cst.Attribute, stage: str) -> bool:
        hooks = {hook.name for hook in self.hooks.around(use)}
        return f"on_{stage}_epoch_end" in (hooks if len(hooks) == 1 else self._sure(use))

    def _repair(self, function: cst.FunctionDef, name: str, family: tuple[cst.ClassDef, ...]) -> Repair | None:
        """Empty the list at the end of a hook; a dict only if it makes its lists anew."""
        anew = Gathered(self.facts).makes_lists_anew(name, family)
        draft = self._draft(function, name) if anew else None
        return Repair(f"empty `self.{name}` at the end", draft, Applicability.UNSAFE) if draft is not None else None

    def _draft(self, function: cst.FunctionDef, name: str) -> Draft | None:
        last = function.body.body[-1] if isinstance(function.body, cst.IndentedBlock) else None
        if self.hooks.of(function) is None or self.tree.own(function.body, cst.Return) or last is None:
            return None
        inner = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else last
        ok = isinstance(inner, (cst.BaseSmallStatement, cst.BaseCompoundStatement))
        return insert_after(self.code, inner, f"self.{name}.clear()") if ok else None

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Lists of a module that steps add tensors to, that nothing empties, and that are put together as a whole."""
        for path in entry.paths:
            emptied = {id(event.container) for event in path.of(Emptied)}
            held = {id(v): o for o in path.machine.objects for v in o.attributes.values() if isinstance(v, Sequence)}
            joined = [event for event in path.of(Called) if event.path in _JOINING]
            for event in path.of(Appended):
                box = event.container
                if not event.where.phase or id(box) in emptied or id(box) not in held or box.escaped or box.more:
                    continue
                items = set(map(id, box.items))
                later = [each for each in joined if each.time > event.time and items & set(_given(each))]
                epochs = {each.where.turns[0].number for each in later if each.where.turns}
                if len(epochs) > 1 and all(each.known for each in event.where.conditions):
                    message = "this list grows from epoch to epoch: nothing empties it, and the end of each epoch reads all of it"
                    yield Fault.at(event, message)


_JOINING = (
    "torch.cat",
    "torch.stack",
    "torch.concat",
    "torch.vstack",
    "torch.hstack",
    "torch.tensor",
    "numpy.concatenate",
)


def _given(call: Called) -> list[int]:
    """What a call is given, and what lists that it is given hold, by identity."""
    values = call.given.values()
    return [id(each) for value in values for each in (value.items if isinstance(value, Sequence) else [value])]
