from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import AttributeRead, AttributeSet, BatchDrawn, LoaderWorked
from lightlint.engine.machine import WORKER
from lightlint.models.data.workers import data_of
from lightlint.values.core import NONE, Class, Constant, Site
from lightlint.values.training import Instance

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class PersistentWorkersStaleDataset(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Attributes of a data set that its workers read, set between two rounds through one loader that keeps them."""
        for path in entry.paths:
            for worked in path.of(LoaderWorked):
                loader, data = worked.loader, data_of(worked.loader)
                keeps = path.machine.truth(loader.arguments.get("persistent_workers", NONE)) is True
                if not keeps or not isinstance(data, Instance) or not isinstance(data.cls, Class) or data.escaped:
                    continue
                read = {e.name for e in worked.events if isinstance(e, AttributeRead) and e.object is data}
                drawn = [event.time for event in path.of(BatchDrawn) if event.loader.number == loader.number]
                for event in path.of(AttributeSet):
                    between = bool(drawn) and drawn[0] < event.time < drawn[-1] and event.where.phase != WORKER
                    if between and event.object is data and event.name in read and _is_another(event):
                        message = f"the workers keep the `{event.name}` they started with: `persistent_workers` copies the data set once"
                        yield Fault(_place(event, data.cls), message, None, (event.site,))


def _is_another(event: AttributeSet) -> bool:
    """Whether an attribute gets another value than it had."""
    before, value = event.before, event.value
    return not (isinstance(before, Constant) and isinstance(value, Constant) and before.key == value.key)


def _place(event: AttributeSet, cls: Class) -> Site:
    """Where the program changes a data set: the call of its method, where that does."""
    own = (call.site for call in event.where.calls if call.function.owner in cls.lineage())
    return next(own, event.site)
