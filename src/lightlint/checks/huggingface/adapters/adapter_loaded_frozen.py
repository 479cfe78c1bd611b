from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Backward, Forward, OptimizerMade, Stepped
from lightlint.engine.events.huggingface import AdapterAdded, TrainerRan
from lightlint.fixes.edits import insert_argument
from lightlint.values.core import Sequence, is_constant

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path


class AdapterLoadedFrozen(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Adapters that are loaded frozen, as they are by default, and trained."""
        trained = [path for path in entry.paths if [*path.of(TrainerRan), *path.of(Stepped)]]
        loading = [path for path in trained if any(event.loaded for event in path.of(AdapterAdded))]
        found = [[*_frozen(path)] for path in loading]
        if found and all(found):
            message = "the adapter is loaded frozen, and then trained: nothing of the model takes a gradient"
            yield from (Fault.at(event, message) for event in found[0])

    def repair(self, node: cst.CSTNode, _fault: Fault) -> Repair | None:
        if not isinstance(node, cst.Call) or self.names.argument(node, "is_trainable") is not None:
            return None
        if self.names.has_star(node):
            return None
        return Repair("load the adapter to be trained", insert_argument(self.code, node, "is_trainable=True"))


def _frozen(path: Path) -> Iterator[AdapterAdded]:
    trained = [each for each in path.of(TrainerRan) if each.method == "train"]
    for event in path.of(AdapterAdded):
        model = event.model
        asked = event.trainable is not None and not is_constant(event.trainable, False)
        if not event.loaded or asked or model.open_arguments or model.escaped:
            continue
        parameters = model.parameters()
        later = (each.parameters for each in path.of(Stepped) if each.time > event.time)
        stepped = (set(each) for each in later if not any(one.requires_grad for one in each))  # else it trains others
        runs = any(each.model is model for each in trained) or any(set(parameters) & each for each in stepped)
        runs = runs or _is_all_left_out(path, event)
        if runs and not any(each.requires_grad for each in parameters):
            yield event


def _is_all_left_out(path: Path, event: AdapterAdded) -> bool:
    """Whether an optimizer gets what takes a gradient, of which there is nothing, and a loss of the model goes backward."""
    made = (each.optimizer for each in path.of(OptimizerMade) if each.time > event.time)
    empty = any(
        isinstance(each.argument("params", 0), Sequence) and not (each.parameters or each.told) for each in made
    )
    runs = any(event.model in each.module.modules() for each in path.of(Forward))
    return empty and runs and bool(path.of(Backward))
