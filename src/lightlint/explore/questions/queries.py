"""What rules ask of events again and again."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import zip_longest
from typing import TYPE_CHECKING

from lightlint.engine.choices import is_constant_key, plain_key
from lightlint.engine.events import (
    Backward,
    BatchDrawn,
    Called,
    CalledUnknown,
    Cleared,
    Clipped,
    Collective,
    Configured,
    E,
    Event,
    GroupStarted,
    Stepped,
    Summed,
    TensorMoved,
    Where,
)
from lightlint.engine.machine import Test
from lightlint.models.training.modules.making import acts_by_mode as layer_acts_by_mode
from lightlint.values.core import (
    Class,
    Constant,
    Function,
    Library,
    Mapping,
    Sequence,
    Site,
    Unknown,
    Value,
    text_of,
)
from lightlint.values.training import Graph, Instance, Module, Optimizer, Schedule, Tensor

if TYPE_CHECKING:
    from lightlint.engine.frames import Loop
    from lightlint.explore.rehearsals import Entry, Path


def identity(parameter: Tensor) -> Hashable:
    """What a parameter is in every rehearsal of an entry: where and as which it was made, and so its owner."""
    owner = parameter.owner
    return (parameter.site, parameter.serial, (owner.site, owner.serial) if owner is not None else None)


def identity_of(value: Value | None) -> Hashable:
    """What an object is in every rehearsal of an entry: where and as which it was made; None for what is no object."""
    return (value.site, value.serial) if isinstance(value, Instance) else None


def are_same(one: Value, other: Value) -> bool:
    """Whether two values surely are one, by what is known of them."""
    return one is other or (one.key is not None and one.key == other.key)


def in_sight(values: Iterable[Value]) -> bool:
    """Whether some values were made in the program, and no code out of sight has had any of them."""
    return not any(value.escaped or getattr(value, "assumed", False) or _is_managed(value) for value in values)


def _is_managed(value: Value) -> bool:
    """Whether a framework that was given the object may do more with it than the program says."""
    return isinstance(value, Instance) and "#managed" in value.arguments


def speaks_of(key: object, pattern: re.Pattern[str]) -> bool:
    """Whether a name in a value's key, as of `args.training`, matches a pattern."""
    if isinstance(key, tuple):
        return any(speaks_of(each, pattern) for each in key)
    return isinstance(key, str) and pattern.search(key) is not None


def is_left_open(entry: Entry, pattern: re.Pattern[str]) -> bool:
    """Whether a test that speaks of something came out one way only, since there was no budget left to turn each."""
    return not entry.turned and any(speaks_of(test, pattern) for path in entry.paths for test in path.machine.answers)


def holds(key: object, part: object) -> bool:
    """Whether a value's key has another's in it, as that of `rate > 0` has that of `rate`."""
    return key == part or (isinstance(key, tuple) and any(holds(each, part) for each in key))


_MODE = re.compile("train|eval|infer|mode", re.IGNORECASE)


def in_each_mode(where: Where) -> bool:
    """Whether no test of which nothing is known may ask whether it is training that runs."""
    return not any(not each.known and speaks_of(each.key, _MODE) for each in where.conditions)


def watched_keys(entry: Entry) -> frozenset[str]:
    """The names of the metrics that Lightning's callbacks watch, as far as they are known."""
    places = {"lightning.callbacks.ModelCheckpoint": 2, "lightning.callbacks.EarlyStopping": 0}
    calls = [(event, place) for name, place in places.items() for event in entry.calls.get(name, ())]
    found = {text_of(event.argument("monitor", place)) for event, place in calls}
    return frozenset(each for each in found if each is not None)


