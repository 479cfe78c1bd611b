"""Schedules whose length counts optimizer steps, of which accumulation makes fewer than there are batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.bindings import Kind, dotted_name
from lightlint.facts.origins import Origin

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

LENGTHS = {  # the arguments that say how long a schedule of torch is
    "OneCycleLR": (("steps_per_epoch", 4), ("total_steps", 2)),
    "CosineAnnealingLR": (("T_max", 1),),
    "LinearLR": (("total_iters", 3),),
    "PolynomialLR": (("total_iters", 1),),
}
_ROOM = "torch.optim.lr_scheduler."
_DEPTH = 3


class Schedules:
    """The learning-rate schedules of one file beside its accumulation."""

    def __init__(self, facts: FileFacts) -> None:
        self._facts = facts
        self._tree = facts.tree
        self._names = facts.names

    def is_sized_in_batches(self, origin: Origin) -> bool:
        """Whether a schedule of torch surely is as long as its training has batches."""
        known = LENGTHS.get(origin.name.removeprefix(_ROOM), ()) if origin.name.startswith(_ROOM) else ()
        given = [self._names.argument(origin.call, *each) for each in known] if origin.call is not None else []
        lengths = [each.value for each in given if each is not None]
        return bool(lengths) and self.counts_batches(lengths[0])

    def counts_batches(self, length: cst.BaseExpression) -> bool:
        """Whether a length holds `len(loader)`."""
        return any(
            self._names.call(each) == "builtins.len" and bool(each.args) and self._is_loader(each.args[0].value)
            for source in self._facts.reaching.sources(length)
            for part in self._spelled(source)
            for each in self._tree.within(part, cst.Call)
        )

    def _spelled(self, source: cst.BaseExpression) -> list[cst.BaseExpression]:
        """An expression, and what the names in it are bound to once."""
        found = [source]
        for name in self._tree.within(source, cst.Name):
            bound = self._names.bindings.lookup(name)
            if len(bound) == 1 and bound[0].kind is Kind.ASSIGN and bound[0].value is not None and not bound[0].path:
                found.append(bound[0].value)
        return found

    def _is_loader(self, expression: cst.BaseExpression) -> bool:
        spelled = dotted_name(expression).rpartition(".")[2].lower()
        return self._facts.values.is_loader(expression) or "loader" in spelled

    def _is_of(self, given: cst.BaseExpression, optimizer: cst.BaseExpression) -> bool:
        """Whether the optimizer that a scheduler is given is one that is stepped: by its name, or by the call that made it."""
        if self._tree.owner(given) is self._tree.owner(optimizer) or "." in self._names.key(given):
            return self._names.key(given) == self._names.key(optimizer)
        made = {origin.call for origin in self._facts.values.origins(given)}
        return None not in made and made == {origin.call for origin in self._facts.values.origins(optimizer)} != set()

    def _is_one(self, loader: cst.BaseExpression, other: cst.CSTNode) -> bool:
        made = {origin.call for origin in self._facts.values.origins(loader)}
        known = len(made) == 1 and None not in made
        return known and made == {origin.call for origin in self._facts.values.origins(other)}

    def _maker(self, receiver: cst.BaseExpression) -> cst.Call | None:
        """The one call that gives a scheduler: a class of torch or a helper of this file, whose arguments stand there."""
        if isinstance(receiver, cst.Attribute):
            node = self._facts.classes.self_class(receiver.value)
            values = self._facts.classes.attribute_values(node, receiver.attr.value) if node is not None else []
        else:
            values = self._facts.reaching.sources(receiver)
        only = values[0] if len(values) == 1 else None
        if isinstance(only, cst.Call):
            return only
        origin = self._facts.values.constructor(receiver)  # of a function of this file that gives it with other things
        return origin.call if origin is not None else None

    def _parts(self, expression: cst.BaseExpression, depth: int) -> list[cst.BaseExpression]:
        """An expression, and what the names in it are bound to once, and so on."""
        found = [expression]
        counted = [call for call in self._tree.within(expression, cst.Call) if self._names.call(call) == "builtins.len"]
        for name in self._tree.within(expression, cst.Name) if depth < _DEPTH else ():
            if any(self._tree.contains(call, name) for call in counted):
                continue  # how the loader was made does not matter
            bound = self._names.bindings.lookup(name)
            only = bound[0] if len(bound) == 1 and bound[0].kind is Kind.ASSIGN and not bound[0].path else None
            if only is not None and only.value is not None:
                found += self._parts(only.value, depth + 1)
        return found

    def _counts(self, dividend: cst.BaseExpression) -> bool:
        calls = [call for part in self._parts(dividend, 1) for call in self._tree.within(part, cst.Call)]
        return any(self._names.call(call) == "builtins.len" for call in calls)

    def _is_size(self, expression: cst.BaseExpression, size: cst.BaseExpression) -> bool:
        """Whether an expression is the size of a window: the same number, or the same name of one scope or object."""
        number, key = self._names.constant(size), self._names.key(size)
        if isinstance(size, cst.Integer) or isinstance(expression, cst.Integer):
            return isinstance(number, int) and self._names.constant(expression) == number
        if not key or self._names.key(expression) != key:
            return False
        root, other = _root(size), _root(expression)
        return isinstance(root, cst.Name) and isinstance(other, cst.Name) and self._is_same(root, other)

    def _is_same(self, one: cst.Name, other: cst.Name) -> bool:
        bound = self._names.bindings.lookup(one)
        if self._facts.classes.self_class(one) is not None:
            return self._facts.classes.self_class(one) is self._facts.classes.self_class(other)
        return len(bound) == 1 and bound == self._names.bindings.lookup(other)


def _root(expression: cst.BaseExpression) -> cst.BaseExpression:
    while isinstance(expression, (cst.Attribute, cst.Subscript)):
        expression = expression.value
    return expression
