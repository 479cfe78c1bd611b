"""Rehearses small programs for tests."""

from __future__ import annotations

import ast
from pathlib import Path

from lightlint.engine.machine import Machine
from lightlint.explore.parsed import Parsed
from lightlint.explore.rehearsals import Entry, Rehearsals
from lightlint.explore.sources import ProjectSources
from lightlint.text import registers
from lightlint.values.core import Value


def entries_of(text: str, **others: str) -> list[Entry]:
    """The rehearsals of a program; `others` are modules beside it by name."""
    return rehearsals_of(text, **others).entries


def rehearsals_of(text: str, **others: str) -> Rehearsals:
    """The same, with what can be asked for besides."""
    texts = {"/program/main.py": text} | {f"/program/{name}.py": other for name, other in others.items()}
    modules = {name: Parsed(ast.parse(each), each) for name, each in texts.items()}

    def find(dotted: str, _: Path) -> Path | None:
        return Path(f"/program/{dotted}.py") if dotted in others else None

    def does_register(file: str) -> bool:
        return registers(texts[file])

    return Rehearsals(ProjectSources(find, modules.get, modules, texts.__getitem__, does_register), "/program/main.py")


def main_of(text: str, **others: str) -> Machine:
    """The default path of a program."""
    return entries_of(text, **others)[0].paths[0].machine


def names_of(machine: Machine) -> dict[str, Value]:
    """What the names of the program hold at its end."""
    return machine.modules["/program/main.py"].scope.names
