"""Which names surely hold tensors: what torch made, items of a loader's batch, and what a loop draws of either."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.checks.modules.autograd.discarded_tensor_result.batches import Batches
from lightlint.facts.code.bindings import Binding, Kind
from lightlint.facts.data.loops import LoopKind
from lightlint.facts.lightning.hooks import STEPS

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

TENSORS = re.compile(
    r"x[b\d]?|y[b\d]?|(?:img|image|label|target|frame|pixel|audio|wave|waveform|mask|feature|signal)s?|pixel_values",
    re.I,
)
"""What tensors are called."""
_JOINING = {"torch.cat", "torch.stack", "torch.matmul"}
_VALUES = {"items": (1,), "values": ()}  # where in what a loop draws the value of a dict is
_DEPTH = 3


class Drawn:
    """The tensors that names of one file stand for."""

    def __init__(self, facts: FileFacts) -> None:
        self._facts = facts
        self._names = facts.names
        self._batches = Batches(facts)

    def is_tensor(self, name: cst.Name) -> bool:
        """Whether a name surely is a tensor: made by torch, or an item of a loader's batch."""
        found = self._names.bindings.lookup(name)
        return bool(found) and all(map(self._is_bound_to_tensor, found))

    def is_promised(self, name: cst.Name) -> bool:
        """Whether a name is an item of a batch in a loop over it, or an argument that is annotated as a tensor."""
        found = self._facts.reaching.bindings(name)
        return bool(found) and all(
            self._batches.is_promised(each) if each.kind is Kind.PARAMETER else self._batches.draws_item(each)
            for each in found
        )

    def is_read_besides(self, tensor: cst.BaseExpression, statement: cst.CSTNode) -> bool:
        """Whether what such an item lies in, or such an argument itself, is read by more than what drops it."""
        return self._batches.is_read_besides(tensor, statement)

    def _is_bound_to_tensor(self, binding: Binding) -> bool:
        if binding.kind is Kind.LOOP:
            named = not binding.path and self._are_tensors(binding.value)
            return named or self._is_item(binding, binding.name)
        if binding.kind is Kind.ASSIGN and binding.path and isinstance(binding.value, cst.Name):
            drawn = self._names.bindings.lookup(binding.value)  # `x, y = batch`
            part = replace(drawn[0], path=(*drawn[0].path, *binding.path)) if len(drawn) == 1 else None
            return part is not None and self._is_item(part, binding.name)
        if binding.kind is not Kind.ASSIGN:
            return False
        joined = not binding.path and (self._names.call(binding.value) or "") in _JOINING
        return joined or self._facts.tensors.is_made_here(binding.value, binding.path)

    def _is_item(self, drawn: Binding, name: str) -> bool:
        """Whether a loop draws an item of a loader's batch, which it or `enumerate` counts: one as torch collates them, or that
        is called as tensors are, for a collation of the program's own may make objects that move in place."""
        if drawn.kind is not Kind.LOOP or drawn.value is None:
            return False
        source, path = drawn.value, drawn.path
        if self._names.call(source) == "builtins.enumerate" and isinstance(source, cst.Call) and path[:1] == (1,):
            source, path = source.args[0].value, path[1:]
        plain = TENSORS.fullmatch(name) is not None or self._batches.collates(source)
        return bool(path) and plain and self._facts.values.is_loader(source)

    def _are_tensors(self, display: cst.CSTNode | None) -> bool:
        """Whether a tuple or list names tensors only."""
        items = [each.value for each in display.elements] if isinstance(display, (cst.Tuple, cst.List)) else []
        return bool(items) and all(isinstance(each, cst.Name) and self.is_tensor(each) for each in items)

    def draws_tensors(self, drawn: Binding) -> bool:
        """Whether a loop's variable surely is a tensor each time: one of several named ones, or a value of a batch."""
        if (not drawn.path and self._are_tensors(drawn.value)) or self._batches.draws_item(drawn):
            return True
        batch = self.dict_of(drawn)
        return batch is not None and self._are_batches(batch)

    def dict_of(self, drawn: Binding) -> cst.Name | None:
        """`batch` of a loop's variable that is a value of `batch.items()` or `batch.values()`."""
        func = drawn.value.func if isinstance(drawn.value, cst.Call) and not drawn.value.args else None
        if not isinstance(func, cst.Attribute) or not isinstance(func.value, cst.Name):
            return None
        return func.value if _VALUES.get(func.attr.value) == drawn.path else None

    def _are_batches(self, name: cst.BaseExpression | None, depth: int = 0) -> bool:
        found = self._facts.reaching.bindings(name) if isinstance(name, cst.Name) else []
        return len(found) == 1 and self._is_batch(found[0], depth)

    def _is_batch(self, binding: Binding, depth: int) -> bool:
        """Whether a name is a whole batch: what a batch loop draws, or the one a step or a helper is given."""
        if binding.kind is Kind.PARAMETER:
            function = binding.scope if isinstance(binding.scope, cst.FunctionDef) else None
            hook = self._facts.hooks.of(function) if function is not None else None
            if hook is not None or function is None or depth > _DEPTH:
                return hook is not None and hook.name in STEPS and binding.name == "batch"
            given = self._batches.given(binding, function)
            return bool(given) and all(self._are_batches(each, depth + 1) for each in given)
        counted = self._names.call(binding.value) == "builtins.enumerate"
        around = self.loop_of(binding)
        whole = binding.kind is Kind.LOOP and binding.path == ((1,) if counted else ())
        return whole and around is not None and self._facts.loops.kind(around) is LoopKind.BATCH

    def loop_of(self, binding: Binding) -> cst.For | None:
        """The loop that binds a name."""
        above = self._facts.tree.ancestors(binding.site)
        return next((each for each in above if isinstance(each, cst.For) and each.iter is binding.value), None)
