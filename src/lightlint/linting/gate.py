"""Which rules' `needs` a text meets, asked of few: most rules need a word that the text does not have."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Set
from functools import cache
from pathlib import Path

from lightlint import needs
from lightlint.memo.kept import derived
from lightlint.pages import Page, all_pages
from lightlint.text import Text


def met_by(text: Text, active: Set[str]) -> list[Page]:
    """The pages, of those whose names are active, whose `needs` a text meets, in the order of the rule book."""
    index, always = _index()
    numbers = set(always).union(*(index[word] for word in text.words & index.keys()))
    pages = checked_pages()
    asked = (pages[number] for number in sorted(numbers))
    return [page for page in asked if page.name in active and page.needs.met(text)]


@cache
def checked_pages() -> tuple[Page, ...]:
    """The pages of rules that have a check: all but what lightlint says of itself."""
    return tuple(page for page in all_pages().values() if page.family != "lightlint")


@cache
def _index() -> tuple[dict[str, list[int]], list[int]]:
    """The numbers of the pages by the words of which they need one, and those that name no such words."""
    code = (Path(each) for each in (__file__, needs.__file__))
    found: tuple[dict[str, list[int]], list[int]] = derived(
        "gate", (*(page.path for page in checked_pages()), *code), _indexed
    )
    return found


def _indexed() -> tuple[dict[str, list[int]], list[int]]:
    index: dict[str, list[int]] = defaultdict(list)
    always: list[int] = []
    words = [page.needs.one_of() for page in checked_pages()]
    for number, needed in enumerate(words):
        for word in needed or ():
            index[word].append(number)
        if needed is None:
            always.append(number)
    return dict(index), always
