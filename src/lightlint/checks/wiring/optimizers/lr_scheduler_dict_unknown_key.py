from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Configured
from lightlint.facts.releases.api import lightning_api
from lightlint.finding import Applicability, Tier
from lightlint.fixes.edits import replace, replace_argument_name
from lightlint.values.core import text_of

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


_NEAR = re.compile(r"the key is `(\w+)`")


class LrSchedulerDictUnknownKey(Check):
    def stands(self) -> bool:
        return not self.facts.configured.is_free

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
                        each.places().get(key, each.site),
                        f"{message}: the key is `{near[0]}`" if near else message,
                        None if near else Tier.WARNING,
                        argument=key,
                    )
                interval = text_of(each.items.get("interval"))
                if event.automatic and interval is not None and interval not in lightning_api().scheduler_intervals:
                    message = f"`interval` is {interval!r}: Lightning raises on all but 'epoch' and 'step'"
                    yield Fault(each.places().get("interval", each.site), message, argument="interval")
                if "scheduler" not in each.items and each.items and not keys:
                    yield Fault(each.site, "a scheduler's dict without `scheduler`: Lightning raises")

    def repair(self, node: cst.CSTNode, fault: Fault) -> Repair | None:
        entry, near = self.entry_of(node, fault.argument), _NEAR.search(fault.message)
        if entry is None or near is None:
            return None
        if isinstance(entry, cst.Arg):
            draft = replace_argument_name(self.code, entry, near[1])
        elif isinstance(entry.key, cst.SimpleString):
            draft = replace(self.code, entry.key, f"{entry.key.quote}{near[1]}{entry.key.quote}")
        else:
            return None
        return Repair(f"name the key `{near[1]}`", draft, Applicability.UNSAFE)
