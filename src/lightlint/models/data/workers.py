"""What a loader's worker does with its copy of the data set: one sample, with the functions that the loader gives it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from lightlint.engine.arguments import Arguments
from lightlint.engine.calls import call
from lightlint.engine.events import LoaderWorked
from lightlint.engine.machine import WORKER, Machine
from lightlint.values.core import Bound, Class, Function, Sequence, Unknown, Value, is_constant
from lightlint.values.training import Instance, Loader

_MOST_STEPS = 300
_READS = ("__getitem__", "__getitems__", "__iter__")
_DEPTH = 3


def work(machine: Machine, loader: Loader, node: ast.AST) -> None:
    """Let a worker make a sample, on the default path of an entry and once for each data set."""
    workers, data = loader.arguments.get("num_workers"), data_of(loader)
    seen = (loader.data, loader.arguments.get("collate_fn"), loader.arguments.get("worker_init_fn"))
    idle = workers is None or is_constant(workers, 0) or machine.flips or machine.rank or seen in machine.worked
    if idle or machine.phases[-1] == WORKER:
        return
    machine.worked.append(seen)
    where, outside = machine.where(node), machine.events
    machine.events = []
    with _copied(machine, [data, *seen[1:]]), _apart(machine), suppress(Exception):  # of the program, or a spent budget
        _run(machine, loader, data, node)
    inside, machine.events = machine.events, outside
    machine.emit(LoaderWorked(where, loader, inside))


def data_of(loader: Loader) -> Value | None:
    """The data set behind parts and wrappers of it."""
    value = loader.data
    for _ in range(_DEPTH):
        inner = value.arguments.get("dataset") if isinstance(value, Instance) else None
        if inner is None:
            break
        value = inner
    return value


def _run(machine: Machine, loader: Loader, data: Value | None, node: ast.AST) -> None:
    begin, collate = loader.arguments.get("worker_init_fn"), loader.arguments.get("collate_fn")
    machine.worker_data = data
    if begin is not None and not is_constant(begin, None):
        call(machine, begin, Arguments([Unknown(("worker id",), frozenset({"worker"}), plain=True)]), node)
    sample: Value = Unknown()
    cls = data.cls if isinstance(data, Instance) else None
    read = (
        next((found for name in _READS if (found := cls.find(name)) is not None), None)
        if isinstance(cls, Class)
        else None
    )
    if isinstance(read, Function) and data is not None:
        given = [Unknown(("index",), plain=True)] if read.name != "__iter__" else []
        sample = call(machine, Bound(data, read), Arguments([*given]), node)
        if read.name == "__iter__":
            sample = machine.models.iterate(machine, sample, node).pull(0) or sample
    if collate is not None and not is_constant(collate, None):
        call(machine, collate, Arguments([Sequence([sample], more=True)]), node)


@contextmanager
def _copied(machine: Machine, values: list[Value | None]) -> Iterator[None]:
    """A worker changes its own copy: all is as it was behind it."""
    kept: dict[int, tuple[Instance, dict[str, Value]]] = {}

    def keep(value: object, depth: int = 0) -> None:
        if isinstance(value, Instance) and id(value) not in kept and depth < _DEPTH:
            kept[id(value)] = value, dict(value.attributes)
            for each in (*value.attributes.values(), *value.arguments.values()):
                keep(each, depth + 1)
        elif isinstance(value, Sequence) and depth < _DEPTH:
            for each in value.items:
                keep(each, depth + 1)

    for value in values:
        keep(value)
    try:
        yield
    finally:
        for instance, attributes in kept.values():
            instance.attributes = attributes


@contextmanager
def _apart(machine: Machine) -> Iterator[None]:
    """What is decided and counted in a worker is the worker's alone."""
    steps, budget, answers, asked = machine.steps, machine.budget, dict(machine.answers), dict(machine.asked)
    called = set(machine.called)
    machine.budget = min(budget, steps + _MOST_STEPS)
    machine.phases.append(WORKER)
    try:
        yield
    finally:
        machine.phases.pop()
        machine.steps, machine.budget, machine.answers, machine.asked = steps, budget, answers, asked
        machine.called, machine.worker_data = called, None
