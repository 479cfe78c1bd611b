"""What a comment silences, what it does not, and which comments silence nothing."""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightlint.finding import Applicability, Finding, Tier
from lightlint.needs import Needs
from lightlint.pages import Page
from lightlint.sources.load import read
from lightlint.sources.source import Source
from lightlint.sources.suppress import Suppressions, noqa_row, resolver


def page(code: str, name: str, *aliases: str) -> Page:
    return Page(
        code,
        name,
        Tier.ERROR,
        Applicability.SAFE,
        None,
        Needs(),
        "0.1.0",
        "steps",
        Path("page.md"),
        "",
        aliases=aliases,
    )


resolve = resolver([page("LL101", "some-fault", "TOR102"), page("LL102", "other-fault"), page("LL401", "third-fault")])
ALL = {"LL101", "LL102", "LL401"}


def findings(source: Source, *codes: str) -> list[Finding]:
    """A finding of each code at every `BAD` of the text."""
    text = source.text
    starts = [at for at in range(len(text)) if text.startswith("BAD", at)]
    return [
        Finding(code, "", Tier.ERROR, "", source.filename, at, at + 3, source.locate(at), source.locate(at + 3))
        for at in starts
        for code in codes
    ]


def kept_rows(text: str, *codes: str) -> list[int]:
    source = read("a.py", text.encode())
    kept, suppressed = Suppressions.read(source).split(findings(source, *(codes or ("LL101",))), resolve)
    assert len(kept) + len(suppressed) == text.count("BAD") * len(codes or ("LL101",))
    return [finding.location.row for finding in kept]


@pytest.mark.parametrize(
    "text",
    [
        "BAD  # noqa",
        "BAD  # NOQA:LL101",
        "BAD  # noqa: LL101, E501",
        "BAD  # noqa: E501,LL101 because",
        "BAD  # noqa: LL1",
        "BAD  # noqa: LL1 LL4",
        "BAD  # noqa: TOR102",
        "BAD  # noqa: because nothing is named",
        "BAD  # type: ignore  # noqa: LL101",
        "BAD  # noqa: E501  # lightlint: ignore[LL101]",
        "BAD  # lightlint: ignore[LL101] a reason",
        "BAD  # lightlint:ignore[some-fault,LL401]",
        "BAD  # lightlint: ignore",
        "f(\n    BAD,\n    b,\n)  # noqa: LL101",
        "f(\n    BAD,\n    b,  # noqa: LL101\n)",
        "x = BAD + '''\n# no comment\n'''  # noqa: LL101",
        "x = BAD + \\\n    1  # noqa: LL101",
        "for x in BAD:  # noqa: LL101\n    pass",
        "# lightlint: ignore[LL101] a reason\nBAD",
        "# lightlint: ignore[LL101]\n# another comment\nx(\n    BAD\n)",
        "if x:\r\n    # lightlint: ignore[LL101]\r\n    BAD\r\n",
        "# lightlint: skip-file\nBAD\nBAD",
        "x = 1\nBAD\n#lightlint:skip-file",
        "# flake8: noqa\nBAD\nBAD",
        "x = 1\nBAD\n# ruff: noqa",
        "BAD\n# ruff: noqa: E501, LL101\nBAD",
        "# flake8: noqa: TOR102 \nif x:\n    BAD",
        "match x:\n    case BAD: # noqa: LL101\n        f'{x!r:{y}}'",
        "x = '# not a comment\nBAD  # noqa: LL101",
    ],
)
def test_silenced(text: str) -> None:
    assert kept_rows(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "BAD",
        "BAD  # noqa: E501",
        "BAD  # noqa: LL102, LL4",
        "BAD  # noqa: TOR1",
        "BAD  # lightlint: ignore[]",
        "BAD  # lightlint: ignore[other-fault]",
        "BAD  # a noqa remark",
        "BAD  # noqable",
        "BAD  # ruff: noqa",
        "# flake8: noqa: E501\nBAD",
        "# ruff: noqa: LL401\nBAD",
        "# flake8: noqa because of something\nBAD",
        "x = 1  # flake8: noqa\nBAD",
        "BAD, '# noqa: LL101'",
        "x = BAD + '''\n# noqa: LL101\n'''",
        "# noqa: LL101\nBAD",
        "# lightlint: ignore[LL101]\n\nBAD",
        "x  # lightlint: ignore[LL101]\nBAD",
        "# lightlint: ignore[LL101]\nx\nBAD",
        "'# lightlint: skip-file'\nBAD",
        "if x:  # noqa\n    BAD",
    ],
)
def test_not_silenced(text: str) -> None:
    assert len(kept_rows(text)) == 1


def test_a_comment_counts_for_its_own_logical_line_only() -> None:
    assert kept_rows("BAD\nBAD  # noqa\nBAD\nf(  # noqa\n  BAD)\nBAD") == [1, 3, 6]


