"""Moves findings to where their causes lie: a file is linted by itself, and tells at its calls what they come to elsewhere."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from lightlint.config.settings import Settings
from lightlint.finding import Finding
from lightlint.pages import all_pages
from lightlint.sources.load import load
from lightlint.sources.suppress import Suppressions, codes_of

_UNUSED = "LL002"


def at_home(findings: Sequence[Finding], files: Iterable[str | Path], settings: Settings) -> tuple[Finding, ...]:
    """Findings with those whose causes lie in one of some files moved there, each told once.

    A cause that a comment silences where it lies is told nowhere; where its file is not among these, or its rule is off
    for it, the finding stays at the call.

    Args:
        findings: those of the linted files.
        files: the linted files.
        settings: those of the working directory.
    """
    suppressions = cache(_suppressions)  # of this run: the next may find other comments
    names = {os.path.abspath(each): str(each) for each in files}  # noqa: PTH100
    told: dict[object, Finding] = {}
    silenced: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        cause = finding.cause
        if cause is None:
            told[finding] = finding
        elif not suppressions(cause.filename).split([cause], codes_of())[0]:
            silenced[cause.filename].append(cause)
        elif (name := names.get(cause.filename)) is not None and cause.name in settings.for_path(name).rules_for(name):
            caller = f"{Path(finding.filename).name}:{finding.location.row}"
            told.setdefault(cause, replace(cause, filename=name, message=f"{cause.message} (run by {caller})"))
        else:
            told[finding] = replace(finding, cause=None)
    used = {path: _used(suppressions(path), causes) for path, causes in silenced.items() if path in names}
    idle = {(names[path], start) for path, starts in used.items() for start in starts}
    left = [each for each in told.values() if each.code != _UNUSED or (each.filename, each.start) not in idle]
    order = {name: number for number, name in enumerate(names.values())}
    return tuple(sorted(left, key=lambda each: (order.get(each.filename, len(order)), *each.sort_key)))


def _suppressions(path: str) -> Suppressions:
    return Suppressions.read(load(Path(path)))


def _used(suppressions: Suppressions, causes: Sequence[Finding]) -> set[int]:
    """Where the comments start that seem to silence nothing as long as these causes are not known."""
    codes = {page.code for page in all_pages().values()}
    before, after = (suppressions.unused(silenced, codes_of(), codes) for silenced in ([], causes))
    return {each.start for each in before} - {each.start for each in after}
