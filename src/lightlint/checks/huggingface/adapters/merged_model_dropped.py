from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Called
from lightlint.engine.events.huggingface import Merged

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path

_USES = ("save_pretrained", "push_to_hub")
_MESSAGE = "what `merge_and_unload` gives back is dropped, and the adapter is saved instead of the merged model"


class MergedModelDropped(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Merges whose result nothing takes, behind which the model with its adapter is saved on each path."""
        merges = [(event, _is_saved(path, event)) for path in entry.paths for event in path.of(Merged)]
        taken = {event.site for event, saved in merges if not saved}
        for event, _ in merges:
            if event.site not in taken and self._is_dropped(event):
                yield Fault.at(event, _MESSAGE)

    def _is_dropped(self, event: Merged) -> bool:
        call = self.node_of(event.site)
        return call is not None and isinstance(self.tree.parent(call), cst.Expr)


def _is_saved(path: Path, event: Merged) -> bool:
    later = (each for each in path.of(Called) if each.time > event.time and each.path in _USES)
    return any(each.receiver is event.model for each in later)
