"""Tests that leave one process only: code behind `if world_size > 1: return` runs where there are no other ranks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.ranks.comparisons import mirrored, outcomes
from lightlint.facts.values.sources import sources

if TYPE_CHECKING:
    from lightlint.facts.linked import Linked

_SIZES = range(1, 10)
_GROUP = {
    "torch.distributed.is_initialized",
    "torch.distributed.is_available",
    "torch.distributed.is_torchelastic_launched",
}
_FLAG = re.compile(
    r"^(?:is_|use_|using_)?(?:distributed|multi_?gpus?|ddp|fsdp|deepspeed|several_ranks|multi_?process(?:ing)?)$",
    re.IGNORECASE,
)
_COUNTS = {"world_size", "num_processes", "num_devices", "num_ranks"}
_DEPTH = 4


def runs_alone(facts: Linked, node: cst.CSTNode, depth: int = 0) -> bool:
    """Whether a test around a node, or around each call in sight that leads to it, lets one process only come to it."""
    if any(leaves_one(facts, test, outcome) for test, outcome in facts.conditions(node)):
        return True
    function = facts.tree.function(node)
    calls = facts.instances.calls_of.get(function, ()) if function is not None and depth < _DEPTH else ()
    return bool(calls) and all(runs_alone(facts, call, depth + 1) for call in calls)


def leaves_one(facts: Linked, test: cst.BaseExpression, outcome: bool, depth: int = 0) -> bool:
    """Whether a test surely comes out so only where there is a single process."""
    match test:
        case cst.UnaryOperation(operator=cst.Not()):
            return leaves_one(facts, test.expression, not outcome, depth)
        case cst.BooleanOperation(left=left, right=right):
            sides = [leaves_one(facts, side, outcome, depth) for side in (left, right)]
            return any(sides) if isinstance(test.operator, cst.And) is outcome else all(sides)
        case cst.Call(args=[held, kind]) if facts.names.call(test) == "builtins.isinstance":
            single = (facts.names.of(kind.value) or "").rpartition(".")[2].startswith("SingleDevice")
            return outcome and single and facts.names.key(held.value).endswith("strategy")
        case cst.Comparison(comparisons=[only]):
            for counted, operator, other in (
                (test.left, only.operator, only.comparator),
                (only.comparator, mirrored(only.operator), test.left),
            ):
                if _is_count(facts, counted, depth):
                    number = facts.names.constant(other)
                    kept = [size for size in _SIZES if outcomes(operator, number, [size]) == {outcome}]
                    return isinstance(number, int) and kept == [1]
                if facts.guards.is_rank(counted):  # `local_rank == -1`: the mark of a run without ranks
                    number = facts.names.constant(other)
                    return bool(told := outcomes(operator, number)) and outcome not in told
            return False
        case cst.Name() | cst.Attribute() | cst.Call():
            name = facts.names.call(test) or facts.names.key(test)
            if name in _GROUP or _FLAG.match(name.rpartition(".")[2]):
                return not outcome
            found = [*sources(facts, test)] if depth < _DEPTH else []
            return bool(found) and all(
                each is not None and each is not test and leaves_one(home, each, outcome, depth + 1)
                for home, each in found
            )
    return False


def _is_count(facts: Linked, value: cst.BaseExpression, depth: int) -> bool:
    """Whether a value surely is the number of processes."""
    match value:
        case cst.Call() if facts.names.call(value) == "torch.distributed.get_world_size":
            return not value.args
        case cst.Call() if facts.names.call(value) == "builtins.int" and value.args:
            return _is_count(facts, value.args[0].value, depth)
        case cst.Call() if facts.names.call(value) in {"os.environ.get", "os.getenv"} and value.args:
            return facts.names.constant(value.args[0].value) == "WORLD_SIZE"
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=index))]):
            return facts.names.of(value.value) == "os.environ" and facts.names.constant(index) == "WORLD_SIZE"
        case cst.Attribute() if value.attr.value in _COUNTS:
            return True
        case cst.Integer():
            return facts.names.constant(value) == 1  # what stands for it where no group was joined
    found = [*sources(facts, value)] if depth < _DEPTH else []
    return any(not isinstance(each, cst.Integer) for _, each in found) and all(
        each is not None and each is not value and _is_count(home, each, depth + 1) for home, each in found
    )
