"""The models as the machine asks for them."""

from __future__ import annotations

import ast
from copy import copy
from typing import cast

from lightlint.engine.arguments import Arguments
from lightlint.engine.calls import call, call_unknown
from lightlint.engine.containers import key_of, note_filled, note_part
from lightlint.engine.events import (
    CopySet,
    Emptied,
    EnvironmentSet,
    ItemSet,
    LightningAsked,
    LoadedUsed,
    NoneUsed,
    PartReplaced,
    Picked,
    PickedByTurn,
    StateRead,
)
from lightlint.engine.events.huggingface import ColumnAsked, Trimmed
from lightlint.engine.execution import Raised
from lightlint.engine.frames import Iteration
from lightlint.engine.imports import kept
from lightlint.engine.machine import WORKER, Machine
from lightlint.engine.misuse import ask
from lightlint.models import (
    averaging,  # noqa: F401 - its function registers itself
    functions,
    hearsay,
    objects,
    tensors,
)
from lightlint.models.annotations import annotated
from lightlint.models.data import iterables, learning, orders, sources
from lightlint.models.data.pictures import (
    configured,  # noqa: F401 - its functions register themselves
    resizing,  # noqa: F401 - the same
    transforms,
)
from lightlint.models.names.parameters import parameters_of
from lightlint.models.names.tables import BUILTINS, MOVES
from lightlint.models.numbers import gradients, halves
from lightlint.models.python import (
    containers,
    contexts,
    files,
    options,  # noqa: F401 - its functions register themselves
    records,
    standard,
)
from lightlint.models.ranks import (
    groups,
    seeds,  # noqa: F401 - its functions register themselves
)
from lightlint.models.registry import ITEMS
from lightlint.models.sequences import cuts
from lightlint.models.training import (
    checkpointing,  # noqa: F401 - its functions register themselves
    modules,
)
from lightlint.values import arrays
from lightlint.values.core import (
    FITTED,
    GATHERED,
    IDS,
    LASTING,
    LEFT_OUT,
    NO_TRAITS,
    ON_SOME,
    RANKING,
    Bound,
    Class,
    Constant,
    Function,
    Library,
    Mapping,
    Method,
    Namespace,
    NotYet,
    OtherRanksNone,
    Sequence,
    Super,
    Unknown,
    Value,
    identified,
    is_constant,
    number_of,
    text_of,
    traits_of,
)
from lightlint.values.training import Instance, Iterator, Module, Optimizer, Tensor, tensors_in


