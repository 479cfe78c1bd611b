"""The findings that a project lives with for now: a file that knows them by what stands there, not by the row."""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from lightlint.cli.output import save
from lightlint.config.options import SettingsError
from lightlint.config.settings import Settings
from lightlint.finding import Finding
from lightlint.pages import find
from lightlint.reports.place import ordered
from lightlint.results import Result

_ANY_TEXT = "surrogatepass"  # a notebook's JSON may hold half of a pair, and a file's name what is no UTF-8


@dataclass(frozen=True, slots=True, order=True)
class Known:
    """A finding: its file as seen from the baseline's folder, its rule, and the text of its rows without the spaces around."""

    file: str
    code: str
    text: str


@dataclass(frozen=True, slots=True)
class Compared:
    """What a run found beside a baseline: the findings that are new, what the baseline holds from now on, and how many it
    need not know any more."""

    new: tuple[Finding, ...]
    kept: tuple[Known, ...]
    gone: int


def write_known(result: Result, path: Path) -> int:
    """Write the errors and warnings of a run into a baseline; returns how many there are.

    Raises:
        SettingsError: it cannot be written.
    """
    folder = path.absolute().parent
    counted = [known(finding, folder) for finding in result.findings if finding.counts]
    _save(path, counted, "--write-baseline")
    return len(counted)


def without_known(result: Result, path: Path, looked_at: Sequence[str], settings: Settings) -> tuple[Result, int]:
    """A result without what a baseline knows. The baseline forgets what the run would have found and did not, but on a CI
    machine, whose copy nobody keeps.

    Args:
        result: of the run.
        path: the baseline.
        looked_at: the files and folders that all were looked at.
        settings: of the run.

    Returns:
        The result, and how many findings the baseline has forgotten.

    Raises:
        SettingsError: the baseline cannot be read, or cannot be written.
    """
    folder = path.absolute().parent
    roots = [Path(each).absolute() for each in looked_at]

    def is_looked_for(each: Known) -> bool:
        file = Path(os.path.normpath(folder / each.file))
        inside = any(root == file or root in file.parents for root in roots)
        page = find(each.code)
        return page is None or (inside and page.name in settings.for_path(file).rules_for(file))

    before = read(path)
    found = compare(result.findings, before, folder, is_looked_for)
    writes = sorted(before) != list(found.kept) and not result.problems and not os.environ.get("CI")
    if writes:
        _save(path, found.kept, "--baseline")
    number = len(result.findings) - len(found.new)
    return replace(result, findings=found.new, known=number), found.gone if writes else 0


def known(finding: Finding, folder: Path) -> Known:
    """A finding as a baseline in a folder knows it."""
    rows: Sequence[str] = ()
    if finding.excerpt is not None:
        first = finding.location.row - finding.excerpt.row
        rows = finding.excerpt.lines[first : first + finding.end_location.row - finding.location.row + 1]
    file = Path(os.path.relpath(finding.filename, folder)).as_posix()
    return Known(file, finding.code, "\n".join(row.strip() for row in rows))


def compare(
    findings: Iterable[Finding], baseline: Iterable[Known], folder: Path, is_looked_for: Callable[[Known], bool]
) -> Compared:
    """Tell new findings from known ones.

    Args:
        findings: of the run.
        baseline: what is known.
        folder: that of the baseline.
        is_looked_for: whether the run would have found one that is still there.
    """
    left = Counter(baseline)
    met: list[Known] = []
    new: list[Finding] = []
    others: list[tuple[Finding, Known]] = []
    for finding in findings:
        each = known(finding, folder)
        if not finding.counts:
            new.append(finding)
        elif left[each]:
            left[each] -= 1
            met.append(each)
        else:
            others.append((finding, each))
    stays, moved = list[Known](), defaultdict[tuple[str, str], list[Known]](list)
    for each in left.elements():
        if (folder / each.file).is_file():
            stays.append(each)
        else:
            moved[each.code, each.text].append(each)
    for finding, each in others:
        if moved[each.code, each.text]:  # its file has another name now
            moved[each.code, each.text].pop()
            met.append(each)
        else:
            new.append(finding)
    kept = [each for each in stays if not is_looked_for(each)]
    gone = len(stays) - len(kept) + sum(map(len, moved.values()))
    return Compared(tuple(ordered(new)), tuple(sorted([*met, *kept])), gone)


def read(path: Path) -> list[Known]:
    """What a baseline knows.

    Raises:
        SettingsError: it cannot be read.
    """
    try:
        rows = json.loads(path.read_bytes().decode(errors=_ANY_TEXT))
        return [Known(each["file"], each["code"], each["text"]) for each in rows]
    except OSError as error:
        raise SettingsError(f"--baseline: {path}: {error.strerror}") from error
    except (ValueError, LookupError, TypeError) as error:
        raise SettingsError(f"--baseline: {path}: no baseline as --write-baseline writes it") from error


def _save(path: Path, baseline: Iterable[Known], option: str) -> None:
    text = json.dumps([asdict(each) for each in sorted(baseline)], indent=1, ensure_ascii=False) + "\n"
    save(path, text.encode(errors=_ANY_TEXT), option)
