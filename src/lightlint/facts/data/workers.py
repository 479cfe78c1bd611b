"""Worker processes of one file: which calls start them, how many, and by which start method."""

from __future__ import annotations

from enum import StrEnum
from functools import cached_property

import libcst as cst

from lightlint.facts.basis import Basis
from lightlint.facts.code.bindings import Binding, Kind
from lightlint.facts.code.names import UNKNOWN
from lightlint.facts.data.passed import Passed, Taken, passed, taken


class Starter(StrEnum):
    """What kind of call starts, or later starts, processes."""

    LOADER = "DataLoader"
    POOL = "Pool"
    EXECUTOR = "ProcessPoolExecutor"
    PROCESS = "Process"
    SPAWN = "spawn"


class Method(StrEnum):
    """How a process starts. `PLATFORM` is Python's own choice: fork on Linux before Python 3.14, else spawn or forkserver."""

    FORK = "fork"
    SPAWN = "spawn"
    FORKSERVER = "forkserver"
    PLATFORM = "platform"
    UNKNOWN = "unknown"

    @property
    def pickles(self) -> bool:
        """Whether a process that starts this way surely gets what it needs pickled, and imports the main module again."""
        return self in {Method.SPAWN, Method.FORKSERVER}


LOADER = "torch.utils.data.DataLoader"
_ROOMS = ("multiprocessing", "torch.multiprocessing", "multiprocessing.pool", "multiprocessing.process")
_STARTERS = {
    LOADER: Starter.LOADER,
    "concurrent.futures.ProcessPoolExecutor": Starter.EXECUTOR,
    "concurrent.futures.process.ProcessPoolExecutor": Starter.EXECUTOR,
    "torch.multiprocessing.spawn": Starter.SPAWN,
    "torch.multiprocessing.start_processes": Starter.SPAWN,
    **{f"{room}.{each}": each for room in _ROOMS for each in (Starter.POOL, Starter.PROCESS)},
}
_CONTEXTS = {"multiprocessing.get_context", "torch.multiprocessing.get_context"}
_SETTERS = {"multiprocessing.set_start_method", "torch.multiprocessing.set_start_method"}
_CONTEXT_ARGUMENTS = {Starter.LOADER: ("multiprocessing_context", 11), Starter.EXECUTOR: ("mp_context", 1)}
_DEPTH = 4


