"""Facts of small programs, and real programs to try facts on."""

from __future__ import annotations

import sysconfig
import textwrap
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import libcst as cst

from lightlint.facts.file import FileFacts
from lightlint.facts.project.project import Projects
from lightlint.sources.source import Source

# files of every installation that between them use most of the language
_LIBRARY = ("ast.py", "asyncio/taskgroups.py", "dataclasses.py", "enum.py")
_INSTALLED = ("test/test_patma.py", "test/test_named_expressions.py")


class Utf8:
    def render(self, source: Source) -> bytes:
        return source.text.encode()


def facts_of(program: str, folder: Path | None = None, name: str = "program.py") -> FileFacts:
    """The facts of a program that lies in `folder`; without one it has no project."""
    text = textwrap.dedent(program)
    path = (folder or Path("/nowhere")) / name
    return FileFacts(Source(str(path), text, Utf8()), cst.parse_module(text), Projects().of(path))


def facts_in(folder: Path, files: Mapping[str, str], asked: str) -> FileFacts:
    """The facts of one file of a project that is written to `folder`."""
    (folder / "pyproject.toml").touch()
    for name, program in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(program))
    return facts_of(files[asked], (folder / asked).parent, Path(asked).name)


def text_of(facts: FileFacts, node: cst.CSTNode) -> str:
    start, end = facts.span(node)
    return facts.source.text[start:end]


def spelled(facts: FileFacts, text: str, kind: type[cst.CSTNode] = cst.BaseExpression, number: int = 0) -> cst.CSTNode:
    """One of the nodes of a type with a text, the first unless `number` says otherwise."""
    return [node for node in facts.tree.nodes if isinstance(node, kind) and text_of(facts, node) == text][number]


def function(facts: FileFacts, name: str) -> cst.FunctionDef:
    """The function with a dotted path inside the program, `Model.training_step`."""
    [found] = [each for each in facts.tree.all(cst.FunctionDef) if facts.names.qualified(each) == name]
    return found


def class_def(facts: FileFacts, name: str) -> cst.ClassDef:
    """The class with a dotted path inside the program."""
    [found] = [each for each in facts.tree.all(cst.ClassDef) if facts.names.qualified(each) == name]
    return found


@cache  # six modules ask when they are collected, in each process of the run
def real_programs() -> tuple[Path, ...]:
    """Files of Python's own library and of this project."""
    root = Path(sysconfig.get_path("stdlib"))
    own = sorted((Path(__file__).parents[1] / "src").rglob("*.py"), key=lambda path: -path.stat().st_size)[:5]
    known = [root / name for name in _LIBRARY + _INSTALLED]
    return tuple(path for path in (*known, *own) if path.exists() and parses_here(path.read_text(encoding="utf-8")))


def parses_here(text: str) -> bool:
    """Whether the running Python and libcst both know a text."""
    try:
        compile(text, "<program>", "exec", dont_inherit=True)
        cst.parse_module(text)
    except (SyntaxError, cst.ParserSyntaxError, ValueError, RecursionError):
        return False
    return True
