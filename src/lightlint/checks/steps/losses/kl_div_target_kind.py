from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import LossComputed
from lightlint.values.core import is_constant
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class KlDivTargetKind(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Divergences from log-probabilities that are taken for probabilities, or the other way round."""
        for event in entry.of(LossComputed):
            target = event.target
            if event.function not in ("kl_div", "KLDivLoss") or not isinstance(target, Tensor) or target.escaped:
                continue
            if event.log_target is None or is_constant(event.log_target, False):
                if target.role == "log-probabilities" and target.activation is not None:
                    yield Fault.at(event, "the target is in logarithms, which the divergence takes for probabilities")
            elif is_constant(event.log_target, True) and target.role == "probabilities":
                yield Fault.at(event, "the target is probabilities, which `log_target=True` takes for logarithms")
