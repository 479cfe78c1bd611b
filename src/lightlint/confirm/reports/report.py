"""A judged run as every report reads it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from lightlint.confirm.determinism import Determinism
from lightlint.confirm.observed.observation import Observation
from lightlint.confirm.records import Run
from lightlint.confirm.verdict import Outcome, Verdict
from lightlint.finding import Finding
from lightlint.reports.place import place


@dataclass(frozen=True)
class Judged:
    """A finding and what the run says of it."""

    finding: Finding
    verdict: Verdict

    @property
    def place(self) -> str:
        """Where the finding is, from the working directory where it lies below."""
        path = Path(self.finding.filename)
        below = path.is_absolute() and path.is_relative_to(Path.cwd())
        return place(replace(self.finding, filename=str(path.relative_to(Path.cwd()))) if below else self.finding)


@dataclass(frozen=True)
class Report:
    """Everything a run gave: `command` as the user wrote it, `reproduce` the line that does it again.

    `observed` is what the run showed beside what the findings say; `determinism` is there where two seeded runs were
    compared.
    """

    command: str
    reproduce: str
    run: Run
    judged: tuple[Judged, ...]
    observed: tuple[Observation, ...] = ()
    determinism: Determinism | None = None

    @property
    def failed(self) -> bool:
        """Whether something is to be mended: a finding that is confirmed, a fault that the run showed, a run that failed."""
        return (
            any(each.verdict.outcome is Outcome.CONFIRMED for each in self.judged)
            or any(each.is_fault for each in self.observed)
            or not (self.run.is_whole or self.run.ended == "interrupted")
        )
