"""What keeps autograd from recording, as it is written around a node."""

from __future__ import annotations

import re

import libcst as cst

from lightlint.facts.code.bindings import dotted_name
from lightlint.facts.code.names import Names
from lightlint.facts.code.tree import Tree

_SWITCHES = {"torch.no_grad", "torch.inference_mode", "torch.set_grad_enabled"}
_MAYBE_SWITCH = re.compile(r"no_?grad|inference|eval|frozen|grad_enabled", re.IGNORECASE)


def is_switched_around(tree: Tree, names: Names, node: cst.CSTNode) -> bool:
    """Whether a context manager or a decorator in the function around a node may keep autograd from recording."""
    for above in tree.ancestors(node):
        if isinstance(above, cst.With) and any(switches(names, each.item) for each in above.items):
            return True
        if isinstance(above, cst.FunctionDef) and any(switches(names, each.decorator) for each in above.decorators):
            return True
    return False


def switches(names: Names, expression: cst.BaseExpression) -> bool:
    """Whether a context manager or a decorator may turn autograd off: what merely looks like `no_grad` counts."""
    target = expression.func if isinstance(expression, cst.Call) else expression
    return names.of(target) in _SWITCHES or bool(_MAYBE_SWITCH.search(dotted_name(target)))
