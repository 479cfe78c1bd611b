"""What changes a parameter into an ordinary tensor: a move, a view, arithmetic, also of one that has a local name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.tensors.tensor_types import changes_nothing

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

MOVING = frozenset({"to", "cuda", "half", "double", "bfloat16", "type"})
VIEWING = frozenset(
    {"view", "reshape", "unsqueeze", "squeeze", "repeat", "expand", "transpose", "permute", "clone", "mul", "div"}
)


class MovedParameters:
    """The parameters of one file that come to be something else."""

    def __init__(self, facts: FileFacts) -> None:
        self._facts = facts
        self._names = facts.names
        self._tree = facts.tree

    def is_made(self, node: cst.CSTNode) -> bool:
        """Whether an expression makes a parameter."""
        return isinstance(node, cst.Call) and self._names.call(node) == "torch.nn.Parameter"

    def named(self, target: cst.Attribute, value: cst.BaseExpression) -> Iterator[tuple[cst.BaseExpression, str]]:
        """What `self.c = c` may set that was a parameter by a local name before, with the method that changed it.

        `c = nn.Parameter(...)`, `c = c.cuda()`: only where the parameter comes to nothing else that may register it. The
        method is empty for arithmetic.
        """
        for source in self._facts.reaching.sources(value):
            match source:
                case cst.Call(func=cst.Attribute(value=cst.Name() as name, attr=cst.Name(value=method))):
                    changed = method in MOVING | VIEWING and not changes_nothing(self._facts, source)
                    names = [name] if changed else []
                case cst.BinaryOperation():
                    names, method = [each for each in (source.left, source.right) if isinstance(each, cst.Name)], ""
                case _:
                    continue
            held = [each for each in names if all(map(self.is_made, self._facts.reaching.sources(each)))]
            kept = [each for each in (*held, value) if isinstance(each, cst.Name)]
            if held and all(self._comes_to(target, each) for each in kept):
                yield source, method

    def made_elsewhere(
        self, target: cst.Attribute, value: cst.BaseExpression
    ) -> Iterator[tuple[cst.BaseExpression, str]]:
        """What `self.c = make()` may set that was a parameter before, in a function of this file or on the way from it,
        with the method that changed it."""
        for source, method in self._changed_by_others(value):
            if self._has_parameter(target):
                return
            yield source, method

    def _changed_by_others(self, value: cst.BaseExpression) -> Iterator[tuple[cst.BaseExpression, str]]:
        for source in self._facts.reaching.sources(value):
            match source:
                case cst.Call(func=cst.Attribute(value=cst.Call() as inner, attr=cst.Name(value=method))) if (
                    method in MOVING | VIEWING and self._gives_parameter(inner)
                ):
                    if not changes_nothing(self._facts, source):
                        yield source, method
                case cst.Call():
                    yield from ((source, method) for method in self._changes(source))

    def _gives_parameter(self, call: cst.Call) -> bool:
        """Whether a call of a function of this file surely gives a new parameter."""
        callee = self._facts.hooks.callee(call)
        returns = self._facts.values.returns(callee) if callee is not None else []
        return bool(returns) and all(each is not None and self._is_new(each) for each in returns)

    def _changes(self, call: cst.Call) -> Iterator[str]:
        """The methods by which a function of this file that a call runs changes a parameter it makes; empty for arithmetic."""
        callee = self._facts.hooks.callee(call)
        for returned in self._facts.values.returns(callee) if callee is not None else []:
            for source in self._facts.reaching.sources(returned) if returned is not None else []:
                match source:
                    case cst.Call(func=cst.Attribute(value=made, attr=cst.Name(value=method))):
                        changed = method in MOVING | VIEWING and not changes_nothing(self._facts, source)
                        if changed and self._is_new(made):
                            yield method
                    case cst.BinaryOperation() if any(map(self._is_new, (source.left, source.right))):
                        yield ""

    def _is_new(self, value: cst.BaseExpression) -> bool:
        """Whether a value surely is a parameter that its function makes, and hands to nothing that may register it."""
        if not all(map(self.is_made, self._facts.reaching.sources(value))):
            return False
        uses = self._tree.within(self._tree.owner(value), cst.Name) if isinstance(value, cst.Name) else []
        named = [each for each in uses if isinstance(value, cst.Name) and each.value == value.value]
        return all(isinstance(self._tree.parent(use), cst.Return) or self._is_plain(use, "") for use in named)

    def _has_parameter(self, target: cst.Attribute) -> bool:
        """Whether the attribute gets a parameter otherwise."""
        node = self._facts.classes.self_class(target.value)
        values = self._facts.classes.attribute_values(node, target.attr.value) if node is not None else []
        return any(map(self.is_made, values))

    def _comes_to(self, target: cst.Attribute, name: cst.Name) -> bool:
        """Whether a local name is only changed, filled and set as one attribute, which gets no parameter otherwise."""
        attribute = target.attr.value
        uses = [each for each in self._tree.within(self._tree.owner(name), cst.Name) if each.value == name.value]
        return not self._has_parameter(target) and all(self._is_plain(use, attribute) for use in uses)

    def _is_plain(self, use: cst.Name, attribute: str) -> bool:
        match self._tree.parent(use):
            case cst.Attribute() | cst.AssignTarget() | cst.AnnAssign() | cst.BinaryOperation():
                return True
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute(attr=cst.Name(value=set_as)))]):
                return set_as == attribute
            case cst.Arg() as arg:
                fills = (self._names.call(self._tree.parent(arg)) or "").startswith("torch.nn.init.")
                return arg.keyword is use or fills
        return False
