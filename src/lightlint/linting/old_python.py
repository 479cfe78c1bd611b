"""Whether a text that today's Python cannot read was written for the Python of its project."""

from __future__ import annotations

import re
from pathlib import Path

from lightlint.facts.project.roots import root_of
from lightlint.facts.versions.evidence import places, settled
from lightlint.facts.versions.pins import entries_of
from lightlint.facts.versions.pins.reading import text_of
from lightlint.facts.versions.targets import target_of
from lightlint.facts.versions.versions import Version

# What older ones read, by the first Python that does not.
_OLD = {
    Version("3.0"): re.compile(
        r"\bprint\s+[^\s=(]|\bprint\s*>>|\bexcept\b[^:()]+,\s*\w+\s*:|\braise\s+\w+\s*,|\bexec\s+[\"'\w]|<>|`|\b0\d+\b|\d[lL]\b|\bur[\"']"
    ),
    Version("3.7"): re.compile(r"\basync\s*(?:=(?!=)|[,)])|\.async\b"),
}
_TORCH_FOR_NEWER = "1.0"  # whose releases were the first for Python 3.7; older torch ran on Python 2.7 as well
_MENTION = re.compile(
    r"(?P<bound>>=?|≥|at\s+least|above)?\s*\bpython(?:\s*(?:version|v\.?|[=:|-]))*\s*(?P<sign>[<>=]{1,2}|≥)?\s*"
    r"(?P<versions>[23]\.\d{1,2}(?:\s*(?:[/,&]|and|or)\s*(?:python\s*)?[23]\.\d{1,2})*)(?P<later>\s*\+|\.?x?\s*(?:or|and|\()\s*(?:later|above|higher|newer|up))?",
    re.IGNORECASE,
)


def is_of_old_python(text: str, offset: int, path: Path) -> bool:
    """Whether what stops today's Python at a place is read by the Python that the file's project is for."""
    start, end = text.rfind("\n", 0, offset) + 1, text.find("\n", offset)
    line = text[start : end if end >= 0 else len(text)]
    ends = [version for version, pattern in _OLD.items() if pattern.search(line)]
    return bool(ends) and _is_below(max(ends), path.absolute())


def _is_below(end: Version, path: Path) -> bool:
    root = root_of(path.parent)
    python = settled("python", places(path, root))
    if python is not None:
        return python.range.upper is not None and python.range.upper <= end
    torch = target_of("torch", path, root)
    if torch.source.startswith("pin") and not torch.may_be_at_least(_TORCH_FOR_NEWER):
        return True
    named = [found for file in _readmes(root) for found in _MENTION.finditer(text_of(file) or "")]
    sure = not any(found["later"] or found["bound"] or ">" in (found["sign"] or "") for found in named)
    versions = [Version(each) for found in named for each in re.findall(r"[23]\.\d{1,2}", found["versions"])]
    return bool(named) and sure and all(each < end for each in versions)


def _readmes(root: Path) -> list[Path]:
    return [file for file in entries_of(root)[0] if file.name.lower().startswith("readme")]
