"""What a file says itself of versions: its install commands, those that it runs, and the words at its head."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from lightlint.facts.versions.requirements import script_install
from lightlint.sources.source import Source

_RUNS = re.compile(
    r"""(?:os\.(?:system|popen)|subprocess\.\w+|check_call)\(\s*["']((?:[^"'\n\\]|\\.)*?\bpip3?\s+install\s[^"'\n]*)["']"""
)
_RUNS_WORDS = re.compile(r"""\bpip["']?(?:\.main\(\s*\[|\s*,)\s*["']install["']\s*,([^\]]*)\]""")
_WORD = re.compile(r"""["']([^"'\n]+)["']""")
_HEAD = re.compile(r"\A\ufeff?((?:[ \t]*#[^\n]*\n|[ \t]*\n)*)(?:[rRuU]?(?:\"\"\"(.*?)\"\"\"|'''(.*?)'''))?", re.DOTALL)
_NAMES = re.compile(r"(?:torch|lightning|transformers)\W{0,9}(?:version\W{0,3}|v)?\d\.\d", re.IGNORECASE)
_IMPORTS = re.compile(r"^[ \t]*(?:import|from)[ \t]+(pytorch_lightning|lightning)\b", re.MULTILINE)
_OF_OTHERS = re.compile(
    r"^.*\b(?:adapt|cop(?:y|ied)|port(?:ed)?\b|borrow|taken|modif|convert|based on|backport|original|(?:in|of|from) torch).*$",
    re.IGNORECASE | re.MULTILINE,
)  # lines on where the code comes from
_LONGEST = 4000


def said_by(source: Source) -> tuple[str, ...]:
    """The install commands of a file, and as comments what else it says: of which Python, what it was tried with."""
    text = source.text
    said = (*source.says_of_versions, *script_install(text), *_imported(text))
    if source.is_notebook:
        return said
    return (*said, *_run(text), *_at_head(text[:_LONGEST]))


def _imported(text: str) -> Iterator[str]:
    """That a file knows Lightning by its first name only, which is a distribution of its own."""
    if "pytorch_lightning" in text and {found[1] for found in _IMPORTS.finditer(text)} == {"pytorch_lightning"}:
        yield "# imports pytorch_lightning"


def _run(text: str) -> Iterator[str]:
    """The `pip install` that a script runs itself."""
    if "install" not in text or "pip" not in text:
        return
    for found in _RUNS.finditer(text):
        yield found[1]
    for found in _RUNS_WORDS.finditer(text):
        yield f"pip install {' '.join(map(repr, _WORD.findall(found[1])))}"


def _at_head(text: str) -> Iterator[str]:
    """The versions that the comments at the head of a script and what it says of itself name."""
    found = _HEAD.match(text)
    comments, words = (found[1], found[2] or found[3] or "") if found else ("", "")
    head = "# Requirements\n\n" + re.sub(r"^[ \t]*#+[ \t]?", "", comments, flags=re.MULTILINE) + "\n" + words
    head = _OF_OTHERS.sub("", head)
    if not _NAMES.search(head):
        return
    from lightlint.facts.versions.pins.formats.prose import readme_pins

    for pin in readme_pins(Path("head"), head):
        yield f"# names {pin.name} {pin.specifier}"
