"""The value of a statement takes a way round: through a name, a container, an object, a function."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from ..names import imports_of, is_dotted, reads_its_frame, root_name
from ..program import Place, Program, change_statements
from ..quote import expression, statements
from ..sites import Slot, arguments, carried, reads_super, rebinds, root, root_call, suspends
from . import rewrite

TEST = "DEBUG = 'DEBUG' in os.environ"


def _through(program: Program, way: Callable[[Slot, str], Sequence[ast.stmt]], *, own_scope: bool = False) -> None:
    """Send each carried value along a way; `own_scope`: the way evaluates it in a scope of its own."""
    imported = imports_of(program.tree)

    def change(place: Place) -> list[ast.stmt] | None:
        slot = carried(place.statement, imported)
        if slot is None or (
            own_scope and (suspends(slot.value) or rebinds(slot.value) or reads_its_frame([slot.value]))
        ):
            return None
        return [*way(slot, program.fresh("held")), place.statement]

    change_statements(program, change)


def _prepared(program: Program, template: str, use: str, *, own_scope: bool = False) -> None:
    """The ways that put statements before the one they change."""

    def way(slot: Slot, name: str) -> list[ast.stmt]:
        before = statements(template, HELD=name, VALUE=slot.value)
        slot.put(expression(use, HELD=name))
        return before

    _through(program, way, own_scope=own_scope)


def _in_place(program: Program, template: str, *, own_scope: bool = False) -> None:
    """The ways that are one expression."""

    def way(slot: Slot, name: str) -> list[ast.stmt]:
        slot.put(expression(template, HELD=name, VALUE=slot.value))
        return []

    _through(program, way, own_scope=own_scope)


@rewrite("temporary", "held = E; x = held")
def temporary(program: Program) -> None:
    _prepared(program, "HELD = VALUE", "HELD")


@rewrite("tuple-unpacking", "held, unused = E, None; x = held")
def tuple_unpacking(program: Program) -> None:
    _prepared(program, "HELD, unused = VALUE, None", "HELD")


@rewrite("walrus", "x = (held := E)")
def walrus(program: Program) -> None:
    _in_place(program, "(HELD := VALUE)")


@rewrite("conditional", "x = E if DEBUG else E")
def conditional(program: Program) -> None:
    program.ask("import os")
    program.ask(TEST)
    _in_place(program, "VALUE if DEBUG else VALUE")


@rewrite("dict", "box = {'kept': E}; x = box['kept']")
def dictionary(program: Program) -> None:
    _prepared(program, "HELD = {'kept': VALUE}", "HELD['kept']")


@rewrite("list-index", "box = [E]; x = box[0]")
def list_index(program: Program) -> None:
    _prepared(program, "HELD = [VALUE]", "HELD[0]")


@rewrite("namespace", "box = SimpleNamespace(kept=E); x = box.kept")
def namespace(program: Program) -> None:
    program.ask("from types import SimpleNamespace")
    _prepared(program, "HELD = SimpleNamespace(kept=VALUE)", "HELD.kept")


@rewrite("instance-attribute", "box = Box(E); x = box.kept")
def instance_attribute(program: Program) -> None:
    program.ask("class Box:\n    def __init__(self, kept):\n        self.kept = kept")
    _prepared(program, "HELD = Box(VALUE)", "HELD.kept")


@rewrite("class-attribute", "class box: kept = E; x = box.kept")
def class_attribute(program: Program) -> None:
    _prepared(program, "class HELD:\n    kept = VALUE", "HELD.kept", own_scope=True)


@rewrite("dataclass-field", "box = Box(kept=E); x = box.kept")
def dataclass_field(program: Program) -> None:
    program.ask("from dataclasses import dataclass")
    program.ask("@dataclass\nclass Box:\n    kept: object = None")
    _prepared(program, "HELD = Box(kept=VALUE)", "HELD.kept")


@rewrite("identity-function", "x = same(E)")
def identity_function(program: Program) -> None:
    program.ask("def same(value):\n    return value")
    _in_place(program, "same(VALUE)")


@rewrite("static-method", "x = Ways.same(E)")
def static_method(program: Program) -> None:
    program.ask("class Ways:\n    @staticmethod\n    def same(value):\n        return value")
    _in_place(program, "Ways.same(VALUE)")


@rewrite("lambda-call", "x = (lambda: E)()")
def lambda_call(program: Program) -> None:
    _in_place(program, "(lambda: VALUE)()", own_scope=True)


@rewrite("nested-function", "def made(): return E; x = made()")
def nested_function(program: Program) -> None:
    _prepared(program, "def HELD():\n    return VALUE", "HELD()", own_scope=True)


@rewrite("default-argument", "def made(value=E): return value; x = made()")
def default_argument(program: Program) -> None:
    _prepared(program, "def HELD(value=VALUE):\n    return value", "HELD()")


@rewrite("comprehension", "x, = [each for each in [E]]")
def comprehension(program: Program) -> None:
    _in_place(program, "[each for each in [VALUE]][0]", own_scope=True)


@rewrite("hoisted-arguments", "first = E1; second = E2; f(first, second)")
def hoisted_arguments(program: Program) -> None:
    def change(place: Place) -> list[ast.stmt] | None:
        call = root_call(place.statement)
        if call is None or not isinstance(call.value, ast.Call):
            return None
        made: list[ast.stmt] = []
        slots = list(arguments(call.value))
        moved = [not (is_dotted(each.value) or isinstance(each.value, ast.Constant)) for each in slots]
        for number, slot in enumerate(slots):
            is_read_before = isinstance(slot.value, ast.Attribute) and any(moved[number:])  # it may be a property
            if (moved[number] or is_read_before) and not reads_super(slot.value):
                name = program.fresh("given")
                made += statements("HELD = VALUE", HELD=name, VALUE=slot.value)
                slot.put(ast.Name(name, ast.Load()))
        return [*made, place.statement] if made else None

    change_statements(program, change)


@rewrite("named-receiver", "held = a.b; held.method()")
def named_receiver(program: Program) -> None:
    imported = imports_of(program.tree)

    def change(place: Place) -> list[ast.stmt] | None:
        slot = root(place.statement)
        call = slot.value if slot else None
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or reads_super(call):
            return None
        receiver = call.func.value
        if is_dotted(receiver) and (root_name(receiver) in imported or ast.unparse(receiver) == "self"):
            return None
        name = program.fresh("held")
        call.func.value = ast.Name(name, ast.Load())
        return [*statements("HELD = VALUE", HELD=name, VALUE=receiver), place.statement]

    change_statements(program, change)
