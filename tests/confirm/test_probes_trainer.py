"""What a Trainer's callbacks kept, by hand-written events."""

from __future__ import annotations

import pytest
from recorded import claim, event, judged, run

from lightlint.confirm.records import Event

MODE = claim(
    "monitor-mode-mismatch", "best-of-history", "`val_loss` is better when it is low, and 'max' keeps the worst"
)


def losses(*values: float) -> list[Event]:
    return [
        event("metrics", when="on_validation_end", epoch=at, values={"val_loss": value})
        for at, value in enumerate(values)
    ]


def kept(best: float | None, mode: str = "max") -> Event:
    return event("callback", type="ModelCheckpoint", monitor="val_loss", mode=mode, best=best)


@pytest.mark.parametrize(
    ("events", "outcome"),
    [
        ([kept(None), *losses(0.08, 0.02), kept(0.08)], "confirmed"),
        ([kept(None), *losses(0.08, 0.02), kept(0.08), *losses(0.11)], "confirmed"),  # `validate` behind the fit
        ([kept(None), *losses(0.08, 0.02), kept(0.02, mode="min")], "open"),
        ([kept(None), *losses(0.08, 0.08), kept(0.08)], "open"),
        ([kept(None), *losses(0.08, 0.02, 0.05), kept(0.05)], "open"),
    ],
)
def test_the_worst_that_is_kept_as_best(events: list[Event], outcome: str) -> None:
    assert judged(MODE, run(events))[0] == outcome
