"""Python's own functions."""

from __future__ import annotations

import ast
import builtins
import numbers
import re
from collections import abc
from collections.abc import Callable, Hashable
from typing import cast

from lightlint.engine.arguments import Arguments
from lightlint.engine.calls import call
from lightlint.engine.containers import key_of, listed, made, note_entry, note_twins
from lightlint.engine.events import NumberTaken, Written
from lightlint.engine.execution import Raised
from lightlint.engine.language import operators
from lightlint.engine.machine import Machine
from lightlint.engine.misuse import ask
from lightlint.models import objects, tensors
from lightlint.models.data import iterables, loaders, sources
from lightlint.models.names.classes import class_of, is_apart, is_none_of
from lightlint.models.names.tables import DEVICES
from lightlint.models.registry import is_lightning
from lightlint.values.core import (
    ARRAYS,
    FALSE,
    NONE,
    TRUE,
    WHOLE,
    Bound,
    Class,
    Constant,
    Function,
    Library,
    Mapping,
    NotYet,
    Sequence,
    Unknown,
    Value,
    is_constant,
    is_device,
    text_of,
    traits_of,
)
from lightlint.values.training import Instance, Iterator, Loader, Module, Optimizer, Schedule, Tensor, tensors_in

Builtin = Callable[[Machine, Arguments, ast.AST], Value]


def call_builtin(machine: Machine, name: str, given: Arguments, node: ast.AST) -> Value:
    """A call of a built-in function."""
    model = _BUILTINS.get(name)
    if model is not None:
        return model(machine, given, node)
    if isinstance(getattr(builtins, name, None), type) and issubclass(getattr(builtins, name), BaseException):
        return machine.instance(Library(f"builtins.{name}"), "exception", node)
    return Unknown(None, traits_of(*given.values()) - ARRAYS)


