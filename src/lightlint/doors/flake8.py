"""The flake8 plugin: `flake8 --select LL` says of a file what `lightlint FILE` says of it, notes aside.

flake8 hands over one file at a time, so what a file comes to in another is told at its call, never in the other file.
It takes its settings from `[tool.lightlint]`, as the command line does. flake8 itself applies `# noqa`; suppressions
of lightlint's own hold too. flake8 does not run plugins on files with syntax errors (its E999), nor on notebooks.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

from lightlint import __version__

if TYPE_CHECKING:
    from lightlint.config.settings import Settings
    from lightlint.facts.project.project import Projects
    from lightlint.finding import Finding


class Plugin:
    """What flake8 makes for each file, and runs."""

    name = "lightlint"
    version = __version__

    def __init__(self, tree: ast.AST, filename: str, lines: Sequence[str]) -> None:
        self._filename = filename
        self._text = "".join(lines)

    def run(self) -> Iterator[tuple[int, int, str, type]]:
        """Each finding as row (from 1), column (from 0), text and the plugin's type.

        Raises:
            ExecutionError: the file's settings cannot be used; flake8 prints the reason and ends.
        """
        from lightlint.config.options import SettingsError

        try:
            findings = _findings(self._filename, self._text)
        except SettingsError as error:
            from flake8.exceptions import ExecutionError  # type: ignore[import-untyped]

            raise ExecutionError(f"lightlint: {error}") from error
        for finding in findings:
            if finding.counts:
                row, column = finding.location.row, finding.location.column - 1
                yield row, column, f"{finding.code} {finding.message}", type(self)


def _findings(filename: str, text: str) -> Sequence[Finding]:
    from lightlint.linting.lint import lint
    from lightlint.pipeline.homes import at_home
    from lightlint.sources.python import PythonOrigin
    from lightlint.sources.source import Source

    if _excluded(filename):
        return ()
    # the text as flake8 decoded it: rows and columns are those flake8 speaks of
    source = Source(filename, text, PythonOrigin("utf-8", has_bom=False))
    return at_home(lint(source, _settings().for_path(filename), _projects()).findings, [filename], _settings())


@cache
def _settings() -> Settings:
    from lightlint.config.settings import load

    return load()


def _excluded(filename: str) -> bool:
    """Whether the settings leave a file out; flake8 names each file it finds."""
    from lightlint.sources.discover import discover

    settings = _settings()
    root = settings.file.parent if settings.file else None
    return discover([filename], exclude=settings.exclude, force_exclude=True, root=root) == ([], [])


@cache
def _projects() -> Projects:
    """What is known of other files, kept for all files of this process."""
    from lightlint.facts.project.project import Projects

    return Projects()
