from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Configured
from lightlint.facts.lightning.configured import Part
from lightlint.fixes.draft import join
from lightlint.fixes.edits import wrap
from lightlint.values.core import Mapping, Sequence
from lightlint.values.training import Optimizer, Schedule

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Value


_PAIRS = (
    "`configure_optimizers` returns optimizers and schedulers in one tuple",
    "`configure_optimizers` returns a tuple of optimizers and lists",
)


class ConfigureOptimizersReturnShape(Check):
    def stands(self) -> bool:
        return not self.facts.configured.is_free

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        for event in entry.of(Configured):
            returned = event.returned
            if isinstance(returned, Schedule) and event.returned_at is not None:
                message = "`configure_optimizers` returns a scheduler without its optimizer: Lightning raises"
                yield Fault(event.returned_at, message)
            for each in event.mappings():
                if each.items and "optimizer" not in each.items and not each.more and each.site is not None:
                    yield Fault(
                        each.site, "`configure_optimizers` returns a dict without `optimizer`: Lightning raises"
                    )
            items = returned.items if isinstance(returned, Sequence) and not returned.more else []
            mixed = {_part(each) for each in items}
            paired = len(items) == 2 and isinstance(items[0], Sequence)
            if paired or None in mixed or len(mixed) < 2 or not isinstance(returned, Sequence) or not event.returned_at:
                continue
            if mixed == {Part.OPTIMIZER, Part.SCHEDULER}:
                message = f"returns optimizers and schedulers in one {returned.kind}: Lightning raises"
            else:
                message = f"returns a {returned.kind} of {_listed(tuple(map(_known_part, items)))}: Lightning raises"
            yield Fault(event.returned_at, f"`configure_optimizers` {message}")

    def repair(self, node: cst.CSTNode, fault: Fault) -> Repair | None:
        """Two lists for a pair that is written as such."""
        pair = node.value if isinstance(node, cst.Return) else node
        if not isinstance(pair, cst.Tuple) or len(pair.elements) != 2 or not fault.message.startswith(_PAIRS):
            return None
        schedule = pair.elements[1].value
        if any(self.facts.configured.is_plateau(each) for each in self.values.origins(schedule)):
            return None  # without a monitor the two lists raise as well
        first, second = (wrap(self.code, each.value, "[", "]") for each in pair.elements)
        draft = first if fault.message.startswith(_PAIRS[1]) else join(first, second)
        return Repair("return a list of optimizers and a list of schedulers", draft)


def _listed(parts: tuple[Part, ...]) -> str:
    return " and ".join(f"{part}s" for part in dict.fromkeys(parts))


def _part(value: Value) -> Part | None:
    """What a returned value is, None for what is unknown."""
    kinds = ((Optimizer, Part.OPTIMIZER), (Schedule, Part.SCHEDULER), (Mapping, Part.DICT), (Sequence, Part.LIST))
    return next((part for kind, part in kinds if isinstance(value, kind)), None)


def _known_part(value: Value) -> Part:
    return _part(value) or Part.UNKNOWN
