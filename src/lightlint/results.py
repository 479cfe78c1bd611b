"""What a run found and did, as plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lightlint.clock import Spent, total
from lightlint.finding import Finding

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Problem:
    """Something lightlint could not do; `fatal` ones make the exit status 2."""

    filename: str
    message: str
    fatal: bool = True
    details: str = ""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A text before and after its repair; `place` is the file, with the cell where it is a notebook's."""

    place: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Changed:
    """A file that fixes changed, or would change: its text, or the cells of a notebook that differ, the codes of what was
    repaired, and the whole file as it is then."""

    filename: str
    texts: tuple[Rewritten, ...]
    fixed: tuple[str, ...]
    data: bytes


@dataclass(frozen=True, slots=True)
class Result:
    """What a run found and did."""

    findings: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()
    changed: tuple[Changed, ...] = ()
    files: int = 0
    spent: Spent = ()
    strangers: tuple[tuple[str, str], ...] = ()
    """Files, and frameworks that they import and no rule knows."""
    newer: tuple[str, ...] = ()
    """Files that libcst reads and the Python that runs lightlint does not, so that what they do was not followed."""
    known: int = 0
    """Findings that are in the baseline."""


def merged(results: Iterable[Result]) -> Result:
    """Results of several files as one, in their order."""
    each = tuple(results)
    return Result(
        tuple(finding for result in each for finding in result.findings),
        tuple(problem for result in each for problem in result.problems),
        tuple(change for result in each for change in result.changed),
        sum(result.files for result in each),
        total(result.spent for result in each),
        tuple(stranger for result in each for stranger in result.strangers),
        tuple(filename for result in each for filename in result.newer),
        sum(result.known for result in each),
    )
