"""Checkpoints that Lightning writes in a file which then loads one into the bare network of the LightningModule."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import Kind, dotted_name
from lightlint.facts.code.unknown import UNKNOWN
from lightlint.facts.objects.checkpoints import SAVE
from lightlint.facts.objects.classes import MODULE, NN_MODULE

if TYPE_CHECKING:
    from lightlint.facts.linked import Linked

_TRAINER = "lightning.Trainer"
_WRITTEN = {"best_model_path", "last_model_path"}
_SAME_PATH = {"builtins.str", "pathlib.Path", "os.fspath"}
_OWN_KEYS = {"state_dict", "load_state_dict", "on_save_checkpoint", "on_load_checkpoint", "__setattr__"}
_REGISTERING = {"add_module", "register_module", "register_parameter", "register_buffer", "setattr", "__setattr__"}
_DEPTH = 6

Place = (
    tuple[object, ...] | None
)  # one value of a path: a constant, or a variable of one scope; None for one out of sight


@dataclass(frozen=True, slots=True)
class Wrapped:
    """A LightningModule that a file trains, and the attribute that holds its network."""

    module: str
    attribute: str
    network: str


class LightningCheckpoints:
    """The checkpoints of the one LightningModule that a file trains."""

    def __init__(self, facts: Linked) -> None:
        self._facts = facts
        self._names = facts.names
        self._tree = facts.tree
        self._classes = facts.classes

    def wrapped(self, load: cst.Call, read: cst.Call, keys: tuple[str, ...]) -> Wrapped | None:
        """What stands between the keys of a checkpoint and the model that it is loaded into, which fit nowhere."""
        path = self._names.argument(read, "f", 0)
        network = self._class_of(load.func.value) if isinstance(load.func, cst.Attribute) else None
        if keys != ("state_dict",) or path is None or network is None or self._trained is None:
            return None
        holding, held = self.names_of_state(self._trained), self.names_of_state(network)
        if holding is None or held is None or holding & held or self.changes_keys(load):
            return None
        attribute = next((each for each in sorted(holding) if self._is_made_as(each, network)), "")
        if not attribute or self.spells(attribute) or not self._is_written(path.value):
            return None
        return Wrapped(self._trained.name.value, attribute, network.name.value)

    @cached_property
    def _trained(self) -> cst.ClassDef | None:
        """The one LightningModule of this file that its trainers fit."""
        models = [self._names.argument(call, "model", 0) for call in self._calls_on_trainer("fit")]
        found = {self._class_of(each.value) if each is not None else None for each in models}
        node = found.pop() if len(found) == 1 else None
        return node if node is not None and self._classes.base_names(node) == (MODULE,) else None

    def _calls_on_trainer(self, method: str) -> Iterator[cst.Call]:
        for call in self._tree.all(cst.Call):
            if self._names.method(call) == method and isinstance(call.func, cst.Attribute):
                origin = self._facts.values.constructor(call.func.value)
                if origin is not None and origin.name == _TRAINER:
                    yield call

    def _class_of(self, value: cst.BaseExpression) -> cst.ClassDef | None:
        origin = self._facts.values.constructor(value)
        return self._classes.local(origin.name) if origin is not None else None

    def names_of_state(self, node: cst.ClassDef) -> frozenset[str] | None:
        """The attributes by whose names a class's state dict begins, and others; None where more may be in it."""
        if self._classes.base_names(node) not in {(MODULE,), (NN_MODULE,)} or any(
            name in self._classes.methods(node) for name in _OWN_KEYS
        ):
            return None
        if any(self._names.method(call) in _REGISTERING for call in self._tree.within(node, cst.Call)):
            return None
        stored = [
            target.target.attr.value
            for target in self._tree.within(node, cst.AssignTarget)
            if isinstance(target.target, cst.Attribute) and self._classes.self_class(target.target.value) is node
        ]
        return frozenset(name for name in stored if not self._is_constant(node, name))

    def _is_constant(self, node: cst.ClassDef, attribute: str) -> bool:
        values = self._classes.attribute_values(node, attribute)
        return bool(values) and all(self._names.constant(value) is not UNKNOWN for value in values)

    def _is_made_as(self, attribute: str, network: cst.ClassDef) -> bool:
        values = self._classes.attribute_values(self._trained, attribute) if self._trained is not None else []
        return bool(values) and all(self._class_of(value) is network for value in values)

    def changes_keys(self, load: cst.Call) -> bool:
        """Whether the function of a load may rename what it loads: it sets or takes out items."""
        owner = self._tree.owner(load)
        items = [each for each in self._tree.own(owner, cst.AssignTarget) if isinstance(each.target, cst.Subscript)]
        calls = self._tree.own(owner, cst.Call)
        return bool(items) or any(self._names.method(call) in {"pop", "update", "popitem"} for call in calls)

    def spells(self, attribute: str) -> bool:
        """Whether the file knows of the prefix."""
        texts = (self._names.constant(each) for each in self._tree.all(cst.SimpleString))
        return any(isinstance(text, str) and text.startswith(f"{attribute}.") for text in texts)

    def _is_written(self, path: cst.BaseExpression) -> bool:
        """Whether Lightning surely wrote the file at a path: `best_model_path`, or what `save_checkpoint` is given."""
        sources = self._facts.reaching.sources(path)
        if all(isinstance(each, cst.Attribute) and each.attr.value in _WRITTEN for each in sources):
            return True
        read = self._places(path, 0)
        if len(read) != 1 or None in read:
            return False
        given = [self._names.argument(call, "filepath", 0) for call in self._calls_on_trainer("save_checkpoint")]
        saves = [call for call in self._tree.all(cst.Call) if self._names.call(call) == SAVE]
        others = [self._names.argument(call, "f", 1) for call in saves]
        ours, theirs = ([self._places(each.value, 0) for each in args if each is not None] for args in (given, others))
        return read in ours and not any(places & {*read, None} for places in theirs)

    def _places(self, path: cst.BaseExpression, depth: int) -> set[Place]:
        """Where a path comes from, followed to the callers of a function that it is a parameter of."""
        text = self._names.constant(path)
        if isinstance(text, str):
            return {("text", text)}
        if isinstance(path, cst.Call) and self._names.call(path) in _SAME_PATH and len(path.args) == 1:
            return self._places(path.args[0].value, depth)
        name, word = path, dotted_name(path)
        while isinstance(name, cst.Attribute):
            name = name.value
        found = self._names.bindings.lookup(name) if isinstance(name, cst.Name) else []
        if len(found) != 1 or not word or depth > _DEPTH:
            return {None}
        function = found[0].scope
        if found[0].kind is not Kind.PARAMETER or not isinstance(function, cst.FunctionDef) or name is not path:
            return {("variable", id(function), word)}
        calls = self._facts.hooks.calls_of.get(function, ())
        given = [self._facts.values.given(function, call, word) for call in calls]
        parts = [self._places(each, depth + 1) if each is not None else {None} for each in given]
        return set[Place]().union(*parts) or {None}