class LibraryModels:
    """What libraries and the values of training do."""

    def names_builtin(self, name: str) -> bool:
        return name in BUILTINS

    def attribute(self, machine: Machine, value: Value, name: str, node: ast.AST) -> Value:
        if isinstance(value, Instance):
            return objects.attribute(machine, value, name, node)
        if isinstance(value, Tensor):
            return tensors.attribute(machine, value, name, node)
        if isinstance(value, Library):
            return functions.library_attribute(machine, value, name)
        if isinstance(value, Namespace):
            found = value.scope.names.get(name)
            return kept(machine, found) if found is not None else Unknown(("import", value.name, name), hint=name)
        if isinstance(value, Class):
            if value.find(name) is None and value.libraries():
                machine.emit(LightningAsked(machine.where(node), value, name))
            return _of_class(value, name)
        if isinstance(value, Super):
            return _behind(machine, value, name, node)
        if isinstance(value, Unknown):
            return _of_unknown(machine, value, name, node)
        if isinstance(value, (Function, Bound)):
            return _of_function(value, name)
        if (
            isinstance(value, Sequence)
            and value.kind == "tuple"
            and len(value.items) == len(_OF_PAIRS)
            and name in _OF_PAIRS
        ):
            return value.items[_OF_PAIRS[name]]
        if isinstance(value, Mapping) and value.loaded is not None:
            machine.emit(LoadedUsed(machine.where(node), value.loaded, None, name))
        if isinstance(value, Mapping) and value.encoding is not None and not hasattr(dict, name) and name not in MOVES:
            return value.items.get(name) or Unknown(hint=name)
        if isinstance(value, Constant) and name == "type" and isinstance(value.value, str):
            return Constant(value.value.partition(":")[0])  # a device
        if isinstance(value, OtherRanksNone):
            machine.emit(NoneUsed(machine.where(node), value.call, value.name))
        if isinstance(value, NotYet) or value.giver:
            ask(machine, value, name, node)
        return Method(value, name)

    def set_attribute(self, machine: Machine, value: Value, name: str, new: Value, node: ast.AST) -> None:
        if isinstance(value, Instance):
            objects.set_attribute(machine, value, name, new, node)
        elif isinstance(value, Tensor):
            tensors.set_attribute(machine, value, name, new, node)
        elif isinstance(value, Namespace):
            value.scope.names[name] = new
        elif isinstance(value, Class):
            value.names[name] = new
        elif isinstance(value, Unknown):
            if value.key is not None and "rank" in new.traits:
                machine.of_unknown[value.key, name] = new
            machine.escape(new)

    def item(self, machine: Machine, value: Value, index: Value, node: ast.AST) -> Value:
        part = self._item(machine, value, index, node)
        orders.note_picked(machine, value, index, part, node)
        return part

    def _item(self, machine: Machine, value: Value, index: Value, node: ast.AST) -> Value:
        if value.filled_by is not None:
            _note_picked(machine, value, index, node)
        if isinstance(index, Sequence) and index.kind == "slice" and _is_gathered(value):
            machine.emit(Trimmed(machine.where(node), value))
        learning.note_cut(machine, value, index, node)
        if isinstance(value, Sequence):
            part = _of_sequence(value, index)
            note_part(machine, index, part)
            if machine.phases[-1] == WORKER and isinstance(index, Unknown) and index.key is not None:
                machine.emit(Picked(machine.where(node), part, index))
            return part
        if isinstance(value, Mapping):
            part = _of_mapping(machine, value, index, node)
            note_part(machine, index, part)
            return part
        if isinstance(value, Tensor):
            return tensors.item(machine, value, index, node)
        if isinstance(value, Instance):
            ask(machine, value, "[]", node)
            part = _of_instance(machine, value, index, node)
            note_part(machine, index, part)
            return part
        if isinstance(value, Library):
            return groups.from_environment(machine, index) if value.path == "os.environ" else value
        if isinstance(value, OtherRanksNone):
            machine.emit(NoneUsed(machine.where(node), value.call, value.name))
        if isinstance(value, NotYet):
            ask(machine, value, "[]", node)
        if isinstance(value, Constant) and isinstance(index, Constant):
            try:
                return Constant(value.value[index.value], value.traits)
            except Exception:
                return Unknown()
        if isinstance(value, Class):
            return value  # Generic[T]
        if value.encoding is not None and _is_whole(index):
            return value
        kept = value.items.items.get(key_of(index, None)) if isinstance(value, Unknown) and value.items else None
        if kept is not None:
            return kept
        crop = transforms.cropped(machine, value, index, node) if isinstance(value, Unknown) else None
        if crop is not None:
            return crop
        traits = traits_of(value) | traits_of(index) - IDS - GATHERED  # what ids choose are words, unless from ids
        if not isinstance(index, (Constant, Sequence)):
            traits -= LEFT_OUT  # a test may choose the rest
        keys = (identified(value).key, index.key)
        found = Unknown(("item", *keys) if None not in keys else None, traits, hint=text_of(index) or "")
        if traits & RANKING:
            found.answers = value.answers
        if isinstance(value, Unknown):
            found.axes = arrays.of_item(value, index)
        if isinstance(value, Unknown) and isinstance(index, Sequence):
            found.lent = value.lent  # a view of an array comes from the call that gave it
            cuts.note(found, value, index)
        return found

    def set_item(self, machine: Machine, value: Value, index: Value, new: Value, node: ast.AST) -> None:
        if isinstance(value, Unknown):
            value.traits |= new.traits & FITTED
        if _is_gathered(index) and _is_gathered(new):  # what comes again goes where it is already
            machine.emit(Trimmed(machine.where(node), index))
        if isinstance(value, Mapping):
            if isinstance(value.source, Optimizer):
                value.source.told |= text_of(index) == "params"
                return
            if value.copied is not None:
                machine.emit(CopySet(machine.where(node), value.copied, value))
            key = key_of(index, ("?", getattr(node, "lineno", 0)))
            value.items[key], value.said[key] = new, machine.site(node)
            if isinstance(new, Module):
                machine.emit(ItemSet(machine.where(node), value, key, new))
            value.more |= not isinstance(index, Constant)
            value.rewritten |= not isinstance(index, Constant)
            if "count" in index.traits:
                note_filled(machine, value, new)
        elif isinstance(value, Sequence):
            position = number_of(index)
            left_out = is_constant(new, -100) or (
                isinstance(new, Sequence) and any(is_constant(each, -100) for each in new.items)
            )
            if left_out and (position is None or value.more):
                value.items.append(Constant(-100))
            if position is not None and -len(value.items) <= position < len(value.items):
                value.items[int(position)] = new
            elif isinstance(index, Sequence):
                machine.emit(Emptied(machine.where(node), value))
                value.more = True
            else:
                place, among = _number_of_turn(index), value.items
                if place is not None and value.places.get(place, len(among)) < len(among):
                    among[value.places[place]] = new  # the loop runs again, and fills it anew
                elif value.more and among and not any(each is new for each in among):
                    if place is not None:
                        value.places[place] = len(among)
                    among.append(new)  # a place among those that are not shown
                value.more = True
        elif isinstance(value, Module):
            _set_part(machine, value, index, new, node)
            if value.escaped:  # who has the whole has its new part
                machine.escape(new)
        elif isinstance(value, Tensor):
            halves.set_item(machine, value, index, new, node)
            value.traits |= ON_SOME if machine.split_ranks else NO_TRAITS
            value.answer, value.terms, (value.data_of or value).filled = False, None, True
            value.mask = value.filling = None
            gradients.note_set(machine, value, index, new, node)
            by_place = isinstance(index, Sequence) and not tensors_in(index)  # and by no test for padding
            value.traits |= LEFT_OUT if is_constant(new, -100) and by_place else NO_TRAITS
            if value.role == "batch" and (name := text_of(index)) is not None:
                tensors.put_part(value, name, new)
            for each in tensors_in(new):
                value.graph |= each.graph
                value.parameters |= each.parameters
        elif isinstance(value, Instance):
            own = value.cls.find("__setitem__") if isinstance(value.cls, Class) else None
            if isinstance(own, Function):
                call(machine, Bound(value, own), Arguments([index, new]), node)
            elif "#items" in value.attributes:
                self.set_item(machine, value.attributes["#items"], index, new, node)
        elif isinstance(value, Library) and value.path == "os.environ":
            if isinstance(new, Constant) and not isinstance(new.value, str):
                raise Raised(Library("builtins.TypeError"))
            machine.emit(EnvironmentSet(machine.where(node), text_of(index)))
        elif isinstance(value, Unknown):
            value.traits -= LEFT_OUT
            machine.escape(new)
            _keep(value, index, new)

    def iterate(self, machine: Machine, value: Value, node: ast.AST) -> Iteration:
        if isinstance(value, OtherRanksNone):
            machine.emit(NoneUsed(machine.where(node), value.call, value.name))
        if isinstance(value, (NotYet, Instance)):
            ask(machine, value, "iter", node)
        return iterables.iterate(machine, value, node)

    def part(self, machine: Machine, value: Value, index: int | str, node: ast.AST) -> Value:
        if isinstance(value, Tensor):
            return tensors.part(machine, value, index, node)
        if isinstance(value, Sequence) and value.items:
            return value.items[index] if isinstance(index, int) and index < len(value.items) else value.items[-1]
        if isinstance(value, Instance) and value.kind == "shape":
            tensor = value.attributes["tensor"]
            assert isinstance(tensor, Tensor)
            return tensors.size(tensor, index)
        if isinstance(value, Instance) and "#parts" in value.attributes:
            return self.part(machine, value.attributes["#parts"], index, node)
        if isinstance(value, Instance) and isinstance(value.cls, Class):
            return self.item(machine, value, Constant(index), node)
        found = Unknown(("part", value.key, index) if value.key is not None else None, value.traits & LASTING)
        found.axes = arrays.of_part(value, index)
        return found

    def enter(self, machine: Machine, value: Value, node: ast.AST) -> tuple[Value, object]:
        return contexts.enter(machine, value, node)

    def leave(self, machine: Machine, value: Value, token: object, node: ast.AST) -> None:
        contexts.leave(machine, value, token, node)

    def binary(self, machine: Machine, operator: str, left: Value, right: Value, node: ast.AST) -> Value | None:
        for each in (left, right):
            if isinstance(each, OtherRanksNone):
                machine.emit(NoneUsed(machine.where(node), each.call, each.name))
        paths = [each for each in (left, right) if isinstance(each, Instance) and each.kind == "path"]
        if operator == "/" and paths:
            return objects.path(machine, node, left, right)
        found = tensors.binary(machine, operator, left, right, node)
        if found is not None:
            return found
        if isinstance(left, Instance) and isinstance(left.cls, Class):
            name = _OPERATOR_METHODS.get(operator)
            own = left.cls.find(name) if name is not None else None
            if isinstance(own, Function):
                return call(machine, Bound(left, own), Arguments([right]), node)
        return None

    def call_library(self, machine: Machine, function: Library, given: Arguments, node: ast.AST) -> Value:
        if given.star is not None and not isinstance(given.star, Sequence):
            given = Arguments(
                [*given.positional, self.part(machine, given.star, 0, node)],
                given.keywords,
                given.star,
                given.double_star,
                names=given.names,
            )
        if machine.phases[-1] == WORKER and "generator" in given.keywords:
            sources.draw(machine, given.keywords["generator"], node)
        return functions.call_library(machine, function, given, node)

    def parameters(self, path: str) -> tuple[str, ...]:
        return parameters_of(path)

    def call_method(self, machine: Machine, method: Method, given: Arguments, node: ast.AST) -> Value:
        value = method.receiver
        if isinstance(value, Unknown) and value.items is not None and method.name not in _READING:
            value.items = None
        if isinstance(value, Tensor):
            return tensors.call_method(machine, value, method.name, given, node)
        if isinstance(value, Sequence):
            return containers.sequence_method(machine, value, method.name, given, node)
        if isinstance(value, Mapping):
            return containers.mapping_method(machine, value, method.name, given, node)
        if isinstance(value, Constant):
            return containers.constant_method(machine, value, method.name, given, node)
        if isinstance(value, Unknown) and value.among and method.name in _OF_TEXTS:
            found = [containers.constant_method(machine, each, method.name, given, node) for each in value.among]
            if all(isinstance(each, Constant) and each.key == found[0].key for each in found):
                return found[0]
        if isinstance(value, Class):
            return standard.class_method(machine, value, method.name, given, node)
        if isinstance(value, Instance) and method.name in objects.OF_ROWS and value.row() is not None:
            return records.row_method(machine, value, method.name, given, node)
        if isinstance(value, Iterator) and method.name in ("__next__", "send"):
            return iterables.following(machine, value, None, node)
        return objects.call_method(machine, value, method.name, given, node)

    def call_object(self, machine: Machine, value: Value, given: Arguments, node: ast.AST) -> Value:
        if isinstance(value, Tensor):
            result = call_unknown(machine, value, given, node)
            # what a module out of sight gave is no tensor then, but an object, and its method may hand the graph on
            return tensors.derive(machine, node, value, *given.values()) if value.guessed else result
        return objects.call_object(machine, value, given, node)

    def make(self, machine: Machine, cls: Class, given: Arguments, node: ast.AST) -> Instance:
        return objects.make(machine, cls, given, node)

    def replace(self, machine: Machine, before: Value | None, new: Value, node: ast.AST) -> None:
        if isinstance(new, Instance):
            modules.note_replaced(machine, new, before, node)

    def told(self, machine: Machine, holder: Value | None, method: str, node: ast.AST) -> Value | None:
        return hearsay.told(machine, holder, method, node)

    def result_of(self, machine: Machine, hint: str, given: Arguments, node: ast.AST) -> Value | None:
        files.note_method(machine, hint, given, node)
        return hearsay.result_of(machine, hint, given.values(), node)

    def annotated(self, machine: Machine, value: Value, annotation: Value, name: str, node: ast.AST) -> Value:
        return annotated(machine, value, annotation, name, node)


