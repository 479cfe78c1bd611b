"""The table of survival: counted, written for readers (survival.md), and kept exactly (losses.toml).

A change of a page makes its record void (its digest is another) until the table is written anew, so that a new example
stops nobody; on all other pages whatever is lost or fires that the record does not name is a step back.
"""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .cases import Case
from .measure import AT_FINDING, EVERYWHERE, GOOD, Outcome
from .rewrites import Rewrite

HERE = Path(__file__).parent
SURVIVAL, LOSSES = HERE / "survival.md", HERE / "losses.toml"


@dataclass
class Record:
    """`pages`: the digest of the examples of each rule; `lost`: by rewrite, what is lost or fires."""

    pages: dict[str, str] = field(default_factory=dict)
    lost: dict[str, set[str]] = field(default_factory=dict)


def digests(cases: Iterable[Case]) -> dict[str, str]:
    found: dict[str, list[str]] = defaultdict(list)
    for case in cases:
        found[case.name].append(case.digest)
    return {name: "".join(each) if len(each) == 1 else _joined(each) for name, each in found.items()}


def _joined(digests_: Sequence[str]) -> str:
    value = 0
    for each in digests_:
        value = (value * 31 + int(each, 16)) % 16**6
    return f"{value:06x}"


def entries(outcome: Outcome) -> Iterable[str]:
    """How a record names the losses of an outcome: rule, row in the example, and `*` where all statements changed."""
    mark = {AT_FINDING: "", EVERYWHERE: "*", GOOD: "!"}[outcome.where]
    rule = " ".join(outcome.case.rules) or outcome.case.name
    if outcome.fired:
        yield f"{rule}:{outcome.case.digest}!"
    for row in outcome.lost:
        yield f"{rule}:{row}{mark}"


def read_record(path: Path = LOSSES) -> Record:
    read = tomllib.loads(path.read_text())
    return Record(read["pages"], {name: set(_ungrouped(lost)) for name, lost in read["lost"].items()})


def _ungrouped(lost: str) -> Iterable[str]:
    for line in lost.split("\n"):
        rule, _, marks = line.partition(": ")
        yield from (f"{rule}:{mark}" for mark in marks.split())


def _grouped(lost: Iterable[str]) -> list[str]:
    """One line a rule."""
    marks: dict[str, list[str]] = defaultdict(list)
    for entry in sorted(lost):
        rule, _, mark = entry.partition(":")
        marks[rule].append(mark)
    return [f"{rule}: {' '.join(each)}" for rule, each in marks.items()]


def record_of(cases: Iterable[Case], outcomes: Iterable[Outcome]) -> Record:
    lost: dict[str, set[str]] = defaultdict(set)
    for outcome in outcomes:
        lost[outcome.rewrite].update(entries(outcome))
    return Record(digests(cases), lost)


def write_record(record: Record, path: Path = LOSSES) -> None:
    lines = [
        "# Written by `python -m tests.metamorphic --write`: what each rewrite loses (`*`: made everywhere), and",
        "# right examples that fire (`!`).",
        "[pages]",
    ]
    lines += [f'{name} = "{digest}"' for name, digest in sorted(record.pages.items())]
    lines += ["", "[lost]"]
    for name, lost in sorted(record.lost.items()):
        lines += [f'{name} = """', *_grouped(lost), '"""']
    path.write_text("\n".join(lines) + "\n")


def steps_back(record: Record, cases: Iterable[Case], outcomes: Iterable[Outcome]) -> list[str]:
    """What is lost or fires now that the record does not name, of pages that are as they were."""
    now = digests(cases)
    same = {name for name, digest in record.pages.items() if now.get(name) == digest}
    return [
        f"{outcome.rewrite}: {entry} ({outcome.case.where})"
        for outcome in outcomes
        if outcome.case.name in same
        for entry in entries(outcome)
        if entry not in record.lost.get(outcome.rewrite, ())
    ]


def rows(outcomes: Iterable[Outcome]) -> dict[str, dict[str, tuple[int, int]]]:
    """By rewrite and where: how many there were, and how many are still right."""
    counts: dict[str, dict[str, tuple[int, int]]] = defaultdict(dict)
    for each in outcomes:
        before, after = counts[each.rewrite].get(each.where, (0, 0))
        kept, all_ = (
            (int(not each.fired), 1) if each.where == GOOD else (len(each.kept), len(each.kept) + len(each.lost))
        )
        counts[each.rewrite][each.where] = before + all_, after + kept
    return counts


def shown(counts: Mapping[str, Mapping[str, tuple[int, int]]], rewrites: Mapping[str, Rewrite]) -> str:
    """The table as Markdown."""
    lines = [
        "| Rewrite | What it does | At the finding | | Everywhere | | Right examples still silent | |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    total: dict[str, tuple[int, int]] = {}
    for name, rewrite in rewrites.items():
        row = counts.get(name, {})
        for where, (before, after) in row.items():
            total[where] = total.get(where, (0, 0))[0] + before, total.get(where, (0, 0))[1] + after
        example = rewrite.example.replace("\n", "⏎ ").replace("|", "\\|")
        lines.append(f"| {name} | `{example}` | {_cells(row)}")
    lines.append(f"| **all** | | {_cells(total)}")
    return "\n".join(lines) + "\n"


def _cells(row: Mapping[str, tuple[int, int]]) -> str:
    parts = []
    for where in (AT_FINDING, EVERYWHERE, GOOD):
        before, after = row.get(where, (0, 0))
        parts.append(f"{after} of {before} | {100 * after / before:.1f} %" if before else "- | -")
    return " | ".join(parts) + " |"


HEAD = """# What survives rewriting

Each page's first bad example, and each right one, rewritten into programs that do the same. A finding counts as still
there if the same rule reports in what its statement became (a helper that it moved to, a line that was taken out of
it), or, once, elsewhere in the same function or class. *At the finding*: only statements with findings are changed;
*everywhere*: all. Examples that a rewrite cannot change count nowhere; notebooks are left out. Right examples are
tried with a quarter of the rewrites each, the same every time.

Written by `python -m tests.metamorphic --write`; `--lost NAME` shows the rewritten programs in which a finding is lost.

"""
