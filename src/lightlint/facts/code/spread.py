"""Where a value goes inside one function: from the place that binds it, through assignments, to what uses it."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from lightlint.facts.code.flow import Flow
from lightlint.facts.code.tree import Tree

_COLLECTS = {"append", "extend", "insert", "update", "add", "add_", "mul_", "copy_"}
_PLACES_ONLY = {"to", "cuda", "device"}  # what decides where a tensor lies, not what it holds


class Spread:
    """The uses that values bound at some places come to, in one function."""

    def __init__(self, tree: Tree, function: cst.FunctionDef | cst.Module, flow: Flow) -> None:
        self._tree = tree
        self._function = function
        self._flow = flow

    def uses(self, name: str, start: cst.CSTNode) -> list[cst.Name]:
        """Every use of a value bound to `name` at `start`, and of what is made from it, before it is bound anew."""
        found: list[cst.Name] = []
        pending = [(name, start)]
        seen: set[tuple[str, cst.CSTNode]] = set(pending)
        while pending:
            current, at = pending.pop()
            for use in self._direct_uses(current, at):
                found.append(use)
                for following in self._made_from(use):
                    if following not in seen:
                        seen.add(following)
                        pending.append(following)
        return list(dict.fromkeys(found))

    def _direct_uses(self, name: str, start: cst.CSTNode) -> Iterator[cst.Name]:
        names = [each for each in self._tree.own(self._function, cst.Name) if each.value == name]
        bound = [each for each in names if self._is_bound(each)]
        for use in names:
            if use in bound or self._is_attribute(use) or self._only_places(use):
                continue
            others = [each for each in bound if each is not start]
            if self._flow.reaches(start, [use], avoiding=others):
                yield use

    def _is_bound(self, name: cst.Name) -> bool:
        """Whether a name gets a value there, by itself or with others: of an assignment, a loop, a `with` or a `:=`."""
        target: cst.CSTNode = name
        parent = self._tree.parent(name)
        while isinstance(parent, (cst.Element, cst.StarredElement, cst.Tuple, cst.List)):
            target, parent = parent, self._tree.parent(parent)
        if isinstance(parent, (cst.For, cst.AnnAssign, cst.NamedExpr)):
            return target is parent.target
        return isinstance(parent, (cst.AssignTarget, cst.AsName))

    def _is_attribute(self, name: cst.Name) -> bool:
        parent = self._tree.parent(name)
        named = isinstance(parent, cst.Attribute) and parent.attr is name
        return named or (isinstance(parent, cst.Arg) and parent.keyword is name)

    def _only_places(self, name: cst.Name) -> bool:
        """Whether a name is what `.to(...)` or `device=` is given."""
        arg = self._tree.parent(name)
        call = self._tree.parent(arg) if isinstance(arg, cst.Arg) else None
        if not isinstance(arg, cst.Arg) or not isinstance(call, cst.Call):
            return False
        keyword = arg.keyword.value if arg.keyword is not None else ""
        method = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
        return keyword == "device" or method in _PLACES_ONLY

    def _made_from(self, use: cst.Name) -> Iterator[tuple[str, cst.CSTNode]]:
        """The names that get a value made from a use."""
        statement = self._tree.statement(use)
        match statement:
            case cst.Assign() if self._tree.contains(statement.value, use) and counts_in(
                self._tree, statement.value, use
            ):
                for target in statement.targets:
                    for name in self._tree.within(target.target, cst.Name):
                        if self._is_bound(name):
                            yield name.value, name
            case cst.AnnAssign(target=cst.Name() as name, value=value) if value is not None:
                yield name.value, name
            case cst.AugAssign(target=cst.Name() as name) if name is not use:
                yield name.value, name
            case cst.Expr(value=cst.Call(func=cst.Attribute(value=cst.Name() as name, attr=attr)) as call):
                if attr.value in _COLLECTS and name is not use:
                    yield name.value, call


def counts_in(tree: Tree, value: cst.CSTNode, use: cst.CSTNode) -> bool:
    """Whether a part of a value can reach the loss: of a dict with a key `loss` only what that key holds."""
    for held in tree.within(value, cst.Dict):
        losses = [each.value for each in held.elements if isinstance(each, cst.DictElement) and _is_loss(each.key)]
        if losses and tree.contains(held, use) and not any(tree.contains(each, use) for each in losses):
            return False
    return True


def _is_loss(key: cst.BaseExpression) -> bool:
    return isinstance(key, cst.SimpleString) and key.evaluated_value == "loss"
