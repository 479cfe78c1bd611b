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
    ending = departures.ending(run)
    first = (ending,) if ending else (*data.loops_left(run), *data.unequal_loaders(run))
    return (*first, *data.same_samples(run), *writes.shared_files(run))
