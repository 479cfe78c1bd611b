"""Batches as torch's own collation makes them, or an annotation promises them: what can be moved in them is a tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import Binding, Kind, dotted_name
from lightlint.facts.data.workers import LOADER

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_TENSOR = "torch.Tensor"
_HOLDERS = {"dict", "Dict", "list", "List", "Mapping", "MutableMapping", "Sequence"}
_ROOMS = {"builtins", "typing", "collections.abc"}
_VALUES = {"items": (1,), "values": ()}
_MOVING = {"to", "cuda", "cpu", "float", "half", "double", "long", "type"}
_DEPTH = 3


class Batches:
    """The dicts and lists of tensors of one file."""

    def __init__(self, facts: FileFacts) -> None:
        self._facts = facts
        self._names = facts.names

    def holds_tensors(self, value: cst.CSTNode | None, depth: int = 0) -> bool:
        """Whether of the items of a value, those that can be moved surely are tensors."""
        if not isinstance(value, cst.Name) or depth > _DEPTH:
            return False
        found = self._facts.reaching.bindings(value)
        return bool(found) and all(self._is_plain(each, depth) for each in found)

    def draws_item(self, drawn: Binding) -> bool:
        """Whether a loop draws the items of such a value: `for x in batch`, `for k, v in batch.items()`."""
        source, path = drawn.value, drawn.path
        if drawn.kind is not Kind.LOOP or source is None:
            return False
        if isinstance(source, cst.Call) and self._names.call(source) == "builtins.enumerate" and path[:1] == (1,):
            source, path = source.args[0].value, path[1:]
        if isinstance(source, cst.Call) and isinstance(source.func, cst.Attribute) and not source.args:
            return _VALUES.get(source.func.attr.value) == path and self.holds_tensors(source.func.value)
        return not path and self.holds_tensors(source)

    def is_promised(self, binding: Binding) -> bool:
        """Whether a parameter is annotated as a tensor."""
        return not _is_rest(binding) and self._is_tensor(binding.annotation)

    def is_read_besides(self, tensor: cst.BaseExpression, statement: cst.CSTNode) -> bool:
        """Whether what a moved item lies in, or a moved argument itself, is read by more than statements that drop it."""
        tree = self._facts.tree
        found = self._names.bindings.lookup(tensor) if isinstance(tensor, cst.Name) else []
        held = next((each.value for each in found if each.kind is Kind.LOOP), tensor)
        names = tree.within(held, cst.Name) if held is not None else []
        words = {each.value for each in names if self._names.bindings.lookup(each)}
        bound = {each.site for name in names for each in self._names.bindings.lookup(name)}
        uses = [each for each in tree.within(tree.owner(statement), cst.Name) if each.value in words]
        inside = [held, statement]
        return any(
            use not in bound
            and not any(each is not None and tree.contains(each, use) for each in inside)
            and not self._drops(tree.statement(use))
            and not self._only_drops(tree.parent(use))
            for use in uses
        )

    def _drops(self, statement: cst.CSTNode | None) -> bool:
        return isinstance(statement, cst.Expr) and self._names.method(statement.value) in _MOVING

    def _only_drops(self, loop: cst.CSTNode | None) -> bool:
        lines = loop.body.body if isinstance(loop, cst.For) else ()
        inner = [small for line in lines if isinstance(line, cst.SimpleStatementLine) for small in line.body]
        return bool(lines) and len(inner) >= len(lines) and all(map(self._drops, inner))

    def given(self, binding: Binding, function: cst.FunctionDef) -> list[cst.BaseExpression | None]:
        """What the calls of this file give for a parameter."""
        calls = self._facts.steps.calls_of.get(function, ())
        if _is_rest(binding) or any(map(self._names.has_star, calls)):
            return []
        return [self._facts.hooks.given(function, call, binding.name) for call in calls]

    def _is_plain(self, binding: Binding, depth: int) -> bool:
        if binding.kind is Kind.PARAMETER and isinstance(binding.scope, cst.FunctionDef):
            if binding.annotation is not None:
                return not _is_rest(binding) and self._promises_tensors(binding.annotation)
            given = self.given(binding, binding.scope)
            return bool(given) and all(self.holds_tensors(each, depth + 1) for each in given)
        source, path = binding.value, binding.path
        if isinstance(source, cst.Call) and self._names.call(source) == "builtins.enumerate" and path[:1] == (1,):
            path = path[1:]
        drawn = binding.kind is Kind.LOOP or self._names.call(source) == "builtins.next"
        return drawn and not path and source is not None and self.collates(source)

    def collates(self, iterated: cst.BaseExpression) -> bool:
        """Whether what is gone over is a DataLoader that puts its samples together in torch's own way."""
        origins = self._facts.values.origins(self._facts.values.iterated(iterated))
        return bool(origins) and all(each.name == LOADER and self._is_usual(each.call) for each in origins)

    def _is_usual(self, made: cst.Call | None) -> bool:
        if made is None or self._names.has_star(made) or self._names.argument(made, "collate_fn", 6) is not None:
            return False
        size = self._names.argument(made, "batch_size", 1)
        return size is None or self._names.constant(size.value) is not None

    def _promises_tensors(self, annotation: cst.BaseExpression) -> bool:
        """Whether an annotation is that of a dict or a list of tensors: `dict[str, Tensor]`."""
        if not isinstance(annotation, cst.Subscript):
            return False
        written = self._names.written_in(dotted_name(annotation.value), self._facts.tree.scope(annotation)) or ""
        items = [each.slice.value for each in annotation.slice if isinstance(each.slice, cst.Index)]
        room, _, kind = written.rpartition(".")
        return room in _ROOMS and kind in _HOLDERS and bool(items) and self._is_tensor(items[-1])

    def _is_tensor(self, annotation: cst.BaseExpression | None) -> bool:
        if annotation is None or not isinstance(annotation, (cst.Name, cst.Attribute)):
            return False
        return self._names.written_in(dotted_name(annotation), self._facts.tree.scope(annotation)) == _TENSOR


def _is_rest(binding: Binding) -> bool:
    """Whether a parameter gathers what is left: a tuple or a dict, whatever the annotation of its items."""
    function = binding.scope
    return isinstance(function, cst.FunctionDef) and binding.site in (
        function.params.star_arg,
        function.params.star_kwarg,
    )
