"""What nobody gives is assumed: arguments by their annotation, else by their name."""

from __future__ import annotations

import ast
import re

from lightlint.engine.arguments import Arguments
from lightlint.engine.calls import call
from lightlint.engine.containers import listed
from lightlint.engine.execution import annotation_of
from lightlint.engine.machine import Machine
from lightlint.explore.roles import roles_in
from lightlint.models.annotations import by_name, of_library
from lightlint.values.core import Bound, Class, Constant, Function, Unknown, Value
from lightlint.values.training import Instance, Module, Optimizer, Tensor
from lightlint.values.training import Iterator as Generated

_NUMBER = re.compile(
    r"(?i)(?:\w*_)?(?:sizes?|nums?|n_\w+|num_\w+|dims?|heights?|widths?|scales?|strides?|ratios?|counts?)"
)
"""What a pass may be given as a number as well as a tensor."""


def make_with_assumed(machine: Machine, cls: Class) -> Instance:
    """An instance of a class of the program, with assumed arguments; a library's constructor may be given any."""
    init = cls.find("__init__")
    given = assumed_arguments(machine, init, skip=1) if isinstance(init, Function) else Arguments()
    if isinstance(init, Function):
        given.keywords |= _from_settings(machine, cls, init)
    made = machine.models.make(machine, cls, given, cls.node)
    made.open_arguments |= not isinstance(init, Function)
    return made


def _from_settings(machine: Machine, cls: Class, init: Function) -> dict[str, Value]:
    """The arguments that settings of the project give instead of their defaults, whatever these say there."""
    return {
        name: Unknown(("parameter", name), hint=name, plain=True)
        for name, default in init.usual().items()
        if isinstance(default, Constant) and machine.sources.gives(cls.name, name)
    }


def call_with_assumed(machine: Machine, function: Function, receiver: Instance | None) -> None:
    """Call a function that nobody calls."""
    bound = receiver is not None and "staticmethod" not in function.flags
    given = assumed_arguments(machine, function, skip=1 if bound else 0)
    of_class = "classmethod" in function.flags
    called = Bound(receiver.cls if of_class else receiver, function) if bound and receiver is not None else function
    result = call(machine, called, given, function.node)
    if isinstance(result, Generated):
        listed(machine, result, function.node)  # a generator runs as far as somebody asks for more
    machine.given_back.append(result)


def of_batch(machine: Machine, node: ast.AST) -> Value:
    """Something that may have come out of a loader, as what a forward pass is given."""
    made = of_library(machine, "torch.Tensor", node)
    assert isinstance(made, Tensor)
    made.device = None
    return made


def assumed_arguments(
    machine: Machine,
    function: Function,
    skip: int,
) -> Arguments:
    """Arguments for the parameters that have no default: by annotation, else by name; an optimizer gets the one module's parameters."""
    inner = wrapped(function, skip)
    if inner is not None:
        return assumed_arguments(machine, inner, skip)
    node = function.node
    positional = [*node.args.posonlyargs, *node.args.args]
    required = positional[skip : len(positional) - len(node.args.defaults)]
    keyword = [
        each for each, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True) if default is None
    ]
    values: dict[str, Value] = {}
    for each in (*required, *keyword):
        value: Value = Unknown(("parameter", each.arg), hint=each.arg)
        if each.annotation is not None:
            annotation = annotation_of(machine, each.annotation, function.scope)
            value = machine.models.annotated(machine, value, annotation, each.arg, each)
        if isinstance(value, Unknown) and not value.plain:
            value = by_name(machine, each.arg, each)
        if isinstance(value, Unknown) and not value.plain and function.name == "forward":
            value = value if _NUMBER.fullmatch(each.arg) else of_batch(machine, each)
        values[each.arg] = value
    left = [each for each in (*required, *keyword) if type(values[each.arg]) is Unknown]
    roles = roles_in(node) if left else {}
    values |= {each.arg: by_name(machine, roles[each.arg], each) for each in left if each.arg in roles}
    modules = [value for value in values.values() if isinstance(value, Module) and value.own]
    for value in values.values():
        if isinstance(value, Optimizer) and len(modules) == 1:
            value.parameters, value.more = modules[0].parameters(), True
    return Arguments(
        [values[each.arg] for each in required], {each.arg: values[each.arg] for each in keyword}, assumed=True
    )


def wrapped(function: Function, skip: int) -> Function | None:
    """The function that a wrapper such as a decorator makes hands its arguments to, whatever they are."""
    given = function.node.args
    if given.vararg is None or len(given.posonlyargs) + len(given.args) > skip or function.scope.function is None:
        return None
    held = [each for each in function.scope.names.values() if isinstance(each, Function) and each is not function]
    return held[0] if len(held) == 1 else None


def has_run(machine: Machine, method: Function) -> bool:
    """Whether what makes an object has called a method; wrappers that one decorator makes are one definition."""
    return id((wrapped(method, 1) or method).node) in machine.called
