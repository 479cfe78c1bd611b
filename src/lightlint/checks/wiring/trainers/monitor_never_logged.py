from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import FitStarted
from lightlint.explore.questions.logged import evaluated_on, is_per_loader, listed, logged, lost, monitors, spellings_of
from lightlint.finding import Applicability
from lightlint.fixes.edits import replace

if TYPE_CHECKING:
    from lightlint.explore.questions.logged import Key, Monitor
    from lightlint.explore.rehearsals import Entry

_OF_RESULTS = {"lightning.TrainResult", "lightning.EvalResult"}  # until 0.9, what is logged goes into them
_LOADER = re.compile(r"/dataloader_idx_(\d+)$")


class MonitorNeverLogged(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        reads = "callback_metrics" in self.facts.source.text or "logged_metrics" in self.facts.source.text
        if reads or self.facts.lightning.may_be_below("1.5") or not _OF_RESULTS.isdisjoint(entry.calls):
            return
        for fit in entry.of(FitStarted):
            watched = [each for each in monitors(entry, fit) if not each.key.startswith("lr-")]
            keys = logged(entry, fit) if watched else None
            for monitor in watched if keys is not None else ():
                message = _message(entry, fit, monitor, keys or [])
                if message:
                    yield Fault(monitor.site, message, of_call=True, argument="monitor")

    def repair(self, node: cst.CSTNode, fault: Fault) -> Repair | None:
        """Watch the key that is spelled most like it."""
        argument = self.entry_of(node, fault.argument)
        written = argument.value if argument is not None else None
        key, *keys = re.findall("`([^`]+)`", fault.message)[1:]
        near = get_close_matches(key, keys[1:], n=1, cutoff=0.7)
        if not isinstance(written, cst.SimpleString) or not near or ", which " in fault.message:
            return None
        quote = written.quote
        draft = replace(self.code, written, f"{quote}{near[0]}{quote}")
        return Repair(f"watch `{near[0]}`", draft, Applicability.UNSAFE)


def _message(entry: Entry, fit: FitStarted, monitor: Monitor, keys: list[Key]) -> str:
    """What is wrong with a metric that is watched, empty where nothing is."""
    start, name = f"`{monitor.watcher}` watches `{monitor.key}`", fit.module.name
    spellings = spellings_of(monitor.key)
    found = [key for key in keys if key.name in spellings]
    if not found:
        return f"{start}, and `{name}` logs {listed({key.name for key in keys})}"
    where = lost(found)
    if not where and is_per_loader(found):
        where = _by_loader(evaluated_on(entry, fit), monitor.key)
    return f"{start}, which `{name}` logs {where}" if where else ""


def _by_loader(count: int | None, key: str) -> str:
    """Under which names a key is logged for several validation loaders, if none of them is the one that is watched."""
    number = _LOADER.search(key)
    if count is None or count < 2 or (number and int(number[1]) < count):
        return ""
    plain = _LOADER.sub("", key)
    return f"as `{plain}/dataloader_idx_0` and so on for each of {count} validation loaders only"
