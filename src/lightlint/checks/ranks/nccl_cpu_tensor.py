from __future__ import annotations

import re

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.process_groups import is_nccl, is_on_cpu
from lightlint.facts.rank_tests import COLLECTIVES
from lightlint.facts.tensors import FACTORIES
from lightlint.finding import Applicability
from lightlint.fixes.edits import insert_argument

_WITHOUT_DEVICE = {"torch.from_numpy", "torch.Tensor", "torch.FloatTensor", "torch.LongTensor"}
_BACKEND = re.compile("backend|gloo|nccl|cpu", re.IGNORECASE)
_ROOM = "torch.distributed."
_FILLED = {f"{_ROOM}all_gather": ("tensor_list", 0), f"{_ROOM}gather": ("gather_list", 1)}
_FILLED |= {f"{_ROOM}all_gather_into_tensor": ("output_tensor", 0)}
_LATE = ("reduce", "gather", "scatter", "reduce_scatter", "reduce_scatter_tensor")  # take the group fourth, not third
_GROUP_PLACES = {f"{_ROOM}{name}": 3 for name in _LATE}
_OBJECTS = {"torch.distributed.barrier"}


class NcclCpuTensor(Check):
    def visit_Call(self, call: cst.Call) -> None:
        name = self.names.call(call) or ""
        if name not in COLLECTIVES - _OBJECTS or "object" in name or self._asks_for_backend(call):
            return
        place = 1 if name.endswith(("all_gather", "reduce_scatter", "all_to_all", "_into_tensor", "_tensor")) else 0
        exchanged = self.names.argument(call, "tensor", place)
        filled = self.names.argument(call, *_FILLED[name]) if name in _FILLED else None
        if exchanged is not None and is_on_cpu(self.facts, exchanged.value):
            given, made = exchanged, exchanged.value
        elif filled is not None and (items := self._items_on_cpu(filled.value)):
            given, made = filled, items[0]
        else:
            return
        group = self.names.argument(call, "group", _GROUP_PLACES.get(name, 2))
        if not self.names.has_star(call) and is_nccl(self.facts, group.value if group is not None else None):
            self.report(
                given,
                f"`{self.code.text_of(given.value)}` lies on the CPU, and nccl exchanges CUDA tensors only",
                repair=self._repair(made),
            )

    def _items_on_cpu(self, value: cst.BaseExpression) -> list[cst.BaseExpression]:
        """What a list that a collective fills is made of, where that lies on the CPU: `[torch.zeros(2) for _ in ranks]`."""
        (only,) = sources if len(sources := self.facts.reaching.sources(value)) == 1 else (None,)
        if isinstance(only, cst.BinaryOperation) and isinstance(only.operator, cst.Multiply):
            only = only.left
        if isinstance(only, cst.ListComp):
            return [only.elt] if is_on_cpu(self.facts, only.elt) else []
        items = [each.value for each in only.elements] if isinstance(only, cst.List) else []
        return items if len(items) == 1 and is_on_cpu(self.facts, items[0]) else []

    def _asks_for_backend(self, call: cst.Call) -> bool:
        """Whether a test on the backend lets a collective run."""
        tests = [test for test, _ in self.facts.conditions(call)]
        words = [each.value for test in tests for each in self.tree.within(test, cst.Name, cst.SimpleString)]
        return any(_BACKEND.search(each) for each in words)

    def _repair(self, value: cst.BaseExpression) -> Repair | None:
        sources = self.facts.reaching.sources(value)
        found = sources[0] if len(sources) == 1 else None
        if not isinstance(found, cst.Call) or self.names.call(found) not in FACTORIES - _WITHOUT_DEVICE:
            return None
        if self.names.argument(found, "device") is not None:
            return None
        draft = insert_argument(self.code, found, 'device="cuda"')
        return Repair("make it on the GPU", draft, Applicability.UNSAFE)
