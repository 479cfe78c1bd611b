from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Collective
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
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Lists for one tensor of each rank in which one tensor stands in every place."""
        for event in entry.of(Collective):
            place = _OUTPUTS.get(f"torch.distributed.{event.name.rpartition('.')[2]}")
            given = event.given.get(place[1], place[0]) if event.given is not None and place is not None else None
            if isinstance(given, Sequence) and given.repeated and given.items and isinstance(given.items[0], Tensor):
                name = event.name.rpartition(".")[2]
                message = f"one tensor in every place of the list: after `{name}` all hold the last rank's values"
                yield Fault(given.repeated, message, None, (event.site,))

    def repair(self, node: cst.CSTNode, _fault: Fault) -> Repair | None:
        if not isinstance(node, cst.BinaryOperation):
            return None
        held, count = (node.left, node.right) if isinstance(node.left, cst.List) else (node.right, node.left)
        if not isinstance(held, cst.List) or not isinstance(held.elements[0].value, cst.Call):
            return None
        item, times = self.code.text_of(held.elements[0].value), self.code.text_of(count)
        text = f"[{item} for _ in range({times})]"
        return Repair("make a tensor for each rank", replace(self.code, node, text))
