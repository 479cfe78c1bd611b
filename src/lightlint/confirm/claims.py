"""The findings of what a command runs: its script and the project's modules that it imports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lightlint.config.settings import Settings
from lightlint.confirm.plan import Target
from lightlint.confirm.probes import all_probes
from lightlint.confirm.verdict import Claim
from lightlint.facts.project.project import Project
from lightlint.facts.project.roots import root_of
from lightlint.finding import Finding
from lightlint.pages import all_pages
from lightlint.pipeline import run
from lightlint.sources.load import load
from lightlint.sources.source import UnreadableError

_MOST_FILES = 400


@dataclass(frozen=True, slots=True)
class Suspicion:
    """A finding and the claim a run is to judge."""

    finding: Finding
    claim: Claim


def files_of(script: Path) -> tuple[Path, ...]:
    """A script and the modules of its project that it imports, directly or through others."""
    script = script.resolve()
    project = Project(root_of(script.parent))
    seen, waiting = {script: None}, [script]
    while waiting and len(seen) < _MOST_FILES:
        for path in _imported(project, waiting.pop()):
            if path not in seen:
                seen[path] = None
                waiting.append(path)
    return tuple(seen)


def _imported(project: Project, path: Path) -> Iterator[Path]:
    for name in sorted(project.summary(path).imported):
        parts = name.split(".")
        for length in range(len(parts), 0, -1):
            found = project.find_module(".".join(parts[:length]), path.parent)
            if found is not None:
                yield found.resolve()
                break


def suspicions(script: Path, settings: Settings, ran: Path | None = None) -> tuple[Suspicion, ...]:
    """What lightlint finds in what a script runs, notes included.

    Args:
        script: the script or notebook.
        ran: the file that runs in its place: a notebook runs as a script of its code cells.
    """
    files = files_of(script)
    found = run.check([str(path) for path in files], replace(settings, force_exclude=False)).findings
    return claimed(found, script, ran)


def claimed(found: Sequence[Finding], script: Path, ran: Path | None = None) -> tuple[Suspicion, ...]:
    """Findings with their claims, those of the script first."""
    ordered = sorted(found, key=lambda finding: (finding.filename != str(script), *finding.sort_key))
    return tuple(Suspicion(finding, _claim(number, finding, script, ran)) for number, finding in enumerate(ordered))


def targets(found: Sequence[Suspicion]) -> tuple[Target, ...]:
    """The lines that a run is to watch."""
    claims = (each.claim for each in found)
    return tuple(
        Target(claim.index, claim.file, claim.first, claim.last, tuple(claim.details.values())) for claim in claims
    )


def meters(found: Sequence[Suspicion]) -> tuple[str, ...]:
    """The meters that the findings' probes read; lines, loaders and memory are always watched."""
    probes = [all_probes()[each.claim.probe] for each in found if each.claim.probe in all_probes()]
    return tuple(sorted({"lines", "loaders", "usage", *(meter for probe in probes for meter in probe.meters)}))


def _claim(number: int, finding: Finding, script: Path, ran: Path | None) -> Claim:
    path = Path(finding.filename).resolve()
    first, last = _rows(finding)
    page = all_pages().get(finding.name)
    return Claim(
        number,
        finding.code,
        finding.name,
        finding.tier.value,
        finding.message,
        str((ran or path) if path == script.resolve() else path),
        first,
        last,
        (page.confirm if page else None) or "none",
        _details(finding),
    )


def _rows(finding: Finding) -> tuple[int, int]:
    """The finding's rows in the text that runs: a notebook's rows count over its joined code cells."""
    first, last = finding.location.row, max(finding.location.row, finding.end_location.row)
    if finding.end_location.column == 1 and last > first:
        last -= 1  # it ends before the first character of that row
    if finding.cell is None:
        return first, last
    try:
        source = load(finding.filename)
    except UnreadableError:
        return first, last
    before = next((source.row_of(cell.start) - 1 for cell in source.cells if cell.number == finding.cell), 0)
    return before + first, before + last


def _details(finding: Finding) -> dict[str, str]:
    """What the message names in backticks, in order: hooks, keys and arguments that a probe looks for."""
    names: Sequence[str] = finding.message.split("`")[1::2]
    return {str(number): name for number, name in enumerate(names)}
