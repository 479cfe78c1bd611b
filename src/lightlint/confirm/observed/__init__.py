"""What a run itself showed, whether or not a finding names it: who left first, who wrote what, who drew what.

As probes do, these functions judge recorded events and never guess.
"""

from __future__ import annotations

from lightlint.confirm.observed import data, departures, writes
from lightlint.confirm.observed.observation import Observation
from lightlint.confirm.records import Run

__all__ = ["Observation", "observe"]


def observe(run: Run) -> tuple[Observation, ...]:
    """What is to be told of a run, what ended it first."""
    return (*_first(run), *data.same_samples(run), *writes.shared_files(run))


def _first(run: Run) -> tuple[Observation, ...]:
    """Which ranks are no longer with the others; where nothing tells, how the run failed."""
    explained = departures.explained(run)
    if explained is not None:
        return (explained,)
    parted = (*data.loops_left(run), *data.unequal_loaders(run))
    failed = departures.unexplained(run)
    return parted or ((failed,) if failed is not None else ())
