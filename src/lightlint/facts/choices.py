"""What is taken out of the second dimension of a network's output: one value a row, with that dimension kept or gone."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.annotations import is_none
from lightlint.facts.bindings import Kind

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_EXTREMES = {"max", "min", "amax", "amin"}
_PAIRED = {"max", "min"}  # these give the values and their places


class Choice(StrEnum):
    """Whether the dimension is still there: `gather(1, ...)` and `keepdim=True` keep it."""

    KEPT = "kept"
    GONE = "gone"


class Choices:
    """The choices among the outputs of networks in one file."""

    def __init__(self, facts: FileFacts) -> None:
        self._facts = facts
        self._names = facts.names

    def of(self, value: cst.BaseExpression | None) -> Choice | None:
        """What a value surely is: `net(x).gather(1, a)`, `net(x).max(1)[0]`, `torch.max(net(x), dim=1).values`."""
        match value:
            case cst.Subscript(value=cst.Call() as call, slice=[cst.SubscriptElement(slice=cst.Index(value=index))]):
                return self.of_part(call, (0,)) if self._names.constant(index) == 0 else None
            case cst.Attribute(value=cst.Call() as call, attr=cst.Name(value="values")):
                return self.of_part(call, (0,))
            case cst.Call():
                return self.of_part(value, ())
        return None

    def of_part(self, call: cst.Call, path: tuple[int, ...]) -> Choice | None:
        """As `of`, for `call[path]`."""
        taken = self._taken(call)
        if taken is None or (self._names.method(call) in _PAIRED) != (path == (0,)) or path not in ((), (0,)):
            return None
        source, dim, first = taken
        along = self._names.argument(call, "dim", first)
        if along is None or self._names.constant(along.value) != 1 or not self._is_output(source):
            return None
        if dim == "gather":
            return Choice.KEPT
        kept = self._names.argument(call, "keepdim", first + 1)
        held = self._names.constant(kept.value) if kept is not None else False
        return Choice.KEPT if held is True else Choice.GONE if held is False else None

    def _taken(self, call: cst.Call) -> tuple[cst.BaseExpression, str, int] | None:
        """Of what a call takes something, how, and which argument says along which dimension."""
        method, name = self._names.method(call), self._names.call(call)
        if method not in _EXTREMES | {"gather"}:
            return None
        if name == f"torch.{method}":
            return (call.args[0].value, method, 1) if call.args else None
        if name is None and isinstance(call.func, cst.Attribute):
            return call.func.value, method, 0
        return None

    def _is_output(self, value: cst.BaseExpression) -> bool:
        """Whether a value is what a module gives for a batch, as far as that can be seen."""
        sources = self._facts.reaching.sources(value)
        return bool(sources) and all(isinstance(each, cst.Call) and self._runs(each) for each in sources)

    def _runs(self, call: cst.Call) -> bool:
        if not call.args or not isinstance(call.func, (cst.Name, cst.Attribute)):
            return False
        if not (self._facts.values.is_module(call.func) or self._is_given(call)):
            return False
        inputs = [source for arg in call.args for source in self._facts.reaching.sources(arg.value)]
        return not any(self._is_single(each) for each in inputs)

    def _is_given(self, call: cst.Call) -> bool:
        """Whether what is called came as a parameter, or is kept by the object: a network, where its result is chosen from."""
        func = call.func
        if self._names.of(func) is not None or self._facts.values.origins(func) or self._facts.hooks.callee(call):
            return False
        if isinstance(func, cst.Attribute):
            return self._facts.classes.is_self(func.value)
        found = self._names.bindings.lookup(func) if isinstance(func, cst.Name) else []
        return bool(found) and all(each.kind is Kind.PARAMETER for each in found)

    def _is_single(self, value: cst.BaseExpression) -> bool:
        """Whether a value is one sample made into a batch: `state.unsqueeze(0)`, `state[None]`."""
        calls = self._facts.tree.within(value, cst.Call)
        added = any(
            self._names.method(each) == "unsqueeze" and each.args and self._names.constant(each.args[-1].value) == 0
            for each in calls
        )
        indices = [part for each in self._facts.tree.within(value, cst.Subscript) for part in each.slice]
        return added or any(isinstance(each.slice, cst.Index) and is_none(each.slice.value) for each in indices)
