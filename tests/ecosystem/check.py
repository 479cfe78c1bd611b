"""Hold lightlint's promises on real code: `python tests/ecosystem/check.py DIRECTORY...` (not part of the test run).

Each directory is linted, then repaired in a copy. What must hold:

* no check fails, no file ends the run;
* linting every rule without the gate (`needs:`) finds the same;
* every repaired file parses, and what was repaired is not found there any more;
* a file without repairs is the same to the byte, and in a repaired one everything outside of the edited lines is;
* a second run changes nothing.

Prints what was found by rule and tier, and every promise that was broken. Status 1 if one was.
"""

from __future__ import annotations

import argparse
import difflib
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from lightlint.config.settings import Settings, load
from lightlint.facts.project.project import Projects
from lightlint.finding import Edit, Finding
from lightlint.fixes.apply import Fixed, fix_source
from lightlint.linting.lint import lint
from lightlint.pipeline import run
from lightlint.sources.discover import discover
from lightlint.sources.load import load as load_source
from lightlint.sources.source import Source, UnreadableError
from lightlint.trees.parsing import parses


@dataclass
class Report:
    """What a directory's check came to."""

    files: int = 0
    found: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    repaired: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directories", nargs="+", type=Path)
    parser.add_argument("--unsafe-fixes", action="store_true", help="apply these, too")
    parser.add_argument(
        "--no-gate", action="store_true", help="leave out the comparison without the gate, which is slow"
    )
    options = parser.parse_args(arguments)
    failed = False
    for directory in options.directories:
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as scratch:
            copied = Path(scratch) / directory.resolve().name
            shutil.copytree(directory, copied, symlinks=True, ignore=shutil.ignore_patterns(".git"))
            report = check(copied, unsafe=options.unsafe_fixes, gate=not options.no_gate)
        print(f"{directory}: {report.files} files, {time.monotonic() - start:.0f} s", flush=True)
        for (code, name, tier), count in sorted(report.found.items()):
            print(f"  {count:5d}  {code} {tier:7} {name}  ({report.repaired[code]} repaired)")
        for each in report.broken:
            print(f"  BROKEN {each.replace(str(copied), directory.name)}")
        failed |= bool(report.broken)
    return int(failed)


def check(directory: Path, *, unsafe: bool, gate: bool = True) -> Report:
    """Check a directory that may be changed."""
    settings = load({"notes": True}, isolated=True)
    report = Report()
    before = _texts(directory)
    first = run.check([str(directory)], settings)
    report.files = first.files
    report.found = Counter((each.code, each.name, each.tier.value) for each in first.findings)
    report.broken += (f"{each.filename}: {each.message}" for each in first.problems if each.fatal)
    if gate:
        report.broken += _without_gate(directory, settings, first.findings)
    report.broken += _fix_promises(directory, settings, unsafe=unsafe)
    fixed = run.fix([str(directory)], settings, unsafe=unsafe, write_files=True)
    report.repaired = Counter(code for each in fixed.changed for code in each.fixed)
    report.broken += (f"{each.filename}: {each.message}" for each in fixed.findings if each.code == "LL003")
    changed = {Path(each.filename) for each in fixed.changed}
    after = _texts(directory)
    report.broken += (
        f"{path}: changed without a repair" for path in before if path not in changed and before[path] != after[path]
    )
    again = run.fix([str(directory)], settings, unsafe=unsafe, write_files=True)
    report.broken += (f"{each.filename}: a second run repairs {', '.join(each.fixed)}" for each in again.changed)
    final = _texts(directory)
    report.broken += (f"{path}: changed by the second run" for path in final if final[path] != after[path])
    return report


def _texts(directory: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file() and not path.is_symlink()}


def _sources(directory: Path) -> Iterator[Source]:
    paths, _ = discover([str(directory)], exclude=load({}, isolated=True).exclude)
    for path in paths:
        try:
            yield load_source(path)
        except UnreadableError:
            continue


def _without_gate(directory: Path, settings: Settings, found: Iterable[Finding]) -> Iterator[str]:
    by_file: dict[str, list[Finding]] = {}
    for each in found:
        by_file.setdefault(each.filename, []).append(each)
    projects = Projects()
    for source in _sources(directory):
        linted = lint(source, settings, projects, gate=False)
        yield from (f"{source.filename}: the check of {crash.rule} fails without the gate" for crash in linted.crashes)
        gated = set(by_file.get(source.filename, ()))
        for each in set(linted.findings) ^ gated:
            if each.code not in {"LL000", "LL001"}:  # a file that is not parsed is not found to be broken
                where = "only without" if each not in gated else "only with"
                yield f"{source.filename}:{each.location.row}: {each.code} {where} the gate"


def _fix_promises(directory: Path, settings: Settings, *, unsafe: bool) -> Iterator[str]:
    """What every repaired file must be, judged before anything is written."""
    projects = Projects()

    def findings(source: Source) -> tuple[Finding, ...]:
        return lint(source, settings, projects).findings

    for source in _sources(directory):
        fixed = fix_source(source, findings, unsafe=unsafe, parses=parses)
        if fixed.source is not source:
            yield from (f"{source.filename}: {each}" for each in _broken(source, findings(source), fixed))


def _broken(source: Source, found: Sequence[Finding], fixed: Fixed) -> Iterator[str]:
    if not parses(fixed.source.text):
        yield "does not parse when repaired"
    before, repaired, left = (
        Counter((each.code, each.message) for each in some) for some in (found, fixed.applied, fixed.left)
    )
    for kind, count in repaired.items():
        if left[kind] > max(0, before[kind] - count):
            yield f"{kind[0]} is still found where it was repaired: {kind[1]}"
    if len(source.cells) != len(fixed.source.cells):
        yield "has another number of cells"
    yield from _strays(source, fixed)


def _strays(source: Source, fixed: Fixed) -> Iterator[str]:
    """Rows that differ where no repair has an edit. One round's edits are applied anew and must give the same bytes."""
    edits = list(dict.fromkeys(edit for each in fixed.applied if each.fix for edit in each.fix.edits))
    if source.editable(edits) and all(one.end <= other.start for one, other in pairwise(sorted(edits, key=_place))):
        again = source.rewritten(edits)
        if again.text == fixed.source.text:
            if again.render() != fixed.source.render():
                yield "renders to other bytes than its edits make"
            return
    touched = {row for edit in edits for row in range(source.row_of(edit.start) - 1, source.row_of(edit.end) + 2)}
    rows = (source.text.splitlines(keepends=True), fixed.source.text.splitlines(keepends=True))
    for kind, start, end, *_ in difflib.SequenceMatcher(None, *rows, autojunk=False).get_opcodes():
        if kind != "equal" and not touched & set(range(start, end + 2)):
            yield f"row {start + 1} changed without an edit"


def _place(edit: Edit) -> tuple[int, int]:
    return edit.start, edit.end


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
