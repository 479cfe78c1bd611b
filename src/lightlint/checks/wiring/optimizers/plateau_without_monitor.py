from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Configured
from lightlint.fixes.draft import join
from lightlint.fixes.drafts.entries import insert_entry, remove_entry

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Site


_ASKED_SINCE = "0.10"  # before, it followed `val_loss`


class PlateauWithoutMonitor(Check):
    def stands(self) -> bool:
        return not self.facts.configured.is_free and self.facts.lightning.may_be_at_least(_ASKED_SINCE)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        for event in entry.of(Configured):
            for each in event.schedules if event.automatic else ():
                holder = each.holder
                if each.schedule.site is None or not each.follows_nothing:
                    continue
                misplaced = each.config is not None and each.beside is not None and "monitor" in each.beside.items
                reason = (
                    "the `monitor` beside the optimizer does not reach it" if misplaced else "no `monitor` goes with it"
                )
                message = f"`ReduceLROnPlateau` has no metric to follow: {reason}, Lightning raises"
                key = "scheduler" if each.config is not None else "lr_scheduler"
                made = holder.places().get(key) if holder is not None else None
                yield Fault(
                    made or _place(event, each.schedule.site), message, also=(each.schedule.site,), argument=key
                )

    def repair(self, node: cst.CSTNode, fault: Fault) -> Repair | None:
        """Move the `monitor` beside the optimizer into the dict of the scheduler, where both are written in one place."""
        above = self.tree.parent(node)
        beside = self.tree.parent(above) if isinstance(above, cst.DictElement) else None
        if not isinstance(node, cst.Dict) or not isinstance(beside, cst.Dict):
            return None
        monitor = self.entry_of(beside, "monitor")
        if not isinstance(monitor, cst.DictElement) or self.entry_of(node, "monitor") is not None:
            return None
        text = f"{self.code.text_of(monitor.key)}: {self.code.text_of(monitor.value)}"
        draft = join(insert_entry(self.code, node, text), remove_entry(self.code, beside, monitor.key))
        return Repair("move `monitor` into the dict of the scheduler", draft)


def _place(event: Configured, made: Site) -> Site:
    """Where a schedule lacks what belongs to it: where it is made, unless another file makes it for whoever asks."""
    returned = event.returned_at
    return returned if returned is not None and returned[0] != made[0] else made