def configured_at(entry: Entry) -> Iterator[Site]:
    """Where `configure_optimizers` and what it calls make what Lightning trains with, if all rehearsals came to their ends."""
    if not all(path.finished for path in entry.paths):
        return
    for event in entry.of(Configured):
        made = [each.site for each in (*event.mappings(), *event.configs())]
        made += [each.site for each in event.optimizers]
        made += [each.schedule.site for each in event.schedules]
        yield from (site for site in (event.returned_at, *made) if site is not None)
        configure = event.module.cls.find("configure_optimizers") if isinstance(event.module.cls, Class) else None
        body = configure.node.body if isinstance(configure, Function) else None
        if isinstance(configure, Function) and isinstance(body, list):
            first, last = body[0], body[-1]
            end = (last.end_lineno or last.lineno, last.end_col_offset or 0)
            yield (configure.file, first.lineno, first.col_offset, *end)


def in_batch(where: Where) -> bool:
    """Whether a loop over a loader's batches is open."""
    return where.within("batch")


def with_each_batch(path: Path, events: Iterable[E]) -> list[E]:
    """The events that come with each batch: behind the same tests in each turn of a loop over them that is rehearsed, or behind
    none where no second turn is. A test on what the batch or a counter tells is another one in each turn.
    """
    turns: dict[tuple[Site, Loop, tuple[Hashable, ...]], dict[int, E]] = {}
    for event in events:
        turn = next((each for each in reversed(event.where.turns) if each.loop.kind == "batch"), None)
        tests = tuple((each.key, each.outcome) for each in event.where.conditions if not each.known)
        if turn is not None and not any(key is None for key, _ in tests) and not event.where.depends_on("periodic"):
            turns.setdefault((event.site, turn.loop, tests), {}).setdefault(turn.number, event)
    if path.finished:
        return [next(iter(found.values())) for found in turns.values() if len(found) > 1]
    again = loops_again(path)
    return [
        next(iter(found.values()))
        for (_, loop, tests), found in turns.items()
        if len(found) > 1 or not (tests or loop in again or _is_tested(found.values(), loop))
    ]


def loops_again(path: Path) -> set[Loop]:
    """The loops of which a second turn is rehearsed: what only the first one does is not done in each."""
    return {turn.loop for event in path.events for turn in event.where.turns if turn.number > 1}


def _is_tested(events: Iterable[Event], loop: Loop) -> bool:
    """Whether a test in a loop lets something happen in its first turn, as `step % 1000 == 0` does of the first step."""
    start, end = loop.site[1], loop.site[3]
    tests = (test.site for event in events for test in event.where.conditions)
    return any(site[0] == loop.site[0] and start < site[1] <= end for site in tests)


def uses_gpu(path: Path) -> bool:
    """Whether a path puts anything on a GPU."""
    modules = (each.receiver for each in path.of(Called) if each.path in ("to", "cuda"))
    return any(isinstance(each, Module) and each.device == "cuda" for each in modules) or any(
        event.device == "cuda" for event in path.of(TensorMoved)
    )


def sure(entry: Entry, kind: type[E], is_fault: Callable[[E], bool], *, turned: int = 2) -> Iterator[E]:
    """The faulty events of a kind at places where, on each path that gets there, one is faulty: where not each test was turned,
    only those of the default path, for one that was not may tell of what is right. `turned`: on how many tests the way there
    may hang, at most, where one more may tell of that, too."""
    faulty: dict[Site, E] = {}
    spared: set[Site] = set()
    for path in entry.paths:
        found = {event.site: event for event in path.of(kind) if is_fault(event)}
        spared |= {event.site for event in path.of(kind)} - found.keys()
        if not path.flips or (entry.turned and len(path.flips) <= turned):
            faulty.update(found)
    yield from (event for site, event in faulty.items() if site not in spared)


