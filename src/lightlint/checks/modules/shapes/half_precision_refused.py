from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import PrecisionRefused
from lightlint.finding import Tier
from lightlint.values.core import is_constant
from lightlint.values.training import Instance

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_DTYPES = ("float16", "bfloat16", "float32", "float64")


class HalfPrecisionRefused(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """What is written into a tensor that cannot take it in the precision it has there."""
        for event in entry.of(PrecisionRefused):
            if event.given in _DTYPES:
                message = f"what is put in is {event.given}, and the tensor {event.held}: torch raises"
            else:
                message = f"float16 cannot hold {event.given}, and torch raises"
            yield Fault.at(event, message, tier=None if _is_on(event.autocast) else Tier.WARNING)


def _is_on(context: Instance | None) -> bool:
    """Whether nothing but the program's own words decides whether autocast is on."""
    enabled = context.arguments.get("enabled") if context is not None else None
    return enabled is None or is_constant(enabled, True)
