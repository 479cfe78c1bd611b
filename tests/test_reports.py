"""What the reports print, character by character."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from faulty import FAULT
from forked import run_forked
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.text import Text

from lightlint.config.options import OUTPUT_FORMATS
from lightlint.finding import Applicability, Edit, Excerpt, Finding, Fix, Location, Tier
from lightlint.pages import all_pages
from lightlint.reports import diff, statistics, summary
from lightlint.reports.formats import concise, full, github, gitlab, grouped, json_lines, junit, pylint
from lightlint.reports.formats import json as json_report
from lightlint.reports.frame import frame
from lightlint.reports.paint import draw

CODE = """\
for batch in loader:
    loss = model(batch)
    torch.cuda.empty_cache()
    step()

trainer = Trainer(
    devices=2,

    strategy="ddp",
)
done()
"""


def finding(
    code: str,
    start: Location,
    end: Location,
    *,
    rows: tuple[int, int],
    tier: Tier = Tier.WARNING,
    filename: str = "train.py",
    cell: int | None = None,
    fix: Fix | None = None,
) -> Finding:
    """A finding on CODE, its excerpt the rows from `rows[0]` to `rows[1]`."""
    lines = tuple(CODE.splitlines()[rows[0] - 1 : rows[1]])
    return Finding(
        code=code,
        name="some-fault",
        tier=tier,
        message="this is so",
        filename=filename,
        start=start.row * 100 + start.column,
        end=end.row * 100 + end.column,
        location=start,
        end_location=end,
        cell=cell,
        fix=fix,
        noqa_row=end.row,
        excerpt=Excerpt(rows[0], lines),
    )


def safe(message: str) -> Fix:
    return Fix(message, Applicability.SAFE, (Edit(47, 76, "", Location(3, 1), Location(4, 1)),))


ONE_ROW = finding("LL501", Location(3, 5), Location(3, 29), rows=(1, 5), fix=safe("drop the call"))


def test_the_span_in_one_row_is_underlined() -> None:
    assert full.render([ONE_ROW]) == (
        "LL501 [some-fault] warning: this is so\n"
        " --> train.py:3:5\n"
        "  |\n"
        "1 | for batch in loader:\n"
        "2 |     loss = model(batch)\n"
        "3 |     torch.cuda.empty_cache()\n"
        "  |     ^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "4 |     step()\n"
        "5 |\n"
        "  |\n"
        "  = help: drop the call (fix available with --fix)\n"
        "\n"
    )


def test_a_span_of_several_rows_from_the_first_word_of_one() -> None:
    fix = Fix("wrap it", Applicability.UNSAFE, ())
    text = full.render([finding("LL102", Location(6, 1), Location(10, 2), rows=(5, 11), tier=Tier.ERROR, fix=fix)])
    assert text == (
        "LL102 [some-fault] error: this is so\n"
        "  --> train.py:6:1\n"
        "   |\n"
        " 5 |\n"
        " 6 | / trainer = Trainer(\n"
        " 7 | |     devices=2,\n"
        " 8 | |\n"
        ' 9 | |     strategy="ddp",\n'
        "10 | | )\n"
        "   | |_^\n"
        "11 |   done()\n"
        "   |\n"
        "   = help: wrap it (fix available with --fix --unsafe-fixes)\n"
        "\n"
    )


def test_a_span_of_several_rows_from_inside_one() -> None:
    text = full.render([finding("LL102", Location(6, 11), Location(10, 2), rows=(6, 10))])
    assert text.splitlines()[2:-1] == [
        "   |",
        " 6 |   trainer = Trainer(",
        "   |  ___________^",
        " 7 | |     devices=2,",
        " 8 | |",
        ' 9 | |     strategy="ddp",',
        "10 | | )",
        "   | |_^",
        "   |",
    ]


def test_a_span_that_ends_before_a_rows_first_character_ends_in_the_row_above() -> None:
    text = full.render([finding("LL102", Location(4, 5), Location(5, 1), rows=(4, 5))])
    assert "4 |     step()\n  |     ^^^^^^\n5 |\n" in text


def test_the_middle_of_a_long_span_is_left_out() -> None:
    lines = ("while True:", *(f"    line{number}" for number in range(2, 30)))
    at, end = Location(1, 1), Location(29, 11)
    long = Finding("LL1", "n", Tier.NOTE, "m", "x.py", 0, 9, at, end, excerpt=Excerpt(1, lines))
    rows = full.render([long]).splitlines()
    assert rows[7:10] == [" 5 | |     line5", "... | |", "27 | |     line27"]
    assert len(rows) == 15


def test_a_finding_without_rows_is_still_told() -> None:
    at = Location(1, 1)
    assert full.render([Finding("LL000", "unreadable-file", Tier.ERROR, "not text", "x.py", 0, 0, at, at)]) == (
        "LL000 [unreadable-file] error: not text\n --> x.py:1:1\n\n"
    )


def test_a_finding_in_a_notebook_names_its_cell() -> None:
    found = finding("LL501", Location(2, 5), Location(2, 9), rows=(1, 3), filename="nb.ipynb", cell=3)
    assert " --> nb.ipynb:cell 3:2:5\n" in full.render([found])
    assert concise.render([found]) == "nb.ipynb:cell 3:2:5: LL501 this is so\n"


def test_findings_go_by_file_and_place() -> None:
    at = [Location(3, 1), Location(1, 4), Location(1, 1)]
    found = [finding("LL1", place, place, rows=(1, 3), filename=name) for name in ("b.py", "a.py") for place in at]
    assert concise.render(found).splitlines() == [
        f"{name}:{row}:{column}: LL1 this is so"
        for name in ("a.py", "b.py")
        for row, column in ((1, 1), (1, 4), (3, 1))
    ]


def test_control_characters_cannot_reach_the_terminal() -> None:
    at, end = Location(1, 1), Location(1, 3)
    bad = Finding(
        "LL1", "n", Tier.NOTE, "a\x1b[31mb", "x\n\x07.py", 0, 1, at, end, excerpt=Excerpt(1, ("'\x1b]0;t\x07\x0c'",))
    )
    for text in (full.render([bad]), concise.render([bad])):
        assert re.search(r"[\x00-\x09\x0b-\x1f\x7f]", text) is None


@pytest.mark.parametrize("line", ["\tx = f(日本)", "é\t日 f(a)", "a\u0301b f(1)", "f('👩', 2)", "x  # f(\t)"])
def test_wide_characters_and_tabs_keep_the_marks_in_place(line: str) -> None:
    start = line.index("f(")
    rows = _rows(line, start, len(line))
    mark = rows[2]
    shown = rows[1]
    assert cell_len(mark.split("^")[0]) == cell_len(shown[: shown.index("f(")])
    assert mark.count("^") == cell_len(shown[shown.index("f(") :])


@given(st.text(st.sampled_from("ab(\t 日é\u0301\x0c"), min_size=1, max_size=20), st.data())
def test_the_marks_stand_below_the_span(line: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(line) - 1))
    end = data.draw(st.integers(start + 1, len(line)))
    _, shown, mark, *_ = _rows(line, start, end)
    before, marks = mark.index("^"), mark.count("^")
    assert mark == " " * before + "^" * marks
    assert before + marks <= max(cell_len(shown), before + 1)


@given(
    st.lists(st.text(st.sampled_from("ab\t 日"), max_size=8), min_size=1, max_size=15),
    st.tuples(*[st.integers(-1, 20)] * 5),
)
def test_a_frame_shows_every_row_or_says_that_it_does_not(lines: list[str], places: tuple[int, ...]) -> None:
    first, row, column, more, width = places
    start = Location(first + row, max(1, column))
    end = Location(start.row + max(0, more), start.column + width if more <= 0 else max(1, width))
    excerpt = Excerpt(max(1, first), tuple(lines))
    text = draw(frame(Finding("LL1", "n", Tier.NOTE, "m", "x.py", 0, 1, start, end, excerpt=excerpt), excerpt))
    numbers = re.findall(r"^ *(\d+|\.\.\.) \|", text, re.MULTILINE)
    last = str(excerpt.row + len(lines) - 1)
    assert numbers[0] == str(excerpt.row)
    assert numbers[-1] == last
    assert len(numbers) == len(lines) or "..." in numbers
    assert "^" in text


def _rows(line: str, start: int, end: int) -> list[str]:
    """The rows of a frame behind its gutter."""
    excerpt = Excerpt(1, (line,))
    place = Finding(
        "LL1", "n", Tier.NOTE, "m", "x", 0, 1, Location(1, start + 1), Location(1, end + 1), excerpt=excerpt
    )
    return [row.partition("|")[2] for row in draw(frame(place, excerpt)).split("\n")]


def test_colours_change_nothing_but_the_colours() -> None:
    found = [ONE_ROW, finding("LL102", Location(6, 11), Location(10, 2), rows=(5, 11), tier=Tier.ERROR)]
    for report in (full, concise, statistics):
        painted = report.render(found, True)
        assert "\x1b[" in painted
        assert Text.from_ansi(painted).plain.rstrip("\n") == report.render(found).rstrip("\n")


def test_json_has_every_field_of_the_contract() -> None:
    page = next(iter(all_pages().values()))
    at, end = Location(3, 5), Location(3, 29)
    edit = Edit(47, 76, "pass\n", Location(3, 1), Location(4, 1))
    found = Finding(
        code=page.code,
        name=page.name,
        tier=Tier.ERROR,
        message='says "so"',
        filename="nb.ipynb",
        start=51,
        end=75,
        location=at,
        end_location=end,
        cell=2,
        fix=Fix("drop it", Applicability.UNSAFE, (edit,)),
        noqa_row=3,
        excerpt=Excerpt(3, ("x",)),
    )
    assert json.loads(json_report.render([found])) == [
        {
            "code": page.code,
            "name": page.name,
            "severity": "error",
            "message": 'says "so"',
            "filename": "nb.ipynb",
            "cell": 2,
            "location": {"row": 3, "column": 5},
            "end_location": {"row": 3, "column": 29},
            "fix": {
                "applicability": "unsafe",
                "message": "drop it",
                "edits": [
                    {
                        "content": "pass\n",
                        "location": {"row": 3, "column": 1},
                        "end_location": {"row": 4, "column": 1},
                    }
                ],
            },
            "noqa_row": 3,
            "url": page.url,
        }
    ]


def test_json_without_cell_and_fix_says_null() -> None:
    at = Location(1, 1)
    (row,) = json.loads(json_report.render([Finding("LL1", "no-page", Tier.NOTE, "m", "\udcff.py", 0, 1, at, at)]))
    assert (row["cell"], row["fix"], row["noqa_row"], row["url"], row["severity"]) == (None, None, None, None, "note")
    assert row["filename"] == "\udcff.py"
    assert json.loads(json_report.render([])) == []


def test_statistics_count_by_rule() -> None:
    other = finding("LL102", Location(6, 1), Location(6, 2), rows=(6, 6), tier=Tier.ERROR)
    assert statistics.render([other, ONE_ROW, ONE_ROW]) == "2  LL501  [*] some-fault\n1  LL102  [ ] some-fault\n"
    assert json.loads(statistics.render_json([ONE_ROW])) == [
        {"code": "LL501", "name": "some-fault", "severity": "warning", "count": 1, "fixable_count": 1}
    ]
    assert statistics.render([]) == ""


def test_the_summary_counts_tiers_fixes_and_hidden_notes() -> None:
    error = finding("LL102", Location(6, 1), Location(6, 2), rows=(6, 6), tier=Tier.ERROR)
    note = finding("LL103", Location(6, 1), Location(6, 2), rows=(6, 6), tier=Tier.NOTE)
    unsafe = finding("LL104", Location(6, 1), Location(6, 2), rows=(6, 6), fix=Fix("f", Applicability.UNSAFE, ()))
    assert summary.render([ONE_ROW, error, note, ONE_ROW], hidden=0, files=1) == (
        "Found 1 error, 2 warnings, 1 note in 1 file.\n2 can be repaired with --fix.\n"
    )
    assert summary.render([unsafe, ONE_ROW], hidden=3, files=2, left=True) == (
        "Left: 2 warnings in 2 files.\n"
        "1 can be repaired with --fix, 1 more with --fix --unsafe-fixes.\n"
        "3 notes not shown; --notes lists them.\n"
    )
    assert summary.render([unsafe], hidden=0, files=2).endswith("1 can be repaired with --fix --unsafe-fixes.\n")
    assert summary.render([], hidden=1, files=2) == "No findings in 2 files.\n1 note not shown; --notes lists it.\n"
    assert summary.render_fixed([("a.py", ["LL2", "LL1", "LL2"]), ("b.py", ["LL1"])]) == (
        "Fixed 4 findings in 2 files:\n  a.py: 1 x LL1, 2 x LL2\n  b.py: 1 x LL1\n"
    )
    assert summary.render_fixed([]) == ""


def test_a_diff_keeps_line_ends_and_says_where_none_is() -> None:
    text = diff.render("a b.py", "x\r\ny\x0c\nz", "x\r\ny\x0c\nw")
    assert text == (
        "--- a b.py\n+++ a b.py\n@@ -1,3 +1,3 @@\n x\r\n y\x0c\n"
        "-z\n\\ No newline at end of file\n+w\n\\ No newline at end of file\n"
    )


def test_statistics_tell_stages_and_the_slowest_rules() -> None:
    spent = (("parse", 1.5), ("gate", 0.25), *((f"rule-{number:02}", 0.01 * number) for number in range(12)))
    assert statistics.render([], spent=spent).splitlines()[:8] == [
        "",
        "   0.250 s  gate",
        "   0.000 s  imports",
        "   0.000 s  sketch",
        "   1.500 s  parse",
        "   0.000 s  tree",
        "   0.660 s  12 rules, of these",
        "   0.110 s    rule-11",
    ]
    assert len(statistics.render([], spent=spent).splitlines()) == 17


IN_A_CELL = finding("LL105", Location(2, 1), Location(3, 4), rows=(1, 4), tier=Tier.ERROR, filename="a,b.ipynb", cell=3)
FIRST_AND_CELL = [IN_A_CELL, replace(ONE_ROW, message="100 %\nand more", tier=Tier.NOTE)]


def test_github_is_told_of_one_row_with_columns_and_of_a_cell_in_words() -> None:
    assert github.render(FIRST_AND_CELL).splitlines() == [
        "::error title=lightlint (LL105 some-fault),file=a%2Cb.ipynb::LL105 cell 3, row 2: this is so",
        "::notice title=lightlint (LL501 some-fault),file=train.py,line=3,endLine=3,col=5,endColumn=29::LL501 100 %25%0Aand more",
    ]


def test_gitlab_knows_a_finding_again_where_its_rows_moved() -> None:
    twice = json.loads(
        gitlab.render([ONE_ROW, replace(ONE_ROW, start=999, location=Location(9, 5), end_location=Location(9, 29))])
    )
    moved = json.loads(gitlab.render([replace(ONE_ROW, location=Location(7, 5), end_location=Location(7, 29))]))
    assert [each["location"]["lines"] for each in twice] == [{"begin": 3, "end": 3}, {"begin": 9, "end": 9}]
    assert twice[0]["fingerprint"] == moved[0]["fingerprint"] != twice[1]["fingerprint"]
    assert twice[0] | {"fingerprint": ""} == {
        "description": "LL501 this is so",
        "check_name": "LL501",
        "fingerprint": "",
        "severity": "major",
        "location": {"path": "train.py", "lines": {"begin": 3, "end": 3}},
    }
    assert gitlab.render([]) == "[]\n"
    assert (
        json.loads(gitlab.render([replace(ONE_ROW, filename="\udcff.py", message="\ud800")]))[0]["check_name"]
        == "LL501"
    )


def test_junit_has_a_suite_a_file_and_is_xml_whatever_a_message_holds() -> None:
    suites = ElementTree.fromstring(junit.render([IN_A_CELL, ONE_ROW, replace(ONE_ROW, message="\0 <&> \ud800")]))
    assert suites.attrib == {"name": "lightlint", "tests": "3", "failures": "3", "errors": "0"}
    assert [(suite.get("name"), suite.get("failures")) for suite in suites] == [("a,b.ipynb", "1"), ("train.py", "2")]
    failures = [case.find("failure") for case in suites.iter("testcase")]
    assert [each.get("message") for each in failures if each is not None] == [
        "this is so",
        "\ufffd <&> \ufffd",
        "this is so",
    ]
    assert failures[0] is not None
    assert failures[0].text == "cell 3, line 2, column 1: LL105 this is so"


def test_grouped_says_tier_and_repair_below_the_file() -> None:
    assert grouped.render([ONE_ROW, IN_A_CELL, replace(ONE_ROW, start=900, fix=None, location=Location(12, 15))]) == (
        "a,b.ipynb:\n"
        "  cell 3:2:1 LL105 error: this is so\n"
        "\n"
        "train.py:\n"
        "  3:5   LL501 warning [*]: this is so\n"
        "  12:15 LL501 warning: this is so\n"
        "\n"
    )


def test_a_line_a_finding() -> None:
    assert pylint.render(FIRST_AND_CELL[:1]) == "a,b.ipynb:2: [LL105] this is so (cell 3)\n"
    lines = json_lines.render(FIRST_AND_CELL).splitlines()
    assert [json.loads(line) for line in lines] == json.loads(json_report.render(FIRST_AND_CELL))


@pytest.mark.parametrize("name", OUTPUT_FORMATS)
def test_every_format_is_written_into_a_file(name: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(FAULT)
    options = ["train.py", "--isolated", "--no-cache", "--output-format", name]
    shown = run_forked("lightlint", *options, cwd=tmp_path)
    written = run_forked("lightlint", *options, "-o", "report", cwd=tmp_path)
    assert (shown.returncode, written.returncode, written.stdout) == (1, 1, "")
    assert (tmp_path / "report").read_text() == shown.stdout != ""
    assert "LL501" in shown.stdout


def test_a_report_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\n")
    ran = run_forked("lightlint", "train.py", "-o", "none/report", cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == "lightlint: --output-file: none/report: No such file or directory\n"
