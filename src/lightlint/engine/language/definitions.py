"""What a definition makes: a function, a class, and what its decorators make of these."""

from __future__ import annotations

import ast

from lightlint.engine.arguments import Arguments
from lightlint.engine.calls import call
from lightlint.engine.execution import SIMPLE, evaluate, run
from lightlint.engine.machine import Machine
from lightlint.values.core import Bound, Class, Function, Library, Method, Scope, Unknown, Value

_FLAGS = {
    "builtins.property": "property",
    "functools.cached_property": "property",
    "builtins.staticmethod": "staticmethod",
    "builtins.classmethod": "classmethod",
    "contextlib.contextmanager": "contextmanager",
    "contextlib.asynccontextmanager": "contextmanager",
    "abc.abstractmethod": "abstract",
    "torch.no_grad": "no_grad",
    "torch.inference_mode": "no_grad",
    "torch.enable_grad": "enable_grad",
    "torch.jit.script": "",
    "torch.jit.export": "",
    "torch.jit.ignore": "",
    "torch.compile": "",
    "functools.lru_cache": "",
    "functools.cache": "",
    "functools.wraps": "",
    "typing.overload": "",
    "typing.override": "",
    "numba.jit": "",
    "numba.njit": "",
    "lightning.utilities.rank_zero_only": "rank_zero_only",
    "hydra.main": "hydra",
    "click.command": "command",
    "click.option": "command",
    "click.argument": "command",
    "torch.distributed.elastic.multiprocessing.errors.record": "",
}


# the modes of autograd: what goes by such a name and is out of sight is torch's, got through a star import out of sight
GRAD_MODES = frozenset(["no_grad", "inference_mode", "enable_grad"])


def function_of(machine: Machine, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, scope: Scope) -> Function:
    """The function a definition makes, its defaults evaluated here."""
    function = Function(node, scope, machine.file)
    function.defaults = [evaluate(machine, each, scope) for each in node.args.defaults]
    function.keyword_defaults = {
        name.arg: evaluate(machine, each, scope)
        for name, each in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
        if each is not None
    }
    return function


def _def(machine: Machine, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
    function = function_of(machine, node, scope)
    function.owner = scope.cls
    value: Value = function
    for decorator in reversed(node.decorator_list):
        value = _decorated(machine, value, function, decorator, scope)
    scope.bind(node.name, value)


def _class(machine: Machine, node: ast.ClassDef, scope: Scope) -> None:
    bases = [evaluate(machine, base, scope) for base in node.bases]
    cls = Class(node.name, bases, {}, machine.file, node)
    inner = Scope(scope.file, scope)
    inner.cls, inner.names = cls, cls.names
    run(machine, node.body, inner)
    value: Value = cls
    for decorator in reversed(node.decorator_list):
        value = _decorated_class(machine, value, cls, decorator, scope)
    scope.bind(node.name, value)


def _decorated(machine: Machine, value: Value, function: Function, decorator: ast.expr, scope: Scope) -> Value:
    """What a decorator makes of a function; one out of sight leaves a function of which nothing may be said."""
    called = isinstance(decorator, ast.Call)
    maker = evaluate(machine, decorator.func if isinstance(decorator, ast.Call) else decorator, scope)
    if isinstance(maker, Library):
        flag = _FLAGS.get(maker.path)
        given = decorator.args[0] if isinstance(decorator, ast.Call) and decorator.args else None
        if maker.path == "torch.inference_mode" and isinstance(given, ast.Constant) and given.value is False:
            flag = "enable_grad"
        if flag is not None:
            if flag:  # of what the decorators below made of it
                (value if isinstance(value, Function) else function).flags.add(flag)
            return value
        if maker.path.startswith(
            ("typer.", "pytest.", "ray.", "beartype", "jaxtyping", "typeguard", "torch.", "functools.")
        ):
            return value
    if isinstance(maker, Unknown) and maker.hint in GRAD_MODES:
        function.flags.add("enable_grad" if maker.hint == "enable_grad" else "no_grad")
        return value
    if isinstance(decorator, ast.Attribute) and decorator.attr in ("setter", "deleter", "getter"):
        function.flags.add(decorator.attr)
        return maker if isinstance(maker, Function) else value
    if isinstance(maker, Function) or called:
        wrapper = evaluate(machine, decorator, scope)
        if isinstance(wrapper, Unknown):
            function.flags.add("decorated")
            return value
        result = call(machine, wrapper, Arguments([value]), decorator, scope)
        return value if isinstance(result, Unknown) else result
    if isinstance(maker, Method):
        result = call(machine, maker, Arguments([value]), decorator, scope)
        if isinstance(result, (Function, Bound)):
            return result
    function.flags.add("decorated")
    return value


def _decorated_class(machine: Machine, value: Value, cls: Class, decorator: ast.expr, scope: Scope) -> Value:
    """What a decorator makes of a class: mostly itself."""
    maker = evaluate(machine, decorator.func if isinstance(decorator, ast.Call) else decorator, scope)
    cls.decorators.append(maker)
    return value


SIMPLE.update({ast.FunctionDef: _def, ast.AsyncFunctionDef: _def, ast.ClassDef: _class})
