from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Configured
from lightlint.explore.queries import configured_at
from lightlint.facts.configured import Part, Returned
from lightlint.fixes.draft import join
from lightlint.fixes.edits import wrap
from lightlint.values.core import Mapping, Sequence
from lightlint.values.training import Optimizer, Schedule

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Site, Value


class ConfigureOptimizersReturnShape(Check):
    def stands(self) -> bool:
        return not self.facts.configured.is_free

    def visit_Module(self, module: cst.Module) -> None:
        seen: set[cst.CSTNode] = set()
        for _, method in self.facts.configured.methods:
            for returned in self.facts.configured.of(method):
                message = self._message(returned)
                if message and returned.value not in seen:
                    seen.add(returned.value)
                    self.report(returned.statement, message, repair=self._repair(returned))

    def _message(self, returned: Returned) -> str:
        """What Lightning raises on; empty for a shape it takes or cannot be told."""
        parts = returned.parts
        if returned.part is Part.SCHEDULER:
            return "`configure_optimizers` returns a scheduler without its optimizer: Lightning raises"
        if any(each.values and each.lacks("optimizer") for each in returned.dicts):
            return "`configure_optimizers` returns a dict without `optimizer`: Lightning raises"
        if len(parts) == 2 and parts[0] is Part.LIST:
            return ""
        mixed = set(parts)
        if not parts or Part.UNKNOWN in mixed or mixed in ({Part.OPTIMIZER}, {Part.DICT}):
            return ""
        if Part.SCHEDULER in mixed and Part.OPTIMIZER in mixed:
            return f"`configure_optimizers` returns optimizers and schedulers in one {returned.part}: Lightning raises"
        return f"`configure_optimizers` returns a {returned.part} of {_listed(parts)}: Lightning raises"

    def _repair(self, returned: Returned) -> Repair | None:
        """Two lists for a pair that is written as such."""
        value = returned.value
        fits = returned.parts[:1] == (Part.OPTIMIZER,) and returned.parts[1:] in {(Part.SCHEDULER,), (Part.LIST,)}
        if not isinstance(value, cst.Tuple) or not fits:
            return None
        origins = self.values.origins(value.elements[1].value)
        if any(self.facts.configured.is_plateau(each) for each in origins):
            return None  # without a monitor the two lists raise as well
        first, second = (wrap(self.code, each.value, "[", "]") for each in value.elements)
        draft = join(first, second) if returned.parts[1] is Part.SCHEDULER else first
        return Repair("return a list of optimizers and a list of schedulers", draft)

    def clears(self, entry: Entry) -> Iterator[Site]:
        return iter(()) if any(self.rehearse(entry)) else configured_at(entry)

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


def _listed(parts: tuple[Part, ...]) -> str:
    return " and ".join(f"{part}s" for part in dict.fromkeys(parts))


def _part(value: Value) -> Part | None:
    """What a returned value is, None for what is unknown."""
    kinds = ((Optimizer, Part.OPTIMIZER), (Schedule, Part.SCHEDULER), (Mapping, Part.DICT), (Sequence, Part.LIST))
    return next((part for kind, part in kinds if isinstance(value, kind)), None)


def _known_part(value: Value) -> Part:
    return _part(value) or Part.UNKNOWN
