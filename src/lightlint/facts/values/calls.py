"""What a call gives for a parameter."""

from __future__ import annotations

import libcst as cst

from lightlint.facts.code.names import Names
from lightlint.facts.objects.classes import Classes


def given(
    names: Names, classes: Classes, function: cst.FunctionDef, call: cst.Call, parameter: str
) -> cst.BaseExpression | None:
    """The expression that a call of a function of this file gives for one of its parameters; None for its default."""
    plain = [*function.params.posonly_params, *function.params.params]
    spelled = [each.name.value for each in plain]
    position = spelled.index(parameter) if parameter in spelled else None
    if position is not None and is_bound(names, classes, function, call):
        position -= 1
    arg = names.argument(call, parameter, position)
    return arg.value if arg and not arg.star else None


def is_bound(names: Names, classes: Classes, function: cst.FunctionDef, call: cst.Call) -> bool:
    """Whether the first parameter of a function is the object or the class that a call of it goes through."""
    if classes.class_of(function) is None or classes.is_static(function):
        return False
    if classes.local(names.of(call.func)) is not None:
        return True  # a class is called: `__init__` gets the new object
    if not isinstance(call.func, cst.Attribute):
        return False
    takes_class = any(names.of(each.decorator) == "builtins.classmethod" for each in function.decorators)
    return takes_class or classes.local(names.of(call.func.value)) is None


def changed_in_place(call: cst.Call) -> cst.BaseExpression | None:
    """What a chain of methods that change it starts from: `a` of `a.mul_(c).add_(b)`."""
    value: cst.BaseExpression = call
    while isinstance(value, cst.Call):
        if not isinstance(value.func, cst.Attribute) or not value.func.attr.value.endswith("_"):
            return None
        value = value.func.value
    return value
