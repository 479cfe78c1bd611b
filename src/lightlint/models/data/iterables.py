"""How values are gone over."""

from __future__ import annotations

import ast
from collections.abc import Callable
from collections.abc import Sequence as Items

from lightlint.engine.arguments import Arguments
from lightlint.engine.calls import call
from lightlint.engine.choices import Choices
from lightlint.engine.containers import extend, listed, note_next
from lightlint.engine.events import Appended, Cleared, NextTaken, PickedByTurn, RangeBegun, UsedUp
from lightlint.engine.execution import Raised
from lightlint.engine.frames import Iteration, Loop
from lightlint.engine.generators import Frame, iteration_of
from lightlint.engine.language import operators
from lightlint.engine.machine import Machine
from lightlint.models import tensors
from lightlint.models.data import graphs, loaders
from lightlint.models.names.tables import ROUND_ROBIN
from lightlint.values import arrays
from lightlint.values.core import (
    GATHERED,
    IDS,
    LASTING,
    NONE,
    Bound,
    Class,
    Constant,
    Function,
    Library,
    Mapping,
    Sequence,
    Traits,
    Unknown,
    Value,
    number_of,
)
from lightlint.values.training import Instance, Iterator, Loader, Module, Tensor

_MOST_KNOWN = 20
_ONE_SHOT = frozenset(["iterator", "enumerate", "zip", "map", "generator"])
INDEX, COUNT = frozenset({"index"}), frozenset({"index", "count"})


def known(items: Items[Value], over: Value | None = None) -> Iteration:
    """Each of some items in turn, and no others."""
    rows = list(items)
    return Iteration(
        lambda turn: rows[turn] if turn < len(rows) else None, "known", len(rows), True, Constant(len(rows)), over
    )


def unknown_turns(
    pull: Callable[[int], Value], kind: str, bound: Value | None = None, over: Value | None = None
) -> Iteration:
    """An unknown number of turns."""
    return Iteration(lambda turn: pull(turn) if turn < ROUND_ROBIN else None, kind, ROUND_ROBIN, False, bound, over)


def iterate(machine: Machine, value: Value, node: ast.AST) -> Iteration:
    """How a value is gone over."""
    if isinstance(value, Sequence):
        use_up(machine, value, node)
        return sequence(machine, value, node)
    if isinstance(value, Mapping):
        keys = [_key(key) for key in value.items]
        return known(keys, value) if not value.more else _open(keys, value)
    if isinstance(value, Iterator):
        source = value.source
        iteration: Iteration = iteration_of(machine, source) if isinstance(source, Frame) else source
        if value.name in _ONE_SHOT and iteration.once is None:
            iteration.once = value
        return iteration
    if isinstance(value, Loader):
        if isinstance(node, ast.For) and _takes_one(node):
            only = iterator(machine, Iteration(lambda _: None, "batch", 1, over=value), node, "iter")
            machine.emit(NextTaken(machine.where(node), only, value))
        if graphs.gives_one_batch(value):
            return Iteration(
                lambda turn: None if turn else loaders.batch(machine, value, node), "known", 1, True, Constant(1), value
            )
        return unknown_turns(lambda _: loaders.batch(machine, value, node), "batch", loaders.length(value), value)
    if isinstance(value, Module) and value.items is not None:
        items = [*value.items.values()] if isinstance(value.items, dict) else value.items
        return known(items, value) if not value.more_items else _open(items, value)
    if isinstance(value, Instance):
        return _object(machine, value, node)
    if isinstance(value, Tensor):
        return unknown_turns(
            lambda turn: tensors.part(machine, value, turn, node), "elements", tensors.size(value, 0), value
        )
    if isinstance(value, Constant) and isinstance(value.value, str) and len(value.value) <= _MOST_KNOWN:
        return known([Constant(each) for each in value.value], value)
    if isinstance(value, Bound):
        return known([])
    if isinstance(value, Unknown) and value.encoding is not None:  # ids of one text, among those of several
        return unknown_turns(lambda _: value, "elements", None, value)
    return _unknown(machine, value)


def _takes_one(loop: ast.For) -> bool:
    """Whether the first turn of a loop is its last: a `next` of a new iterator, as others write it."""
    again = any(isinstance(each, ast.Continue) for each in ast.walk(loop))
    return isinstance(loop.body[-1], (ast.Return, ast.Break)) and not again


