"""A last batch of one row, and models that surely put the rows of a table through batch normalisation."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.bindings import Binding, Kind
from lightlint.facts.loading import LOADER
from lightlint.facts.tails import is_table, rows_of_dataset

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_NORM = "torch.nn.BatchNorm1d"
# layers that give a table for a table, row by row
_BY_ROW = re.compile(
    r"torch\.nn\.(?:(?:Lazy)?Linear|\w*ReLU\d*|[SC]?ELU|GELU|SiLU|Mish|Sigmoid|Tanh|Softplus|Hardswish|Dropout|Identity|LayerNorm)$"
)
_MOVING = {"to", "cuda", "float", "cpu"}
_GROWING = {"append", "extend", "insert"}
_FIRST = {(0,), (1, 0)}  # of a batch, that `enumerate` may count
_DEPTH = 4


class OneRow:
    """The loaders of one file whose last batch is one row."""

    def __init__(self, facts: FileFacts) -> None:
        self._facts = facts
        self._names = facts.names
        self._tree = facts.tree

    def left_over(self, loader: cst.Call) -> tuple[int, int] | None:
        """The rows of a table and the size of a batch, where the numbers in the text leave one row for the last batch."""
        names, numbers = self._names, self._facts.datasets
        size, last = names.argument(loader, "batch_size", 1), names.argument(loader, "drop_last", 8)
        kept = last is None or names.constant(last.value) is False
        if not kept or size is None or self._facts.loading.is_sampled(loader):
            return None
        dataset = self._facts.loading.dataset(loader)
        number, rows = numbers.number(size.value), rows_of_dataset(self._facts, dataset)
        if not isinstance(number, int) or rows is None or number < 2 or rows < number or rows % number != 1:
            return None
        return (rows, number) if is_table(self._facts, dataset) else None

    def loops_over(self, loader: cst.Call) -> list[cst.For]:
        """The loops that draw every batch of a loader."""
        found = []
        for loop in self._tree.all(cst.For):
            made = self._facts.values.constructor(self._facts.values.iterated(loop.iter))
            if made is not None and made.name == LOADER and made.call is loader and self._facts.loops.is_one_pass(loop):
                found.append(loop)
        return found

    def is_first(self, value: cst.BaseExpression, loop: cst.For, depth: int = 0) -> bool:
        """Whether a value surely is the first part of the batch that a loop draws, moved or not."""
        while (
            isinstance(value, cst.Call)
            and self._names.method(value) in _MOVING
            and isinstance(value.func, cst.Attribute)
        ):
            value = value.func.value
        found = self._facts.reaching.bindings(value) if isinstance(value, cst.Name) and depth < _DEPTH else []
        return bool(found) and all(self._binds_first(each, loop, depth) for each in found)

    def _binds_first(self, binding: Binding, loop: cst.For, depth: int) -> bool:
        if binding.kind is Kind.LOOP:
            return binding.path in _FIRST and self._tree.contains(loop.target, binding.site)
        plain = binding.kind is Kind.ASSIGN and not binding.path and binding.value is not None
        return plain and binding.value is not None and self.is_first(binding.value, loop, depth + 1)

    def normalises(self, model: cst.BaseExpression) -> bool:
        """Whether a model surely puts the table it is given through `BatchNorm1d`, row by row."""
        origins = self._facts.values.unwrapped(model)
        return bool(origins) and all(self._begins(each.name, each.call) for each in origins)

    def _begins(self, name: str, made: cst.Call | None) -> bool:
        if name == "torch.nn.Sequential":
            return made is not None and self._is_by_row(made)
        classes = self._facts.classes
        node = classes.local(name)
        forward = classes.method(node, "forward") if node is not None else None
        given = forward.params.params[1].name.value if forward is not None and len(forward.params.params) > 1 else ""
        for call in self._tree.own(forward.body, cst.Call) if forward is not None else ():
            first = call.args[0].value if call.args and not self._facts.conditions(call) else None
            found = self._facts.reaching.bindings(first) if isinstance(first, cst.Name) and first.value == given else []
            untouched = len(found) == 1 and found[0].kind is Kind.PARAMETER
            held = isinstance(call.func, cst.Attribute) and classes.is_self(call.func.value)
            origin = self._facts.values.constructor(call.func) if untouched and held else None
            if origin is not None and origin.name == "torch.nn.Sequential" and origin.call is not None:
                return self._is_by_row(origin.call)
        return False

    def _is_by_row(self, sequence: cst.Call) -> bool:
        """Whether the layers of a sequence keep a table one until batch normalisation gets it."""
        if len(sequence.args) == 1 and sequence.args[0].star == "*":
            return self._are_by_row(sequence.args[0].value)
        for arg in sequence.args:
            name = self._names.call(arg.value) or ""
            if name == _NORM or not _BY_ROW.match(name):
                return name == _NORM and not arg.star
        return False

    def _are_by_row(self, layers: cst.BaseExpression) -> bool:
        """Whether a list is put together of such layers only, batch normalisation among them, and on every way."""
        parts = [part for each in (layers, *self._added(layers)) for part in self._facts.processes.made_from(each)]
        calls = dict.fromkeys(call for part in parts for call in self._tree.within(part, cst.Call))
        made = [each for each in calls if self._facts.hooks.callee(each) is None]
        names = [self._names.call(each) or "" for each in made]
        known = all(name == _NORM or name.startswith("builtins.") or _BY_ROW.match(name) for name in names)
        tests = (cst.IfExp, cst.CompIf)
        chosen = any(self._facts.conditions(each) for each in calls) or any(self._tree.within(p, *tests) for p in parts)
        return known and _NORM in names and not chosen

    def _added(self, layers: cst.BaseExpression) -> list[cst.BaseExpression]:
        """What the function around adds to a list by its methods."""
        key = self._names.key(layers)
        calls = [
            each for each in self._tree.own(self._tree.owner(layers), cst.Call) if isinstance(each.func, cst.Attribute)
        ]
        grown = [each for each in calls if self._names.method(each) in _GROWING]
        return [
            each.args[-1].value
            for each in grown
            if isinstance(each.func, cst.Attribute) and each.args and self._names.key(each.func.value) == key
        ]
