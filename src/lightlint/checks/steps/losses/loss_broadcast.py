from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import LossComputed
from lightlint.finding import Tier
from lightlint.models.tensors import forms
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class LossBroadcast(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Losses of a column and a row."""
        for event in entry.of(LossComputed):
            given, target = event.input, event.target
            if not isinstance(given, Tensor) or not isinstance(target, Tensor) or not forms.differ(given, target):
                continue
            shapes = {forms.COLUMN: "(N, 1)", forms.ROW: "(N,)"}
            met = f"`{event.function}` compares {shapes[str(given.form)]} with {shapes[str(target.form)]}"
            if event.function in _RAISING:
                yield Fault.at(event, f"{met} and raises", tier=Tier.ERROR)
            elif event.function in _SPREADING:
                yield Fault.at(event, f"{met}: each prediction with each target, so the model learns their mean")


_RAISING = frozenset(["BCELoss", "BCEWithLogitsLoss", "binary_cross_entropy", "binary_cross_entropy_with_logits"])
_SPREADING = frozenset(
    ["MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"]
)