_OF_PAIRS = {"values": 0, "indices": 1}  # what `max`, `sort` and `topk` along a dimension name their two tensors
_READING = {"get", "items", "keys", "values", "copy"}
_OPERATOR_METHODS = {
    "+": "__add__",
    "-": "__sub__",
    "*": "__mul__",
    "/": "__truediv__",
    "@": "__matmul__",
    "//": "__floordiv__",
}


def _note_picked(machine: Machine, value: Value, index: Value, node: ast.AST) -> None:
    """Write down that the number of a batch says what is taken of what the batches of another loop have left."""
    loop = machine.loops[-1] if machine.loops else None
    counted = traits_of(*index.items) if isinstance(index, Sequence) else index.traits
    before = value.filled_by
    if loop is None or loop.kind != "batch" or loop is before:
        return
    of_loop = isinstance(index.key, tuple) and index.key[:2] == ("index", loop.site[1])
    if "count" not in counted and not of_loop:
        return
    if before.over is not None and loop.over is not None and before not in machine.loops:
        machine.emit(PickedByTurn(machine.where(node), before.over, loop.over))


def _keep(value: Unknown, index: Value, new: Value) -> None:
    """Remember a text or flag that is put into something unknown under a name, as into a configuration from a file."""
    if not isinstance(index, Constant):
        value.items = None  # any of them, perhaps
    elif isinstance(new, Constant) and isinstance(new.value, (str, bool)):
        value.items = value.items or Mapping()
        value.items.items[key_of(index, None)] = new
    elif value.items is not None:
        value.items.items.pop(key_of(index, None), None)


