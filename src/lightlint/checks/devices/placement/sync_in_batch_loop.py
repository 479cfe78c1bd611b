from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, CalledUnknown, Event, NumberTaken, StepReturned
from lightlint.explore.questions.queries import uses_gpu, with_each_batch
from lightlint.facts.lightning.hooks import TRAINING_STEP
from lightlint.values.core import Unknown, text_of

if TYPE_CHECKING:
    from lightlint.engine.frames import Loop
    from lightlint.explore.rehearsals import Entry, Path

_WAITING = {"item", "cpu", "tolist", "numpy"}


class SyncInBatchLoop(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """The first wait in each turn of a loop that trains on a GPU: the next ones find the GPU's work done."""
        for path in entry.paths:
            trained = {turn.loop for event in path.of(Backward) for turn in event.where.turns}
            first: dict[Loop, Event] = {}
            for event in with_each_batch(path, [*_of_losses(path), *_of_steps(path)]):
                loop = next(each.loop for each in reversed(event.where.turns) if each.loop.kind == "batch")
                hook = event.where.hook
                if loop in trained if not hook else hook == TRAINING_STEP and not self._is_on_cpu():
                    first.setdefault(loop, event)
            for event in first.values():
                node = self.node_of(event.site)
                where = f"`{event.where.hook}`" if event.where.hook else "batch"
                asks = self.code.text_of(node) if node is not None else ""
                waits = f"`{asks}` waits in each {where} until the GPU is done"
                yield Fault.at(event, f"{waits}: slow where this process loads the next batch, too")

    def _is_on_cpu(self) -> bool:
        """Whether a Trainer in sight is told to train on the CPU."""
        made = (event for entry in self.facts.rehearsed.entries for event in entry.calls.get("lightning.Trainer", ()))
        return any(text_of(event.argument("accelerator")) == "cpu" for event in made)


def _of_losses(path: Path) -> Iterator[NumberTaken]:
    """Where the value of something is asked for that a backward pass starts from, on a GPU."""
    there = "cuda" if uses_gpu(path) else None
    started = {graph for event in path.of(Backward) for graph in event.graph}
    for event in path.of(NumberTaken):
        wanted = event.tensor.role == "loss" or event.tensor.graph & started
        if wanted and event.where.grad and (event.tensor.device or there) == "cuda":
            yield event


def _of_steps(path: Path) -> Iterator[CalledUnknown]:
    """Where `training_step` asks for the value of what it returns, whatever computed that."""
    results = [each.result for each in path.of(StepReturned) if each.automatic]
    returned = {id(each) for each in results if isinstance(each, Unknown)}
    for event in path.of(CalledUnknown):
        asked = isinstance(event.callee, Unknown) and event.callee.hint in _WAITING
        if asked and id(getattr(event.callee, "holder", None)) in returned:
            yield event
