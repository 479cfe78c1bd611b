from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, Called, CalledUnknown, Differentiated, Event
from lightlint.explore.questions.certain import anyhow

# what runs a step in inference mode: `fit` validates under `no_grad`
if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path


_PHASES = ("val", "test", "predict")
_EVALUATING = ("test", "validate", "predict")
_DECIDING = {"inference_mode", "strategy", "num_nodes"}
_OFF = "this runs in an evaluation of Lightning, where gradients are turned off: it raises"
_INFERENCE = "this runs under Lightning's `inference_mode`, which `enable_grad` does not undo: it raises"


class GradInEvalHook(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Gradients that are taken while Lightning evaluates, which has turned them off."""
        found: dict[Event, str] = {}
        for path in entry.paths:
            hidden: dict[object, int] = {}  # when code out of sight runs first, which may turn them on
            for unknown in path.of(CalledUnknown):
                hidden.setdefault(_run(unknown), unknown.time)
            taken: list[Backward | Differentiated] = [*path.of(Backward), *path.of(Differentiated)]
            for event in taken:
                where = event.where
                if where.phase not in _PHASES or event.caught or hidden.get(_run(event), event.time) < event.time:
                    continue
                if not where.grad and not event.graph:  # else it was recorded under an `enable_grad` elsewhere
                    found[event] = _OFF
                elif self._is_inference(path, event):
                    found[event] = _INFERENCE
        yield from (Fault.at(event, found[event]) for event in anyhow(found))

    def _is_inference(self, path: Path, event: Event) -> bool:
        """Whether a Trainer evaluates in inference mode: it is not told otherwise, by argument or by its strategy."""
        runs = [each for each in path.of(Called) if each.receiver is not None and each.receiver.kind == "trainer"]
        before = [each for each in runs if each.time < event.time]
        trainer = before[-1].receiver if before and before[-1].name in _EVALUATING else None
        if trainer is None or trainer.open_arguments or not trainer.arguments.keys().isdisjoint(_DECIDING):
            return False
        return "inference_mode" not in self.facts.source.text and self.facts.lightning.surely_at_least("1.8")


def _run(event: Event) -> object:
    """The hook of a phase that something happens in."""
    return event.where.phase, event.where.calls[:1]
