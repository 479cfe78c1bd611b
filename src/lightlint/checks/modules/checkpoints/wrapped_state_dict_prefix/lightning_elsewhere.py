"""Checkpoints of a LightningModule of another file, loaded into the bare network that it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from lightlint.checks.modules.checkpoints.wrapped_state_dict_prefix.lightning_checkpoints import (
    LightningCheckpoints,
    Wrapped,
)
from lightlint.facts.code.bindings import Kind
from lightlint.facts.objects.checkpoints import SAVE
from lightlint.facts.objects.classes import MODULE
from lightlint.facts.project.options import option_default

if TYPE_CHECKING:
    from lightlint.facts.linked import Linked

    # a class, with the facts of its file
    Class = tuple[Linked, cst.ClassDef]

_OF_LIGHTNING = ".ckpt"
_DEPTH = 4


class LightningElsewhere:
    """What a file loads out of checkpoints that Lightning writes where another file of the project trains."""

    def __init__(self, facts: Linked) -> None:
        self._facts = facts
        self._names = facts.names

    def wrapped(self, load: cst.Call, read: cst.Call, keys: tuple[str, ...]) -> Wrapped | None:
        """What stands between the keys of a checkpoint and the model that it is loaded into, which fit nowhere."""
        path = self._names.argument(read, "f", 0)
        model = load.func.value if isinstance(load.func, cst.Attribute) else None
        origin = self._facts.values.constructor(model)
        if keys != ("state_dict",) or path is None or origin is None or not self._is_of_lightning(path.value):
            return None
        found, here = self._facts.of_class(origin.name), LightningCheckpoints(self._facts)
        if found is None or here.changes_keys(load):
            return None
        held = LightningCheckpoints(found[0]).names_of_state(found[1])
        holders = [self._holder(each, found, held) for each in self._training_files()] if held else []
        known = {each for each in holders if each is not None}
        wrapped = known.pop() if len(known) == 1 else None
        return wrapped if wrapped is not None and not here.spells(wrapped.attribute) else None

    def _training_files(self) -> list[Linked]:
        project, here = self._facts.project, self._facts.path
        found = [each for each in project.mentioning("training_step") if each != here]
        linked = [self._facts.other(each) for each in found]
        return [each for each in linked if each is not None]

    def _holder(self, other: Linked, network: Class, held: frozenset[str]) -> Wrapped | None:
        """The LightningModule of a file that holds a network under a name with which no key of that network begins."""
        if any(other.names.call(each) == SAVE for each in other.tree.all(cst.Call)):
            return None  # what it saves itself may have other keys
        checkpoints = LightningCheckpoints(other)
        for node in other.tree.all(cst.ClassDef):
            if other.classes.base_names(node) != (MODULE,):
                continue
            holding = checkpoints.names_of_state(node)
            for name in sorted(holding - held) if holding is not None and not holding & held else ():
                values = other.classes.attribute_values(node, name)
                if values and all(_makes(other, value, network) for value in values):
                    return Wrapped(node.name.value, name, network[1].name.value)
        return None

    def _is_of_lightning(self, path: cst.BaseExpression) -> bool:
        """Whether all that is known of a path ends as Lightning's checkpoints do, and something is known."""
        texts = self._texts(path, 0)
        return bool(texts) and all(isinstance(each, str) and each.endswith(_OF_LIGHTNING) for each in texts)

    def _texts(self, path: cst.BaseExpression, depth: int) -> list[object]:
        """The texts that a path can be: written, the default of an option, or what callers give."""
        if depth > _DEPTH:
            return [None]
        text = self._names.constant(path)
        if isinstance(text, str):
            return [text]
        default = option_default(self._facts.tree, self._names, path)
        if isinstance(default, str):
            return [default]
        bound = self._names.bindings.lookup(path) if isinstance(path, cst.Name) else []
        only = bound[0] if len(bound) == 1 else None
        if only is None:
            return [None]
        if only.kind is Kind.ASSIGN and only.value is not None and not only.path:
            return self._texts(only.value, depth + 1)
        function = only.scope
        if only.kind is not Kind.PARAMETER or not isinstance(function, cst.FunctionDef):
            return [None]
        calls = self._facts.hooks.calls_of.get(function, ())
        given = [self._facts.values.given(function, call, only.name) for call in calls]
        return [each for value in given for each in (self._texts(value, depth + 1) if value is not None else [None])]


def _makes(other: Linked, value: cst.BaseExpression, network: Class) -> bool:
    """Whether a value in another file is an object of a class."""
    origin = other.values.constructor(value)
    found = other.of_class(origin.name) if origin is not None else None
    return found is not None and (found[0].path, found[1].name.value) == (network[0].path, network[1].name.value)
