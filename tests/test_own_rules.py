"""The rules by which lightlint speaks of itself: their pages' examples, through whole runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import checkout
import pytest
from rulebook import Example, examples

from lightlint.check import Check, Fault, Repair
from lightlint.checks.devices.placement.empty_cache_in_loop import EmptyCacheInLoop
from lightlint.cli.main import run_command
from lightlint.config.settings import Settings, load
from lightlint.finding import Finding
from lightlint.fixes.edits import Draft, RawEdit
from lightlint.pages import Page, find
from lightlint.pipeline import run


def page_of(code: str) -> Page:
    page = find(code)
    assert page is not None
    return page


def cases(*codes: str, kind: str) -> list[object]:
    return [
        pytest.param(example, id=f"{page.name}:{example.line}")
        for page in map(page_of, codes)
        for example in examples(page)
        if example.kind == kind
    ]


def settings_for(example: Example, **more: object) -> Settings:
    return load({**example.settings, **more}, isolated=True)


def said(findings: Sequence[Finding], folder: Path) -> set[tuple[str, int, str, str]]:
    return {(str(Path(f.filename).relative_to(folder)), f.location.row, f.code, f.message) for f in findings}


def marked(example: Example) -> set[tuple[str, int, str, str]]:
    return {(mark.file, mark.row, mark.code, mark.message) for mark in example.marks}


@pytest.mark.parametrize("example", cases("LL000", "LL002", kind="bad"))
def test_bad_example_is_found(example: Example, tmp_path: Path) -> None:
    example.write(tmp_path)
    result = run.check([str(tmp_path)], settings_for(example))
    assert said(result.findings, tmp_path) == marked(example)
    assert not result.problems


@pytest.mark.parametrize("example", cases("LL000", "LL002", kind="good"))
def test_good_example_is_silent(example: Example, tmp_path: Path) -> None:
    example.write(tmp_path)
    result = run.check([str(tmp_path)], settings_for(example))
    assert [finding for finding in result.findings if finding.counts] == []
    assert result.files == 1


@pytest.mark.parametrize("example", cases("LL002", kind="bad"))
def test_unused_suppressions_are_removed(example: Example, tmp_path: Path) -> None:
    example.write(tmp_path)
    assert example.fixed is not None
    for _ in range(2):
        result = run.fix([str(tmp_path)], settings_for(example), unsafe=False, write_files=True)
        assert result.findings == ()
        assert (tmp_path / "example.py").read_text() == example.fixed.files["example.py"]


@pytest.mark.parametrize("example", cases("LL000", kind="bad"))
def test_unreadable_file_can_be_ignored(example: Example, tmp_path: Path) -> None:
    example.write(tmp_path)
    assert run.check([str(tmp_path)], settings_for(example, ignore=["LL000"])).findings == ()
    for name, text in example.files.items():
        settings = settings_for(example, **{"per-file-ignores": {name: ["unreadable-file"]}})
        assert run.check_text(text.encode(), name, settings).findings == ()


def test_unreadable_file_stops_no_other(tmp_path: Path) -> None:
    for code in ("LL000", "LL501"):
        examples(page_of(code))[0].write(tmp_path / code)
    result = run.check([str(tmp_path)], load(isolated=True))
    assert [finding.code for finding in result.findings] == ["LL000", "LL501"]
    assert result.files == 2


@pytest.mark.parametrize("example", cases("LL001", kind="bad"))
def test_failed_check_stops_no_other_and_fails_the_run(
    example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(self: Check, node: object) -> None:
        raise ZeroDivisionError("odd construct")

    monkeypatch.setattr(EmptyCacheInLoop, "rehearse", fail)
    example.write(tmp_path)
    (tmp_path / "other.py").write_text("import os  # noqa: LL501\n")
    result = run.check([str(tmp_path)], settings_for(example))
    assert said(result.findings, tmp_path) >= marked(example)
    assert {finding.code for finding in result.findings if finding.filename.endswith("other.py")} == {"LL002"}
    assert [problem.fatal for problem in result.problems] == [True]

    assert run_command(["--isolated", "--verbose", str(tmp_path)]) == 2
    complaint = capsys.readouterr().err
    assert "the check of `empty-cache-in-loop` failed" in complaint
    assert "ZeroDivisionError: odd construct" in complaint


@pytest.mark.parametrize("example", cases("LL003", kind="bad"))
def test_failed_fix_is_taken_back_and_told(example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def spoil(self: EmptyCacheInLoop, call: object, fault: Fault) -> Repair:
        end = len(self.code.source.text)
        return Repair("spoil the file", Draft((RawEdit(end, end, "(\n"),)))

    monkeypatch.setattr(EmptyCacheInLoop, "repair", spoil)
    example.write(tmp_path)
    result = run.fix([str(tmp_path)], settings_for(example), unsafe=False, write_files=True)
    own = [finding for finding in result.findings if finding.code == "LL003"]
    assert said(own, tmp_path) == marked(example)
    assert "LL501" in {finding.code for finding in result.findings}
    assert result.changed == ()
    assert (tmp_path / "example.py").read_text() == example.files["example.py"]
    quiet = run.fix([str(tmp_path)], settings_for(example, ignore=["LL003"]), unsafe=False, write_files=True)
    assert "LL003" not in {finding.code for finding in quiet.findings}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"cells": [{"cell_type": "code", "source": []}', "not JSON: expecting ',' delimiter, in row 1"),
        ('{"worksheets": [], "nbformat": 3}', "a notebook of format 3"),
        ("{}", "it has no list of cells"),
    ],
)
def test_broken_notebook_is_named_as_a_whole(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "broken.ipynb").write_text(text)
    result = run.check([str(tmp_path)], load(isolated=True))
    assert [finding.code for finding in result.findings] == ["LL000"]
    assert message in result.findings[0].message


def test_notebooks_that_hold_nothing_for_lightlint_are_skipped_with_a_line(tmp_path: Path) -> None:
    kernel = '{"cells": [], "metadata": {"kernelspec": {"language": "R"}}, "nbformat": 4, "nbformat_minor": 5}'
    (tmp_path / "stored.ipynb").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    (tmp_path / "tidy.ipynb").write_text(kernel)
    (tmp_path / "unused.ipynb").write_text("")
    result = run.check([str(tmp_path)], load(isolated=True))
    assert result.findings == ()
    assert [problem.fatal for problem in result.problems] == [False, False, False]


def test_python_does_not_warn_of_the_linted_text(tmp_path: Path) -> None:
    """Python 3.12 and later tell escapes such as `"\\d"` to whoever parses them."""
    odd = 'import re\n\nDIGITS = re.compile("\\d+")\n'
    example = examples(page_of("LL501"))[0]
    example.write(tmp_path)
    for name in ("setup.py", "base.py"):
        (tmp_path / name).write_text(odd)
    text = next(iter(example.files.values()))
    (tmp_path / "example.py").write_text(f"from base import DIGITS\n{odd}{text}")
    done = checkout.run(
        [sys.executable, "-W", "always", "-m", "lightlint", "--select", "LL501,LL701,LL404", "--quiet", "."], tmp_path
    )
    assert done.returncode == 1
    assert done.stderr == ""
