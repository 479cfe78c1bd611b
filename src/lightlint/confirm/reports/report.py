"""A judged run as every report reads it."""

from __future__ import annotations

from dataclasses import dataclass

from lightlint.confirm.determinism import Determinism
from lightlint.confirm.records import Run
from lightlint.confirm.verdict import Verdict
from lightlint.finding import Finding


@dataclass(frozen=True)
class Judged:
    """A finding and what the run says of it."""

    finding: Finding
    verdict: Verdict


@dataclass(frozen=True)
class Report:
    """Everything a run gave: `command` as the user wrote it, `reproduce` the line that does it again.

    `determinism` is there where two seeded runs were compared.
    """

    command: str
    reproduce: str
    run: Run
    judged: tuple[Judged, ...]
    determinism: Determinism | None = None
