from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import OptimizerMade, Stepped
from lightlint.explore.questions.certain import anyhow
from lightlint.explore.questions.queries import in_batch, in_sight
from lightlint.values.core import Site, is_constant
from lightlint.values.training import Optimizer, Tensor

if TYPE_CHECKING:
    from collections.abc import Hashable

    from lightlint.explore.rehearsals import Entry


class OptimizerRecreatedInLoop(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Optimizers made anew for parameters that one made at the same place has stepped."""
        found: list[OptimizerMade] = []
        for path in entry.paths:
            made: dict[tuple[Site, Tensor], Optimizer] = {}
            for event in path.of(OptimizerMade):
                optimizer = event.optimizer
                before = next((made[key] for each in optimizer.parameters if (key := (event.site, each)) in made), None)
                made.update({(event.site, each): optimizer for each in optimizer.parameters})
                if before is None or not before.steps or not event.where.turns or _is_told(event):
                    continue
                depth, steps = len(event.where.turns), path.of(Stepped)
                if any(_takes_epochs(step, depth) for step in steps if step.optimizer is before):
                    continue
                if _averages(optimizer) and in_sight([before, optimizer]) and _options(before) == _options(optimizer):
                    found.append(event)
        for event in anyhow(found):
            what = "iteration" if in_batch(event.where) else "epoch"
            yield Fault.at(
                event,
                f"a new `{event.optimizer.name}` in each {what} over a model that stays: what it has averaged is lost each time",
            )


def _is_told(event: OptimizerMade) -> bool:
    """Whether a test that the program decides says when one is made."""
    return any(each.known for each in event.where.conditions)


def _takes_epochs(step: Stepped, depth: int) -> bool:
    """Whether a step lies in a loop over epochs inside of `depth` loops: those go over whole runs, each with an optimizer."""
    kinds = [turn.loop.kind for turn in step.where.turns[depth:]]
    return len(kinds) > 1 and (kinds[0] != "batch" or "batch" in kinds[1:])


def _averages(optimizer: Optimizer) -> bool:
    """Whether an optimizer keeps something from step to step."""
    momentum = optimizer.argument("momentum", 2)
    return optimizer.name != "SGD" or (momentum is not None and not is_constant(momentum, 0, 0.0))


def _options(optimizer: Optimizer) -> dict[str, Hashable]:
    """What an optimizer is told besides its parameters: an iteration may ask for another."""
    return {name: each.key for name, each in optimizer.arguments.items() if name not in ("#0", "params")}
