"""Code that is expected to fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.values.sources import sources

if TYPE_CHECKING:
    from lightlint.facts.linked import Linked

_DEPTH = 3
_AWAITS = {"pytest.raises", "contextlib.suppress"}


def is_expected(facts: Linked, node: cst.CSTNode, depth: int = 0) -> bool:
    """Whether a node stands under `pytest.raises`, `assertRaises` or `suppress`, which wait for it to raise.

    A helper counts that is only called there.
    """
    above = [each for each in facts.tree.ancestors(node) if isinstance(each, cst.With)]
    contexts = [found for each in above for item in each.items for found in sources(facts, item.item)]
    if any(context is not None and _awaits(home, context) for home, context in contexts):
        return True
    function = facts.tree.function(node)
    calls = facts.hooks.calls_of.get(function, ()) if function is not None and depth < _DEPTH else ()
    return bool(calls) and all(is_expected(facts, call, depth + 1) for call in calls)


def _awaits(facts: Linked, context: cst.BaseExpression) -> bool:
    if facts.names.call(context) in _AWAITS or facts.names.method(context).startswith("assertRaises"):
        return True
    match context:
        case cst.Call(func=cst.Call() as made) if facts.names.call(made) == "builtins.getattr" and len(made.args) > 1:
            name = facts.names.constant(made.args[1].value)
            return isinstance(name, str) and name.startswith("assertRaises")
        case cst.Call(func=cst.Lambda(body=body)):
            return _awaits(facts, body)
    return False
