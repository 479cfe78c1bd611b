from __future__ import annotations

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.bindings import Kind
from lightlint.facts.processes import PROCESS_GROUP
from lightlint.facts.rank_tests import COLLECTIVES
from lightlint.facts.tensors import FACTORIES
from lightlint.finding import Applicability
from lightlint.fixes.edits import insert_argument

_ELSEWHERE = {"torch.set_default_device", "torch.set_default_tensor_type"}
_ROOM = "torch.distributed."
_FILLED = {f"{_ROOM}all_gather": ("tensor_list", 0), f"{_ROOM}gather": ("gather_list", 1)}
_FILLED |= {f"{_ROOM}all_gather_into_tensor": ("output_tensor", 0)}
_OBJECTS = {"torch.distributed.barrier"}


class NcclCpuTensor(Check):
    def visit_Call(self, call: cst.Call) -> None:
        name = self.names.call(call) or ""
        if name not in COLLECTIVES - _OBJECTS or "object" in name or self.names.argument(call, "group") is not None:
            return
        place = 1 if name.endswith(("all_gather", "reduce_scatter", "all_to_all", "_into_tensor", "_tensor")) else 0
        exchanged = self.names.argument(call, "tensor", place)
        filled = self.names.argument(call, *_FILLED[name]) if name in _FILLED else None
        if exchanged is not None and self._is_on_cpu(exchanged.value):
            given, made = exchanged, exchanged.value
        elif filled is not None and (items := self._items_on_cpu(filled.value)):
            given, made = filled, items[0]
        else:
            return
        if self._is_nccl():
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
            return [only.elt] if self._is_made_on_cpu(only.elt) else []
        items = [each.value for each in only.elements] if isinstance(only, cst.List) else []
        return items if len(items) == 1 and self._is_made_on_cpu(items[0]) else []

    def _is_on_cpu(self, value: cst.BaseExpression) -> bool:
        if isinstance(value, cst.Name):
            found = self.names.bindings.lookup(value)
            only = found[0] if len(found) == 1 and found[0].kind is Kind.ASSIGN and not found[0].path else None
            value = only.value if only is not None and only.value is not None else value
        return self._is_made_on_cpu(value)

    def _is_made_on_cpu(self, value: cst.BaseExpression) -> bool:
        return self.names.call(value) in FACTORIES - {"torch.as_tensor"} and not self._has_device(value)

    def _has_device(self, value: cst.CSTNode) -> bool:
        return (
            not isinstance(value, cst.Call)
            or self.names.argument(value, "device") is not None
            or self.names.has_star(value)
        )

    def _is_nccl(self) -> bool:
        """Whether every process group of this file is made with nccl, and nothing makes tensors on another device."""
        calls = self.tree.all(cst.Call)
        groups = [self.names.argument(call, "backend", 0) for call in calls if self.names.call(call) == PROCESS_GROUP]
        named = [self.names.constant(each.value) == "nccl" for each in groups if each is not None]
        return bool(groups) and len(named) == len(groups) and all(named) and not any(
            self.names.call(call) in _ELSEWHERE for call in calls
        )  # fmt: skip

    def _repair(self, value: cst.BaseExpression) -> Repair | None:
        found = self.names.bindings.lookup(value)[0].value if isinstance(value, cst.Name) else value
        if not isinstance(found, cst.Call) or self.names.call(found) in {"torch.from_numpy", "torch.Tensor"}:
            return None
        draft = insert_argument(self.code, found, 'device="cuda"')
        return Repair("make it on the GPU", draft, Applicability.UNSAFE)
