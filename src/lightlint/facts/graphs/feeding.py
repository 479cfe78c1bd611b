"""What the modules of one file are given when they are called: whether it comes out of layers that are trained."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.graphs.gradients import Gradients

if TYPE_CHECKING:
    from lightlint.facts.linked import Linked

_SEQUENTIAL, _LIST = "torch.nn.Sequential", "torch.nn.ModuleList"


class Feeding:
    """The inputs of the modules of one file."""

    def __init__(self, facts: Linked) -> None:
        self._facts = facts
        self._tree = facts.tree
        self._names = facts.names

    def gets_graph(self, node: cst.ClassDef, carries: Callable[[cst.BaseExpression], bool]) -> bool:
        """Whether an instance of a class of modules is, somewhere in the file, called with what a trained layer gives.

        `carries` says whether an expression does so.
        """
        name = self._names.defined(node)
        if self._facts.fact(Gradients).may_be_frozen:
            return False
        for call in self._tree.all(cst.Call):
            if self._names.call(call) == _SEQUENTIAL and self._is_behind(name, [arg.value for arg in call.args]):
                return True
            origins = self._facts.values.unwrapped(call.func) if call.args and self._names.of(call.func) is None else ()
            if any(each.name == name for each in origins) and carries(call.args[0].value):
                return True
        return any(self._chains(loop) and self._is_behind(name, self._members(loop.iter)) for loop in self._loops())

    def _is_behind(self, name: str, members: list[cst.BaseExpression]) -> bool:
        """Whether modules that are run one after the other have one of a class behind one with parameters."""
        places = [place for place, each in enumerate(members) if self._names.call(each) == name]
        return bool(places) and any(map(self._facts.fact(Gradients).makes_parameters, members[: places[-1]]))

    def _loops(self) -> list[cst.For]:
        return [each for each in self._tree.all(cst.For) if isinstance(each.iter, cst.Attribute)]

    def _chains(self, loop: cst.For) -> bool:
        """Whether a loop hands what one module gives to the next: `x = layer(x)`, `x, more = layer(x)`."""
        for assign in self._tree.own(loop.body, cst.Assign):
            call = assign.value
            if (
                not isinstance(call, cst.Call)
                or not call.args
                or self._names.key(call.func) != self._names.key(loop.target)
            ):
                continue
            bound = {name.value for each in assign.targets for name in self._tree.within(each.target, cst.Name)}
            if self._names.key(loop.target) and self._names.key(call.args[0].value) in bound:
                return True
        return False

    def _members(self, holder: cst.BaseExpression) -> list[cst.BaseExpression]:
        """The modules that a `ModuleList` of `self` is made of, in the order in which they are put there."""
        node = self._facts.classes.self_class(holder.value) if isinstance(holder, cst.Attribute) else None
        if node is None or not isinstance(holder, cst.Attribute):
            return []
        made = self._facts.classes.attribute_values(node, holder.attr.value)
        if len(made) != 1 or not isinstance(made[0], cst.Call) or self._names.call(made[0]) != _LIST:
            return []
        listed = made[0].args[0].value if made[0].args else None
        members = [each.value for each in listed.elements] if isinstance(listed, cst.List) else []
        for call in self._tree.within(node, cst.Call):
            appends = isinstance(call.func, cst.Attribute) and call.func.attr.value == "append" and call.args
            if (
                appends
                and isinstance(call.func, cst.Attribute)
                and self._names.key(call.func.value) == self._names.key(holder)
            ):
                members.append(call.args[0].value)
        return members
