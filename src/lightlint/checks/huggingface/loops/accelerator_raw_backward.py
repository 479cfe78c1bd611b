from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, Stepped
from lightlint.explore.questions.accelerators import accumulates, has_engine, manager_of, scales
from lightlint.finding import Tier
from lightlint.values.core import is_constant

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Site
    from lightlint.values.training import Instance


class AcceleratorRawBackward(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Backward passes of the loss itself, for an optimizer that an Accelerator prepared."""
        apart = _apart(entry)
        for path in entry.paths:
            for event in path.of(Backward):
                accelerator = _manager(path, event) if event.via in ("backward", "unknown") else None
                if accelerator is None or any((each.site, each.outcome) in apart for each in event.where.conditions):
                    continue
                what = _what(accelerator)
                message = (
                    f"the loss goes backward past the Accelerator, which {what or 'may be told to scale and divide it'}"
                )
                yield Fault.at(
                    event, message, tier=None if what else Tier.WARNING if _is_told(accelerator) else Tier.NOTE
                )


def _what(accelerator: Instance) -> str:
    if accelerator.escaped or accelerator.open_arguments:
        return ""
    if has_engine(accelerator):
        return "has an engine that is to run it"
    return "scales it" if scales(accelerator) else "divides it" if accumulates(accelerator) else ""


def _is_told(accelerator: Instance) -> bool:
    """Whether the program may tell it to scale or divide; else only the command that starts it does."""
    told = accelerator.arguments.items()
    said = any(_SAYS.search(name) and not is_constant(each, None, "no", "bf16", 1) for name, each in told)
    return said or accelerator.escaped or accelerator.open_arguments


_SAYS = re.compile("precision|accumulation|plugin|handlers")


def _manager(path: Path, event: Backward) -> Instance | None:
    """The Accelerator of the optimizers that are stepped by this pass's gradients, as far as these are known."""
    if event.parameters:
        managers = {id(found): found for each in event.parameters if (found := manager_of(each)) is not None}
        all_managed = all(manager_of(each) is not None for each in event.parameters)
        return next(iter(managers.values())) if len(managers) == 1 and all_managed else None
    if event.via != "unknown":
        return None
    stepped = [each for each in path.of(Stepped) if each.time > event.time and event.where.same_turn(each.where)]
    others = [each for each in path.of(Backward) if each is not event and each.where.same_turn(event.where)]
    owners = [manager_of(each.optimizer) for each in stepped]
    return owners[0] if owners and None not in owners and not others else None


def _apart(entry: Entry) -> set[tuple[Site, bool]]:
    """The sides of tests whose other side has the Accelerator do the backward pass."""
    through = (event for event in entry.of(Backward) if event.via == "accelerator")
    return {(each.site, not each.outcome) for event in through for each in event.where.conditions}