def test_comments_work_inside_a_notebooks_cells() -> None:
    cells = ["# lightlint: ignore[LL101]", "BAD\n!ls # noqa", "BAD  # noqa: LL101", "# lightlint: ignore[LL101]\nBAD"]
    document = {"cells": [{"cell_type": "code", "source": cell} for cell in cells]}
    source = read("a.ipynb", json.dumps(document).encode())
    kept, _ = Suppressions.read(source).split(findings(source, "LL101"), resolve)
    assert [source.cell_at(finding.start) for finding in kept] == [source.cells[1]]


def unused(text: str, *codes: str, active: Iterable[str] = ALL) -> tuple[list[str], str]:
    """The texts reported, and the text with them taken out."""
    source = read("a.py", text.encode())
    suppressions = Suppressions.read(source)
    _, suppressed = suppressions.split(findings(source, *codes), resolve)
    reported = suppressions.unused(suppressed, resolve, set(active))
    assert all(one.text.split(", ")[0] in source.text[one.start : one.end] for one in reported)
    return [one.text for one in reported], source.rewritten(one.edit for one in reported).text


@pytest.mark.parametrize(
    ("before", "names", "after"),
    [
        ("x = 1  # noqa: LL101\ny", ["LL101"], "x = 1\ny"),
        ("x = 1  # noqa: LL101 reason\ny", ["LL101"], "x = 1\ny"),
        ("x  # noqa: E501,LL101", ["LL101"], "x  # noqa: E501"),
        ("x  # noqa: LL101, F401, LL4 text", ["LL101, LL4"], "x  # noqa: F401 text"),
        ("BAD  # noqa: LL101, LL102", ["LL102"], "BAD  # noqa: LL101"),
        ("x  # type: ignore  # noqa: TOR102", ["TOR102"], "x  # type: ignore"),
        ("x  # noqa: LL101  # type: ignore", ["LL101"], "x  # type: ignore"),
        ("x\n    # lightlint: ignore[some-fault] why\ny", ["some-fault"], "x\ny"),
        ("x\r\n# lightlint: ignore[LL101]\r\n\r\ny", ["LL101"], "x\r\n\r\ny"),
        ("x  # lightlint: ignore[LL101, LL102]", ["LL101, LL102"], "x"),
        ("BAD  # lightlint: ignore[LL102, LL101] why", ["LL102"], "BAD  # lightlint: ignore[LL101] why"),
        ("x  # noqa: LL999", ["LL999"], "x"),
        ("BAD  # noqa: LL1", [], "BAD  # noqa: LL1"),
        ("x  # noqa", [], "x  # noqa"),
        ("x  # noqa: E501, TOR, TOR103", [], "x  # noqa: E501, TOR, TOR103"),
        ("x  # lightlint: ignore", [], "x  # lightlint: ignore"),
        ("# lightlint: skip-file\nx  # noqa: LL101", [], "# lightlint: skip-file\nx  # noqa: LL101"),
        ("'# noqa: LL101'", [], "'# noqa: LL101'"),
    ],
)
def test_codes_that_silence_nothing_are_told_and_taken_out(before: str, names: list[str], after: str) -> None:
    assert unused(before, "LL101") == (names, after)


def test_codes_of_rules_that_did_not_run_are_not_told() -> None:
    assert unused("x  # noqa: LL101, LL4", active={"LL101"}) == (["LL101"], "x  # noqa: LL4")
    assert unused("x  # noqa: LL1", active={"LL101"})[0] == []


def test_the_row_of_a_noqa_comment_is_the_last_of_the_logical_line() -> None:
    source = read("a.py", b"x = f(\n  1,\n)\ny = '''\n'''\nz")
    assert [noqa_row(source, at) for at in (0, 4, 9, source.text.index("y"), source.text.index("z"))] == [3, 3, 3, 5, 6]
    cells = [{"cell_type": "code", "source": text} for text in ("x\ny", "a\nf(\n1)")]
    notebook = read("a.ipynb", json.dumps({"cells": cells}).encode())
    assert noqa_row(notebook, notebook.text.index("f")) == 3


pieces = [
    "BAD",
    "x",
    "  # noqa",
    ": LL101",
    ", LL102",
    "\n",
    "# lightlint: ignore[LL101]",
    " # x",
    "(",
    ")",
    "'''",
    "'",
]


@given(st.lists(st.sampled_from(pieces)).map("".join))
def test_taking_out_what_is_unused_uncovers_nothing(text: str) -> None:
    source = read("a.py", text.encode())
    made = findings(source, "LL101", "LL102")
    suppressions = Suppressions.read(source)
    kept, suppressed = suppressions.split(made, resolve)
    for one in suppressions.unused(suppressed, resolve, ALL):
        after = source.rewritten([one.edit])
        kept_then, _ = Suppressions.read(after).split(findings(after, "LL101", "LL102"), resolve)
        assert len(kept_then) <= len(kept)


def test_codes_for_a_whole_file_that_silence_nothing_are_told() -> None:
    assert unused("# ruff: noqa: E501, LL101, LL102\nBAD\n", "LL101") == (["LL102"], "# ruff: noqa: E501, LL101\nBAD\n")
    assert unused("# flake8: noqa: LL102\nBAD\n", "LL101") == (["LL102"], "BAD\n")
    assert unused("# flake8: noqa\nx\n") == ([], "# flake8: noqa\nx\n")
