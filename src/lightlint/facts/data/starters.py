"""Scripts that start what other files of their project train, and say nothing of training by themselves."""

from __future__ import annotations

import re
from pathlib import Path

from lightlint.facts.project.project import Project

_STARTS = re.compile(r"^(?:if __name__\b|for |while |with |[A-Za-z_][\w.]*\()", re.MULTILINE)
_LOOPS = re.compile(r"\.backward\(|def training_step|\.fit\(|Trainer\(")
_HOPS = 2


def starts_training(project: Project, path: Path, text: str) -> bool:
    """Whether a file does something when it is run, and a file of the project that it imports, or one that this imports, trains.

    Args:
        project: the file's.
        path: its place.
        text: its own text.
    """
    if _STARTS.search(text) is None:
        return False
    seen, latest = {path}, {path}
    for _ in range(_HOPS):
        latest = {source for each in latest for source in project.sources_of(each)} - seen
        if any(_LOOPS.search(project.text(each)) for each in sorted(latest)):
            return True
        seen |= latest
    return False