def by_choice(entry: Entry, kind: type[E], is_fault: Callable[[E], bool]) -> Iterator[E]:
    """The faulty events of a kind, behind no open test, at places where on each path on which one open test elsewhere came out
    one way, one is faulty: a run that is told so gets it."""
    seen: dict[Site, list[tuple[frozenset[tuple[Test, bool]], E | None]]] = {}
    for path in entry.paths:
        found = {event.site: event for event in path.of(kind) if is_fault(event)}
        for site in {event.site for event in path.of(kind)}:
            seen.setdefault(site, []).append((frozenset(path.machine.asked.items()), found.get(site)))
    for paths in seen.values():
        right = [tests for tests, event in paths if event is None]
        for tests, event in paths:
            sure_to_come = event is not None and all(each.known for each in event.where.conditions)
            if event is not None and sure_to_come and any(not any(map(_holding(each), right)) for each in tests):
                yield event
                break


def _holding(test: tuple[Test, bool]) -> Callable[[frozenset[tuple[Test, bool]]], bool]:
    return lambda tests: test in tests


def on_some_ranks(entry: Entry, kind: type[E], is_wanted: Callable[[E], bool] = lambda _: True) -> Iterator[E]:
    """Events of a kind that a test of the rank keeps the other ranks from, unless those have as many on a way of their own.

    A rank that an exception ends has not come to what it would have called.
    """
    for pair in entry.pairs():
        for path, other in (pair, pair[::-1]):
            if other.raised:
                continue
            mine, theirs = ([e for e in each.of(kind) if is_wanted(e)] for each in (path, other))
            here, there = ({event.site for event in each} for each in (mine, theirs))
            mine, theirs = [e for e in mine if e.site not in there], [e for e in theirs if e.site not in here]
            if len(mine) > len(theirs) and not _calls_apart(other) - _calls_apart(path):
                yield from (e for e in _without_partners(mine, theirs) if _is_kept_apart(e.where))


def _without_partners(mine: list[E], theirs: list[E]) -> list[E]:
    """What one rank does that none of the other's goes with: best behind the same tests, and further down in the file."""
    left = list(mine)
    for event in theirs:
        alike = [each for each in left if _apart_from_rank(each) == _apart_from_rank(event)]
        below = [each for each in alike if each.site[:1] == event.site[:1] and each.site[1:] > event.site[1:]]
        left.remove((below or alike or left)[0])
    return left


def _apart_from_rank(event: Event) -> list[tuple[Hashable, bool]]:
    """The tests that an event is behind, those of ranks aside."""
    return [(each.key, each.outcome) for each in event.where.conditions if not each.known and "rank" not in each.traits]


def reached_by_others(entry: Entry, kind: type[E]) -> set[Site] | None:
    """Where events of a kind happen on another rank than the first, None where all that is rehearsed is the first rank."""
    others = [path for path in entry.paths if path.rank]
    return {event.site for path in others for event in path.of(kind)} if others else None


def _is_kept_apart(where: Where) -> bool:
    """Whether a test of the rank, or a function that runs on rank zero only, lets something happen.

    Of processes that one rank alone starts, what the others do is not rehearsed.
    """
    if where.depends_on("rank that starts others"):
        return False
    if is_cut_off(where):
        return False
    return where.depends_on("rank") or any("rank_zero_only" in call.function.flags for call in where.calls)


def is_cut_off(where: Where) -> bool:
    """Whether a test asks for a name that nothing binds: Python raises there, and nothing behind it happens on any rank."""
    return where.depends_on("unbound")


def _calls_apart(path: Path) -> set[Site]:
    """Where a test of the rank lets code out of sight be called."""
    apart = (event for event in path.of(CalledUnknown) if event.where.depends_on("rank"))
    return {event.site for event in apart if not _OUTPUT.fullmatch(getattr(event.callee, "hint", ""))}


_OUTPUT = re.compile(
    r"info|debug|warning|error|log|print|write|append|exit|format|mkdir|touch|unlink|exists|is_file|is_dir|write_text"
    r"|write_bytes|writelines|writerows?|extractall|urlretrieve"
)
"""What methods are called, of whatever object, that bring no ranks together."""


def may_be_alone(where: Where) -> bool:
    """Whether a test of how many processes there are let something happen, and may have come out for one."""
    asked = [condition for condition in where.conditions if "world" in condition.traits]
    return bool(asked) and not any(_says_several(each.key, each.outcome) for each in asked)