def _number_of_turn(index: Value) -> tuple[int, int] | None:
    """What an index is the same by each time a loop runs: the loop and the number of its turn."""
    match index.key:
        case ("index", int() as line, tuple(), int() as turn):
            return line, turn
    return None


def _is_gathered(value: Value) -> bool:
    """Whether a value holds what all processes gathered."""
    held = value.items if isinstance(value, Sequence) else [value]
    return any(each.traits & GATHERED for each in held)


def _of_class(cls: Class, name: str) -> Value:
    found = cls.find(name)
    if isinstance(found, Function):
        return Bound(cls, found) if "classmethod" in found.flags else found
    if found is not None:
        return found
    if name in ("__name__", "__qualname__"):
        return Constant(cls.name)
    if name in ("load_from_checkpoint", "from_pretrained"):
        return Method(cls, name)
    return Unknown(("of class", cls.key, name), hint=name)


def _behind(machine: Machine, value: Super, name: str, node: ast.AST) -> Value:
    receiver = value.receiver
    if isinstance(receiver, Instance) and isinstance(receiver.cls, Class):
        found = receiver.cls.find(name, value.after)
        if isinstance(found, Function):
            return (
                Bound(receiver, found)
                if "property" not in found.flags
                else call(machine, found, Arguments([receiver]), node)
            )
        return Method(value, name)
    return Unknown()


