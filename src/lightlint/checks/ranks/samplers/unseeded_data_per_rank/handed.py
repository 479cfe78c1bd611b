"""Seeds that differ by rank where they are made, and come to their use as an attribute or through a function's argument."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import Kind
from lightlint.facts.project.callers import passed
from lightlint.facts.ranks.seeds import Seeds

if TYPE_CHECKING:
    from lightlint.facts.linked import Linked

_WORDS = ("init_process_group", "DistributedDataParallel", "Trainer")  # files that hold none start no ranks
_DEPTH = 3


def differs_by_rank(facts: Linked, value: cst.BaseExpression, depth: int = 0) -> bool:
    """Whether a seed surely is another one on every rank: by itself, as an attribute was set, as all callers give it."""
    if depth > _DEPTH:
        return False
    if isinstance(value, cst.Attribute) and isinstance(value.value, cst.Name):
        return _attribute_differs(facts, value.value, value.attr.value, value, depth)
    found = facts.reaching.bindings(value) if isinstance(value, cst.Name) else []
    if len(found) == 1 and found[0].kind is Kind.PARAMETER:
        values = list(passed(facts, found[0], *_WORDS))
        return bool(values) and all(
            each is not None and differs_by_rank(other, each, depth + 1) for other, _, each in values
        )
    if len(found) == 1 and found[0].kind is Kind.ASSIGN and not found[0].path and found[0].value is not None:
        return differs_by_rank(facts, found[0].value, depth + 1)
    return Seeds(facts).is_offset(value)


def _attribute_differs(facts: Linked, held: cst.Name, name: str, place: cst.CSTNode, depth: int) -> bool:
    """Whether an attribute of an object surely differs at a place of its function, or in what all callers give for it."""
    owner = facts.tree.owner(place)
    flow = facts.flow(owner)
    key = f"{held.value}.{name}"
    sets = [
        each
        for each in facts.tree.own(owner, cst.Assign)
        if any(facts.names.key(target.target) == key for target in each.targets)
    ]
    if any(flow.reaches(each, [place]) for each in sets):
        last = [each for each in sets if flow.reaches(each, [place], avoiding=[one for one in sets if one is not each])]
        sure = flow.always_before(place, sets)
        return sure and all(differs_by_rank(facts, each.value, depth + 1) for each in last)
    found = facts.reaching.bindings(held)
    only = found[0] if len(found) == 1 and found[0].kind is Kind.PARAMETER and depth < _DEPTH else None
    values = list(passed(facts, only, *_WORDS)) if only is not None else []
    return bool(values) and all(
        isinstance(each, cst.Name) and _attribute_differs(other, each, name, each, depth + 1)
        for other, _, each in values
    )