class Workers:
    """What starts worker processes in one file."""

    def __init__(self, facts: Basis) -> None:
        self._facts = facts
        self._tree = facts.tree
        self._names = facts.names
        self._classes = facts.classes
        self._taken: dict[cst.Call, Taken] = {}

    def starter(self, call: cst.Call | None) -> Starter | None:
        """What a call starts processes with: a class of `multiprocessing`, torch's or a context's, or `mp.spawn`."""
        name = self._names.call(call)
        if name is not None or call is None:
            return _STARTERS.get(name or "")
        if isinstance(call.func, cst.Attribute) and self._context(call.func.value) is not None:
            return {"Pool": Starter.POOL, "Process": Starter.PROCESS}.get(call.func.attr.value)
        return None

    def made(self, expression: cst.CSTNode | None, depth: int = 0) -> cst.Call | None:
        """The one call that makes a value, through names, `with ... as` and attributes of `self`."""
        match expression:
            case cst.Call():
                return expression
            case cst.Name() if depth < _DEPTH:
                found = self._names.bindings.lookup(expression)
                plain = len(found) == 1 and found[0].kind in {Kind.ASSIGN, Kind.WITH} and not found[0].path
                return self.made(found[0].value, depth + 1) if plain else None
            case cst.Attribute(value=cst.Name() as receiver) if depth < _DEPTH and self._classes.is_self(receiver):
                node = self._tree.enclosing_class(expression)
                values = self._classes.attribute_values(node, expression.attr.value) if node is not None else []
                values = [each for each in values if not (isinstance(each, cst.Name) and each.value == "None")]
                return self.made(values[0], depth + 1) if len(values) == 1 else None
        return None

    def all_made(self, expression: cst.CSTNode | None) -> list[cst.Call]:
        """The calls that make a value, which may be one of what a loop goes through; empty if any is out of sight."""
        found = self._makers(expression, frozenset())
        return [each for each in found if each is not None] if None not in found else []

    def _makers(self, expression: cst.CSTNode | None, seen: frozenset[cst.CSTNode]) -> list[cst.Call | None]:
        """As `all_made`; None stands for what is out of sight. A binding that was met on the way adds nothing."""
        if not isinstance(expression, cst.Name):
            return [self.made(expression)]
        known = self._names.bindings.lookup(expression)
        found = [self._of_binding(each, seen | {each.site}) for each in known if each.site not in seen]
        return [call for each in found for call in each] if known else [None]

    def _of_binding(self, binding: Binding, seen: frozenset[cst.CSTNode]) -> list[cst.Call | None]:
        if binding.path or binding.value is None or binding.kind not in {Kind.LOOP, Kind.ASSIGN, Kind.WITH}:
            return [None]
        return (self._members if binding.kind is Kind.LOOP else self._makers)(binding.value, seen)

    def _members(self, value: cst.BaseExpression, seen: frozenset[cst.CSTNode]) -> list[cst.Call | None]:
        """The calls that make what a list holds, with what is appended to it."""
        parts: list[cst.BaseExpression] = []
        key = self._names.key(value)
        if key:
            node = self._classes.self_class(value.value) if isinstance(value, cst.Attribute) else None
            found = self._names.bindings.lookup(value) if isinstance(value, cst.Name) else []
            lists = self._classes.attribute_values(node, key.rpartition(".")[2]) if node is not None else []
            lists = lists or [each.value for each in found if each.kind is Kind.ASSIGN and not each.path and each.value]
            room = node or self._tree.owner(value)
            calls = [each for each in self._tree.within(room, cst.Call) if self._names.method(each) == "append"]
            filled = [each for each in calls if isinstance(each.func, cst.Attribute) and each.args]
            parts = [each.args[0].value for each in filled if self._names.key(getattr(each.func, "value", None)) == key]
        else:
            lists = [value]
        for each in lists:
            if isinstance(each, (cst.List, cst.Tuple)):
                parts += [element.value for element in each.elements]
            elif isinstance(each, (cst.ListComp, cst.GeneratorExp)):
                parts.append(each.elt)
            else:
                return [None]
        return [call for each in parts for call in self._makers(each, seen)] if lists else [None]

    def count(self, loader: cst.Call) -> object:
        """The number of workers of a DataLoader: 0 where it is not given, `UNKNOWN` where it is out of sight."""
        given = self.given(loader, "num_workers", 5)
        if not given.whole:
            return UNKNOWN
        counts = [self._constant(each) for each in given.values] + ([] if given.always else [0])
        return counts[0] if all(each == counts[0] for each in counts) else UNKNOWN

    def given(self, call: cst.Call, name: str, position: int | None = None) -> Passed:
        """What a DataLoader, or another starter of processes, may be given for a parameter, also by `**options`."""
        if call not in self._taken:
            self._taken[call] = taken(self._facts, call)
        return passed(self._facts, call, self._taken[call], name, position)

    def _constant(self, count: cst.BaseExpression) -> object:
        if self._names.call(count) in {"os.cpu_count", "multiprocessing.cpu_count"}:
            return 1
        return self._names.constant(count)

    def method(self, call: cst.Call) -> Method:
        """The start method of the processes that a call starts, from its own context or `set_start_method` in the file."""
        starter = self.starter(call)
        if starter is Starter.SPAWN:
            given = self._names.argument(call, "start_method", 4)
            return _named(self._names.constant(given.value)) if given else Method.SPAWN
        if starter in _CONTEXT_ARGUMENTS:
            passes = self.given(call, *_CONTEXT_ARGUMENTS[starter])
            if len(passes.values) == 1 and passes.always:
                (value,) = passes.values
                constant = self._names.constant(value)
                return _named(constant) if constant is not UNKNOWN else self._context(value) or Method.UNKNOWN
            if passes.values or not passes.whole:
                return Method.UNKNOWN
        elif isinstance(call.func, cst.Attribute) and self._names.call(call) is None:
            return self._context(call.func.value) or Method.UNKNOWN
        return self.default

    @cached_property
    def default(self) -> Method:
        """The start method that this file sets for all, the platform's where it sets none."""
        setters = [call for call in self._tree.all(cst.Call) if self._names.call(call) in _SETTERS]
        given = {_named(self._names.constant(call.args[0].value)) for call in setters if call.args}
        return (given.pop() if len(given) == 1 else Method.UNKNOWN) if setters else Method.PLATFORM

    def _context(self, expression: cst.BaseExpression) -> Method | None:
        """The start method of a context made with `get_context`, None for what is no context in sight."""
        made = self.made(expression)
        if self._names.call(made) not in _CONTEXTS or made is None:
            return None
        given = self._names.argument(made, "method", 0)
        return _named(self._names.constant(given.value)) if given else self.default


def _named(value: object) -> Method:
    if value is None:
        return Method.PLATFORM
    return Method(value) if value in {"fork", "spawn", "forkserver"} else Method.UNKNOWN
