"""The same call of the same function with the same arguments, said in another way."""

from __future__ import annotations

import ast
from collections.abc import Callable

from ..names import BUILTINS, imports_of, is_dotted, is_still, root_name
from ..program import Place, Program, change_statements
from ..quote import expression, statements
from ..sites import UNTOUCHED, Slot, calls_in, reads_super, root_call, suspends
from . import rewrite


def _ordinary(call: ast.expr) -> bool:
    """Whether another way of calling is as good: no builtin such as `super` or `print`, no look at the caller."""
    if not isinstance(call, ast.Call) or not is_dotted(call.func) or suspends(call):
        return False
    if isinstance(call.func, ast.Name):
        return call.func.id not in BUILTINS
    return call.func.attr not in UNTOUCHED


def _each_call(program: Program, change: Callable[[Slot], bool]) -> None:
    """Change the calls of the wanted statements where they stand."""

    def changed(place: Place) -> list[ast.stmt] | None:
        done = [change(slot) for slot in list(calls_in(place.statement)) if _ordinary(slot.value)]
        return [place.statement] if any(done) else None

    change_statements(program, changed)


def _named(program: Program, accepts: Callable[[ast.expr, set[str]], bool]) -> None:
    imported = imports_of(program.tree)

    def change(place: Place) -> list[ast.stmt] | None:
        slot = root_call(place.statement)
        if slot is None or not _ordinary(slot.value) or not accepts(slot.value.func, imported):
            return None
        before = statements("CALL = FUNCTION", CALL=(name := program.fresh("call")), FUNCTION=slot.value.func)
        slot.value.func = ast.Name(name, ast.Load())
        return [*before, place.statement]

    change_statements(program, change)


@rewrite("bound-method", "call = model.train; call()")
def bound_method(program: Program) -> None:
    _named(program, lambda func, imported: isinstance(func, ast.Attribute) and root_name(func) not in imported)


@rewrite("named-function", "call = nn.Linear; model = call(8, 1)")
def named_function(program: Program) -> None:
    _named(program, lambda func, imported: root_name(func) in imported or isinstance(func, ast.Name))


@rewrite("partial", "partial(f, a, b=c)()")
def partial(program: Program) -> None:
    program.ask("from functools import partial")

    def change(slot: Slot) -> bool:
        call = slot.value
        slot.put(ast.Call(ast.Name("partial", ast.Load()), [call.func, *call.args], call.keywords))
        slot.put(ast.Call(slot.value, [], []))
        return True

    _each_call(program, change)


@rewrite("partial-keywords", "call = partial(f, b=c); call(a)")
def partial_keywords(program: Program) -> None:
    program.ask("from functools import partial")

    def change(place: Place) -> list[ast.stmt] | None:
        slot = root_call(place.statement)
        if slot is None or not _ordinary(slot.value) or not slot.value.keywords:
            return None
        call = slot.value
        if not _may_wait(call):
            return None
        held = ast.Call(ast.Name("partial", ast.Load()), [call.func], call.keywords)
        before = statements("CALL = HELD", CALL=(name := program.fresh("call")), HELD=held)
        slot.put(ast.Call(ast.Name(name, ast.Load()), call.args, []))
        return [*before, place.statement]

    change_statements(program, change)


@rewrite("getattr", "getattr(model, 'train')()")
def by_getattr(program: Program) -> None:
    imported = imports_of(program.tree)

    def change(slot: Slot) -> bool:
        call = slot.value
        if not isinstance(call.func, ast.Attribute) or root_name(call.func) in imported:
            return False
        call.func = expression("getattr(OWNER, NAME)", OWNER=call.func.value, NAME=ast.Constant(call.func.attr))
        return True

    _each_call(program, change)


@rewrite("callee-in-dict", "{'kept': f}['kept'](a)")
def callee_in_dict(program: Program) -> None:
    def change(place: Place) -> list[ast.stmt] | None:
        slot = root_call(place.statement)
        if slot is None or not _ordinary(slot.value):
            return None
        name = program.fresh("table")
        before = statements("TABLE = {'kept': FUNCTION}", TABLE=name, FUNCTION=slot.value.func)
        slot.value.func = expression("TABLE['kept']", TABLE=name)
        return [*before, place.statement]

    change_statements(program, change)


@rewrite("registry", "TABLE = {'Net': Net}; TABLE['Net'](a)")
def registry(program: Program) -> None:
    """Calls of functions and classes that imports bind, through one table of the file."""
    imported = {
        name
        for each in program.tree.body
        if isinstance(each, (ast.Import, ast.ImportFrom))
        for name in imports_of(each)
    }
    name = program.fresh("TABLE")
    rows: dict[str, ast.expr] = {}

    def change(slot: Slot) -> bool:
        func = slot.value.func
        if root_name(func) not in imported:
            return False
        key = ast.unparse(func)
        rows[key] = func
        slot.value.func = expression("TABLE[KEY]", TABLE=name, KEY=ast.Constant(key))
        return True

    _each_call(program, change)
    if rows:
        table = ast.Dict([ast.Constant(key) for key in rows], list(rows.values()))
        program.ask(f"{name} = {ast.unparse(table)}")


@rewrite("keywords-in-dict", "options = {'lr': 0.1}; f(a, **options)")
def keywords_in_dict(program: Program) -> None:
    _keywords(program, lambda call: ast.Dict([ast.Constant(each.arg) for each in call.keywords], _values(call)))


@rewrite("keywords-by-dict-call", "options = dict(lr=0.1); f(a, **options)")
def keywords_by_dict_call(program: Program) -> None:
    _keywords(program, lambda call: ast.Call(ast.Name("dict", ast.Load()), [], call.keywords))


def _may_wait(call: ast.Call) -> bool:
    """Whether positional arguments can be evaluated behind the keywords' values, which may change what attributes hold."""
    if all(map(is_still, _values(call))):
        return all(map(is_still, call.args))
    return all(isinstance(each, ast.Name | ast.Constant) for each in call.args)


def _values(call: ast.Call) -> list[ast.expr]:
    return [each.value for each in call.keywords]


def _keywords(program: Program, pack: Callable[[ast.Call], ast.expr]) -> None:
    def change(place: Place) -> list[ast.stmt] | None:
        slot = root_call(place.statement)
        if slot is None or not _ordinary(slot.value):
            return None
        call = slot.value
        if not call.keywords or any(each.arg is None for each in call.keywords) or reads_super(call):
            return None
        if not _may_wait(call):
            return None
        before = statements("OPTIONS = PACKED", OPTIONS=(name := program.fresh("options")), PACKED=pack(call))
        call.keywords = [ast.keyword(None, ast.Name(name, ast.Load()))]
        return [*before, place.statement]

    change_statements(program, change)


@rewrite("arguments-in-tuple", "given = (a, b); f(*given)")
def arguments_in_tuple(program: Program) -> None:
    def change(place: Place) -> list[ast.stmt] | None:
        slot = root_call(place.statement)
        if slot is None or not _ordinary(slot.value) or reads_super(slot.value):
            return None
        call = slot.value
        if not call.args or any(isinstance(each, ast.Starred) for each in call.args):
            return None
        packed = ast.Tuple(call.args, ast.Load())
        before = statements("GIVEN = PACKED", GIVEN=(name := program.fresh("given")), PACKED=packed)
        call.args = [ast.Starred(ast.Name(name, ast.Load()), ast.Load())]
        return [*before, place.statement]

    change_statements(program, change)