def _of_unknown(machine: Machine, value: Unknown, name: str, node: ast.AST) -> Value:
    if value.loaded is not None:
        load, key = value.loaded
        machine.emit(LoadedUsed(machine.where(node), load, key, name))
    if name in groups.RANK_NAMES or name in groups.FIRST_NAMES:
        return groups.rank_value(machine, name)
    if value.key is not None and (value.key, name) in machine.of_unknown:
        return machine.of_unknown[value.key, name]
    if name in objects.OF_TENSORS or (value.among and name in _OF_TEXTS):
        return Method(value, name)
    key = identified(value).key
    found = Unknown(("of", key, name) if key is not None else None, value.traits & LASTING, hint=name)
    found.holder = value  # type: ignore[attr-defined]
    found.axes = arrays.of_attribute(value, name)
    return found


_OF_TEXTS = frozenset(["startswith", "endswith"])  # methods that give the same for most of several texts


def _of_function(value: Function | Bound, name: str) -> Value:
    function = value.function if isinstance(value, Bound) else value
    if name == "__name__" or (name == "__qualname__" and function is value):
        return Constant(function.name)
    if name == "__self__" and isinstance(value, Bound):
        return value.receiver
    return Unknown(("of function", function.name, name), hint=name)


def _of_sequence(value: Sequence, index: Value) -> Value:
    position = number_of(index)
    if position is not None:
        whole = int(position)
        value.taken.add(whole)
        if -len(value.items) <= whole < len(value.items) and (not value.more or whole >= 0):
            return value.items[whole]
        return value.items[-1] if value.items else Unknown()
    if isinstance(index, Sequence) and index.kind == "slice":
        if not value.more and all(isinstance(each, Constant) for each in index.items):
            bounds = [each.value for each in index.items if isinstance(each, Constant)]
            try:
                return Sequence(value.items[slice(*bounds)], value.kind)
            except (TypeError, ValueError):
                return Unknown()
        part = Sequence(value.items, value.kind, more=True)
        cuts.note(part, value, index)
        return part
    if index.key is not None and len(value.items) > 1:
        return value.items[0] if all(type(each) is type(value.items[0]) for each in value.items) else Unknown()
    return value.items[0] if value.items else Unknown()


