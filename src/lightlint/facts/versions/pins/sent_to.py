"""The folders of a project that its README sends who installs it to: what is installed there is what its code runs with."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from lightlint.facts.versions.pins.folders import entries_of
from lightlint.facts.versions.pins.reading import text_of

_SENT = re.compile(
    r"(?:^|[\s`$&;])cd[ \t]+([\w./-]+)|\]\((?:\./)?([\w./-]+)/README\.md\)", re.IGNORECASE | re.MULTILINE
)
_MOST = 8


@cache
def folders_sent_to(top: Path) -> tuple[Path, ...]:
    """The folders below one that the READMEs in it name, `cd name/of/it` or a link to its own README.

    Cached; `folders_sent_to.cache_clear()` forgets it.
    """
    readmes = [each for each in entries_of(top)[0] if each.name.lower().startswith("readme")]
    texts = (text_of(each) or "" for each in readmes)
    named = dict.fromkeys(found[1] or found[2] for text in texts for found in _SENT.finditer(text))
    folders = (folder for each in named for folder in _below(top, each))
    return tuple(dict.fromkeys(folders))[:_MOST]


def _below(top: Path, name: str) -> Iterator[Path]:
    """The folder that a path leads to from the top, or from above it, as behind a `git clone`."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    for way in (parts, parts[1:]):
        folder = top
        for part in way:
            inner = {each.name: each for each in entries_of(folder)[1]}
            if part not in inner:
                break
            folder = inner[part]
        else:
            if folder != top:
                yield folder
                return
