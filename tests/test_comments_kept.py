"""A safe fix loses no comment and makes none up, wherever comments stand in the examples of the rule pages."""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from rulebook import Example, examples

from lightlint.config.settings import load
from lightlint.facts.project.project import Projects
from lightlint.finding import Applicability
from lightlint.fixes.apply import fix_source
from lightlint.fixes.leftovers import leftovers
from lightlint.linting.lint import lint
from lightlint.pages import Page, all_pages
from lightlint.sources.load import load as load_source
from lightlint.trees.parsing import parses

_PAGES = [page for page in all_pages().values() if page.fix is Applicability.SAFE and page.family != "lightlint"]
CASES = [
    pytest.param(page, example, id=f"{page.name}:{example.line}")
    for page in _PAGES
    for example in examples(page)
    if example.kind == "bad" and example.fixed and not any(name.endswith(".ipynb") for name in example.files)
]


def comments(text: str) -> Counter[str]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return Counter(token.string for token in tokens if token.type == tokenize.COMMENT)


def behind(text: str) -> str:
    """A comment of its own behind each logical line."""
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        row = token.start[0] - 1
        if token.type == tokenize.NEWLINE and "#" not in lines[row]:
            lines[row] += f"  # behind {row}"
    return "\n".join(lines) + "\n"


def above(text: str) -> str:
    """A comment of its own above each statement that begins a line."""
    lines = text.splitlines()
    starts = {node.lineno - 1: node.col_offset for node in ast.walk(ast.parse(text)) if isinstance(node, ast.stmt)}
    for row in sorted(starts, reverse=True):
        if not lines[row][: starts[row]].strip() and not lines[row - 1].lstrip().startswith("@"):
            lines.insert(row, f"{lines[row][: starts[row]]}# above {row}")
    return "\n".join(lines) + "\n"


def inside(text: str) -> str:
    """A comment of its own behind each line that ends within brackets."""
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        row = token.start[0] - 1
        if token.type == tokenize.NL and lines[row].strip() and "#" not in lines[row]:
            lines[row] += f"  # inside {row}"
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(("page", "example"), CASES)
def test_safe_fixes_keep_all_comments(page: Page, example: Example, tmp_path: Path) -> None:
    settings = load({**example.settings, "select": [page.code]}, isolated=True)
    for write in (behind, above, inside):
        example.write(tmp_path)
        for name, text in example.files.items():
            (tmp_path / name).write_text(write(text))
        for name in example.files:
            keeps_comments(tmp_path / name, settings, write)


def keeps_comments(path: Path, settings, write: Callable[[str], str]) -> None:
    source, projects = load_source(path), Projects()
    fixed = fix_source(
        source,
        lambda text: lint(text, settings, projects).findings,
        unsafe=False,
        parses=parses,
        tidy=lambda before, after: leftovers(before, after, projects),
    )
    assert comments(fixed.source.text) == comments(source.text), write.__name__
