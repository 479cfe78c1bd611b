"""Selectors and their precedence, on a small book and on the real one."""

from __future__ import annotations

from pathlib import Path

import pytest

from lightlint.config.select import Layer, UnknownRuleError, match, resolve
from lightlint.finding import Tier
from lightlint.needs import Needs
from lightlint.pages import FAMILIES, Page, all_pages


def page(code: str, name: str, family: str, *aliases: str) -> Page:
    return Page(
        code=code,
        name=name,
        tier=Tier.WARNING,
        fix=None,
        confirm=None,
        needs=Needs(),
        since="0.1.0",
        family=family,
        path=Path(family) / f"{name}.md",
        title="",
        aliases=aliases,
    )


BOOK = {
    entry.name: entry
    for entry in (
        page("LL000", "unreadable", "lightlint"),
        page("LL002", "unused-suppression", "lightlint"),
        page("LL101", "missing-zero-grad", "steps"),
        page("LL401", "rank-dependent-forward", "ranks"),
        page("LL402", "file-write-on-every-rank", "ranks", "write-on-every-rank"),
        page("LL411", "unguarded-log", "ranks"),
        page("LL701", "unsafe-load", "api", "TOR102"),
        page("LL702", "old-checkpoint", "api", "TOR001", "TOR003"),
    )
}
ALWAYS_ON = {"unreadable"}


def active(*layers: Layer) -> set[str]:
    return set(resolve(layers, BOOK).active)


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("ALL", set(BOOK)),
        ("LL", set(BOOK)),
        ("LL4", {"rank-dependent-forward", "file-write-on-every-rank", "unguarded-log"}),
        ("ranks", {"rank-dependent-forward", "file-write-on-every-rank", "unguarded-log"}),
        ("LL40", {"rank-dependent-forward", "file-write-on-every-rank"}),
        ("LL401", {"rank-dependent-forward"}),
        ("ll401", {"rank-dependent-forward"}),
        ("missing-zero-grad", {"missing-zero-grad"}),
        ("write-on-every-rank", {"file-write-on-every-rank"}),
        ("TOR", {"unsafe-load", "old-checkpoint"}),
        ("TOR1", {"unsafe-load"}),
        ("TOR102", {"unsafe-load"}),
        ("LL8", set()),
        ("steps", {"missing-zero-grad"}),
    ],
)
def test_a_selector_stands_for_rules(selector: str, names: set[str]) -> None:
    assert match(selector, BOOK)[1] == names


@pytest.mark.parametrize(
    ("selector", "says"),
    [
        ("LL403", "unknown rule `LL403`; did you mean `LL40"),
        ("mising-zero-grad", "unknown rule `mising-zero-grad`; did you mean `missing-zero-grad`?"),
        ("rank", "unknown rule `rank`; did you mean `ranks`?"),
        ("F401", "unknown rule `F401`"),
        ("", "unknown rule ``"),
        ("write", "unknown rule `write`"),
    ],
)
def test_an_unknown_selector_names_the_nearest_spelling(selector: str, says: str) -> None:
    with pytest.raises(UnknownRuleError) as caught:
        match(selector, BOOK)
    assert str(caught.value).startswith(says)
    assert "\n" not in str(caught.value)


def test_every_rule_is_on_by_default() -> None:
    assert active() == set(BOOK)
    assert resolve([], BOOK).named == frozenset()


def test_select_narrows_but_keeps_what_must_be_told() -> None:
    assert active(Layer(select=("LL1",))) == {"missing-zero-grad"} | ALWAYS_ON
    assert active(Layer(select=("LL1",), ignore=("LL000",))) == {"missing-zero-grad"}


def test_the_more_specific_selector_wins() -> None:
    assert active(Layer(select=("LL401",), ignore=("LL4",))) == {"rank-dependent-forward"} | ALWAYS_ON
    assert active(Layer(select=("LL4",), ignore=("LL40",))) == {"unguarded-log"} | ALWAYS_ON
    assert active(Layer(select=("ranks",), ignore=("LL40",), extend_select=("LL402",))) == (
        {"unguarded-log", "file-write-on-every-rank"} | ALWAYS_ON
    )


def test_ignore_wins_at_equal_specificity() -> None:
    assert active(Layer(select=("LL4",), ignore=("ranks",))) == ALWAYS_ON
    assert active(Layer(select=("unguarded-log",), ignore=("LL411",))) == ALWAYS_ON


def test_ignore_alone_takes_from_the_default() -> None:
    assert active(Layer(ignore=("LL4", "TOR"))) == {"unreadable", "unused-suppression", "missing-zero-grad"}


def test_the_command_line_is_laid_over_the_file() -> None:
    file = Layer(select=("LL1", "LL401"), ignore=("LL7",))
    assert active(file, Layer(select=("LL701",))) == {"unsafe-load"} | ALWAYS_ON
    assert active(file, Layer(extend_select=("LL701",))) == (
        {"missing-zero-grad", "rank-dependent-forward", "unsafe-load"} | ALWAYS_ON
    )
    assert active(file, Layer(ignore=("LL4",))) == {"missing-zero-grad"} | ALWAYS_ON


def test_only_a_code_or_name_asks_for_a_rule_by_itself() -> None:
    assert resolve([Layer(select=("LL4", "LL101", "TOR102"))], BOOK).named == {"missing-zero-grad", "unsafe-load"}
    assert resolve([Layer(extend_select=("unguarded-log",), ignore=("LL411",))], BOOK).named == frozenset()


def test_every_rule_of_the_real_book_can_be_selected_by_each_of_its_spellings() -> None:
    for entry in all_pages().values():
        for spelling in (entry.code, entry.name, *entry.aliases):
            assert entry.name in match(spelling)[1]
        assert entry.family in FAMILIES
        assert entry.name in match(entry.family)[1]
        assert entry.name in match(entry.code[:3])[1]
