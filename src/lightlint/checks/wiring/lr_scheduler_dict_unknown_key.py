from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Configured
from lightlint.explore.queries import configured_at
from lightlint.facts.api import lightning_api
from lightlint.facts.contents import Entries
from lightlint.finding import Applicability, Tier
from lightlint.fixes.edits import replace, replace_argument_name
from lightlint.values.core import text_of

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Site


class LrSchedulerDictUnknownKey(Check):
    def stands(self) -> bool:
        return not self.facts.configured.is_free

    def visit_Module(self, module: cst.Module) -> None:
        seen: dict[cst.CSTNode, tuple[Entries, bool]] = {}
        for node, method in self.facts.configured.methods:
            automatic = self.facts.training.automatic(node) is True
            for returned in self.facts.configured.of(method):
                seen |= {entries.node: (entries, automatic) for entries in returned.configs}
        for entries, automatic in seen.values():
            self._look_at(entries, automatic)

    def _look_at(self, entries: Entries, automatic: bool) -> None:
        known = set(lightning_api().scheduler_keys)
        if self.facts.lightning.may_be_below("2.0"):
            known.add("opt_idx")
        misnamed = False
        for key, node in entries.keys.items():
            if key in known:
                continue
            near = get_close_matches(key.lower(), sorted(known - entries.values.keys()), n=1, cutoff=0.75)
            message = f"Lightning ignores `{key}` in a scheduler's dict"
            misnamed = misnamed or near == ["scheduler"]
            if near:
                self.report(node, f"{message}: the key is `{near[0]}`", repair=self._renamed(node, key, near[0]))
            else:
                self.report(node, message, tier=Tier.WARNING)
        interval = self.names.constant(entries.values.get("interval"))
        allowed = lightning_api().scheduler_intervals
        if automatic and isinstance(interval, str) and interval not in allowed:
            self.report(
                entries.values["interval"],
                f"`interval` is {interval!r}: Lightning raises on all but 'epoch' and 'step'",
            )
        if entries.lacks("scheduler") and entries.values and not misnamed:
            self.report(entries.node, "a scheduler's dict without `scheduler`: Lightning raises")

    def _renamed(self, node: cst.CSTNode, key: str, near: str) -> Repair | None:
        if isinstance(node, cst.SimpleString):
            draft = replace(self.code, node, f"{node.quote}{near}{node.quote}")
        else:
            argument = self.tree.parent(node)
            draft = replace_argument_name(self.code, argument, near) if isinstance(argument, cst.Arg) else None
        return Repair(f"name the key `{near}`", draft, Applicability.UNSAFE)

    def clears(self, entry: Entry) -> Iterator[Site]:
        return iter(()) if any(self.rehearse(entry)) else configured_at(entry)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        known = {*lightning_api().scheduler_keys, *(["opt_idx"] if self.facts.lightning.may_be_below("2.0") else [])}
        for event in entry.of(Configured):
            for each in event.configs():
                keys = [key for key in each.items if isinstance(key, str) and key not in known]
                if each.more or each.site is None:
                    continue
                for key in keys:
                    near = get_close_matches(key.lower(), sorted(known - each.items.keys()), n=1, cutoff=0.75)
                    message = f"Lightning ignores `{key}` in a scheduler's dict"
                    yield Fault(
                        each.site,
                        f"{message}: the key is `{near[0]}`" if near else message,
                        None if near else Tier.WARNING,
                    )
                interval = text_of(each.items.get("interval"))
                if event.automatic and interval is not None and interval not in lightning_api().scheduler_intervals:
                    message = f"`interval` is {interval!r}: Lightning raises on all but 'epoch' and 'step'"
                    yield Fault(each.site, message)
                if "scheduler" not in each.items and each.items and not keys:
                    yield Fault(each.site, "a scheduler's dict without `scheduler`: Lightning raises")
