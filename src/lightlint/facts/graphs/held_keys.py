"""Which keys a dict surely has from the start, however they are spelled: in a display, or in a list that it is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import Kind
from lightlint.facts.steps.steps import Steps

if TYPE_CHECKING:
    from lightlint.facts.linked import Linked

_DEPTH = 6


def surely_held(facts: Linked, made: cst.BaseExpression | None, depth: int = 0) -> frozenset[str]:
    """Keys that a dict surely has; it may have others."""
    match made:
        case _ if depth > _DEPTH:
            return frozenset()
        case cst.Name():
            return surely_held(facts, _only(facts, made), depth + 1)
        case cst.Dict():
            keys = [each.key for each in made.elements if isinstance(each, cst.DictElement)]
            return frozenset(word for each in keys if isinstance(word := facts.names.constant(each), str))
        case cst.DictComp(key=cst.Name(value=word), for_in=cst.CompFor(target=cst.Name(value=drawn)) as loop):
            plain = word == drawn and not loop.ifs and loop.inner_for_in is None
            return _items(facts, loop.iter, depth + 1) if plain else frozenset()
        case cst.Call(args=[first, *_]) if facts.names.call(made) == "builtins.dict.fromkeys":
            return _items(facts, first.value, depth + 1)
    return frozenset()


def _items(facts: Linked, listed: cst.BaseExpression | None, depth: int) -> frozenset[str]:
    """Words that a list surely has among its items."""
    match listed:
        case _ if depth > _DEPTH:
            return frozenset()
        case cst.Name():
            return _items(facts, _only(facts, listed), depth + 1)
        case cst.List() | cst.Tuple():
            items = [each.value for each in listed.elements if isinstance(each, cst.Element)]
            return frozenset(word for each in items if isinstance(word := facts.names.constant(each), str))
        case cst.BinaryOperation(operator=cst.Add()):
            return _items(facts, listed.left, depth + 1) | _items(facts, listed.right, depth + 1)
        case cst.Call():
            callee = facts.fact(Steps).callee(listed)
            returns = facts.values.returns(callee) if callee is not None else []
            found = [_items(facts, each, depth + 1) for each in returns]
            return frozenset.intersection(*found) if found else frozenset()
    return frozenset()


def _only(facts: Linked, name: cst.Name) -> cst.BaseExpression | None:
    """What a name is assigned that is assigned once."""
    found = facts.names.bindings.lookup(name)
    return found[0].value if len(found) == 1 and found[0].kind is Kind.ASSIGN and not found[0].path else None
