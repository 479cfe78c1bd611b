"""From select and ignore lists to the set of rules that run, with ruff's precedence: the more specific selector wins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lightlint.pages import FAMILIES, Page, all_pages

# Syntax errors, crashed checks and failed fixes are told however narrow `select` is; only `ignore` silences them.
ALWAYS = frozenset({"LL000", "LL001", "LL003"})

_EXACT = 9  # above the length of any prefix


class UnknownRuleError(ValueError):
    """A selector names no rule; the text says so in one line, with the nearest spelling."""


@dataclass(frozen=True, slots=True)
class Layer:
    """The selectors of one place, a settings file or the command line; `select` None leaves the layers below as they are."""

    select: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Selection:
    """Names of the rules that run, and of those that were asked for by code or name (their notes are shown)."""

    active: frozenset[str]
    named: frozenset[str] = frozenset()


def match(selector: str, book: Mapping[str, Page] | None = None) -> tuple[int, frozenset[str]]:
    """How specific a selector is, and the names of the rules it stands for.

    Selectors are `ALL`, a code or alias (`LL502`, `TOR102`), the beginning of one (`LL`, `LL5`, `TOR`), a rule's name
    or a family's name.

    Raises:
        UnknownRuleError: it stands for nothing.
    """
    pages = all_pages() if book is None else book
    wanted = selector.lower()
    if wanted == "all":
        return 0, frozenset(pages)
    if wanted in FAMILIES:
        return len("LL5"), frozenset(name for name, page in pages.items() if page.family == wanted)
    exact = [page.name for page in pages.values() if wanted in _spellings(page)]
    if exact:
        return _EXACT, frozenset(exact)
    begun = [page.name for page in pages.values() if any(code.startswith(wanted) for code in _codes(page))]
    if wanted and (begun or wanted in _prefixes()):
        return len(wanted), frozenset(begun)
    raise UnknownRuleError(f"unknown rule `{selector}`{suggestion(selector, known(pages))}")


def resolve(layers: Iterable[Layer], book: Mapping[str, Page] | None = None) -> Selection:
    """The rules that run when layers are laid over "all rules", the last one on top.

    Raises:
        UnknownRuleError: a selector stands for nothing.
    """
    pages = all_pages() if book is None else book
    active, named = set(pages), set[str]()
    for layer in layers:
        wanted = [*(layer.select or ()), *layer.extend_select]
        updates = _updates(wanted, layer.ignore, pages)
        if layer.select is not None:
            active = {name for name, page in pages.items() if page.code in ALWAYS}
            named.clear()
        active |= {name for name, on in updates.items() if on}
        active -= {name for name, on in updates.items() if not on}
        named |= {name for selector in wanted for name in _if_exact(selector, pages)}
    return Selection(frozenset(active), frozenset(named & active))


def known(book: Mapping[str, Page] | None = None) -> list[str]:
    """Every spelling a selector may have, prefixes aside."""
    pages = all_pages() if book is None else book
    codes = [code for page in pages.values() for code in (page.code, *page.aliases)]
    return ["ALL", *FAMILIES, *pages, *codes]


def suggestion(wrong: str, right: Sequence[str]) -> str:
    """`; did you mean ...?` for the nearest spelling, or nothing where none is near."""
    from difflib import get_close_matches

    by_key = {spelling.lower(): spelling for spelling in right}
    near = get_close_matches(wrong.lower(), by_key, n=1)
    return f"; did you mean `{by_key[near[0]]}`?" if near else ""


def _updates(wanted: Sequence[str], ignored: Sequence[str], pages: Mapping[str, Page]) -> dict[str, bool]:
    """What one layer says of each rule: selectors in order of specificity, at equal specificity ignore last."""
    said = [(*match(selector, pages), True) for selector in wanted]
    said += [(*match(selector, pages), False) for selector in ignored]
    return {name: on for _, names, on in sorted(said, key=lambda entry: entry[0]) for name in names}


def _if_exact(selector: str, pages: Mapping[str, Page]) -> frozenset[str]:
    specificity, names = match(selector, pages)
    return names if specificity == _EXACT else frozenset()


def _codes(page: Page) -> Iterator[str]:
    """Codes that can be cut to a prefix; an alias that is an old name is not one."""
    yield page.code.lower()
    yield from (alias.lower() for alias in page.aliases if alias[-1:].isdigit())


def _spellings(page: Page) -> set[str]:
    return {page.code.lower(), page.name, *(alias.lower() for alias in page.aliases)}


def _prefixes() -> set[str]:
    """Prefixes that stand even while no rule bears them: `ll` and the families'."""
    return {"ll", *(title.split(" ", 1)[0].lower() for title in FAMILIES.values())}
