"""Which values are a Trainer that may run several processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.bindings import Kind, dotted_name
from lightlint.facts.origins import Origin
from lightlint.facts.versions import Version
from lightlint.facts.world import TRAINER, Ranks, trainer_ranks

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_DEPTH = 4


def is_trainer(facts: FileFacts, value: cst.BaseExpression, depth: int = 0) -> bool:
    """Whether a value is a hook's trainer, or surely a Trainer that runs, or may run, several processes beside it.

    A hook's is its parameter, or `self.trainer`, or the parameter of a function that only hooks call with theirs. One
    that starts its processes inside `fit` leaves a single one outside, and a destroyed process group waits for nobody.
    """
    named = dotted_name(value) in {"trainer", "self.trainer"}
    if named and facts.hooks.owner(facts.tree.enclosing_class(value)) is not None:
        return True
    if not isinstance(value, (cst.Name, cst.Attribute)) or facts.world.lightning is Ranks.ONE:
        return False
    origins = facts.values.origins(value)
    if origins:
        return all(_runs_several(facts, each) for each in origins) and not _is_over(facts, value)
    return depth < _DEPTH and isinstance(value, cst.Name) and _is_given(facts, value, depth)


def _is_given(facts: FileFacts, name: cst.Name, depth: int) -> bool:
    """Whether a name is a parameter for which every call in sight gives a trainer."""
    found = facts.bindings.lookup(name)
    function = found[0].scope if len(found) == 1 and found[0].kind is Kind.PARAMETER else None
    if not isinstance(function, cst.FunctionDef):
        return False
    given = [facts.values.given(function, call, name.value) for call in facts.hooks.calls_of.get(function, ())]
    return bool(given) and all(each is not None and is_trainer(facts, each, depth + 1) for each in given)


def _runs_several(facts: FileFacts, origin: Origin) -> bool:
    if origin.name != TRAINER or facts.world.is_copied:
        return False
    call = origin.call
    if call is None or facts.names.call(call) != TRAINER:
        return True
    given = {arg.keyword.value: facts.names.constant(arg.value) for arg in call.args if arg.keyword is not None}
    everywhere = facts.lightning.surely_at_least(Version("2"))
    return trainer_ranks(given, facts.names.has_star(call), default_all=everywhere) is not Ranks.ONE


def _is_over(facts: FileFacts, node: cst.CSTNode) -> bool:
    """Whether the process group is, or may be, destroyed before a node."""
    before = facts.tree.own(facts.tree.owner(node), cst.Call)
    ends = [each for each in before if facts.names.method(each) == "destroy_process_group"]
    return any(facts.tree.order(each) < facts.tree.order(node) for each in ends)
