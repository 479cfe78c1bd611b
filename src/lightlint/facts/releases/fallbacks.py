"""Old names that stand in only where a newer one does not exist."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import dotted_name
from lightlint.facts.versions.version_tests import Leads, VersionTests

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lightlint.facts.linked import Linked

_OURS = ("torch", "lightning", "pytorch_lightning")


def is_fallback(facts: Linked, node: cst.CSTNode) -> bool:
    """Whether what a node names is a `getattr`'s default, or set first and set anew where the newer name is there:
    `norm = old` above `if hasattr(...): norm = new`, or above a `try` that imports the new one."""
    argument = facts.tree.parent(node)
    call = facts.tree.parent(argument) if isinstance(argument, cst.Arg) else None
    if isinstance(call, cst.Call) and facts.names.call(call) == "builtins.getattr" and len(call.args) == 3:
        return call.args[2] is argument and (facts.names.of(call.args[0].value) or "").startswith(_OURS)
    statement = facts.tree.statement(node)
    keys = set(_set_by(statement)) if statement is not None else set()
    if len(keys) != 1 or (isinstance(statement, cst.Assign) and statement.value is not node):
        return False
    return any(
        other is not statement
        and not keys.isdisjoint(_set_by(other))
        and facts.tree.order(other) > facts.tree.order(node)
        and _is_for_newer(facts, other)
        for other in facts.tree.all(cst.Assign, cst.ImportFrom)
        if facts.tree.scope(other) is facts.tree.scope(node)
    )


def _set_by(statement: cst.CSTNode) -> Iterator[str]:
    """The names and attributes that a statement sets."""
    if isinstance(statement, cst.Assign):
        yield from filter(None, (dotted_name(each.target) for each in statement.targets))
    elif isinstance(statement, cst.ImportFrom) and not isinstance(statement.names, cst.ImportStar):
        yield from (dotted_name(each.asname.name if each.asname else each.name) for each in statement.names)


def _is_for_newer(facts: Linked, statement: cst.CSTNode) -> bool:
    """Whether a statement counts for newer versions only: behind a test for one, or where it may fail in a `try`."""
    tries = [each for each in facts.tree.ancestors(statement) if isinstance(each, cst.Try)]
    if any(facts.tree.contains(each.body, statement) and each.handlers for each in tries):
        return True
    return VersionTests(facts).under(statement) is Leads.NEWER or _is_under_lookup(facts, statement)


def _is_under_lookup(facts: Linked, statement: cst.CSTNode) -> bool:
    """Whether a statement runs where `hasattr` found a name of torch or Lightning, asked there or by a flag."""
    above = [each for each in facts.tree.ancestors(statement) if isinstance(each, cst.If)]  # also in a class's body
    around = [(each.test, facts.tree.contains(each.body, statement)) for each in above]
    for test, outcome in (*facts.conditions(statement), *around):
        for each in facts.reaching.sources(test):
            found = isinstance(each, cst.Call) and facts.names.call(each) == "builtins.hasattr" and bool(each.args)
            if found and isinstance(each, cst.Call) and outcome:
                return (facts.names.of(each.args[0].value) or "").startswith(_OURS)
    return False
