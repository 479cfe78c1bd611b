"""Whether a text that today's Python cannot read was written for the Python of its project."""

from __future__ import annotations

import re
from pathlib import Path

from lightlint.facts.project.glimpse import bytes_at
from lightlint.facts.project.roots import root_of
from lightlint.facts.versions.evidence import places_in, settled
from lightlint.facts.versions.targets import target_of
from lightlint.facts.versions.versions import Version
from lightlint.memo.looked import looked

# What older ones read, by the first Python that does not.
_OLD = {
    Version("3.0"): re.compile(
        r"\bprint\s+[^\s=(]|\bprint\s*>>|\bexcept\b[^:()]+,\s*\w+\s*:|\braise\s+\w+\s*,|\bexec\s+[\"'\w]|<>|`|\b0\d+\b|\d[lL]\b|\bur[\"']"
    ),
    Version("3.7"): re.compile(r"\basync\s*(?:=(?!=)|[,)])|\.async\b"),
}
_MIXES_TABS = Version("3.0")  # until then a tab went on to the next eighth column
_STATEMENT = re.compile(r"\bprint\s+[^\s=(]|\bprint\s*>>|\bexcept\b[^:()]+,\s*\w+\s*:|\braise\s+\w+\s*,")
_TWO = re.compile(
    r"(?i)\bpython\W{0,3}(?:versions?\W{1,2})?2(?:\.[\dx])?(?:\s*(?:,|/|and|or|\+|&)\s*(?:python\s*)?3|\.[67])"
)
_ONLY_THREE = re.compile(
    r"\bf[\"']|\bnonlocal\b|\basync\s+def\b|\)\s*->\s*\w|\bprint\([^\n]*\b(?:end|flush|file|sep)\s*=|from __future__ import[^\n]*print"
)
_OF_THREE_ALONE = Version("3.0")
_MOST_FILES = 200
_TORCH_FOR_NEWER = "1.0"  # whose releases were the first for Python 3.7; older torch ran on Python 2.7 as well


def is_of_old_python(text: str, offset: int, message: str, path: Path) -> bool:
    """Whether what stops today's Python at a place is read by the Python that the file's project is for."""
    start, end = text.rfind("\n", 0, offset) + 1, text.find("\n", offset)
    line = text[start : end if end >= 0 else len(text)]
    ends = [version for version, pattern in _OLD.items() if pattern.search(line)]
    ends += [_MIXES_TABS] if "use of tabs and spaces" in message else []
    is_statement = bool(_STATEMENT.search(line))
    return bool(ends) and (
        _is_below(max(ends), path.absolute(), is_statement=is_statement)
        or (is_statement and _is_script_of_two(text, path.absolute()))
    )


def _is_script_of_two(text: str, path: Path) -> bool:
    """Whether a file is all Python 2 in a project that is for Python 3 alone, and no file imports it: a script that somebody
    else wrote and nobody runs."""
    root = root_of(path.parent)
    python = settled("python", places_in(path.parent, root))
    lower = python.range.lower if python is not None else None
    if lower is None or lower < _OF_THREE_ALONE or _ONLY_THREE.search(text):
        return False
    named = re.compile(rf"^[ \t]*(?:from|import)\b[^\n#]*\b{re.escape(path.stem)}\b".encode(), re.MULTILINE)
    files = [*path.parent.glob("*.py"), *path.parent.parent.glob("*.py"), *root.glob("*.py")]
    for each in (path.parent, path.parent.parent, root, *files[:_MOST_FILES]):
        looked(each)
    return not any(named.search(bytes_at(each)) for each in files[:_MOST_FILES] if each != path)


def _is_below(end: Version, path: Path, *, is_statement: bool) -> bool:
    root = root_of(path.parent)
    python = settled("python", places_in(path.parent, root))
    if python is not None:
        lower, upper = python.range.lower, python.range.upper
        if upper is not None:
            return upper <= end
        if is_statement or (lower is not None and lower >= end):
            return False
    elif is_statement or _is_for_two(root):  # nothing says that what is all Python 2 is to run on 3
        return True
    torch = target_of("torch", path, root)
    return torch.source.startswith("pin") and not torch.may_be_at_least(_TORCH_FOR_NEWER)


def _is_for_two(root: Path) -> bool:
    """Whether the README of a project names Python 2 among what it runs on: a Python before 3.7 may be the other."""
    texts = [bytes_at(each) for each in sorted(root.glob("README*")) if each.is_file()]
    return any(_TWO.search(each.decode(errors="replace")) for each in texts)
