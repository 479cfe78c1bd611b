"""README.md and docs/ say what the tool does: their example, options and settings, and the commands that CI runs."""

from __future__ import annotations

import argparse
import re
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from checkout import ROOT, run

from lightlint.arguments import Parser, _parser
from lightlint.config.options import _PARSERS, OUTPUT_FORMATS
from lightlint.confirm.command import _parser as confirm_parser
from lightlint.confirm.verdict import Outcome

TEXT = (ROOT / "README.md").read_text("utf-8")
DOCS = {path.stem: path.read_text("utf-8") for path in sorted((ROOT / "docs").glob("*.md"))}
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
PROGRAM = next(body for language, body in BLOCKS if language == "python")
SESSIONS = [body for language, body in BLOCKS if language == "console"]


@pytest.mark.parametrize("session", SESSIONS, ids=lambda session: session.partition("\n")[0])
def test_sessions_are_what_the_tool_prints(session: str, tmp_path: Path) -> None:
    if find_spec("lightning") or find_spec("pytorch_lightning"):
        pytest.skip("an installed Lightning decides the target version; the README shows the one of none")
    (tmp_path / "train.py").write_text(PROGRAM)
    prompt, shown = session.split("\n", 1)
    command = prompt.removeprefix("$ lightlint ").split()
    done = run([sys.executable, "-m", "lightlint", *command], tmp_path)
    printed = "".join(f"{line.rstrip()}\n" for line in (done.stdout + done.stderr).splitlines())
    assert printed == shown


def test_options_are_all_named() -> None:
    parser: Parser = _parser()
    missing = [
        action.option_strings
        for action in parser._actions
        if action.option_strings
        and not isinstance(action, argparse._HelpAction)
        and not any(re.search(rf"(?<![\w-]){option}(?![\w-])", DOCS["using"]) for option in action.option_strings)
    ]
    assert missing == [["-V", "--version"]]


def test_options_of_confirm_are_those_that_there_are() -> None:
    section = DOCS["confirm"]
    table = section.split("| Option | |\n", 1)[1].split("\n\n", 1)[0]
    named = {option for row in table.splitlines() for option in re.findall(r"`(--[\w-]+)", row.split("|")[1])}
    options = {option for action in confirm_parser()._actions for option in action.option_strings}
    assert named == options - {"-h", "--help"}
    assert set(re.findall(r"(?<![\w-])--[a-z][\w-]*", section)) <= options


def test_verdicts_are_all_explained() -> None:
    table = DOCS["confirm"].split("| Verdict | |\n", 1)[1].split("\n\n", 1)[0]
    assert re.findall(r"^\| `([a-z ]+)` \|", table, re.MULTILINE) == [outcome.value for outcome in Outcome]


def test_settings_are_all_named() -> None:
    table = DOCS["using"].split("| Key | Default | |\n", 1)[1].split("\n\n", 1)[0]
    named = {key for row in table.splitlines() for key in re.findall(r"`([\w-]+)`", row.split("|")[1])}
    assert named == set(_PARSERS)
    assert all(f"`{each}`" in table for each in OUTPUT_FORMATS)


def test_ci_runs_the_commands_that_are_shown() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    development = TEXT.split("## Development", 1)[1].split("###", 1)[0]
    for command in ("pip install -e '.[dev]'", "pytest"):
        assert f"\n{command}\n" in development
        assert f"\n{command}\n" in script


def test_it_is_short() -> None:
    """Whoever comes by reads it whole; what is longer stands in docs/."""
    assert len(TEXT.encode()) <= 12_000
    assert [name for name in DOCS if f"docs/{name}.md" not in TEXT] == []


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{name}.md" for name in DOCS)])
def test_links_lead_to_files(page: str) -> None:
    path = ROOT / page
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text("utf-8"))
    assert [link for link in links if not (path.parent / link).is_file()] == []


def test_links_to_headings_lead_to_headings() -> None:
    for page, heading in re.findall(r"\]\(docs/(\w+)\.md#([\w-]+)\)", TEXT):
        headings = re.findall(r"^#+ (.+)$", DOCS[page], re.MULTILINE)
        assert heading in {each.lower().replace(" ", "-") for each in headings}
