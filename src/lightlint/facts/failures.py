"""Code that is expected to fail."""

from __future__ import annotations

import libcst as cst

from lightlint.facts.names import Names
from lightlint.facts.tree import Tree

_AWAITS = {"pytest.raises", "contextlib.suppress"}


def is_expected(tree: Tree, names: Names, node: cst.CSTNode) -> bool:
    """Whether a node stands under `pytest.raises`, `assertRaises` or `suppress`, which wait for it to raise."""
    items = [item.item for each in tree.ancestors(node) if isinstance(each, cst.With) for item in each.items]
    return any(names.call(item) in _AWAITS or names.method(item).startswith("assertRaises") for item in items)
