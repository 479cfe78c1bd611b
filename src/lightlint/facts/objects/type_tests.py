"""What a test that lets the code run says of a value's type: `if torch.is_tensor(x):`, `isinstance(x, torch.Tensor)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from lightlint.facts.linked import Linked

_KINDS = {"torch.Tensor", "torch.nn.Parameter", "torch.nn.parameter.Parameter"}


def is_told(facts: Linked, value: cst.BaseExpression) -> bool:
    """Whether a test that surely came out true, right before a value is read, says that it is a tensor."""
    place = value if isinstance(value, cst.Name) else facts.tree.statement(value)
    tests = facts.conditions(place) if place is not None else []
    return any(came and _says(facts, test, value) and _stays(facts, test, value) for test, came in tests)


def _says(facts: Linked, test: cst.BaseExpression, value: cst.BaseExpression) -> bool:
    """Whether a test asks whether a value is a tensor, and nothing else that it may be."""
    name = facts.names.call(test)
    if name not in {"torch.is_tensor", "builtins.isinstance"} or not isinstance(test, cst.Call) or not test.args:
        return False
    spelled = facts.tree.module.code_for_node
    if spelled(test.args[0].value) != spelled(value):
        return False
    kinds = test.args[1].value if len(test.args) > 1 else None
    given = [each.value for each in kinds.elements] if isinstance(kinds, cst.Tuple) else [kinds]
    return name == "torch.is_tensor" or all(facts.names.of(each) in _KINDS for each in given)


def _stays(facts: Linked, test: cst.BaseExpression, value: cst.BaseExpression) -> bool:
    """Whether a value is what the test saw: a name that nothing binds in between, or an item that is read at once."""
    if isinstance(value, cst.Name):
        flow = facts.flow(facts.tree.owner(value))
        sites = [each.site for each in facts.names.bindings.lookup(value)]
        return not any(flow.reaches(site, [value], avoiding=[test]) for site in sites)
    branches = [each for each in facts.tree.ancestors(test) if isinstance(each, cst.If)]
    body = branches[0].body.body if branches else ()
    return bool(body) and facts.tree.contains(body[0], value)
