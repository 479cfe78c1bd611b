"""Whether the other ranks may join a call that some of them make and all have to."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.rank_tests import on_some_ranks, other_ways

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_DEPTH = 3
_OUTPUT = re.compile(r"^(?:info|debug|warning|error|log|print|write|append|exit|format|rank_zero_\w+)$")
_HARMLESS = ("builtins.", "logging.", "os.", "sys.", "time.", "warnings.")

Waits = Callable[[cst.Call], bool]


def left_alone(facts: FileFacts, call: cst.Call, waits: Waits) -> bool:
    """Whether only some ranks surely come to a call, and nothing shows that the others make one of its kind elsewhere."""
    return on_some_ranks(facts, call) and not may_be_joined(facts, call, waits)


def may_be_joined(facts: FileFacts, call: cst.Call, waits: Waits) -> bool:
    """Whether the ranks that do not come to a call may make one of its kind: under another test, or on their own way."""
    own = facts.conditions(call)
    others = facts.steps.runs(facts.tree.owner(call), waits)
    asked = [each for other in others for each in facts.conditions(other) if each not in own]
    if any(facts.guards.may_be_test(test) for test, _ in asked):
        return True
    return any(_may_join(facts, each, waits) for each in other_ways(facts, call))


def _may_join(facts: FileFacts, call: cst.Call, waits: Waits) -> bool:
    """Whether a call may wait with the others: it leads to one that does, or is out of sight and no output."""
    if facts.steps.leads(call, waits):
        return True
    harmless = (facts.names.call(call) or "").startswith(_HARMLESS) or _OUTPUT.search(facts.names.method(call))
    return facts.steps.callee(call) is None and not harmless


def led_to(facts: FileFacts, call: cst.Call, waits: Waits, depth: int = 0) -> cst.Call | None:
    """The call of a kind that a helper of this file surely comes to."""
    helper = facts.hooks.callee(call) if depth < _DEPTH else None
    if helper is None or helper.asynchronous is not None or facts.tree.own(helper.body, cst.Yield):
        return None
    for inner in facts.tree.own(helper.body, cst.Call):
        found = inner if waits(inner) else led_to(facts, inner, waits, depth + 1)
        if found is not None and not facts.conditions(inner) and not on_some_ranks(facts, inner):
            return found
    return None