def use_up(machine: Machine, value: Value | None, node: ast.AST) -> None:
    """Note who takes everything out of a generator, the first or a later one."""
    if not isinstance(value, Sequence) or value.kind not in ("generator", "parameters") or value.escaped:
        return
    if value.emptied_at is not None:
        machine.emit(UsedUp(machine.where(node), value.emptied_at, value.site))
    else:
        value.emptied_at = machine.site(node)


def _key(key: object) -> Value:
    return Constant(key) if isinstance(key, (str, int, float, bool, bytes, type(None))) else Unknown(key, plain=True)


def sequence(machine: Machine, value: Sequence, node: ast.AST) -> Iteration:
    """How a sequence is gone over, which takes nothing out of a generator yet."""
    value.gone_over = True
    if not value.more and len(value.items) <= _MOST_KNOWN:
        return known(value.items, value)
    iteration, begun, time = _open(value.items, value), len(machine.events), machine.clock
    rows = [each.items[-1] if isinstance(each, Sequence) and each.items else each for each in value.items]
    parameters = [each for each in rows if isinstance(each, Tensor) and each.leaf]
    if len(rows) > _MOST_KNOWN:
        all_alike = parameters if len(parameters) == len(rows) else []
        iteration.close = lambda: _do_as_with_first(machine, all_alike, begun, time, node)
    return iteration


def _do_as_with_first(machine: Machine, parameters: list[Tensor], begun: int, time: int, node: ast.AST) -> None:
    """Freeze, thaw, clear or keep the parameters that a loop did not come to, for there are many, as it did all of the first.

    A container from before that got some of what the loop came to may get others.
    """
    first, others = parameters[:_MOST_KNOWN], parameters[_MOST_KNOWN:]
    trained = {each.requires_grad for each in first}
    if len(trained) == 1:
        for each in others:
            each.requires_grad = next(iter(trained))
    cleared = {each for event in machine.events[begun:] if isinstance(event, Cleared) for each in event.parameters}
    if first and cleared.issuperset(first):
        machine.emit(Cleared(machine.where(node), [each for each in others if each not in cleared], None))
    added: dict[Sequence, set[Value]] = {}
    for event in machine.events[begun:]:
        if isinstance(event, Appended) and event.container.made <= time:
            added.setdefault(event.container, set()).add(event.value)
    for container, values in added.items():
        if first and values.issuperset(first):
            extend(container, [*others], known=True)
        else:
            container.more = True


def _open(items: Items[Value], over: Value) -> Iteration:
    """Something that may hold more than is known of it: the turns of what is known."""
    rows = list(items)[:_MOST_KNOWN] or [Unknown()]
    bound = Unknown(("length", over.key) if over.key is not None else None, plain=True)
    return Iteration(lambda turn: rows[turn] if turn < len(rows) else None, "elements", len(rows), False, bound, over)


def _object(machine: Machine, value: Instance, node: ast.AST) -> Iteration:
    if value.kind == "shape":
        tensor = value.attributes["tensor"]
        assert isinstance(tensor, Tensor)
        return unknown_turns(lambda turn: tensors.size(tensor, turn), "elements")
    row = value.row()
    if row is not None:
        return known(row, value)
    own = value.cls.find("__iter__") if isinstance(value.cls, Class) else None
    if isinstance(own, Function):
        result = call(machine, Bound(value, own), Arguments(), node)
        if result is not value:
            return iterate(machine, result, node)
        following = value.cls.find("__next__") if isinstance(value.cls, Class) else None
        if isinstance(following, Function):
            return unknown_turns(
                lambda _: call(machine, Bound(value, following), Arguments(), node), "elements", None, value
            )
    if value.kind == "data set":
        return unknown_turns(
            lambda _: loaders.sample(machine, value, node), "elements", loaders.sample_count(value), value
        )
    machine.escape(value)
    return unknown_turns(lambda _: Unknown(), "elements", None, value)


_LOADER_WORDS = (
    "loader",
    "batches",
    "train_dl",
    "val_dl",
    "test_dl",
    "valid_dl",
    "trainloader",
    "testloader",
    "train_iter",
    "data_iter",
)


def looks_like_loader(value: Value) -> bool:
    """Whether something unknown is called as loaders are."""
    hint = getattr(value, "hint", "").lower()
    return any(word in hint for word in _LOADER_WORDS) or hint == "dl"


