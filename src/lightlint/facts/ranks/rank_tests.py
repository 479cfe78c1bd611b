"""Which tests surely come out differently on the ranks of one run, and which calls every rank has to join."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.names import UNKNOWN, Names
from lightlint.facts.code.tree import Tree
from lightlint.facts.ranks.comparisons import mirrored, outcomes
from lightlint.facts.ranks.guards import Guards
from lightlint.facts.ranks.lone_process import runs_alone

if TYPE_CHECKING:
    from lightlint.facts.linked import Linked

_OPERATIONS = (
    "barrier all_reduce all_gather broadcast reduce gather scatter all_to_all reduce_scatter all_gather_object"
)
_OPERATIONS += " gather_object broadcast_object_list scatter_object_list all_gather_into_tensor reduce_scatter_tensor"
COLLECTIVES = {f"torch.distributed.{name}" for name in _OPERATIONS.split()}

_AGREEING = (
    "reduce",
    "gather",
    "sync",
    "broadcast",
)  # in the name of a helper out of sight: it may be such an operation

_TESTS = (cst.Comparison, cst.BooleanOperation, cst.UnaryOperation, cst.Name, cst.Call)
_DEPTH = 3
_ENDS = {"exit", "_exit", "abort", "quit"}


def agrees(names: Names, call: cst.Call) -> bool:
    """Whether a call brings the ranks together: a collective, or a helper that by its name reduces something."""
    method = names.method(call)
    return names.call(call) in COLLECTIVES or any(word in method for word in _AGREEING)


def splits(tree: Tree, names: Names, guards: Guards, test: cst.BaseExpression) -> bool:
    """Whether a test surely is true on some ranks and false on others, as `rank == 0` and unlike `rank != -1`.

    What is compared with a value out of sight does not count.
    """
    match test:
        case cst.UnaryOperation(operator=cst.Not()):
            return splits(tree, names, guards, test.expression)
        case cst.BooleanOperation():
            return any(splits(tree, names, guards, side) for side in (test.left, test.right))
        case cst.Comparison(comparisons=[only]):
            if guards.is_rank(test.left):
                return _differs(only.operator, names.constant(only.comparator), names, only.comparator)
            return guards.is_rank(only.comparator) and _differs(
                mirrored(only.operator), names.constant(test.left), names, test.left
            )
        case cst.Comparison():
            return False
    stands_for = meant(tree, names, test)
    if stands_for:
        return all(splits(tree, names, guards, each) for each in stands_for)
    return guards.is_test(test) and not _is_text(names, test)


def meant(tree: Tree, names: Names, test: cst.BaseExpression, depth: int = 0) -> list[cst.BaseExpression]:
    """The tests that a flag or the answer of a function of this file stands for; none for any other expression."""
    name = test.func if isinstance(test, cst.Call) else test
    found = names.bindings.lookup(name) if isinstance(name, cst.Name) else []
    values: list[cst.BaseExpression | None] = []
    if isinstance(test, cst.Name):
        values = [None if each.path else each.value for each in found]
    elif (
        isinstance(test, cst.Call) and not test.args and len(found) == 1 and isinstance(found[0].site, cst.FunctionDef)
    ):
        values = [each.value for each in tree.own(found[0].site.body, cst.Return)]
    told = [each for each in values if isinstance(each, _TESTS)]
    if len(told) < len(values) or depth > _DEPTH:
        return []
    return [last for each in told for last in meant(tree, names, each, depth + 1) or [each]]


def _is_text(names: Names, test: cst.BaseExpression) -> bool:
    """Whether a test asks for an environment variable, whose text is true for every rank."""
    return isinstance(test, cst.Subscript) or names.call(test) in {"os.environ.get", "os.getenv"}


def on_rank_zero_only(facts: Linked, node: cst.CSTNode) -> bool:
    """Whether Lightning's `rank_zero_only`, under whatever name, lets the function around a node run on rank zero only."""
    function = facts.tree.function(node)
    decorators = [facts.names.of(each.decorator) or "" for each in function.decorators] if function is not None else []
    return any(each.endswith(".rank_zero_only") for each in decorators)


def on_some_ranks(facts: Linked, node: cst.CSTNode) -> bool:
    """Whether only some ranks surely come to a node: by a test around or before it, or `rank_zero_only`."""
    if on_rank_zero_only(facts, node):
        return True
    tests = [test for test, _ in facts.conditions(node) if splits(facts.tree, facts.names, facts.guards, test)]
    return any(not _ends_run(facts, test, node) for test in tests) and not runs_alone(facts, node)


def _ends_run(facts: Linked, test: cst.CSTNode, node: cst.CSTNode) -> bool:
    """Whether the ranks that a test keeps from a node end the run: one of them reports an error and exits, or raises."""
    choice = next((each for each in facts.tree.ancestors(test) if isinstance(each, cst.If)), None)
    if choice is None or facts.tree.contains(choice, node) or not choice.body.body:
        return False
    last = choice.body.body[-1]
    small = last.body[-1] if isinstance(last, cst.SimpleStatementLine) and last.body else last
    ended = isinstance(small, cst.Expr) and facts.names.method(small.value) in _ENDS
    return ended or isinstance(small, cst.Raise)


def _differs(operator: cst.BaseCompOp, value: object, names: Names, side: cst.BaseExpression) -> bool:
    if isinstance(side, cst.Set):
        value = [names.constant(each.value) for each in side.elements]
    if value is UNKNOWN or isinstance(value, (str, float, bool)) or value is None:
        return False
    return len(outcomes(operator, value)) == 2
