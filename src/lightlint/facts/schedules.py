"""Schedules whose length counts optimizer steps, of which accumulation makes fewer than there are batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.bindings import Kind, dotted_name
from lightlint.facts.origins import Origin
from lightlint.facts.tree import Loop

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

    def steps_per_update(self, call: cst.Call) -> cst.BaseExpression | None:
        """How often an iteration steps a scheduler for one step of its optimizer, where its length counts the latter.

        The size of the window that the optimizer waits for in the loop around, None where any of it is not sure.
        """
        receiver = call.func.value if isinstance(call.func, cst.Attribute) else None
        loops = self._tree.loops(call)
        if (
            not loops
            or receiver is None
            or any(self._tree.contains(loops[0], t) for t, _ in self._facts.conditions(call))
        ):
            return None
        made = self._maker(receiver)
        if made is None or not made.args:
            return None
        for update in self._facts.updates.updates(self._tree.owner(call)):
            same = self._tree.loops(update.call)[:1] == loops[:1] and self._is_of(made.args[0].value, update.optimizer)
            size = self._window(update.call, loops[0]) if same else None
            if size is not None:
                lengths = [part for arg in made.args[1:] for part in self._parts(arg.value, 0)]
                return size if self._count_updates(lengths, size) else None
        return None

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

    def too_few_epochs(self, call: cst.Call, made: cst.Call) -> tuple[int, int] | None:
        """The epochs that a `OneCycleLR` is made for, and how many of the same loader step it for each batch, where
        these surely are more."""
        loops = [each for each in self._tree.loops(call) if isinstance(each, cst.For)]
        epochs, size = (self._names.argument(made, *each) for each in (("epochs", 3), ("steps_per_epoch", 4)))
        if len(loops) < 2 or epochs is None or size is None or self._names.argument(made, "total_steps", 2) is not None:
            return None
        planned, real = self._names.constant(epochs.value), self._repetitions(loops[1])
        counted = self._names.call(size.value) == "builtins.len" and isinstance(size.value, cst.Call)
        drawn = size.value.args[0].value if isinstance(size.value, cst.Call) and counted else None
        loader = self._facts.values.iterated(loops[0].iter)
        if drawn is None or not isinstance(planned, int) or real <= planned or not self._is_one(drawn, loader):
            return None
        tested = any(self._tree.contains(loops[1], test) for test, _ in self._facts.conditions(call))
        tried = any(isinstance(each, cst.Try) for each in self._tree.ancestors(call))
        body = loops[1].body
        left = [*self._tree.within(body, cst.Break, cst.Return), *self._tree.within(body, cst.Continue, cst.Raise)]
        return None if tested or tried or left else (planned, real)

    def _repetitions(self, loop: cst.For) -> int:
        """How often a loop over a `range` of known bounds repeats, 0 for any other."""
        source = self._facts.values.iterated(loop.iter)
        if not isinstance(source, cst.Call) or self._names.call(source) != "builtins.range":
            return 0
        bounds = [self._names.constant(arg.value) for arg in source.args]
        numbers = [each for each in bounds if isinstance(each, int)]
        return len(range(*numbers)) if len(numbers) == len(bounds) in {1, 2} else 0

    def _is_one(self, loader: cst.BaseExpression, other: cst.CSTNode) -> bool:
        made = {origin.call for origin in self._facts.values.origins(loader)}
        known = len(made) == 1 and None not in made
        return known and made == {origin.call for origin in self._facts.values.origins(other)}

    def _window(self, step: cst.Call, loop: Loop) -> cst.BaseExpression | None:
        """The number of batches that an optimizer waits for, also where it steps behind the last one as well."""
        window = self._facts.accumulation.window(step)
        if window is not None:
            return window.size
        tests = [test for test, _ in self._facts.conditions(step) if self._tree.contains(loop.body, test)]
        spelled = [each for test in tests for part in self._parts(test, 2) for each in self._modulos(part)]
        inside = [each for each in spelled if self._tree.contains(loop.body, each)]
        return inside[0].right if len(set(spelled)) == 1 == len(set(inside)) else None

    def _modulos(self, test: cst.BaseExpression) -> list[cst.BinaryOperation]:
        found = self._tree.within(test, cst.BinaryOperation)
        return [each for each in found if isinstance(each.operator, cst.Modulo)]

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

    def _count_updates(self, lengths: list[cst.BaseExpression], size: cst.BaseExpression) -> bool:
        """Whether lengths are a number of batches that is divided by the size of the window, which they take no other use of."""
        divided, uses = False, 0
        bound = self._names.bindings.lookup(size) if isinstance(size, cst.Name) else []
        values = [each.value for each in bound]  # a name and its value are one use
        for part in dict.fromkeys(lengths):
            if part in values:
                continue
            spelled = [*self._tree.within(part, cst.Name, cst.Attribute), *self._tree.within(part, cst.Integer)]
            uses += sum(self._is_size(each, size) for each in spelled)
            for quotient in self._tree.within(part, cst.BinaryOperation):
                if self._is_updates(quotient, size):
                    uses, divided = uses - 1, True
        return divided and not uses

    def _is_updates(self, quotient: cst.BinaryOperation, size: cst.BaseExpression) -> bool:
        """Whether an expression is a number of batches divided by the size of the window."""
        divides = isinstance(quotient.operator, (cst.Divide, cst.FloorDivide)) and self._is_size(quotient.right, size)
        return divides and self._counts(quotient.left)

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