def _says_several(key: Hashable | None, outcome: bool) -> bool:
    """Whether a test that came out so leaves more than one process."""
    plain, negated = plain_key(key)
    outcome = outcome != negated
    match plain:
        case ("and" | "or" as word, *parts):
            return outcome == (word == "and") and any(_says_several(part, outcome) for part in parts)
        case ("==" | "<=", _, ("constant", "int", 1)) | ("<", _, ("constant", "int", 2)):
            return not outcome
    return False


def exchanging(path: Path) -> list[Backward]:
    """The backward passes that wait for the other ranks: they reach parameters under DDP, or may, from a loss out of sight."""
    wraps = any(event.by == "DistributedDataParallel" for event in path.of(GroupStarted))
    return [event for event in path.of(Backward) if wraps and (event.loss is None or _reaches_wrapped(event))]


def _reaches_wrapped(event: Backward) -> bool:
    return any(each.owner is not None and each.owner.within_ddp is not None for each in event.parameters)


def loops_together(entry: Entry) -> set[Site]:
    """The loops whose passes exchange gradients with other ranks, which agree on nothing else in there."""
    passes = (event for path in entry.paths for event in exchanging(path))
    trained = {turn.loop.site for event in passes for turn in event.where.turns}
    agreeing = [each for each in entry.of(Collective) if each.name.rpartition(".")[2] not in _GIVING_NOTHING]
    return trained - {turn.loop.site for event in agreeing for turn in event.where.turns[-1:]}


_GIVING_NOTHING = {"barrier", "monitored_barrier", "reduce", "gather", "gather_object", "DistributedDataParallel"}


def beside(event: Event, other: Event) -> Site:
    """The place of an event in the innermost function that runs another, too: its own, or that of the call that leads to it."""
    calls, others = event.where.calls, other.where.calls
    apart = next((call for call, theirs in zip_longest(calls, others) if call != theirs), None)
    return apart.site if apart is not None else event.site


def scales(scaler: Instance | None) -> bool | None:
    """Whether a GradScaler in sight was made to scale, None where something out of sight decides."""
    if scaler is None or scaler.escaped or scaler.open_arguments:
        return None
    enabled = scaler.arguments.get("enabled")
    return True if enabled is None else None if not isinstance(enabled, Constant) else bool(enabled.value)


def goes_nowhere(graphs: Iterable[Graph]) -> bool:
    """Whether nothing has gone backward through graphs, and nothing out of sight has them."""
    return not any(graph.used or graph.open for graph in graphs)


def once_in_several(where: Where) -> bool:
    """Whether a test on a multiple of a counter lets it happen in few turns, as `i % 4 == 0` does and `i % 4 != 0` does not."""
    return any(
        _is_rare(each.key, each.outcome)
        for each in where.conditions
        if "periodic" in each.traits or _is_of_first_count(each.key)
    )


def _is_of_first_count(key: Hashable) -> bool:
    """Whether a test asks what a written number leaves of one that is not known: a counter has its first value."""
    plain, _ = plain_key(key)
    while isinstance(plain, tuple) and len(plain) == 3 and plain[0] in ("==", "!="):
        plain = plain[1]
    return isinstance(plain, tuple) and len(plain) == 3 and plain[0] == "%" and is_constant_key(plain[1])


def _is_rare(key: Hashable, outcome: bool) -> bool:
    plain, negated = plain_key(key)
    if not isinstance(plain, tuple) or not plain:
        return False
    holds = outcome != negated
    if plain[0] in ("and", "or"):
        return any(_is_rare(each, holds) for each in plain[1:])
    return holds if plain[0] in ("==", "sync gradients", "last batch") else plain[0] == "%" and not holds


