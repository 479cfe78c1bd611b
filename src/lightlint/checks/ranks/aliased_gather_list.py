from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Collective
from lightlint.facts.bindings import Kind
from lightlint.fixes.edits import replace
from lightlint.values.core import Sequence
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_OUTPUTS = {  # where the list that takes one tensor of each rank is given
    "torch.distributed.all_gather": ("tensor_list", 0),
    "torch.distributed.gather": ("gather_list", 1),
    "torch.distributed.all_to_all": ("output_tensor_list", 0),
}


class AliasedGatherList(Check):
    def visit_Call(self, call: cst.Call) -> None:
        name = self.names.call(call)
        given = self.names.argument(call, *_OUTPUTS[name]) if name in _OUTPUTS else None
        repeated = self._repeated(given.value) if given is not None else None
        if repeated is None or name is None:
            return
        self.report(
            repeated,
            f"one tensor in every place of the list: after `{name.rpartition('.')[2]}` all hold the last rank's values",
            repair=self._repair(repeated),
        )

    def _repeated(self, value: cst.BaseExpression) -> cst.BinaryOperation | None:
        """The `[tensor] * n` that a list is made of."""
        if isinstance(value, cst.Name):
            found = self.names.bindings.lookup(value)
            only = found[0].value if len(found) == 1 and found[0].kind is Kind.ASSIGN and not found[0].path else None
            return self._repeated(only) if isinstance(only, cst.BinaryOperation) else None
        if not isinstance(value, cst.BinaryOperation) or not isinstance(value.operator, cst.Multiply):
            return None
        lists = [side for side in (value.left, value.right) if isinstance(side, cst.List)]
        if len(lists) != 1 or len(lists[0].elements) != 1:
            return None
        item = lists[0].elements[0].value
        return value if isinstance(item, (cst.Call, cst.Name)) and self.names.constant(item) is not None else None

    def _repair(self, repeated: cst.BinaryOperation) -> Repair | None:
        left, right = repeated.left, repeated.right
        held, count = (left, right) if isinstance(left, cst.List) else (right, left)
        if not isinstance(held, cst.List) or not isinstance(held.elements[0].value, cst.Call):
            return None
        item, times = self.code.text_of(held.elements[0].value), self.code.text_of(count)
        text = f"[{item} for _ in range({times})]"
        return Repair("make a tensor for each rank", replace(self.code, repeated, text))

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Lists for one tensor of each rank in which one tensor stands in every place."""
        for event in entry.of(Collective):
            place = _OUTPUTS.get(f"torch.distributed.{event.name.rpartition('.')[2]}")
            given = event.given.get(place[1], place[0]) if event.given is not None and place is not None else None
            if isinstance(given, Sequence) and given.repeated and given.items and isinstance(given.items[0], Tensor):
                name = event.name.rpartition(".")[2]
                message = f"one tensor in every place of the list: after `{name}` all hold the last rank's values"
                yield Fault(given.repeated, message, None, (event.site,))
