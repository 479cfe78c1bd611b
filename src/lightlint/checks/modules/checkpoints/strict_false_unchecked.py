from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Called, LoadedUsed, StateTaken
from lightlint.values.core import Mapping, Unknown, is_constant
from lightlint.values.training import Module

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path

_FITS = {"pop", "update"}
_LOADS = "load_state_dict"


class StrictFalseUnchecked(Check):
    """A visitor, too: what is loaded is often an argument of which nothing is known."""

    def visit_Expr(self, statement: cst.Expr) -> None:
        call = statement.value
        if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
            return
        strict, model = self.names.argument(call, "strict", 1), call.func.value
        if self.names.method(call) != _LOADS or strict is None or not call.args:
            return
        if self.names.constant(strict.value) is not False or isinstance(model, cst.Call):
            return  # `super().load_state_dict(...)` is a step of somebody else's load
        if self._is_fitted(call.args[0].value) or self._is_compared(call, model) or self._fits(call):
            return
        self.report(strict, self._told(call))

    def _told(self, call: cst.CSTNode | None) -> str:
        func = call.func if isinstance(call, cst.Call) else None
        named = isinstance(func, cst.Attribute) and func.attr.value == _LOADS
        model = f"`{self.code.text_of(func.value)}`" if isinstance(func, cst.Attribute) and named else "the model"
        return f"keys that do not fit {model} are passed over and nobody looks"

    def _fits(self, call: cst.Call) -> bool:
        """Whether a rehearsal shows that the keys were matched before."""
        found = [(path, each) for _, path, each in self.happened(call, Called) if each.path == _LOADS]
        return any(_is_compared(path, each) or _is_fitted(path, each) for path, each in found)

    def _is_fitted(self, given: cst.BaseExpression) -> bool:
        """Whether the state was filtered, completed or cut before, or comes from a module."""
        if isinstance(given, (cst.DictComp, cst.Dict)) or self.names.method(given) == "state_dict":
            return True
        key, owner = self.names.key(given), self.tree.owner(given)
        changed = [
            each.func.value
            for each in self.tree.own(owner, cst.Call)
            if isinstance(each.func, cst.Attribute) and each.func.attr.value in _FITS
        ]
        changed += [
            each.value for cut in self.tree.own(owner, cst.Del) for each in self.tree.within(cut, cst.Subscript)
        ]
        return bool(key) and key in {self.names.key(each) for each in changed}

    def _is_compared(self, call: cst.Call, model: cst.BaseExpression) -> bool:
        """Whether the function asks for the module's own keys."""
        own = self.names.key(model)
        return any(
            each.func.attr.value == "state_dict" and self.names.key(each.func.value) == own
            for each in self.tree.own(self.tree.owner(call), cst.Call)
            if isinstance(each.func, cst.Attribute)
        )

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Loads of a file as it is into a module whose own keys nobody has asked for, by statements that are nothing else."""
        for path in entry.paths:
            for event in path.of(Called):
                strict = event.argument("strict", 1) if event.path == _LOADS else None
                if not isinstance(event.receiver, Module) or not is_constant(strict, False) or not event.given.exact:
                    continue
                if not _is_read(event) or _is_fitted(path, event) or _is_compared(path, event):
                    continue
                node = self.node_of(event.site)
                if node is not None and isinstance(self.tree.parent(node), cst.Expr):
                    yield Fault.of(event, self._told(node), argument="strict")


def _is_read(event: Called) -> bool:
    """Whether what is loaded comes out of a file, as it is or under a key of it."""
    state = event.argument("state_dict", 0)
    as_it_is = isinstance(state, Mapping) and not state.items
    return (as_it_is or isinstance(state, Unknown)) and getattr(state, "loaded", None) is not None


def _is_fitted(path: Path, event: Called) -> bool:
    """Whether what is loaded was made or changed here, or comes from a module."""
    state = event.argument("state_dict", 0)
    if isinstance(state, Mapping) and (state.items or state.loaded is None):
        return True
    read = getattr(state, "loaded", None)
    load = read[0] if isinstance(read, tuple) else read
    uses = [each for each in path.of(LoadedUsed) if each.load is load and load is not None]
    return any(each.asked in (*_FITS, "del") and each.time < event.time for each in uses)


def _is_compared(path: Path, event: Called) -> bool:
    """Whether somebody asks for the module's own keys."""
    return any(each.object is event.receiver for each in path.of(StateTaken))