def _unknown(machine: Machine, value: Value) -> Iteration:
    if isinstance(value, Unknown) and looks_like_loader(value):
        bound = Unknown(("length", value.key) if value.key is not None else None, frozenset({"batches"}), plain=True)
        return unknown_turns(lambda _: _assumed_batch(machine), "batch", bound, value)
    machine.escape(value)
    key = value.key
    traits = value.traits & (LASTING | IDS | GATHERED)  # a row of token ids is made of these, too

    def pull(turn: int) -> Value:
        found = Unknown(("element", key, turn) if key is not None else None, traits)
        found.axes = arrays.of_element(value)
        return found

    return unknown_turns(pull, "elements", Unknown(("length", key), plain=True) if key is not None else None, value)


def _assumed_batch(machine: Machine) -> Tensor:
    made = machine.tensor(None)
    made.role, made.leaf = "batch", False
    return made


def iterator(machine: Machine, iteration: Iteration, node: ast.AST, name: str) -> Iterator:
    """An iterator as a value."""
    machine.clock += 1
    made = Iterator(Library(f"builtins.{name}"), machine.site(node), machine.number(), iteration)
    made.made = machine.clock
    machine.objects.append(made)
    made.over, made.opened_under = iteration.over, tuple(machine.conditions)
    return made


def range_of(machine: Machine, args: list[Value], node: ast.AST, *, endless: bool = False) -> Iterator:
    """`range(...)`, and `itertools.count` as an endless one."""
    start: Value = args[0] if len(args) > 1 else Constant(0)
    stop = None if endless else args[1] if len(args) > 1 else args[0] if args else None
    first, last = number_of(start), number_of(stop)
    everything: list[Value] | None = None
    step = number_of(args[2]) if len(args) > 2 else 1
    if first is not None and last is not None and step and stop is not None:
        values = range(int(first), int(last), int(step))
        if len(values) <= ROUND_ROBIN:
            return iterator(machine, known([Constant(each) for each in values]), node, "range")
        if len(values) <= _MOST_KNOWN:
            everything = [*map(Constant, values)]
    bound = _bound(start, stop)
    machine.emit(RangeBegun(machine.where(node), start))

    def pull(turn: int) -> Value:
        counter = _counter(machine, turn, first if "rank" not in start.traits else None, node, INDEX)
        counter.by_one = step == 1
        return counter

    turns = unknown_turns(pull, "count", bound)
    turns.everything = everything
    return iterator(machine, turns, node, "range")


def _counter(machine: Machine, turn: int, first: float | None, node: ast.AST, traits: Traits) -> Unknown:
    """The number of a turn, which in the first one is the number where counting starts, and in no later one.

    That is not told of an outermost loop: its first two turns stand for all.
    """
    turns = tuple(loop.turn for loop in machine.loops)
    key = ("index", getattr(node, "lineno", 0), turns, turn)
    if first is not None and first == int(first) and len(machine.loops) > 1:
        start = ("constant", "int", int(first))
        machine.choices.setdefault(key, Choices(without=frozenset([start])) if turn else Choices(frozenset([start])))
    return Unknown(key, traits, plain=True)


def _bound(start: Value, stop: Value | None) -> Value | None:
    """How many turns from `start` to `stop`: `range(1, n + 1)` has n, a resumed `range(first, n)` is counted as n."""
    first = number_of(start)
    if stop is None or first == 0:
        return stop
    if first is None:
        return stop
    last = number_of(stop)
    if last is not None:
        return Constant(max(0, int(last - first)))
    key = stop.key
    if isinstance(key, tuple) and len(key) == 3 and key[0] == "+" and ("constant", "int", int(first)) in key:
        inner = key[1] if key[2] == ("constant", "int", int(first)) else key[2]
        return Unknown(inner, stop.traits, plain=True)
    return None


def enumerate_of(machine: Machine, value: Value, node: ast.AST, start: Value | None = None) -> Iterator:
    """`enumerate(...)`; a `start` that is written down is added to the number of the turn."""
    first = number_of(start)
    inner = iterate(machine, value, node)

    def pull(turn: int) -> Value | None:
        item = inner.pull(turn)
        if item is None:
            return None
        outer.kind, outer.over, outer.bound = inner.kind, inner.over, inner.bound
        index: Value = Constant(turn)
        if not inner.known:
            index = _counter(machine, turn, 0, node, COUNT)
            index.by_one = True
        if first and start is not None:
            index = operators.binary(machine, "+", index, start, node)
        return Sequence([index, item], "tuple")

    outer = Iteration(pull, inner.kind, inner.turns, inner.known, inner.bound, inner.over, inner.close, inner.once)
    return iterator(machine, outer, node, "enumerate")


