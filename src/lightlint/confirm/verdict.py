"""What follows from a run: a finding's outcome, in which scope it holds and the numbers that show it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Outcome(StrEnum):
    """What a run says of a finding."""

    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    OPEN = "open"  # looked for and not seen, which proves nothing: leaks, races and hangs need longer runs
    NOT_REACHED = "not reached"  # the finding's lines were not executed
    BEYOND_CUT = "beyond cut"  # the run was cut before it came to them
    NOT_OBSERVABLE = "not observable"  # compiled code, missing hardware, one rank where several are needed
    NOT_CHECKED = "not checked"  # no probe, a probe that failed, a run that ended early


@dataclass(frozen=True, slots=True)
class Number:
    """One measured value: `what` in `unit`, of one rank or of all (None)."""

    what: str
    value: float | int | str
    unit: str = ""
    rank: int | None = None

    @property
    def shown(self) -> str:
        """The value as reports print it, with its unit."""
        value = f"{self.value:.4g}" if isinstance(self.value, float) else str(self.value)
        return f"{value} {self.unit}".rstrip()


@dataclass(frozen=True, slots=True)
class Claim:
    """A finding as probes see it.

    `index` is its number in the plan; rows are those of the file that ran (a notebook runs as a script); `tier` and
    `message` are the finding's own. `details` is what a probe may need from the text, such as a name.
    """

    index: int
    code: str
    name: str
    tier: str
    message: str
    file: str
    first: int
    last: int
    probe: str = "none"
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome for one claim.

    Attributes:
        reason: one sentence that says what was seen.
        scope: where the outcome holds, such as "2 ranks, 8 steps"; every refutation names it.
        numbers: the measurements behind it.
    """

    outcome: Outcome
    reason: str
    scope: str = ""
    numbers: tuple[Number, ...] = ()
