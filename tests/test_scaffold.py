"""The scaffolder: a new rule is a page and a check and nothing else, and the index says what the pages say."""

from __future__ import annotations

from pathlib import Path

import pytest
from checkout import ROOT, copy_checkout, run_module

NAME = "brand-new-fault"
PAGE = Path("rules", "ranks", f"{NAME}.md")
CHECK = Path("src", "lightlint", "checks", "ranks", "brand_new_fault.py")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return copy_checkout(tmp_path / "copy")


def scaffold(root: Path, *arguments: str) -> tuple[int, str, str]:
    done = run_module("lightlint.scaffold", *arguments, cwd=root, PYTHONPATH=str(root / "src"))
    return done.returncode, done.stdout, done.stderr


def pytest_of(root: Path) -> tuple[int, str]:
    done = run_module(
        "pytest",
        "-n0",
        "-p",
        "no:cacheprovider",
        "tests/test_pages.py",
        "-k",
        NAME,
        cwd=root,
        PYTHONPATH=str(root / "src"),
    )
    return done.returncode, done.stdout


def test_new_rule_is_red_until_its_check_reports(copy: Path) -> None:
    status, said, _ = scaffold(copy, "rule", NAME, "--family", "ranks", "--tier", "error")
    assert status == 0
    assert str(PAGE) in said
    assert str(CHECK) in said
    page = (copy / PAGE).read_text()
    code = page.split("code: ", 1)[1][:5]
    assert "\ntier: error\n" in page

    status, said = pytest_of(copy)
    assert status == 1
    assert f"'{code}', 'TODO what is wrong here, with `names`'" in said
    assert "1 failed" in said

    check = (copy / CHECK).read_text()
    mute = next(line for line in check.splitlines() if "# Ask the facts" in line)
    loud = f'{mute[: mute.index("#")]}if self.names.argument(call, "max_epochs", None):\n            '
    loud += 'self.report(call, "TODO what is wrong here, with `names`")'
    (copy / CHECK).write_text(check.replace(mute, loud))
    status, said = pytest_of(copy)
    assert status == 0, said


def test_code_follows_the_highest_of_the_family(copy: Path) -> None:
    scaffold(copy, "rule", NAME, "--family", "ranks")
    status, _, _ = scaffold(copy, "rule", "another-new-fault", "--family", "ranks")
    assert status == 0
    codes = [path.read_text().split("code: ", 1)[1][:5] for path in (copy / "rules" / "ranks").glob("*.md")]
    assert len(codes) == len(set(codes))
    another = (copy / "rules" / "ranks" / "another-new-fault.md").read_text()
    assert f"code: {max(codes)}\n" in another


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rule", "use-something", "--family", "ranks"], "does not name a fault"),
        (["rule", "Shouted", "--family", "ranks"], "does not name a fault"),
        (["rule", "empty-cache-in-loop", "--family", "ranks"], "is LL501 already"),
        (["rule", NAME, "--family", "lightlint"], "invalid choice"),
    ],
)
def test_refusals_are_one_line_and_change_nothing(copy: Path, arguments: list[str], message: str) -> None:
    before = sorted(copy.rglob("*.md"))
    status, _, complaint = scaffold(copy, *arguments)
    assert status == 2
    assert message in complaint
    assert "Traceback" not in complaint
    assert sorted(copy.rglob("*.md")) == before


def test_index_is_stale_after_a_new_rule_and_can_be_written(copy: Path) -> None:
    scaffold(copy, "index")
    assert scaffold(copy, "index", "--check") == (0, "", "")
    scaffold(copy, "rule", NAME, "--family", "ranks")
    status, said, _ = scaffold(copy, "index", "--check")
    assert status == 1
    assert said.count("is stale") == 1
    scaffold(copy, "index")
    assert scaffold(copy, "index", "--check") == (0, "", "")
    assert f"ranks/{NAME}.md" in (copy / "rules" / "README.md").read_text()


def test_outside_a_checkout_one_line_says_so(copy: Path) -> None:
    (copy / "pyproject.toml").unlink()
    status, _, complaint = scaffold(copy, "index")
    assert status == 2
    assert "in a checkout of lightlint only" in complaint
    assert complaint.count("\n") == 1


def test_this_checkouts_index_is_fresh() -> None:
    status, said, complaint = scaffold(ROOT, "index", "--check")
    assert (status, said, complaint) == (0, "", "")
