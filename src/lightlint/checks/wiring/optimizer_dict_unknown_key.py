from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Configured
from lightlint.explore.queries import configured_at
from lightlint.facts.api import lightning_api
from lightlint.facts.configured import Part
from lightlint.facts.contents import Entries
from lightlint.finding import Applicability, Tier
from lightlint.fixes.draft import join
from lightlint.fixes.edits import replace, wrap
from lightlint.fixes.entries import insert_entry, remove_entry
from lightlint.values.training import Schedule

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Site

_MAY_HOLD_SCHEDULER = {"scheduler", "schedulers", "lr_schedulers", "lr_scheduler_config", "lr_sched", "sched"}


class OptimizerDictUnknownKey(Check):
    def stands(self) -> bool:
        return not self.facts.configured.is_free

    def visit_Module(self, module: cst.Module) -> None:
        seen: dict[cst.CSTNode, Entries] = {}
        for node, method in self.facts.configured.methods:
            if self.facts.training.automatic(node) is not False:
                seen |= {each.node: each for returned in self.facts.configured.of(method) for each in returned.dicts}
        for entries in seen.values():
            self._look_at(entries)

    def _look_at(self, entries: Entries) -> None:
        known = set(lightning_api().optimizer_keys)
        if self.facts.lightning.may_be_below("2.0"):
            known.add("frequency")
        if "optimizer" not in entries.values:
            return
        for key, value in entries.values.items():
            if key in known:
                continue
            start = f"Lightning ignores `{key}` beside `optimizer`"
            if key in _MAY_HOLD_SCHEDULER or self._is_scheduler(value):
                end = (
                    "the scheduler is not used"
                    if "lr_scheduler" not in entries.values
                    else "`lr_scheduler` is what it uses"
                )
                self.report(entries.keys[key], f"{start}: {end}", repair=self._renamed(entries, key))
            elif key in lightning_api().scheduler_keys and "lr_scheduler" in entries.values:
                message = f"{start}: it is a setting of the dict around the scheduler"
                tier = Tier.WARNING if key == "name" else None
                self.report(entries.keys[key], message, tier=tier, repair=self._moved(entries, key))
            else:
                self.report(entries.keys[key], start, tier=Tier.WARNING)

    def _is_scheduler(self, value: cst.BaseExpression) -> bool:
        return self.facts.configured.part(value) is Part.SCHEDULER

    def _renamed(self, entries: Entries, key: str) -> Repair | None:
        node = entries.keys[key]
        value = entries.values[key]
        holds = self._is_scheduler(value) or self.facts.configured.part(value) is Part.DICT
        if "lr_scheduler" in entries.values or not holds or not isinstance(node, cst.SimpleString):
            return None
        draft = replace(self.code, node, f"{node.quote}lr_scheduler{node.quote}")
        return Repair("name the key `lr_scheduler`", draft, Applicability.UNSAFE)

    def _moved(self, entries: Entries, key: str) -> Repair | None:
        """Put a setting into the dict around the scheduler, or make that dict."""
        if not isinstance(entries.node, cst.Dict):
            return None
        scheduler, node, value = entries.values["lr_scheduler"], entries.keys[key], entries.values[key]
        text = f"{self.code.text_of(node)}: {self.code.text_of(value)}"
        if isinstance(scheduler, cst.Dict):
            added = insert_entry(self.code, scheduler, text)
        elif self._is_scheduler(scheduler):
            added = wrap(self.code, scheduler, '{"scheduler": ', f", {text}}}")
        else:
            return None
        draft = join(added, remove_entry(self.code, entries.node, node))
        return Repair(f"move `{key}` into the dict of the scheduler", draft, Applicability.UNSAFE)

    def clears(self, entry: Entry) -> Iterator[Site]:
        return iter(()) if any(self.rehearse(entry)) else configured_at(entry)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        known = {*lightning_api().optimizer_keys, *(["frequency"] if self.facts.lightning.may_be_below("2.0") else [])}
        for event in entry.of(Configured):
            for each in event.mappings() if event.automatic else ():
                unknown = {key: value for key, value in each.items.items() if key not in known}
                if "optimizer" not in each.items or each.more or each.site is None:
                    continue
                for key, value in unknown.items():
                    start, used = f"Lightning ignores `{key}` beside `optimizer`", "lr_scheduler" in each.items
                    if key in _MAY_HOLD_SCHEDULER or isinstance(value, Schedule):
                        end = "`lr_scheduler` is what it uses" if used else "the scheduler is not used"
                        yield Fault(each.site, f"{start}: {end}")
                    elif key in lightning_api().scheduler_keys and used:
                        tier = Tier.WARNING if key == "name" else None
                        yield Fault(each.site, f"{start}: it is a setting of the dict around the scheduler", tier)
                    else:
                        yield Fault(each.site, start, Tier.WARNING)
