"""The answers to what a file's findings asked of its project, short enough to keep: findings stand while these do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import fields, is_dataclass
from pathlib import Path

from lightlint.facts.project.mentions import occurs
from lightlint.facts.project.project import Project, Question
from lightlint.memo.digest import digest
from lightlint.sources.load import bytes_of
from lightlint.sources.source import UnreadableError


class Answers:
    """What one project answers now. Each question is asked once.

    Args:
        project: whom to ask.
        summaries: of files by path a digest of the content and, for that content, the answer.
    """

    def __init__(self, project: Project, summaries: dict[str, tuple[str, str]]) -> None:
        self._project = project
        self._summaries = summaries
        self._known: dict[Question, str] = {}
        self._kinds: dict[str, Callable[..., str]] = {
            "summary": self._summary,
            "text": self._text,
            "registers": lambda path: str(project.registers(Path(path))),
            "name": lambda path: project.module_name(Path(path)),
            "module": lambda dotted, near: str(project.find_module(dotted, Path(near)) or ""),
            "mentioning": lambda word: _listed(project.mentioning(word)),
            "importing": lambda words, wanted: _listed(project.importing(words.split(), frozenset(wanted.split()))),
            "occurs": lambda name, pattern, *aside: str(occurs(project, name, pattern, *map(Path, aside))),
            "configs": lambda: project.configs.state(),
            "settings": lambda name, folder: digest(repr(project.settings(name, Path(folder)))),
            "engine": lambda folder: str(project.has_engine(Path(folder))),
            "nodes": lambda folder: str(project.is_on_nodes(Path(folder))),
            "alone": lambda path: str(project.is_run_alone(Path(path))),
            "linux": lambda: str(project.is_for_linux_alone()),
            "target": self._target,
        }

    def __call__(self, question: Question) -> str:
        """The answer to a question."""
        if question not in self._known:
            kind, *arguments = question
            self._known[question] = self._kinds[kind](*arguments)
        return self._known[question]

    def _summary(self, path: str) -> str:
        content = self._text(path)
        known = self._summaries.get(path)
        if known is None or known[0] != content:
            known = content, digest(_canonical(self._project.summary(Path(path))))
            self._summaries[path] = known
        return known[1]

    def _text(self, path: str) -> str:
        try:
            return digest(bytes_of(path))
        except UnreadableError:
            return ""

    def _target(self, package: str, folder: str, *pip_lines: str) -> str:
        from lightlint.facts.versions.targets import target_of

        return repr(target_of(package, Path(folder) / "_", self._project.root, pip_lines=pip_lines))


def _listed(paths: tuple[Path, ...]) -> str:
    return digest("\0".join(map(str, paths)))


def _canonical(value: object) -> str:
    """As `repr`, with sets and mappings in order."""
    if isinstance(value, Mapping):
        return f"{{{','.join(f'{key!r}:{_canonical(each)}' for key, each in sorted(value.items(), key=repr))}}}"
    if isinstance(value, Set):
        return f"<{','.join(sorted(map(_canonical, value)))}>"
    if isinstance(value, list | tuple):
        return f"({','.join(map(_canonical, value))})"
    if is_dataclass(value):
        return _canonical([getattr(value, field.name) for field in fields(value)])
    return repr(value)
