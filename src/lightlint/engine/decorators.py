"""What decorators make of functions and classes."""

from __future__ import annotations

import ast

from lightlint.engine.arguments import Arguments
from lightlint.engine.calls import call
from lightlint.engine.expressions import evaluate
from lightlint.engine.machine import Machine
from lightlint.values.core import Class, Function, Library, Scope, Unknown, Value

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
    "pl.utilities.rank_zero_only": "rank_zero_only",
    "pl.utilities.rank_zero.rank_zero_only": "rank_zero_only",
    "fabric.utilities.rank_zero_only": "rank_zero_only",
    "fabric.utilities.rank_zero.rank_zero_only": "rank_zero_only",
    "pl.utilities.distributed.rank_zero_only": "rank_zero_only",
    "hydra.main": "hydra",
    "click.command": "command",
    "click.option": "command",
    "click.argument": "command",
    "torch.distributed.elastic.multiprocessing.errors.record": "",
}


def decorated(machine: Machine, value: Value, function: Function, decorator: ast.expr, scope: Scope) -> Value:
    """What a decorator makes of a function; one out of sight leaves a function of which nothing may be said."""
    called = isinstance(decorator, ast.Call)
    maker = evaluate(machine, decorator.func if isinstance(decorator, ast.Call) else decorator, scope)
    if isinstance(maker, Library):
        flag = _FLAGS.get(maker.path)
        if flag is not None:
            if flag:
                function.flags.add(flag)
            return value
        if maker.path.startswith(
            ("typer.", "pytest.", "ray.", "beartype", "jaxtyping", "typeguard", "torch.", "functools.")
        ):
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
    function.flags.add("decorated")
    return value


def decorated_class(machine: Machine, value: Value, cls: Class, decorator: ast.expr, scope: Scope) -> Value:
    """What a decorator makes of a class: mostly itself."""
    maker = evaluate(machine, decorator.func if isinstance(decorator, ast.Call) else decorator, scope)
    cls.decorators.append(maker)
    return value
