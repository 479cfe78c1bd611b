from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import BatchDrawn, ScheduleStepped
from lightlint.engine.operators import factors_of
from lightlint.explore.queries import in_batch, optimizer_of, sure
from lightlint.facts.loops import LoopKind
from lightlint.facts.schedules import LENGTHS
from lightlint.facts.tree import Loop

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


_ROOM = "torch.optim.lr_scheduler."
_WARMUP = (("num_training_steps", 2),)
_WITH_WARMUP = re.compile(r"transformers\.(?:optimization\.)?get_(?:linear|cosine|polynomial)\w*_with_warmup$")
_PLAIN_STEPS = 3
_RANGES = {
    "builtins.range",
    "tqdm.trange",
    "tqdm.tnrange",
    *(f"tqdm.{room}.trange" for room in ("auto", "notebook", "std")),
}


class SchedulerWrongCadence(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if not self.facts.updates.is_scheduler_step(call) or call.args or not isinstance(call.func, cst.Attribute):
            return
        origin = self.values.constructor(call.func.value)
        known = origin is not None and origin.name.startswith((_ROOM, "transformers."))
        size = self.facts.updates.schedules.steps_per_update(call) if known else None
        if size is not None:
            times = self.code.text_of(size)
            self.report(
                call,
                f"steps the schedule `{times}` times for each step of its optimizer, which its length counts: it is through too early",
            )
            return
        name = origin.name.removeprefix(_ROOM) if origin is not None else ""
        made = origin.call if origin is not None and name == "OneCycleLR" else None
        few = self.facts.updates.schedules.too_few_epochs(call, made) if made is not None else None
        if few is not None:
            self.report(
                call,
                f"steps `{name}` through {few[1]} epochs, although its length counts {few[0]}: it raises ValueError",
            )
            return
        lengths = _WARMUP if _WITH_WARMUP.match(name) else LENGTHS.get(name, ())
        name = name.rpartition(".")[2]
        loops = [*self.tree.loops(call), *self._outside(call)]
        if origin is None or origin.call is None or not loops:
            return
        length = next((arg.value for kw, at in lengths if (arg := self.names.argument(origin.call, kw, at))), None)
        if length is None:
            return
        kind = self.loops.kind(loops[0])
        if (
            kind is LoopKind.EPOCH
            and self.facts.updates.schedules.counts_batches(length)
            and self._draws_batches(loops[0])
        ):
            self.report(
                call, f"steps `{name}` once an epoch, although its length counts batches: it hardly leaves its start"
            )
        elif (
            kind is LoopKind.BATCH
            and (name != "OneCycleLR" or self.names.argument(origin.call, "steps_per_epoch", 4) is None)
            and len(loops) > 1
            and self._counts_epochs(length, loops[1])
        ):
            self.report(
                call,
                f"steps `{name}` once a batch, although its length counts epochs: it is through after a few batches",
            )

    def _outside(self, call: cst.Call, depth: int = 0) -> list[Loop]:
        """The loops around the one call of the helper that steps a scheduler on every way through it."""
        function = self.tree.function(call)
        calls = self.hooks.calls_of.get(function, ()) if function is not None else ()
        if len(calls) != 1 or self.facts.conditions(call) or depth > _PLAIN_STEPS:
            return []
        return self.tree.loops(calls[0]) or self._outside(calls[0], depth + 1)

    def _draws_batches(self, loop: cst.CSTNode) -> bool:
        """Whether a loop over batches stands in the body of a loop."""
        inner = self.tree.within(loop, cst.For)
        return any(each is not loop and self.loops.kind(each) is LoopKind.BATCH for each in inner) or bool(
            self.facts.steps.runs(getattr(loop, "body", loop), self.loops.is_backward)
        )

    def _counts_epochs(self, length: cst.BaseExpression, loop: cst.CSTNode) -> bool:
        """Whether a length is what the epoch loop counts to, and batches are many times as many."""
        bound = self._end(loop) if isinstance(loop, cst.For) else None
        key = self.names.key(length)
        same = self.tree.owner(length) is self.tree.owner(loop) or "." in key
        if isinstance(length, cst.Name) and isinstance(bound, cst.Attribute) and self.classes.is_self(bound.value):
            node = self.tree.enclosing_class(loop)
            kept = self.classes.attribute_sources(node, bound.attr.value) if node is not None else []
            values = [_part(value, path) for value, path in kept]
            return len(values) == 1 and self.names.key(values[0]) == key and self._stand_together(values[0], length)
        return bool(key) and same and key == self.names.key(bound)

    def _end(self, loop: cst.For) -> cst.BaseExpression | None:
        """What a loop counts to: `epochs` of `range(epochs)` and `tqdm(range(1, epochs + 1))`."""
        drawn = self.values.iterated(loop.iter)
        sources = self.facts.reaching.sources(drawn) if isinstance(drawn, cst.BaseExpression) else []
        counted = sources[0] if len(sources) == 1 else None
        if not isinstance(counted, cst.Call) or self.names.call(counted) not in _RANGES:
            return None
        match [arg.value for arg in counted.args[:2] if arg.keyword is None]:
            case [first, cst.BinaryOperation(operator=cst.Add(), left=left, right=right)]:
                return left if self.names.constant(first) == 1 == self.names.constant(right) else None
            case [*_, last]:
                return last
        return None

    def _stand_together(self, value: cst.CSTNode | None, length: cst.BaseExpression) -> bool:
        return value is not None and self.tree.owner(value) is self.tree.owner(length)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Schedules whose length counts batches stepped once an epoch, or the reverse."""
        lengths = {("length", event.loader.number) for event in entry.of(BatchDrawn)} | {("trainer", "batches")}

        def counts_batches(event: ScheduleStepped) -> bool:
            factors = (factors_of(event.schedule.length) if event.schedule.length is not None else None) or ()
            return any(key in lengths and power > 0 for key, power in factors)

        def is_rare(event: ScheduleStepped) -> bool:
            often = in_batch(event.where) or _once_for_each_batch(event)
            return _is_known(event) and counts_batches(event) and not often and bool(event.where.turns)

        def is_frequent(event: ScheduleStepped) -> bool:
            return _is_known(event) and _counts_epochs(event)

        for event in sure(entry, ScheduleStepped, is_rare):
            name = event.schedule.name
            message = f"steps `{name}` once an epoch, although its length counts batches: it hardly leaves its start"
            yield Fault.at(event, message)
        for event in sure(entry, ScheduleStepped, is_frequent):
            name = event.schedule.name
            message = (
                f"steps `{name}` once a batch, although its length counts epochs: it is through after a few batches"
            )
            yield Fault.at(event, message)


def _once_for_each_batch(event: ScheduleStepped) -> bool:
    """Whether a loop of the program's own takes as many turns as there are batches."""
    bounds = [turn.loop.bound for turn in event.where.turns if turn.loop.kind == "count"]
    return any(bound is not None and "batches" in bound.traits for bound in bounds)


def _is_known(event: ScheduleStepped) -> bool:
    return optimizer_of(event.schedule) is not None and not event.implicit and not event.args


def _counts_epochs(event: ScheduleStepped) -> bool:
    """Whether a step in a loop over batches is one of a schedule as long as a loop around it takes turns."""
    length = event.schedule.length
    kinds = [turn.loop.kind for turn in event.where.turns]
    if length is None or length.key is None or "batch" not in kinds:
        return False
    around = event.where.turns[: kinds.index("batch")]
    often = event.where.conditions and event.where.depends_on("index")
    return not often and any(turn.loop.bound is not None and turn.loop.bound.key == length.key for turn in around)


def _part(value: cst.BaseExpression | None, path: tuple[int, ...]) -> cst.BaseExpression | None:
    for place in path:
        value = value.elements[place].value if isinstance(value, (cst.Tuple, cst.List)) else None
    return value