def in_function_of(where: Where, site: Site) -> bool:
    """Whether a place lies in the function in which something happens."""
    node = where.calls[-1].function.node if where.calls else None
    same = site[0] == where.site[0]
    return same and (node is None or node.lineno <= site[1] <= (node.end_lineno or node.lineno))


def inside(where: Where, name: str) -> bool:
    """Whether a function of such a name is being run."""
    return any(call.function.name == name for call in where.calls)


def optimizer_of(schedule: Schedule) -> Optimizer | None:
    """The optimizer whose learning rate a schedule sets, where both are in sight."""
    optimizer = schedule.optimizer
    return optimizer if isinstance(optimizer, Optimizer) and in_sight([schedule, optimizer]) else None


def is_held(whole: Value | None, part: Value, depth: int = 0) -> bool:
    """Whether a value is another, or a container that holds it."""
    held: list[Value] = []
    if isinstance(whole, (Mapping, Sequence)) and depth < _DEEPEST:
        held = [*whole.items.values()] if isinstance(whole, Mapping) else whole.items
    return whole is part or any(is_held(each, part, depth + 1) for each in held)


_DEEPEST = 4


def gradient_used(
    path: Path, parameters: Iterable[Tensor], time: int, by: tuple[type[Stepped | Clipped], ...] = (Stepped,)
) -> bool | None:
    """Whether a gradient that one of some parameters has at a time is used, as by an optimizer that steps; False where all are
    cleared before, None where neither comes."""
    left = {*parameters}
    for event in path.events:
        if event.time <= time:
            continue
        if isinstance(event, Cleared):
            left.difference_update(event.parameters)
            if not left:
                return False
        elif isinstance(event, by) and not left.isdisjoint(event.parameters):
            return True
    return None


def over_old_sum(path: Path, event: Backward) -> bool:
    """Whether a pass starts from a sum that was added to after an earlier pass had freed what it held."""
    sums = {site for site, _ in event.loss.sums} if event.loss is not None else set()
    return any(each.consumed_before and each.site in sums and each.time < event.time for each in path.of(Summed))


def acts_by_mode(module: Module, parts: Iterable[Module] | None = None) -> bool:
    """Whether a module surely has a layer that does something else in training mode, and leaves its mode to others.

    Of `parts` alone where they are given, as of those that one pass called.
    """
    if any(isinstance(each.cls, Class) and each.cls.find("train") is not None for each in module.modules()):
        return False
    for each in module.modules() if parts is None else parts:
        if layer_acts_by_mode(each) or (isinstance(each.cls, Library) and is_normalising_net(each.cls.path)):
            return True
    return False


_NORMALISES = re.compile(
    r"torchvision\.models\.(?:\w+\.)*(?:resnet|resnext|wide_resnet|densenet|mobilenet|efficientnet|shufflenet|mnasnet|regnet"
    r"|vgg\d+_bn)"
)
"""Networks whose layers are out of sight and that surely have batch norm."""


def is_normalising_net(path: str) -> bool:
    """Whether a library's network surely has batch norm."""
    return _NORMALISES.match(path) is not None


def counts_batches(length: Value | None, lengths: frozenset[Hashable] = frozenset()) -> bool:
    """Whether a number is one of batches, or a multiple of it; `lengths` are known to be, by their keys."""
    factors = dict(length.factors or ()) if isinstance(length, Unknown) else {}
    traits = length.traits if length is not None else ()
    counted = "batches" in traits or not factors.keys().isdisjoint({("trainer", "batches"), *lengths})
    counted = counted or any(isinstance(e, tuple) and e[:1] == ("length",) and speaks_of(e, _LOADER) for e in factors)
    return isinstance(length, Unknown) and counted and all(power > 0 for power in factors.values())


_LOADER = re.compile(r"loader", re.IGNORECASE)  # in the names by which something out of sight is known


def loader_lengths(entry: Entry) -> frozenset[Hashable]:
    """The lengths of the loaders that batches are drawn from, by their keys."""
    return frozenset(("length", event.loader.number) for event in entry.of(BatchDrawn))
