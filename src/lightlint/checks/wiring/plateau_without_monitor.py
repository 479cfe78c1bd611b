from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Configured
from lightlint.explore.queries import configured_at
from lightlint.facts.configured import Returned, Scheduler
from lightlint.facts.contents import Entries
from lightlint.facts.names import UNKNOWN
from lightlint.fixes.draft import join
from lightlint.fixes.entries import insert_entry, remove_entry
from lightlint.values.core import is_constant

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Site


class PlateauWithoutMonitor(Check):
    def stands(self) -> bool:
        return not self.facts.configured.is_free

    def visit_Module(self, module: cst.Module) -> None:
        for node, method in self.facts.configured.methods:
            if self.facts.training.automatic(node) is not True:
                continue
            seen: set[cst.CSTNode] = set()
            for returned in self.facts.configured.of(method):
                for scheduler in returned.schedulers:
                    if scheduler.written not in seen and self._is_fault(method, returned, scheduler):
                        seen.add(scheduler.written)
                        self._report(returned, scheduler)

    def _is_fault(self, method: cst.FunctionDef, returned: Returned, scheduler: Scheduler) -> bool:
        plateaus = [each for each in scheduler.origins if self.facts.configured.is_plateau(each)]
        if not plateaus or not self._lacks_monitor(scheduler, is_one_of_many=len(returned.dicts) > 1):
            return False
        # another branch may be the one that goes with the plateau scheduler
        return len(plateaus) == len(scheduler.origins) or not self._mentions_monitor(method)

    def _lacks_monitor(self, scheduler: Scheduler, is_one_of_many: bool) -> bool:
        if scheduler.config is not None:
            return "reduce_on_plateau" not in scheduler.config.values and self._has_none(scheduler.config)
        return scheduler.beside is None or is_one_of_many or self._has_none(scheduler.beside)

    def _has_none(self, entries: Entries) -> bool:
        value = self.names.constant(entries.values["monitor"]) if "monitor" in entries.values else UNKNOWN
        return entries.lacks("monitor") or value is None

    def _mentions_monitor(self, method: cst.FunctionDef) -> bool:
        strings = self.tree.within(method, cst.SimpleString)
        keywords = [arg.keyword.value for arg in self.tree.within(method, cst.Arg) if arg.keyword]
        return "monitor" in keywords or any(self.names.constant(each) == "monitor" for each in strings)

    def _report(self, returned: Returned, scheduler: Scheduler) -> None:
        misplaced = scheduler.config is not None and scheduler.beside and "monitor" in scheduler.beside.values
        reason = "the `monitor` beside the optimizer does not reach it" if misplaced else "no `monitor` goes with it"
        place = scheduler.written if scheduler.config or scheduler.beside else returned.statement
        owner = self.tree.function(scheduler.written)
        inside = owner is not None and owner is self.tree.function(returned.statement)
        self.report(
            place if inside else returned.statement,
            f"`ReduceLROnPlateau` has no metric to follow: {reason}, Lightning raises",
            repair=self._repair(scheduler) if misplaced else None,
        )

    def _repair(self, scheduler: Scheduler) -> Repair | None:
        beside, config = scheduler.beside, scheduler.config
        if beside is None or config is None:
            return None
        if not isinstance(beside.node, cst.Dict) or not isinstance(config.node, cst.Dict) or "monitor" in config.values:
            return None
        key, value = beside.keys["monitor"], beside.values["monitor"]
        text = f"{self.code.text_of(key)}: {self.code.text_of(value)}"
        draft = join(insert_entry(self.code, config.node, text), remove_entry(self.code, beside.node, key))
        return Repair("move `monitor` into the dict of the scheduler", draft)

    def clears(self, entry: Entry) -> Iterator[Site]:
        return iter(()) if any(self.rehearse(entry)) else configured_at(entry)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        for event in entry.of(Configured):
            for each in event.schedules if event.automatic else ():
                holder = each.config if each.config is not None else each.beside
                lacks = holder is None or not (
                    holder.more or "monitor" in holder.items or "reduce_on_plateau" in holder.items
                )
                lacks |= holder is not None and is_constant(holder.items.get("monitor"), None)
                if each.schedule.name != "ReduceLROnPlateau" or each.schedule.site is None or not lacks:
                    continue
                misplaced = each.config is not None and each.beside is not None and "monitor" in each.beside.items
                reason = (
                    "the `monitor` beside the optimizer does not reach it" if misplaced else "no `monitor` goes with it"
                )
                message = f"`ReduceLROnPlateau` has no metric to follow: {reason}, Lightning raises"
                made = holder.site if holder is not None else None
                yield Fault(made or each.schedule.site, message, also=(each.schedule.site,))