def _is_whole(index: Value) -> bool:
    """Whether an index is `:`."""
    return (
        isinstance(index, Sequence) and index.kind == "slice" and all(is_constant(each, None) for each in index.items)
    )


_ANY = ("?", "any")


def _of_mapping(machine: Machine, value: Mapping, index: Value, node: ast.AST) -> Value:
    key = key_of(index, None)
    found = value.items.get(key) if key is not None else None
    if isinstance(found, Mapping) and key in value.unsure:
        found = copy(found)
        found.more = True
    if found is not None:
        return found
    if value.default is not None and (isinstance(index, Constant) or not value.items):
        own = (
            key if isinstance(index, Constant) and key is not None else _ANY
        )  # one key stands for all that are not known
        value.items[own] = call(machine, value.default, Arguments(), node)
        return value.items[own]
    if value.batch_of is not None and isinstance(key, str):
        machine.emit(ColumnAsked(machine.where(node), value.batch_of, key, value.row_of))
    if value.items and not isinstance(index, Constant):
        return containers.chosen(machine, value, index) or Unknown()
    entry = Unknown(("entry", key) if isinstance(key, str) else None, hint=key if isinstance(key, str) else "")
    if value.loaded is not None:
        machine.emit(StateRead(machine.where(node), value.loaded, value, index))
        entry.loaded = (value.loaded, key)
    elif value.source is None and value.batch_of is None and not (value.more or value.escaped):
        machine.unbound |= isinstance(index, Constant)
    return entry


def _of_instance(machine: Machine, value: Instance, index: Value, node: ast.AST) -> Value:
    if value.kind == "shape":
        tensor = value.attributes["tensor"]
        assert isinstance(tensor, Tensor)
        return tensors.size(tensor, number_of(index))
    if value.kind == "handle":
        return sources.handle_item(machine, value, index, node)
    if value.kind in ITEMS:
        return ITEMS[value.kind](machine, value, index, node)
    if "#parts" in value.attributes and number_of(index) is not None:
        return _of_sequence(cast(Sequence, value.attributes["#parts"]), index)
    row = value.row()
    if row is not None:
        return _of_sequence(Sequence(row, "tuple"), index)
    if isinstance(value, Module):
        if isinstance(value.items, dict):
            if isinstance(index, Constant):
                return value.items.get(index.value) or Unknown()
            return next(iter(value.items.values()), Unknown())
        if value.items is not None:
            part = _of_sequence(Sequence(value.items, more=value.more_items), index)
            return _of_same_kind(value, part) if isinstance(part, Sequence) else part
        if value.opaque:
            return objects.attribute(machine, value, f"[{index.value if isinstance(index, Constant) else '?'}]", node)
    if value.kind == "namespace" and isinstance(index, Constant) and isinstance(index.value, str):
        return objects.attribute(machine, value, index.value, node)
    own = value.cls.find("__getitem__") if isinstance(value.cls, Class) else None
    if isinstance(own, Function):
        return call(machine, Bound(value, own), Arguments([index]), node)
    held = value.attributes.get("#items")
    return _of_mapping(machine, held, index, node) if isinstance(held, Mapping) else Unknown()


def _of_same_kind(whole: Module, part: Sequence) -> Module:
    """A slice of a ModuleList or Sequential: one of its kind, with the same modules in it."""
    found = copy(whole)
    found.items, found.more_items, found.attributes = list(part.items), part.more, {}
    return found


def _set_part(machine: Machine, module: Module, index: Value, new: Value, node: ast.AST) -> None:
    if isinstance(module.items, dict):
        known = isinstance(index, Constant)
        module.items[index.value if isinstance(index, Constant) else ("unknown", index.key)] = new
        module.more_items = module.more_items or not known  # one of as many as there are names
    position = number_of(index)
    if module.items is None and module.opaque and isinstance(index, Constant):
        objects.set_attribute(machine, module, f"[{index.value}]", new, node)
    if isinstance(module.items, list) and position is not None and -len(module.items) <= position < len(module.items):
        machine.emit(PartReplaced(machine.where(node), module, module.items[int(position)], new))
        module.items[int(position)] = new
