"""What a loader's worker does with its copy of the data set: one sample, with the functions that the loader gives it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from lightlint.engine.arguments import Arguments
from lightlint.engine.bounds import compared_with_number
from lightlint.engine.calls import call
from lightlint.engine.choices import asked_for_constants, plain_key
from lightlint.engine.events import CudaUsed, Event, HandleUsed, LoaderWorked, SampleMade
from lightlint.engine.frames import Condition
from lightlint.engine.machine import WORKER, Machine
from lightlint.models.names.huggingface import ROWS, TRANSFORM
from lightlint.values.core import Bound, Class, Constant, Function, Mapping, Sequence, Unknown, Value, is_constant
from lightlint.values.training import Instance, Loader

SAMPLE, BATCH = "#sample", "#batch"
"""Under which names a loader keeps what a worker gave, and what of that a tokenizer made."""
NUMBER = ("index",)
"""The key of the number that a sample is asked for by."""
WORKER_NUMBER = ("worker id",)
"""The key of the number that a worker is told it has."""
_MOST_STEPS = 300
_READS = ("__getitem__", "__getitems__", "__iter__")
_DEPTH = 3
_MOST_TURNED = 2


def work(machine: Machine, loader: Loader, node: ast.AST) -> None:
    """Let a worker, or the program itself, make a sample, once for each data set: on the default path of an entry, and, of a
    worker, where a turned test decides about a file that the data set has opened; again with the other outcome of the tests that
    decide about what it uses."""
    workers, data = loader.arguments.get("num_workers"), data_of(loader)
    seen = (loader.data, loader.arguments.get("collate_fn"), loader.arguments.get("worker_init_fn"))
    alone = workers is None or is_constant(workers, 0)
    done = machine.rank or (alone, *seen) in machine.worked
    if done or (machine.flips and (alone or not _bears_on(machine, data))) or machine.phases[-1] == WORKER:
        return
    machine.worked.append((alone, *seen))
    where = machine.where(node)
    inside: list[Event] = []
    called: set[int] = set()
    stream: list[Value] = []

    def make_sample(turned: Condition | None = None) -> None:
        with _copied(machine, [data, *seen[1:]]), apart(machine, called, inside, turned), suppress(Exception):
            # it may raise what the program does, or spend the budget
            guesses = machine.guesses
            made = _run(machine, loader, data, stream, node)
            loader.attributes[SAMPLE], loader.one_way = made, machine.guesses == guesses
            if isinstance(made, Mapping) and any(each.encoding for each in made.items.values()):
                loader.attributes[BATCH] = made

    make_sample()
    for turned in _to_turn(inside):
        make_sample(turned)
    machine.emit(SampleMade(where, loader, inside))
    if not alone:
        machine.emit(LoaderWorked(where, loader, inside, called, stream[0] if stream else None))


def _to_turn(inside: list[Event]) -> list[Condition]:
    """The tests in a worker that decided about its use of files and CUDA."""
    used = (event for event in inside if isinstance(event, (HandleUsed, CudaUsed)))
    tests = {each.site: each for event in used for each in event.where.conditions if not each.known}
    return [*tests.values()][:_MOST_TURNED]


def _bears_on(machine: Machine, data: Value | None) -> bool:
    """Whether a turned test decides about a file that a data set has open."""
    held = data.attributes.values() if isinstance(data, Instance) else ()
    roots = [each.attributes.get("#of", each) for each in held if isinstance(each, Instance)]
    tests = [each.site[:3] for root in roots if isinstance(root, Instance) for each in root.opened_under]
    return any(test in machine.flips for test in tests)


def number() -> Unknown:
    """The number that a sample is asked for by."""
    found = Unknown(NUMBER, plain=True)
    found.by_one = True
    return found


def data_of(loader: Loader) -> Value | None:
    """The data set behind parts and wrappers of it."""
    value = loader.data
    for _ in range(_DEPTH):
        inner = value.arguments.get("dataset") if isinstance(value, Instance) else None
        if inner is None:
            break
        value = inner
    return value


def _run(machine: Machine, loader: Loader, data: Value | None, stream: list[Value], node: ast.AST) -> Value:
    begin, collate = loader.arguments.get("worker_init_fn"), loader.arguments.get("collate_fn")
    machine.worker_data = data
    if begin is not None and not is_constant(begin, None):
        call(machine, begin, Arguments([Unknown(WORKER_NUMBER, frozenset({"worker"}), plain=True)]), node)
    sample: Value = Unknown()
    cls = data.cls if isinstance(data, Instance) else None
    read = (
        next((found for name in _READS if (found := cls.find(name)) is not None), None)
        if isinstance(cls, Class)
        else None
    )
    if isinstance(read, Function) and data is not None:
        given = [number()] if read.name != "__iter__" else []
        sample = call(machine, Bound(data, read), Arguments([*given]), node)
        if read.name == "__iter__":
            stream.append(sample)
            sample = machine.models.iterate(machine, sample, node).pull(0) or sample
    elif isinstance(data, Instance) and data.kind == ROWS and loader.narrows is None:
        sample = _row_of(machine, data, node)
    if loader.narrows is not None:
        sample = loader.narrows(sample)
    if collate is not None and not is_constant(collate, None):
        return call(machine, collate, Arguments([Sequence([sample], more=True)]), node)
    return sample


def _row_of(machine: Machine, table: Instance, node: ast.AST) -> Value:
    """A row of a table of Datasets, as what is done to rows when they are read makes it of a batch of one."""
    row, transform = table.attributes.get("#row"), table.attributes.get(TRANSFORM)
    if transform is None or is_constant(transform, None):
        return row or Unknown()
    columns = row.items if isinstance(row, Mapping) else {}
    batch = Mapping({name: Sequence([each], more=True) for name, each in columns.items()}, more=True)
    made = call(machine, transform, Arguments([batch]), node)
    if not isinstance(made, Mapping):
        return Unknown()
    first = {name: machine.models.item(machine, each, Constant(0), node) for name, each in made.items.items()}
    return Mapping(first, more=made.more)


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
def apart(machine: Machine, called: set[int], inside: list[Event], turned: Condition | None = None) -> Iterator[None]:
    """What is decided and counted in a worker, or in what runs like one, is its alone, as is what it calls, which goes into
    `called`, and what happens, which goes `inside`; one test may be `turned` there."""
    steps, budget, answers, asked = machine.steps, machine.budget, dict(machine.answers), dict(machine.asked)
    bounds, choices, equals = dict(machine.bounds), dict(machine.choices), dict(machine.equals)
    outside, flips = (machine.called, machine.events), machine.flips
    machine.called, machine.events = called, inside
    if turned is not None:
        machine.flips = {**flips, turned.site[:3]: not turned.outcome}
        key, _ = plain_key(turned.key)
        machine.answers.pop(key, None)
        compared = compared_with_number(key)
        machine.bounds.pop(compared.unknown if compared is not None else None, None)
        told = asked_for_constants(key)
        unknown = told.unknown if told is not None else key
        machine.choices.pop(unknown, None)
        machine.equals.pop(unknown, None)
    machine.budget = min(budget, steps + _MOST_STEPS)
    machine.phases.append(WORKER)
    try:
        yield
    finally:
        machine.phases.pop()
        machine.steps, machine.budget, machine.answers, machine.asked = steps, budget, answers, asked
        machine.called, machine.events = outside
        machine.worker_data, machine.flips, machine.bounds = None, flips, bounds
        machine.choices, machine.equals = choices, equals
