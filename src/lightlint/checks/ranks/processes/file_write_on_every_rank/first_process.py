"""Code that one process of a machine runs first, while the others wait in a barrier and come after it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.tree import Tree

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_BARRIER = re.compile(r"barrier$|^synchronize$|^wait_for_everyone$")
_FIRST = re.compile(r"(?:^|_)first(?:$|_)")  # what libraries and projects call the context manager
_DEPTH = 4


def first_process_fills(facts: FileFacts, node: cst.CSTNode) -> bool:
    """Whether the processes come to a node in turns, the first one alone, and a test around it may stop the later ones:
    `if not cache.exists()` behind the barrier finds what the first one wrote."""
    return _in_turns(facts, node, is_asked=False, depth=0)


def _in_turns(facts: FileFacts, node: cst.CSTNode, *, is_asked: bool, depth: int) -> bool:
    asked = is_asked or bool(facts.conditions(node)) or _is_rescue(facts.tree, node)
    if asked and (_held_back(facts, node) or _between_barriers(facts, node)):
        return True
    function = facts.tree.function(node)
    calls = facts.hooks.calls_of.get(function, ()) if function is not None and depth < _DEPTH else ()
    return bool(calls) and all(_in_turns(facts, each, is_asked=asked, depth=depth + 1) for each in calls)


def _is_rescue(tree: Tree, node: cst.CSTNode) -> bool:
    """Whether a node stands in the handler of a file that is not there."""
    return any(isinstance(each, cst.ExceptHandler) for each in tree.ancestors(node))


def _held_back(facts: FileFacts, node: cst.CSTNode) -> bool:
    """Whether a `with` around a node lets one process go first."""
    around = [each for each in facts.tree.ancestors(node) if isinstance(each, cst.With)]
    return any(_lets_one_first(facts, item.item) for each in around for item in each.items)


def _lets_one_first(facts: FileFacts, manager: cst.BaseExpression) -> bool:
    if not isinstance(manager, cst.Call):
        return False
    maker = facts.hooks.callee(manager) or facts.classes.local(facts.names.call(manager))
    named = bool(_FIRST.search(facts.names.method(manager)))
    return named or (maker is not None and bool(_barriers(facts, maker)))


def _barriers(facts: FileFacts, place: cst.CSTNode) -> list[cst.Call]:
    """The barriers in some code that only some ranks may meet."""
    calls = [each for each in facts.tree.within(place, cst.Call) if _BARRIER.search(facts.names.method(each))]
    return [each for each in calls if any(facts.guards.may_be_test(test) for test, _ in facts.conditions(each))]


def _between_barriers(facts: FileFacts, node: cst.CSTNode) -> bool:
    """Whether a function holds the other processes back before a node, and lets them go behind it."""
    owner = facts.tree.owner(node)
    orders = [facts.tree.order(each) for each in _barriers(facts, owner) if facts.tree.owner(each) is owner]
    return bool(orders) and min(orders) < facts.tree.order(node) < max(orders)
