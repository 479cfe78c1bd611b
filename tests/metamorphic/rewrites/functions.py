"""Functions and lambdas made otherwise, or called otherwise."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ..names import BUILTINS, parameters, reads_its_frame
from ..program import DEFINITIONS, Place, Program, change_statements, derive, origin
from ..quote import statements, twin
from ..sites import suspends
from . import rewrite


@rewrite("lambda-to-def", "def function(a): return E; f(function)  # was f(lambda a: E)")
def lambda_to_def(program: Program) -> None:
    def change(place: Place) -> Sequence[ast.stmt] | None:
        made: list[ast.stmt] = []
        for node in list(ast.walk(place.statement)):
            if isinstance(node, (ast.comprehension, ast.NamedExpr, ast.stmt)) and node is not place.statement:
                return None
        for node in list(ast.walk(place.statement)):
            for field, held in list(ast.iter_fields(node)):
                for index, each in enumerate(held) if isinstance(held, list) else [(None, held)]:
                    if isinstance(each, ast.Lambda):
                        name = f"{program.fresh('function')}_{len(made) + 1}"
                        (function,) = statements("def NAME():\n    return VALUE", NAME=name, VALUE=each.body)
                        function.args = each.args  # type: ignore[attr-defined]
                        made.append(function)
                        new = ast.Name(name, ast.Load())
                        if index is None:
                            setattr(node, field, new)
                        else:
                            held[index] = new
        nested = any(isinstance(node, ast.Lambda) for one in made for node in ast.walk(one))
        return [*made, place.statement] if made and not nested else None

    change_statements(program, change)


@rewrite("def-to-lambda", "f = lambda a: E  # was def f(a): return E", local=False)
def def_to_lambda(program: Program) -> None:
    """Functions of the module that only return a value and are only called."""
    called = {id(node.func) for node in ast.walk(program.tree) if isinstance(node, ast.Call)}
    passed = {node.id for node in ast.walk(program.tree) if isinstance(node, ast.Name) and id(node) not in called}
    for number, each in enumerate(program.tree.body):
        match each:
            case ast.FunctionDef(name=name, body=[ast.Return(value=ast.expr() as value)], decorator_list=[]):
                pass
            case _:
                continue
        if name in passed or suspends(value) or reads_its_frame([each]) or not program.alone or name in BUILTINS:
            continue
        arguments = twin(each.args)
        for argument in ast.walk(arguments):
            if isinstance(argument, ast.arg):
                argument.annotation = None
        made = ast.Assign([ast.Name(name, ast.Store())], ast.Lambda(arguments, value), lineno=0)
        derive(made, origin(each))
        made.also = origin(each.body[0])  # type: ignore[attr-defined]
        program.tree.body[number] = made


@rewrite("arguments-by-name", "f(x=a, y=b)  # was f(a, b), f a function of the file", local=False)
def arguments_by_name(program: Program) -> None:
    functions = {
        each.name: each for each in program.tree.body if isinstance(each, ast.FunctionDef) and not each.decorator_list
    }
    for node in ast.walk(program.tree):
        match node:
            case ast.Call(func=ast.Name(id=name), args=[_, *_]) if name in functions:
                pass
            case _:
                continue
        function = functions[name]
        names = parameters(function)
        if function.args.posonlyargs or function.args.vararg or len(node.args) > len(function.args.args):
            continue
        if any(isinstance(each, ast.Starred) for each in node.args) or not _only_definition(program, name):
            continue
        words = [ast.keyword(names[index], value) for index, value in enumerate(node.args)]
        node.args, node.keywords = [], [*words, *node.keywords]


def _only_definition(program: Program, name: str) -> bool:
    defined = [node for node in ast.walk(program.tree) if isinstance(node, DEFINITIONS) and node.name == name]
    stored = [
        n
        for n in ast.walk(program.tree)
        if isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Load)
    ]
    arguments = [n for n in ast.walk(program.tree) if isinstance(n, ast.arg) and n.arg == name]
    return len(defined) == 1 and not stored and not arguments