def _len(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    value = given.get(0, "")
    if isinstance(value, (NotYet, Optimizer, Schedule)):
        ask(machine, value, "len", node)
    if isinstance(value, (Sequence, Mapping)):
        grows = value.more or (isinstance(value, Sequence) and value.grows)
        return Unknown(("length", id(value)), plain=True) if grows else Constant(len(value.items))
    if isinstance(value, Loader):
        return loaders.length(value)
    if isinstance(value, Iterator):
        source = value.source
        bound = getattr(source, "bound", None)
        return bound if isinstance(bound, Value) else Unknown()
    if isinstance(value, Module) and value.items is not None:
        return Constant(len(value.items)) if not value.more_items else Unknown()
    if isinstance(value, Instance):
        own = value.cls.find("__len__") if isinstance(value.cls, Class) else None
        if isinstance(own, Function) and value.kind not in ("data set", "sampler", "loader"):
            return call(machine, Bound(value, own), Arguments(), node)
        if value.kind in ("data set", "sampler"):
            return loaders.sample_count(value)
        if value.kind == "shape":
            return Unknown()
        row = value.row()
        if row is not None:
            return Constant(len(row))
    if isinstance(value, Tensor):
        return tensors.size(value, 0)
    if isinstance(value, Constant) and isinstance(value.value, (str, bytes, tuple)):
        return Constant(len(value.value))
    if isinstance(value, Unknown) and value.key is not None:
        hint = value.hint.lower()
        trait = (
            "batches"
            if iterables.looks_like_loader(value)
            else "samples"
            if hint.endswith(("dataset", "_set", "_ds", "trainset", "testset"))
            else ""
        )
        return Unknown(("length", value.key), frozenset({trait} if trait else ()), plain=True)
    return Unknown(plain=True)


def _iter(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    value = given.get(0, "") or NONE
    if isinstance(value, Iterator) or len(given.positional) > 1:
        return value
    if isinstance(value, Sequence):
        return iterables.iterator(machine, iterables.sequence(machine, value, node), node, "iterator")
    return iterables.iterator(machine, iterables.iterate(machine, value, node), node, "iterator")


def _next(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    return iterables.following(machine, given.get(0, "") or NONE, given.get(1, ""), node)


def _range(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    return iterables.range_of(machine, given.positional, node)


def _enumerate(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    return iterables.enumerate_of(machine, given.get(0, "iterable") or NONE, node, given.get(1, "start"))


def _zip(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    if given.star is not None:
        machine.escape(given.star)
        return Sequence([], more=True)
    return iterables.zip_of(machine, given.positional, node)


def _container(kind: str) -> Builtin:
    def container(machine: Machine, given: Arguments, node: ast.AST) -> Value:
        value = given.get(0, "")
        if value is None:
            return made(machine, Sequence([], kind), node)
        items, known = iterables.taken_together(machine, value, node)
        found = made(machine, Sequence(items, kind, more=not known), node)
        if isinstance(value, Sequence) and value.kind == "parameters":
            found.more = value.more
        return found

    return container


def _reordered(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    value = given.get(0, "") or NONE
    if isinstance(value, Sequence):
        return made(machine, Sequence(value.items, "list", more=value.more), node)
    items, known = listed(machine, value, node)
    return made(machine, Sequence(items, "list", more=not known), node)


def _sorted(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    found = _reordered(machine, given, node)
    if isinstance(found, Sequence):
        found.sorted = True
    return found


def _dict(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    found = Mapping(dict(given.keywords.items()), more=given.double_star is not None)
    value = given.get(0, "")
    if isinstance(value, Mapping):
        found = Mapping({**value.items, **found.items}, more=value.more or found.more, source=value.source)
        found.said = {key: site for key, site in value.places().items() if key not in given.keywords}
    elif value is not None:
        rows, known = listed(machine, value, node)
        found.more |= not known
        for number, row in enumerate(rows):
            if isinstance(row, Sequence) and len(row.items) == 2:
                found.items[key_of(row.items[0], ("?", number))] = row.items[1]
            else:
                found.more = True
    if isinstance(value, Mapping) and value.source is not None:
        found.made, found.depth, found.rewritten = (
            value.made,
            value.depth,
            value.rewritten,
        )  # a state's tensors are those of its module still
        return found
    machine.clock += 1
    found.made, found.depth = machine.clock, len(machine.loops)
    found.site = machine.site(node)
    note_twins(machine, found, node)
    return found


def _number(name: str) -> Builtin:
    python: Callable[..., object] = getattr(builtins, name)

    def number(machine: Machine, given: Arguments, node: ast.AST) -> Value:
        value = given.get(0, "")
        if value is None:
            return Constant(python()) if given.exact else Unknown(plain=True)
        if isinstance(value, Tensor):
            return tensors.number_in(machine, value, name, node) if name != "str" else Unknown(plain=True)
        if isinstance(value, Constant) and len(given.positional) == 1:
            try:
                return Constant(python(value.value), value.traits)
            except Exception:
                return Unknown(None, value.traits, plain=True)
        if isinstance(value, Unknown) and name != "str" and name != "bool":
            traits = value.traits | WHOLE if name == "int" else value.traits - WHOLE
            found = Unknown(value.key, traits, hint=value.hint, plain=True, factors=value.factors)
            found.terms, found.lent = ("abs", (value,)) if name == "abs" else value.terms, value.lent
            found.by_one = value.by_one
            return found
        if name == "bool":
            known = machine.truth(value)
            return Constant(known) if known is not None else Unknown(value.key, value.traits, plain=True)
        return Unknown((name, value.key) if value.key is not None else None, value.traits - ARRAYS, plain=True)

    return number


def _extreme(name: str) -> Builtin:
    def extreme(machine: Machine, given: Arguments, node: ast.AST) -> Value:
        values = given.positional
        if len(values) > 1 and all(isinstance(each, Constant) for each in values):
            try:
                return Constant(getattr(builtins, name)(each.value for each in values if isinstance(each, Constant)))
            except TypeError:
                return Unknown()
        if len(values) == 2:
            for one, other in (values, values[::-1]):
                if name == "max" and is_constant(one, 1, 0):
                    return other
                if name == "min" and is_constant(one, 1) and isinstance(other, Unknown) and other.key == DEVICES:
                    return one
        keys = tuple(each.key for each in values)
        key = (name, *keys) if None not in keys else None
        bounded = [each for each in values if isinstance(each, Unknown)]
        factors = bounded[0].factors if len(bounded) == 1 and len(values) == 2 else None  # of what the other bounds
        return Unknown(key, traits_of(*values) - {"index", "batch-mean", "summed"}, plain=True, factors=factors)

    return extreme


def _sum(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    value = given.get(0, "iterable")
    if value is None:
        return Unknown()
    items, known = listed(machine, value, node)
    total: Value | None = None
    for item in items:
        total = item if total is None else operators.binary(machine, "+", total, item, node)
    if total is None:
        return Constant(0) if known else Unknown()
    if isinstance(total, Constant) and not known:
        return Unknown(None, total.traits, plain=True)
    if isinstance(total, Unknown):
        traits = total.traits | {"summed"}
        if "batch-size" in traits and not known:
            traits = traits - {"batch-size"} | {"samples"}
        summed = Unknown(total.key if known else None, traits, plain=True)
        summed.answers = total.answers
        return summed
    return total


def _any_all(name: str) -> Builtin:
    def any_all(machine: Machine, given: Arguments, node: ast.AST) -> Value:
        value = given.get(0, "iterable")
        if isinstance(value, Sequence) and not value.more:
            truths = [machine.truth(item) for item in value.items]
            if None not in truths:
                return Constant(getattr(builtins, name)(truths), traits_of(*value.items))
        return Unknown(None, traits_of(*(value.items if isinstance(value, Sequence) else [])), plain=True)

    return any_all


def _isinstance(machine: Machine, given: Arguments, _: ast.AST) -> Value:
    value, wanted = given.get(0, ""), given.get(1, "")
    kinds = wanted.items if isinstance(wanted, Sequence) else [wanted] if wanted is not None else []
    found = _is_instance(value, kinds)
    if found is None and kinds and is_none_of(value, kinds):
        found = False
    if found is not None:
        return Constant(found)
    key = None if value is None or value.key is None else ("is instance", value.key, tuple(each.key for each in kinds))
    return Unknown(key, plain=True)


_CONTAINERS = {f"builtins.{each}" for each in ("list", "tuple", "dict", "set", "str", "int", "float")}


_SCHEDULE = re.compile(r"torch\.optim\.lr_scheduler\.(?!_?LRScheduler$)\w+")


def _are_other_schedules(cls: Library, paths: list[str]) -> bool:
    """Whether a class is a schedule of torch, and others are others: but for the base of all, none derives from another."""
    return all(_SCHEDULE.fullmatch(each) for each in (cls.path, *paths))


def _is_instance(value: Value | None, kinds: list[Value]) -> bool | None:
    paths = [each.path for each in kinds if isinstance(each, Library)]
    if isinstance(value, Instance):
        lineage = value.cls.lineage() if isinstance(value.cls, Class) else [value.cls]
        names = {each.last for each in lineage if isinstance(each, Library)}
        if value.row() is not None and "builtins.tuple" in paths:
            return True
        if any(each in lineage for each in kinds) or any(path.rpartition(".")[2] in names for path in paths):
            return True
        if isinstance(value, Module) and "torch.nn.Module" in paths:
            return True
        if isinstance(value, Optimizer) and any(path.endswith("Optimizer") for path in paths):
            return True
        if isinstance(value.cls, Library) and len(paths) == len(kinds) and _are_other_schedules(value.cls, paths):
            return False
        plain = paths and len(paths) == len(kinds) and set(paths) <= _CONTAINERS
        if plain and isinstance(value, (Optimizer, Schedule, Loader)) and not value.assumed:
            return False
        vague = value.kind in ("unknown", "namespace", "path", "iterator", "context") or getattr(value, "opaque", False)
        if (
            vague
            or isinstance(value.cls, Library)
            or not value.cls.sees_all()
            or any(isinstance(k, Unknown) for k in kinds)
        ):
            return None
        if isinstance(value, Module) and {each.path for each in lineage if isinstance(each, Library)} == {
            "torch.nn.Module"
        }:
            return (
                False if all(path.startswith(("builtins.", "torch.nn.")) for path in paths) else None
            )  # it is none of those
        return False if not paths or all(path.startswith("builtins.") for path in paths) else None
    if isinstance(value, Tensor):
        if value.role == "batch" or len(paths) < len(kinds):
            return None
        return any(
            path.rpartition(".")[2] in ("Tensor", "Parameter" if value.parameter else "Tensor") for path in paths
        )
    if len(paths) < len(kinds):
        return None
    if is_device(value):
        return "torch.device" in paths
    if isinstance(value, Constant):
        types = [_python_class(path) for path in paths]
        return any(isinstance(each, type) and isinstance(value.value, each) for each in types)
    if isinstance(value, Sequence):
        return f"builtins.{value.kind}" in paths or any("Sequence" in path or "Iterable" in path for path in paths)
    if isinstance(value, Mapping):
        return any(
            path.rpartition(".")[2] in ("dict", "Mapping", "MutableMapping", "OrderedDict", "defaultdict")
            for path in paths
        )
    return None


def _issubclass(_: Machine, given: Arguments, __: ast.AST) -> Value:
    cls, wanted = given.get(0, ""), given.get(1, "")
    kinds = wanted.items if isinstance(wanted, Sequence) else [wanted] if wanted is not None else []
    if not isinstance(cls, (Class, Library)) or not kinds:
        return Unknown(plain=True)
    lineage = cls.lineage() if isinstance(cls, Class) else [cls]
    names = {each.last for each in lineage if isinstance(each, Library)}
    if any(each in lineage or (isinstance(each, Library) and each.last in names) for each in kinds):
        return TRUE
    bases = [each for each in lineage if isinstance(each, Library)]
    whole = bool(bases) and all(isinstance(each, (Class, Library)) for each in lineage)
    if whole and all(is_apart(base.path, kind) for base in bases for kind in kinds):
        return FALSE
    return Unknown(("is subclass", cls.key, tuple(each.key for each in kinds)), plain=True)


def _dir(_: Machine, given: Arguments, __: ast.AST) -> Value:
    key = getattr(given.get(0, ""), "key", None)
    return Unknown(("dir", key) if key is not None else None)


def _python_class(path: str) -> object:
    """A class of Python's own, None for another's."""
    root, _, last = path.rpartition(".")
    places = {"builtins": builtins, "numbers": numbers, "collections": abc, "collections.abc": abc, "typing": abc}
    return getattr(places.get(root), last, None)


def _getattr(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    value, name, default = given.get(0, ""), text_of(given.get(1, "")), given.get(2, "")
    if value is None or name is None:
        if value is not None and isinstance(value, Library):
            return Unknown(None, hint=value.last)
        machine.escape(value)
        return Unknown()
    if default is not None and isinstance(value, Instance) and _shows_all(value) and _has(value, name) is False:
        return default
    found = machine.models.attribute(machine, value, name, node)
    note_entry(machine, found, node, back=True)
    return found


def _shows_all(value: Instance) -> bool:
    if isinstance(value.cls, Class):
        return value.cls.sees_all()
    return isinstance(value, Module) and objects.is_parallel_wrapper(value)


def _has(value: Instance, name: str) -> bool | None:
    if name in value.attributes or (isinstance(value.cls, Class) and value.cls.find(name) is not None):
        return True
    if name in _OF_LIGHTNING and isinstance(value, Module) and is_lightning(value):
        return True
    if isinstance(value, Module) and name == "module" and not value.opaque:
        return value.wraps is not None
    if isinstance(value, Module) and objects.is_parallel_wrapper(value):
        return False if not (value.escaped or objects.wrappers_have(name)) else None
    if value.kind == "object" and isinstance(value.cls, Class) and value.cls.sees_all() and not value.escaped:
        return False
    return None


_OF_LIGHTNING = frozenset(
    ["device", "dtype", "hparams", "current_epoch", "global_step", "automatic_optimization", "log", "log_dict"]
)
"""What each LightningModule has, without a Trainer, too."""


_OF_TORCH_2 = frozenset(
    ["scaled_dot_product_attention", "compile", "inference_mode", "set_float32_matmul_precision", "vmap"]
)
"""Names for which programs look whether torch has them, and which each torch of these days has."""


def _hasattr(_: Machine, given: Arguments, __: ast.AST) -> Value:
    value, name = given.get(0, ""), text_of(given.get(1, ""))
    present = _has(value, name) if isinstance(value, Instance) and name is not None else None
    if isinstance(value, Library) and value.path.startswith("torch.") and name in _OF_TORCH_2:
        present = True
    if present is not None:
        return Constant(present)
    return Unknown(("has", value.key, name) if value is not None and value.key is not None else None, plain=True)


def _setattr(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    value, name, new = given.get(0, ""), text_of(given.get(1, "")), given.get(2, "")
    if value is not None and name is not None and new is not None:
        machine.models.set_attribute(machine, value, name, new, node)
    else:
        machine.escape(value)
        machine.escape(new)
    return NONE


def _map(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    if not given.positional:
        return Unknown()
    return iterables.mapped(machine, given.positional[0], given.positional[1:], node)


def _filter(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    if len(given.positional) < 2:
        return Unknown()
    test, value = given.positional[:2]
    items, known = listed(machine, value, node)
    kept: list[Value] = []
    for item in items:
        verdict = item if is_constant(test, None) else call(machine, test, Arguments([item]), node)
        outcome = machine.truth(verdict)
        known &= outcome is not None
        if outcome is not False:
            kept.append(item)
    return Sequence(kept, "generator", more=not known, site=machine.site(node))


def _open(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    mode = given.get(1, "mode")
    if writes(mode):
        path = given.get(0, "file")
        if not (text_of(path) == "/dev/null" or getattr(path, "path", "") == "os.devnull"):
            machine.emit(Written(machine.where(node), "open", path))
        return machine.instance(Library("io.File"), "file", node)
    made = sources.open_file(machine, "open", None, node)
    made.arguments["file"] = given.get(0, "file") or NONE
    return made


def writes(mode: Value | None) -> bool:
    """Whether a file opened in a mode is surely written anew or appended to."""
    text = text_of(mode)
    return text is not None and text[:1] in ("w", "a", "x")


def _type(_: Machine, given: Arguments, __: ast.AST) -> Value:
    value = given.get(0, "")
    return value.cls if isinstance(value, Instance) else class_of(value) or Unknown()


def _callable(_: Machine, given: Arguments, __: ast.AST) -> Value:
    value = given.get(0, "")
    if isinstance(value, (Constant, Function, Bound, Class)):
        return Constant(not isinstance(value, Constant))
    key = ("callable", value.key) if value is not None and value.key is not None else None
    return Unknown(key, plain=True)


def _vars(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    value = given.get(0, "")
    if isinstance(value, Instance) and value.kind == "namespace":
        return objects.names_of(machine, value, node)
    if isinstance(value, Instance) and value.kind == "object" and not value.escaped and _is_plain(value):
        held = Mapping()
        held.items = cast("dict[Hashable, Value]", value.attributes)  # what is put into it is set
        return held
    machine.escape(value)
    return Mapping(more=True)


def _is_plain(value: Instance) -> bool:
    """Whether all that an object holds is in sight, and nothing but that."""
    names_all = isinstance(value.cls, Class) and value.cls.sees_all()
    return names_all and not any(name.startswith("#") for name in value.attributes)


def _exit(machine: Machine, _: Arguments, __: ast.AST) -> Value:
    raise Raised(Library("builtins.SystemExit"))


def _print(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    shown = [each for value in given.values() for each in tensors_in(value)]
    if machine.pending:
        tensors.note_early(machine, shown, node)
    for each in shown:
        machine.emit(NumberTaken(machine.where(node), each))
    return NONE


class _Identity:
    """What `id` gives: equal for one object, and for no two."""

    def __init__(self, of: Value) -> None:
        self.of = of

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other.of is self.of

    def __hash__(self) -> int:
        return id(self.of)

    def __repr__(self) -> str:
        return "id"


def _id(_: Machine, given: Arguments, __: ast.AST) -> Value:
    value = given.get(0, "")
    return Constant(_Identity(value)) if isinstance(value, (Tensor, Instance)) else Unknown(plain=True)


def _nothing(_: Machine, __: Arguments, ___: ast.AST) -> Value:
    return NONE


_BUILTINS: dict[str, Builtin] = {
    "len": _len,
    "iter": _iter,
    "next": _next,
    "range": _range,
    "enumerate": _enumerate,
    "zip": _zip,
    "list": _container("list"),
    "tuple": _container("tuple"),
    "set": _container("set"),
    "frozenset": _container("set"),
    "sorted": _sorted,
    "reversed": _reordered,
    "dict": _dict,
    "int": _number("int"),
    "float": _number("float"),
    "round": _number("round"),
    "abs": _number("abs"),
    "bool": _number("bool"),
    "str": _number("str"),
    "max": _extreme("max"),
    "min": _extreme("min"),
    "sum": _sum,
    "any": _any_all("any"),
    "all": _any_all("all"),
    "isinstance": _isinstance,
    "issubclass": _issubclass,
    "dir": _dir,
    "getattr": _getattr,
    "hasattr": _hasattr,
    "setattr": _setattr,
    "callable": _callable,
    "map": _map,
    "filter": _filter,
    "open": _open,
    "type": _type,
    "id": _id,
    "vars": _vars,
    "print": _print,
    "exit": _exit,
    "quit": _exit,
}
