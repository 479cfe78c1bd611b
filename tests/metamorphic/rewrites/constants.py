"""Literal arguments get a name elsewhere: constants, configurations, strings put together."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..program import NotAlikeError, Place, Program, change_statements
from ..quote import expression
from ..sites import Slot, calls_in, reads_super
from . import rewrite


def _literals(program: Program) -> Iterator[tuple[str, Slot]]:
    """The literal arguments of calls in wanted statements, with a name for each."""
    found: list[tuple[str, Slot]] = []

    def look(place: Place) -> None:
        for slot in calls_in(place.statement):
            call = slot.value
            if not isinstance(call, ast.Call) or reads_super(call.func):
                continue
            for index, each in enumerate(call.args):
                if isinstance(each, ast.Constant):
                    found.append(("value", Slot(call, "args", index)))
            for keyword in call.keywords:
                if keyword.arg and isinstance(keyword.value, ast.Constant):
                    found.append((keyword.arg, Slot(keyword, "value")))

    change_statements(program, look)
    return iter(found)


def _settings(program: Program) -> dict[str, ast.expr]:
    """Name every literal argument and put the name in its place as an attribute of CONFIG."""
    if "CONFIG" in program.names:
        raise NotAlikeError("CONFIG")
    rows: dict[str, ast.expr] = {}
    for stem, slot in list(_literals(program)):
        key = next(name for name in (stem, *(f"{stem}_{n}" for n in range(2, 999))) if name not in rows)
        rows[key] = slot.value
        slot.put(ast.Attribute(ast.Name("CONFIG", ast.Load()), key, ast.Load()))
    return rows


class _Items(ast.NodeTransformer):
    """`CONFIG.key` becomes what `use` makes of the key."""

    def __init__(self, use: str) -> None:
        self.use = use

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and node.value.id == "CONFIG":
            return expression(self.use, KEY=ast.Constant(node.attr), FIELD=node.attr, NAME=node.attr.upper())
        return node


@rewrite("named-constants", "LR = 0.1; SGD(p, lr=LR)")
def named_constants(program: Program) -> None:
    rows = {f"THE_{key.upper()}": value for key, value in _settings(program).items()}
    for node in list(ast.walk(program.tree)):
        for name, held in list(ast.iter_fields(node)):
            for index, each in enumerate(held) if isinstance(held, list) else [(None, held)]:
                if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name) and each.value.id == "CONFIG":
                    Slot(node, name, index).put(ast.Name(f"THE_{each.attr.upper()}", ast.Load()))
    if rows:
        program.ask("\n".join(f"{name} = {ast.unparse(value)}" for name, value in rows.items()))


@rewrite("constants-in-dict", "CONFIG = {'lr': 0.1}; SGD(p, lr=CONFIG['lr'])")
def constants_in_dict(program: Program) -> None:
    rows = _settings(program)
    if rows:
        _Items("CONFIG[KEY]").visit(program.tree)
        program.ask("CONFIG = {" + ", ".join(f"{key!r}: {ast.unparse(value)}" for key, value in rows.items()) + "}")


@rewrite("constants-in-namespace", "CONFIG = SimpleNamespace(lr=0.1); SGD(p, lr=CONFIG.lr)")
def constants_in_namespace(program: Program) -> None:
    rows = _settings(program)
    if rows:
        program.ask("from types import SimpleNamespace")
        values = ", ".join(f"{key}={ast.unparse(value)}" for key, value in rows.items())
        program.ask(f"CONFIG = SimpleNamespace({values})")


@rewrite("constants-in-dataclass", "@dataclass class Config: lr: float = 0.1; SGD(p, lr=CONFIG.lr)")
def constants_in_dataclass(program: Program) -> None:
    rows = _settings(program)
    if rows:
        program.ask("from dataclasses import dataclass")
        fields = [f"    {key}: {_kind(value)} = {ast.unparse(value)}" for key, value in rows.items()]
        program.ask("\n".join(["@dataclass", "class Config:", *fields, "CONFIG = Config()"]))


def _kind(value: ast.expr) -> str:
    assert isinstance(value, ast.Constant)
    return "None" if value.value is None else "object" if value.value is ... else type(value.value).__name__


@rewrite("joined-strings", "log('val_' + 'loss', x)")
def joined_strings(program: Program) -> None:
    for _, slot in list(_literals(program)):
        text = slot.value.value if isinstance(slot.value, ast.Constant) else None
        if isinstance(text, str) and len(text) > 1:
            half = len(text) // 2
            slot.put(ast.BinOp(ast.Constant(text[:half]), ast.Add(), ast.Constant(text[half:])))


@rewrite("formatted-strings", "stage = 'val'; log(f'{stage}_loss', x)")
def formatted_strings(program: Program) -> None:
    rows: dict[str, str] = {}
    for _, slot in list(_literals(program)):
        text = slot.value.value if isinstance(slot.value, ast.Constant) else None
        if isinstance(text, str) and text.isidentifier() and "_" in text.strip("_"):
            head, _, tail = text.strip("_").partition("_")
            if text != f"{head}_{tail}":
                continue
            name = rows.setdefault(head, f"PART_{head.upper()}")
            slot.put(expression(f"f'{{{name}}}_{tail}'"))
    if rows:
        program.ask("\n".join(f"{name} = {part!r}" for part, name in rows.items()))
