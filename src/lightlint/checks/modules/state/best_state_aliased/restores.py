"""Where weights are written back by hand: `for p, kept in zip(net.parameters(), self.kept): p.data.copy_(kept)`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from lightlint.facts.code.names import Names
from lightlint.facts.code.tree import Tree


@dataclass(frozen=True, slots=True)
class Restore:
    """A write into the tensors of a model from those that are kept, both by key."""

    node: cst.CSTNode
    model: str
    kept: str


def restores(tree: Tree, names: Names) -> Iterator[Restore]:
    """Every write of a file that brings kept tensors back into the parameters of a model, one after the other.

    Nothing where something else gives a tensor new `data`: what was kept before is then no longer the tensor's own.
    """
    found = [
        Restore(node, *through)
        for loop in tree.all(cst.For)
        for node in tree.own(loop.body, cst.Call, cst.Assign)
        if (pair := _copied(names, node)) is not None
        if (through := _through(names, loop, *pair)) is not None and all(through)
    ]
    written = [tree.statement(each) for each in tree.all(cst.AssignTarget) if _is_data(each.target)]
    if all(each in [one.node for one in found] for each in written):
        yield from found


def _is_data(target: cst.BaseExpression) -> bool:
    return isinstance(target, cst.Attribute) and target.attr.value == "data"


def _copied(names: Names, node: cst.Call | cst.Assign) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    """Where a tensor is written to and from: `p` and `q` of `p.data.copy_(q)` and of `p.data = q`."""
    if isinstance(node, cst.Assign):
        target = node.targets[0].target
        return (_bare(target), _bare(node.value)) if _is_data(target) and len(node.targets) == 1 else None
    if names.method(node) != "copy_" or not isinstance(node.func, cst.Attribute) or len(node.args) != 1:
        return None
    return _bare(node.func.value), _bare(node.args[0].value)


def _bare(value: cst.BaseExpression) -> cst.BaseExpression:
    """A tensor without `.data`."""
    return value.value if isinstance(value, cst.Attribute) and _is_data(value) else value


def _through(names: Names, loop: cst.For, to: cst.BaseExpression, kept: cst.BaseExpression) -> tuple[str, str] | None:
    """The keys of the model and of what is kept that a loop goes through for what it writes to and from."""
    taken = _pair(loop.target)
    if taken is None or not isinstance(to, cst.Name) or not isinstance(loop.iter, cst.Call):
        return None
    if names.call(loop.iter) == "builtins.zip" and isinstance(kept, cst.Name):
        drawn = dict(zip(taken, (arg.value for arg in loop.iter.args), strict=False))
        if len(loop.iter.args) != len(taken) or {to.value, kept.value} != set(taken):
            return None
        return model_of(names, drawn[to.value]), _kept(names, drawn[kept.value])
    if names.method(loop.iter) == "named_parameters" and isinstance(kept, cst.Subscript) and to.value == taken[1]:
        index = kept.slice[0].slice
        by_name = isinstance(index, cst.Index) and names.key(index.value) == taken[0] and len(kept.slice) == 1
        return (model_of(names, loop.iter), names.key(kept.value)) if by_name else None
    return None


def _kept(names: Names, drawn: cst.BaseExpression) -> str:
    """The key of a list, or of a dict whose `values()` are drawn."""
    if names.method(drawn) == "values" and isinstance(drawn, cst.Call) and isinstance(drawn.func, cst.Attribute):
        return names.key(drawn.func.value)
    return names.key(drawn)


def _pair(target: cst.CSTNode) -> list[str] | None:
    """The two names that a loop takes."""
    taken = [each.value for each in target.elements] if isinstance(target, cst.Tuple) else []
    words = [each.value for each in taken if isinstance(each, cst.Name)]
    return words if len(words) == len(taken) == 2 else None


def model_of(names: Names, drawn: cst.BaseExpression) -> str:
    """`net` of `net.parameters()`, `net.named_parameters()` and `net.state_dict().values()`, else empty."""
    if not isinstance(drawn, cst.Call) or drawn.args or not isinstance(drawn.func, cst.Attribute):
        return ""
    method, holder = drawn.func.attr.value, drawn.func.value
    if method in {"parameters", "named_parameters"}:
        return names.key(holder)
    inner = holder.func if method == "values" and isinstance(holder, cst.Call) and not holder.args else None
    return names.key(inner.value) if isinstance(inner, cst.Attribute) and inner.attr.value == "state_dict" else ""
