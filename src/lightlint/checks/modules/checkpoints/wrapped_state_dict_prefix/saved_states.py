"""Which state dicts a file saves, under which keys of a checkpoint, and what loads them into a model without their prefix."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import Kind
from lightlint.facts.objects.checkpoints import SAVE

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_STRIPS = {"consume_prefix_in_state_dict_if_present", "removeprefix", "get_model_state_dict", "set_model_state_dict"}

State = tuple[
    tuple[str, ...], cst.Call
]  # a `state_dict()` call, and the keys under which a checkpoint holds its result


class SavedStates:
    """The state dicts that one file saves."""

    def __init__(self, facts: FileFacts) -> None:
        self._facts = facts
        self._names = facts.names
        self._tree = facts.tree

    def knows_prefixes(self) -> bool:
        """Whether the file knows of the prefixes, and may take them off."""
        texts = (self._names.constant(each) for each in self._tree.all(cst.SimpleString))
        known = any(isinstance(text, str) and ("module" in text or "_orig_mod" in text) for text in texts)
        return known or any(name.value in _STRIPS for name in self._tree.all(cst.Name))

    def of(self, save: cst.Call) -> Iterator[State]:
        """The state dicts that a call of `torch.save` saves."""
        if self._names.call(save) != SAVE or not save.args:
            return
        value = save.args[0].value
        if isinstance(value, cst.Name):
            found = self._names.bindings.lookup(value)
            only = found[0] if len(found) == 1 and found[0].kind is Kind.ASSIGN and not found[0].path else None
            value = only.value if only is not None and only.value is not None else value
        parts: list[tuple[tuple[str, ...], cst.BaseExpression]] = [((), value)]
        if isinstance(value, cst.Dict):
            keyed = [(self._names.constant(e.key), e.value) for e in value.elements if isinstance(e, cst.DictElement)]
            parts = [((key,), part) for key, part in keyed if isinstance(key, str)]
        elif isinstance(value, cst.Call) and self._names.call(value) == "builtins.dict":
            parts = [((arg.keyword.value,), arg.value) for arg in value.args if arg.keyword is not None]
        for keys, part in parts:
            if isinstance(part, cst.Call) and self._names.method(part) == "state_dict" and not part.args:
                yield keys, part

    def prefix(self, state: cst.Call) -> str | None:
        """The prefix of a state dict's keys, as `Prefixes.of`."""
        return self._facts.prefixes.of(state.func.value) if isinstance(state.func, cst.Attribute) else None

    def all_have(self, keys: tuple[str, ...], prefix: str) -> bool:
        """Whether all that the file saves under some keys has the prefix, so that any load of them meets it."""
        saved = [state for save in self._tree.all(cst.Call) for under, state in self.of(save) if under == keys]
        return all(self.prefix(state) == prefix for state in saved)

    def bare_loads(self) -> Iterator[tuple[cst.Call, cst.Call, tuple[str, ...]]]:
        """The calls that load what `torch.load` gave into a model without a prefix, with that call and the keys it is under."""
        for call in self._tree.all(cst.Call):
            if self._names.method(call) == "load_state_dict" and call.args and isinstance(call.func, cst.Attribute):
                held = self._facts.checkpoints.held(call.args[0].value)
                if held is not None and self._facts.prefixes.of(call.func.value) == "":
                    yield call, *held

    def saves_to(self, path: str) -> Iterator[cst.Call]:
        """The calls of `torch.save` that write to a path that they spell out."""
        return (save for save, given in self._saves() if self._names.constant(given) == path)

    def _saves(self) -> Iterator[tuple[cst.Call, cst.BaseExpression]]:
        """The calls of `torch.save`, each with where it writes to."""
        for save in self._tree.all(cst.Call):
            given = self._names.argument(save, "f", 1) if self._names.call(save) == SAVE else None
            if given is not None:
                yield save, given.value

    def under_text(self, path: str, keys: tuple[str, ...]) -> tuple[cst.Call, str] | None:
        """A state dict that the file saves to a path, under some keys, with its prefix: if nothing else is saved there."""
        found = [[*self.of(save)] for save in self.saves_to(path)]
        states = [state for held in found for under, state in held if under == keys]
        prefixes = {self.prefix(state) for state in states}
        prefix = prefixes.pop() if len(prefixes) == 1 else None
        return (states[0], prefix) if prefix and all(found) else None

    def under_constant(self, name: str, keys: tuple[str, ...]) -> tuple[cst.Call, str] | None:
        """A state dict that the file saves, under some keys, to the path that a constant of it names, with its prefix."""
        for save, given in self._saves():
            if not isinstance(given, cst.Name) or given.value != name:
                continue
            found = self._names.bindings.lookup(given)
            if len(found) != 1 or found[0].kind is not Kind.ASSIGN or found[0].scope is not self._tree.module:
                continue
            for under, state in self.of(save):
                prefix = self.prefix(state)
                if under == keys and prefix and self.all_have(keys, prefix):
                    return state, prefix
        return None
