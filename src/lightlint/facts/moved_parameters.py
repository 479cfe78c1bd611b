"""What changes a parameter into an ordinary tensor: a move, a view, arithmetic, also of one that has a local name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.bindings import dotted_name

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

MOVING = frozenset({"to", "cuda", "half", "double", "bfloat16", "type"})
VIEWING = frozenset(
    {"view", "reshape", "unsqueeze", "squeeze", "repeat", "expand", "transpose", "permute", "clone", "mul", "div"}
)
_NO_CHANGE = {"cpu", "torch.float", "torch.float32"}


class MovedParameters:
    """The parameters of one file that come to be something else."""

    def __init__(self, facts: FileFacts) -> None:
        self._facts = facts
        self._names = facts.names
        self._tree = facts.tree

    def is_made(self, node: cst.CSTNode) -> bool:
        """Whether an expression makes a parameter."""
        return isinstance(node, cst.Call) and self._names.call(node) == "torch.nn.Parameter"

    def changes_nothing(self, call: cst.Call, method: str) -> bool:
        """Whether a move surely, or most likely, gives the parameter back: to the CPU it lies on, to its own type."""
        if method != "to":
            return False
        values = [self._names.constant(arg.value) for arg in call.args]
        spelled = {str(value) for value in values if isinstance(value, str)} | {dotted_name(a.value) for a in call.args}
        return not call.args or bool(spelled & _NO_CHANGE)

    def named(self, target: cst.Attribute, value: cst.BaseExpression) -> Iterator[tuple[cst.BaseExpression, str]]:
        """What `self.c = c` may set that was a parameter by a local name before, with the method that changed it.

        `c = nn.Parameter(...)`, `c = c.cuda()`: only where the parameter comes to nothing else that may register it. The
        method is empty for arithmetic.
        """
        for source in self._facts.reaching.sources(value):
            match source:
                case cst.Call(func=cst.Attribute(value=cst.Name() as name, attr=cst.Name(value=method))):
                    changed = method in MOVING | VIEWING and not self.changes_nothing(source, method)
                    names = [name] if changed else []
                case cst.BinaryOperation():
                    names, method = [each for each in (source.left, source.right) if isinstance(each, cst.Name)], ""
                case _:
                    continue
            held = [each for each in names if all(map(self.is_made, self._facts.reaching.sources(each)))]
            kept = [each for each in (*held, value) if isinstance(each, cst.Name)]
            if held and all(self._comes_to(target, each) for each in kept):
                yield source, method

    def _comes_to(self, target: cst.Attribute, name: cst.Name) -> bool:
        """Whether a local name is only changed, filled and set as one attribute, which gets no parameter otherwise."""
        node, attribute = self._facts.classes.self_class(target.value), target.attr.value
        values = self._facts.classes.attribute_values(node, attribute) if node is not None else []
        uses = [each for each in self._tree.within(self._tree.owner(name), cst.Name) if each.value == name.value]
        return not any(map(self.is_made, values)) and all(self._is_plain(use, attribute) for use in uses)

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
