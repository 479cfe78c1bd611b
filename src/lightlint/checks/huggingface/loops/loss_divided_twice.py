from __future__ import annotations

from collections.abc import Hashable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events.huggingface import ManagedBackward
from lightlint.frameworks.deepspeed import ACCUMULATION
from lightlint.models.python.settings import read
from lightlint.values.core import Constant, Mapping, Unknown, number_of, written
from lightlint.values.training import Instance, Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Value


class LossDividedTwice(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Losses that are divided by the number of batches of a step before what divides them by it, too."""
        for event in entry.of(ManagedBackward):
            steps = self._steps(event.manager)
            if steps is None or number_of(written(steps)) == 1 or not _is_divided_by(event.loss, steps):
                continue
            who = "the Accelerator" if event.manager.kind == "accelerator" else "DeepSpeed's engine"
            message = f"{who} divides the loss by its `{ACCUMULATION}`, by which it is divided already"
            yield Fault.at(event, message)

    def _steps(self, manager: Instance) -> Value | None:
        """Over how many batches gradients are summed up, None where nothing in sight says it."""
        if manager.escaped and manager.kind == "accelerator":
            return None
        if manager.kind == "accelerator":
            return manager.arguments.get(ACCUMULATION)
        config = manager.argument("config", 10) or manager.arguments.get("config_params")
        if not isinstance(config, Mapping):
            found = read(config, partial(self.facts.project.settings, folder=self.facts.path.parent))
            config = found[1] if found is not None else None
        return config.items.get(ACCUMULATION) if isinstance(config, Mapping) and not config.more else None


def _is_divided_by(loss: Value, steps: Value) -> bool:
    divisors: set[Hashable] = set()
    if isinstance(loss, Tensor):
        divisors |= loss.divided
    elif isinstance(loss, Unknown):
        divisors |= {key for key, power in loss.factors or () if power == -1}
    in_file = isinstance(steps.key, tuple) and steps.key[:1] == ("setting",)
    number = number_of(written(steps)) if in_file or isinstance(steps, Constant) else None
    asked = {steps.key} if number is None else {Constant(number).key, Constant(float(number)).key, ("number", number)}
    return bool(divisors & (asked - {None}))
