from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check
from lightlint.engine.events import Called
from lightlint.engine.events.huggingface import Merged

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Path

_USES = ("save_pretrained", "push_to_hub")


class MergedModelDropped(Check):
    def visit_Expr(self, node: cst.Expr) -> None:
        """Look at `model.merge_and_unload()` as a statement, behind which the model with its adapter is saved."""
        if self.names.method(node.value) != "merge_and_unload":
            return
        found = self.happened(node.value, Merged)
        if found and all(_is_saved(path, event) for _, path, event in found):
            self.report(
                node.value,
                "what `merge_and_unload` gives back is dropped, and the adapter is saved instead of the merged model",
            )


def _is_saved(path: Path, event: Merged) -> bool:
    later = (each for each in path.of(Called) if each.time > event.time and each.path in _USES)
    return any(each.receiver is event.model for each in later)
