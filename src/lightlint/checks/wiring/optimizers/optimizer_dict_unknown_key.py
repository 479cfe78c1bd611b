from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Configured
from lightlint.facts.lightning.configured import Part
from lightlint.facts.releases.api import lightning_api
from lightlint.finding import Applicability, Tier
from lightlint.fixes.draft import join
from lightlint.fixes.drafts.entries import insert_entry, remove_entry
from lightlint.fixes.edits import replace, wrap
from lightlint.values.training import Schedule

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_MAY_HOLD_SCHEDULER = {"scheduler", "schedulers", "lr_schedulers", "lr_scheduler_config", "lr_sched", "sched"}


class OptimizerDictUnknownKey(Check):
    def stands(self) -> bool:
        return not self.facts.configured.is_free

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        known = {*lightning_api().optimizer_keys, *(["frequency"] if self.facts.lightning.may_be_below("2.0") else [])}
        for event in entry.of(Configured):
            mappings = event.mappings() if event.automatic else []
            for each in mappings:
                unknown = {key: value for key, value in each.items.items() if key not in known}
                if "optimizer" not in each.items or each.more or each.site is None:
                    continue
                for key, value in unknown.items():
                    if key == "frequency" and len(mappings) > 1:
                        continue  # how often Lightning 1 took turns with each of several, which Lightning 2 refuses
                    place, argument = each.places().get(key, each.site), str(key)
                    start, used = f"Lightning ignores `{key}` beside `optimizer`", "lr_scheduler" in each.items
                    if key in _MAY_HOLD_SCHEDULER or isinstance(value, Schedule):
                        end = "`lr_scheduler` is what it uses" if used else "the scheduler is not used"
                        yield Fault(place, f"{start}: {end}", argument=argument)
                    elif key in lightning_api().scheduler_keys and used:
                        tier = Tier.WARNING if key == "name" else None
                        yield Fault(
                            place, f"{start}: it is a setting of the dict around the scheduler", tier, argument=argument
                        )
                    else:
                        yield Fault(place, start, Tier.WARNING, argument=argument)

    def repair(self, node: cst.CSTNode, fault: Fault) -> Repair | None:
        entry = self.entry_of(node, fault.argument)
        if not isinstance(node, cst.Dict) or not isinstance(entry, cst.DictElement):
            return None
        schedule = self.entry_of(node, "lr_scheduler")
        if schedule is not None:
            is_setting = fault.argument in lightning_api().scheduler_keys and fault.argument not in _MAY_HOLD_SCHEDULER
            return self._moved(node, entry, schedule.value) if is_setting else None
        if not isinstance(entry.key, cst.SimpleString) or fault.tier is Tier.WARNING:
            return None
        draft = replace(self.code, entry.key, f"{entry.key.quote}lr_scheduler{entry.key.quote}")
        return Repair("name the key `lr_scheduler`", draft, Applicability.UNSAFE)

    def _moved(self, node: cst.Dict, entry: cst.DictElement, schedule: cst.BaseExpression) -> Repair | None:
        """Put a setting into the dict around the scheduler, or make that dict."""
        text = f"{self.code.text_of(entry.key)}: {self.code.text_of(entry.value)}"
        if isinstance(schedule, cst.Dict):
            added = insert_entry(self.code, schedule, text)
        elif self.facts.configured.part(schedule) is Part.SCHEDULER:
            added = wrap(self.code, schedule, '{"scheduler": ', f", {text}}}")
        else:
            return None
        draft = join(added, remove_entry(self.code, node, entry.key))
        key = self.names.constant(entry.key)
        return Repair(f"move `{key}` into the dict of the scheduler", draft, Applicability.UNSAFE)
