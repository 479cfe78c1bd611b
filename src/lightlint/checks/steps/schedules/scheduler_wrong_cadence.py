from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Left, ScheduleStepped, Stepped
from lightlint.engine.language.operators import factors_of, is_number_key
from lightlint.explore.questions.queries import holds, in_batch, loader_lengths, once_in_several, optimizer_of, sure
from lightlint.finding import Tier
from lightlint.values.core import Constant, Sequence, number_of, written
from lightlint.values.training import Instance, Schedule

if TYPE_CHECKING:
    from collections.abc import Hashable, Set

    from lightlint.engine.frames import Condition, Turn
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Value


class SchedulerWrongCadence(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Schedules whose length counts batches stepped once an epoch, or the reverse."""
        lengths = loader_lengths(entry) | {("trainer", "batches")}

        def counts_batches(event: ScheduleStepped) -> bool:
            length = _length(event.schedule)
            factors = (factors_of(length) if length is not None else None) or ()
            return any(key in lengths and power > 0 for key, power in factors)

        in_batches = {each.schedule.site for each in entry.of(ScheduleStepped) if in_batch(each.where)}

        stepped = {(each.optimizer, each.where.turns) for each in entry.of(Stepped)}

        def is_rare(event: ScheduleStepped) -> bool:
            often = event.schedule.site in in_batches or _once_for_each_batch(event)
            often = often or (event.schedule.optimizer, event.where.turns) in stepped  # as often as its optimizer
            return _is_known(event) and counts_batches(event) and not often and bool(_turns(event))

        ends = [each.key for event in entry.of(Left) if event.leaves_loop for each in event.where.conditions]

        def is_frequent(event: ScheduleStepped) -> bool:
            length = _length(event.schedule)
            reached = length is not None and any(holds(key, length.key) for key in ends)  # it counts what ends the loop
            return _is_known(event) and _counts_epochs(event) and not reached

        for event in sure(entry, ScheduleStepped, is_rare):
            name = event.schedule.name
            message = f"steps `{name}` once an epoch, although its length counts batches: it hardly leaves its start"
            yield Fault.at(event, message)
        for event in sure(entry, ScheduleStepped, is_frequent):
            name = event.schedule.name
            message = (
                f"steps `{name}` once a batch, although its length counts epochs: it is through after as many batches"
            )
            yield Fault.at(event, message)
        for path in entry.paths:
            yield from (Fault.at(event, _TOO_OFTEN) for event in _stepped_too_often(path, lengths))
        for event in sure(entry, ScheduleStepped, _dies_out):
            message = (
                f"steps `{event.schedule.name}` once a batch: its rate is next to nothing long before the last epoch"
            )
            yield Fault.at(event, message)
        for event in sure(entry, ScheduleStepped, _is_through):
            message = "steps `MultiStepLR` once a batch, although its milestones are no more than the epochs"
            yield Fault.at(event, f"{message}: it passes them after as many batches", tier=Tier.WARNING)
        left = {turn.loop.site for event in entry.of(Left) if event.leaves_loop for turn in event.where.turns[-1:]}
        for event in entry.of(ScheduleStepped):
            few = _too_few_epochs(event)
            ended = any(turn.loop.site in left for turn in event.where.turns)
            if few is not None and _is_known(event) and not ended and entry.turned:
                message = f"steps `OneCycleLR` through {few[1]} epochs, although its length counts {few[0]}: it raises ValueError"
                yield Fault.at(event, message)


_TOO_OFTEN = (
    "steps the schedule for each batch, and its length counts the fewer steps of its optimizer: it is through too early"
)


def _stepped_too_often(path: Path, lengths: Set[Hashable]) -> Iterator[ScheduleStepped]:
    """Steps for each batch of schedules that last as many steps as there are windows, after each of which the optimizer steps."""
    waits: dict[Instance, list[Condition]] = {}
    for step in path.of(Stepped):
        if in_batch(step.where) and once_in_several(step.where):
            waits.setdefault(step.optimizer, []).extend(step.where.conditions)
    for event in path.of(ScheduleStepped):
        optimizer = optimizer_of(event.schedule)
        if optimizer is None or not _is_known(event) or not in_batch(event.where):
            continue
        if _picks_turns(event, lengths) or once_in_several(event.where):
            continue
        around = event.schedule.closed_over
        for length in (event.schedule.length, *around):
            factors = (factors_of(length) if length is not None else None) or ()
            counts = any(key in lengths and power > 0 for key, power in factors)
            windows = [_plain(key) for key, power in factors if power < 0]
            asked = [each.key for each in waits.get(optimizer, ())]
            turned = {each.key for each in around} & {*windows}  # by the schedule's own function into updates
            if counts and not turned and any(holds(key, window) for key in asked for window in windows):
                yield event
                break


def _picks_turns(event: ScheduleStepped, lengths: Set[Hashable]) -> bool:
    """Whether a test of a counter may leave steps out; one that ends the loop where whole windows end leaves out a rest."""
    asked = [each for each in event.where.conditions if "index" in each.traits]
    return not all(_is_below_length(each, lengths) for each in asked)


def _is_below_length(condition: Condition, lengths: Set[Hashable]) -> bool:
    """Whether it holds as long as a counter is below a number that has the length of a loader in it."""
    match condition.key:
        case (("<" | "<=") as symbol, _, limit) | ((">=" | ">") as symbol, _, limit):
            below = condition.outcome is (symbol in ("<", "<="))
        case _:
            return False
    return below and any(holds(limit, each) for each in lengths)


def _plain(key: Hashable) -> Hashable:
    """The key of a number as tests have it."""
    number = key[1] if isinstance(key, tuple) and key[:1] == ("number",) else None
    return key if number is None else Constant(number).key


def _turns(event: ScheduleStepped) -> list[Turn]:
    """The loops around a step that go through one schedule; what is around those makes each its own, as for each fold."""
    return [turn for turn in event.where.turns if not 0 < turn.loop.made < event.schedule.made]


def _too_few_epochs(event: ScheduleStepped) -> tuple[int, int] | None:
    """For how many epochs a OneCycleLR is made, and through how many more it is stepped; None where it is not."""
    length = event.schedule.length
    factors = dict((factors_of(length) if length is not None else None) or ())
    number = next((key[1] for key in factors if isinstance(key, tuple) and key[:1] == ("number",)), None)
    loops = [turn.loop for turn in _turns(event)]
    if event.schedule.name != "OneCycleLR" or len(loops) != 2 or event.where.conditions or number is None:
        return None
    epochs, batches = (factors_of(loop.bound) if loop.bound is not None else None for loop in loops)
    turns = number_of(loops[0].bound)
    counted = epochs is not None and batches is not None and factors == {("number", number): 1, **dict(batches)}
    return (number, int(turns)) if counted and batches and turns is not None and turns > number else None


def _is_through(event: ScheduleStepped) -> bool:
    """Whether steps with each batch pass milestones that all lie within as many steps as there are epochs."""
    given, turns = event.schedule, _turns(event)
    kinds = [turn.loop.kind for turn in turns]
    if given.name != "MultiStepLR" or not _is_known(event) or kinds[-2:] != ["count", "batch"]:
        return False
    held = given.argument("milestones", 1)
    milestones = held.items if isinstance(held, Sequence) and not held.more else []
    bound = turns[-2].loop.bound
    shares = [_share(each, bound) for each in milestones]
    within = bool(shares) and None not in shares and 1 / 4 < max(each or 0 for each in shares) <= 1
    return within and not event.where.depends_on("index") and not once_in_several(event.where)


def _share(milestone: Value, epochs: Value | None) -> float | None:
    """Which part of the epochs lies before a milestone; None where that is not known."""
    number, all_of_them = number_of(written(milestone)), number_of(written(epochs))
    if number is not None and all_of_them:
        return number / all_of_them
    return _multiple(milestone, epochs)


def _multiple(number: Value, epochs: Value | None) -> float | None:
    """By what a program multiplies the number of epochs to get another, as in `epochs // 3`; None where it does not."""
    part, whole = (dict((factors_of(each) if each is not None else None) or ()) for each in (number, epochs))
    if not whole or not whole.items() <= part.items() or all(map(is_number_key, whole)):
        return None
    found = 1.0
    for key, power in part.items():
        if key not in whole:
            value = key[1] if isinstance(key, tuple) and is_number_key(key) else None
            if not isinstance(value, (int, float)) or not value:
                return None
            found *= value**power
    return found


def _dies_out(event: ScheduleStepped) -> bool:
    """Whether steps with each batch leave less than a millionth of the rate by the last epoch, with ten batches in each."""
    given = event.schedule
    steps = number_of(written(given.argument("step_size", 1))) if given.name == "StepLR" else 1
    rate = number_of(written(given.argument("gamma", 2 if given.name == "StepLR" else 1)))
    rate = 0.1 if rate is None and given.name == "StepLR" and given.argument("gamma", 2) is None else rate
    turns = _turns(event)
    kinds = [turn.loop.kind for turn in turns]
    if given.name not in ("StepLR", "ExponentialLR") or not _is_known(event) or kinds[-2:] != ["count", "batch"]:
        return False
    epochs = number_of(written(turns[-2].loop.bound))
    if not steps or not rate or not 0 < rate < 1 or not epochs or event.where.depends_on("index"):
        return False
    return not once_in_several(event.where) and rate ** (epochs * _FEW_BATCHES // steps) < _NEXT_TO_NOTHING


_FEW_BATCHES, _NEXT_TO_NOTHING = 10, 1e-6


def _once_for_each_batch(event: ScheduleStepped) -> bool:
    """Whether a loop of the program's own takes as many turns as there are batches."""
    bounds = [turn.loop.bound for turn in event.where.turns if turn.loop.kind == "count"]
    return any(bound is not None and "batches" in bound.traits for bound in bounds)


def _is_known(event: ScheduleStepped) -> bool:
    return optimizer_of(event.schedule) is not None and not event.implicit and not event.args


def _counts_itself(loop: ast.AST | None) -> bool:
    """Whether a loop's own statements move what its test compares, if it is a `while`: what they call may do so with each batch."""
    if not isinstance(loop, ast.While) or not isinstance(loop.test, ast.Compare):
        return True
    counter = ast.unparse(loop.test.left)
    set_to = (each for part in loop.body for each in ast.walk(part) if isinstance(each, (ast.Name, ast.Attribute)))
    return any(isinstance(each.ctx, ast.Store) and ast.unparse(each) == counter for each in set_to)


def _counts_epochs(event: ScheduleStepped) -> bool:
    """Whether a step in a loop over batches is one of a schedule as long as a loop around it takes turns, or a part of that."""
    length = _length(event.schedule)
    turns = _turns(event)
    kinds = [turn.loop.kind for turn in turns]
    if length is None or length.key is None or "batch" not in kinds:
        return False
    around = turns[: kinds.index("batch")]
    if event.where.conditions and event.where.depends_on("index"):
        return False
    bounds = [turn.loop.bound for turn in around if turn.loop.bound is not None and _counts_itself(turn.loop.node)]
    shares = (_multiple(length, each) for each in bounds)
    rest = length.terms[1][0].key if length.terms is not None and length.terms[0] == "-" else None  # behind a warm-up
    same = any(each.key in (length.key, rest) for each in bounds)
    return same or any(0 < (share or 0) < 1 for share in shares)


def _length(schedule: Schedule) -> Value | None:
    """How many steps a schedule lasts; one of several after each other as many as the last of them, and more."""
    held = schedule.argument("schedulers", 1) if schedule.name == "SequentialLR" else None
    last = held.items[-1] if isinstance(held, Sequence) and held.items and not held.more else None
    return last.length if isinstance(last, Schedule) else schedule.length
