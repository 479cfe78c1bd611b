"""What the function of a `LambdaLR` measures the count of its steps by."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import Kind

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

LAMBDA = "LambdaLR"
_DIVISIONS = (cst.Divide, cst.FloorDivide)


def measures(facts: FileFacts, call: cst.Call) -> list[cst.BaseExpression]:
    """The expressions that a `LambdaLR`'s function compares its count with, or divides it by.

    What `functools.partial` gives stands in the place of the parameter it is given for.
    """
    given = facts.names.argument(call, "lr_lambda", 1)
    function, bound = _function(facts, given.value) if given is not None else (None, {})
    params = function.params if function is not None else None
    free = [each.name for each in params.params if each.name.value not in bound] if params is not None else []
    if isinstance(function, cst.FunctionDef) and facts.tree.class_of(function) is not None:
        free = free[1:]
    if function is None or not free or len(facts.names.bindings.lookup_in(free[0].value, function)) != 1:
        return []  # a count that is bound again may be one of epochs made steps
    found: list[cst.BaseExpression] = []
    for operation in facts.tree.within(function.body, cst.Comparison, cst.BinaryOperation):
        if isinstance(operation, cst.Comparison):
            right = operation.comparisons[0].comparator if len(operation.comparisons) == 1 else None
            pairs = [(operation.left, right), (right, operation.left)]
        else:
            pairs = [(operation.left, operation.right)] if isinstance(operation.operator, _DIVISIONS) else []
        for count, measure in pairs:
            if _is_count(facts, count, free[0].value) and measure is not None:
                found.append(measure)
    return [bound.get(each.value, each) if isinstance(each, cst.Name) else each for each in found]


def _is_count(facts: FileFacts, expression: cst.BaseExpression | None, name: str) -> bool:
    """Whether an expression is the count, or how far it is behind something: `step - warmup`."""
    if isinstance(expression, cst.BinaryOperation) and isinstance(expression.operator, cst.Subtract):
        return _is_count(facts, expression.left, name)
    if facts.names.call(expression) in {"builtins.float", "builtins.int"} and isinstance(expression, cst.Call):
        return len(expression.args) == 1 and _is_count(facts, expression.args[0].value, name)
    return isinstance(expression, cst.Name) and expression.value == name


def _function(
    facts: FileFacts, value: cst.BaseExpression
) -> tuple[cst.FunctionDef | cst.Lambda | None, dict[str, cst.BaseExpression]]:
    """The function of this file that an expression is, with the arguments that it is bound to by name."""
    if isinstance(value, cst.Lambda):
        return value, {}
    if isinstance(value, cst.Call) and facts.names.call(value) == "functools.partial" and value.args:
        if any(arg.keyword is None for arg in value.args[1:]):
            return None, {}
        function, bound = _function(facts, value.args[0].value)
        return function, {**bound, **{arg.keyword.value: arg.value for arg in value.args if arg.keyword is not None}}
    if isinstance(value, cst.Name):
        found = facts.names.bindings.lookup(value)
        only = found[0] if len(found) == 1 else None
        if only is not None and only.kind is Kind.FUNCTION and isinstance(only.site, cst.FunctionDef):
            return only.site, {}
        if (
            only is not None
            and only.kind is Kind.ASSIGN
            and not only.path
            and isinstance(only.value, (cst.Lambda, cst.Call))
        ):
            return _function(facts, only.value)
    if isinstance(value, cst.Attribute):
        node = facts.classes.self_class(value.value)
        return (facts.classes.method(node, value.attr.value) if node is not None else None), {}
    return None, {}


def handed(facts: FileFacts, name: cst.Name) -> list[cst.BaseExpression]:
    """What the calls in sight of a function give for a parameter; nothing for another name, or where one is out of sight."""
    found = facts.names.bindings.lookup(name)
    function = found[0].scope if len(found) == 1 and found[0].kind is Kind.PARAMETER else None
    if not isinstance(function, cst.FunctionDef) or facts.hooks.of(function) is not None:
        return []
    given = [facts.hooks.given(function, call, name.value) for call in facts.hooks.calls_of.get(function, ())]
    values = [each for each in given if each is not None]
    return values if len(values) == len(given) else []
