from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Logged
from lightlint.values.core import Constant, text_of

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

# what Lightning compares, with the defaults that no hook changes; `on_step` and `on_epoch` have defaults by hook
_DEFAULTS = {"prog_bar": False, "logger": True, "reduce_fx": "mean", "enable_graph": False, "add_dataloader_idx": True}
_BY_HOOK = ("on_step", "on_epoch")


class LogTwiceConflicting(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        for path in entry.paths:
            seen: dict[tuple[int, str, str], list[Logged]] = defaultdict(list)
            for event in path.of(Logged):
                key = text_of(event.name)
                if key is None or not event.where.hook:
                    continue
                same = seen[event.module.number, event.where.hook, key]
                at_once = (each for each in same if each.where.same_turn(event.where))
                different = next((name for each in at_once if (name := _differing(each, event))), "")
                if different:
                    yield Fault.of(event, f"`{key}` is logged before with another `{different}`: Lightning raises")
                same.append(event)


def _differing(first: Logged, second: Logged) -> str:
    """The setting in which two calls surely differ, empty if they may be alike."""
    if first.open_keywords or second.open_keywords:
        return ""
    for name in (*_DEFAULTS, *_BY_HOOK):
        given = [event.keywords.get(name) for event in (first, second)]
        if any(not isinstance(each, Constant) for each in given if each is not None) or (
            name in _BY_HOOK and None in given
        ):
            continue
        one, other = (each.value if isinstance(each, Constant) else _DEFAULTS.get(name) for each in given)
        if one != other:
            return name
    return ""