def zip_of(machine: Machine, values: list[Value], node: ast.AST) -> Iterator:
    """`zip(...)`: as long as the shortest, of the kind of a loader among them."""
    rows = [iterate(machine, value, node) for value in values]
    if not rows:
        return iterator(machine, known([]), node, "zip")
    note_paired(machine, values, node)
    lead = next((row for row in rows if row.kind == "batch"), next((row for row in rows if not row.known), rows[0]))
    turns, whole = min(row.turns for row in rows), min((row.turns for row in rows if row.known), default=0)
    pairs_all = turns < whole <= _MOST_KNOWN and all(row.known or isinstance(row.over, Unknown) for row in rows)
    if pairs_all:  # each of what is known has its own among what is not
        turns = whole

    def pull(turn: int) -> Value | None:
        items = [row.pull(min(turn, row.turns - 1) if pairs_all and not row.known else turn) for row in rows]
        present = [item for item in items if item is not None]
        return Sequence(present, "tuple") if len(present) == len(items) else None

    outer = Iteration(pull, lead.kind, turns, all(row.known for row in rows), lead.bound, lead.over)
    outer.once = next((row.once for row in rows if row.once is not None), None)

    def close() -> None:
        for row in rows:
            row.close()

    outer.close = close
    return iterator(machine, outer, node, "zip")


def note_paired(machine: Machine, values: list[Value], node: ast.AST) -> None:
    """Write down that what the batches of one loop have left goes, one by one, with the batches or the leavings of another."""
    loops = [each.filled_by for each in values if each.filled_by is not None and each.filled_by.over is not None]
    drawn = [each for each in values if isinstance(each, Loader)] + [
        each.over for each in loops[1:] if each is not loops[0]
    ]
    if loops and loops[0] not in machine.loops:
        for other in drawn:
            machine.emit(PickedByTurn(machine.where(node), loops[0].over, other))


def mapped(machine: Machine, function: Value, values: list[Value], node: ast.AST) -> Iterator:
    """`map(...)`."""
    rows = [iterate(machine, value, node) for value in values]

    def pull(turn: int) -> Value | None:
        items = [row.pull(turn) for row in rows]
        present = [item for item in items if item is not None]
        return call(machine, function, Arguments(present), node) if len(present) == len(items) else None

    lead = rows[0] if rows else known([])
    outer = Iteration(pull, lead.kind, lead.turns, lead.known, lead.bound, lead.over)
    return iterator(machine, outer, node, "map")


def _note_batches(machine: Machine, source: Iteration | Loop | None) -> None:
    """A `while` loop that draws from a loader's iterator, or from a generator that goes over a loader, goes over batches."""
    loop = machine.loops[-1] if machine.loops else None
    if loop is not None and source is not None and source.kind == "batch" and isinstance(loop.node, ast.While):
        loop.kind, loop.over = source.kind, source.over


def taken_together(machine: Machine, value: Value, node: ast.AST) -> tuple[list[Value], bool]:
    """What a container is made of that is given something to go over, and whether that is all: several batches at once, of a
    loader's iterator that goes on, are what one turn of the `while` loop around is about."""
    items, known = listed(machine, value, node)
    if isinstance(value, Iterator) and isinstance(value.source, Iteration):
        _note_batches(machine, value.source)
    return items, known


def following(machine: Machine, value: Value, default: Value | None, node: ast.AST) -> Value:
    """`next(...)`."""
    if isinstance(value, Iterator):
        source = value.source
        if isinstance(source, Frame):
            item = source.resume(machine)
            _note_batches(machine, source.batch_loop)
        else:
            position = value.attributes.get("position")
            turn = position.value if isinstance(position, Constant) else 0
            item = source.pull(turn if source.known else min(turn, source.turns - 1))
            value.attributes["position"] = Constant(turn + 1)
            _note_batches(machine, source)
            if source.over is not None and source.over.filled_by is not None:
                note_next(machine, source.over, node)
            if isinstance(source.over, Loader):
                machine.emit(NextTaken(machine.where(node), value, source.over))
        if item is None:
            if default is not None:
                return default
            raise Raised(Library("builtins.StopIteration"))
        return item
    if isinstance(value, Sequence):
        return value.items[0] if value.items else default or Unknown()
    if isinstance(value, Instance) and isinstance(value.cls, Class):
        own = value.cls.find("__next__")
        if isinstance(own, Function):
            return call(machine, Bound(value, own), Arguments(), node)
    item = iterate(machine, value, node).pull(0)
    return item if item is not None else NONE
