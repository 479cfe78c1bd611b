from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, Forward, ModeSet, Stepped
from lightlint.frameworks.huggingface.pretrained import surely_drops

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.training import Module

_MESSAGE = "`from_pretrained` gave the model in eval mode, and no `train()` follows: it is trained here without dropout"


class PretrainedLeftInEvalMode(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Loaded models with dropout that a loop trains, and whose mode nothing ever sets to training."""
        if not entry.whole and self._sets_modes():
            return  # what calls this may come to it
        put = {module for event in entry.of(ModeSet) if event.training for module in event.module.modules()}
        sites = {module.site for module in put}
        for path in entry.paths:
            told: set[Module] = set()
            for event in path.of(Forward):
                if not event.grad or event.where.phase or event.module.escaped:
                    continue
                for part in _left_in_eval(path, event):
                    if part not in told and part.site is not None and part.site not in sites:
                        told.add(part)
                        yield Fault.at(event, _MESSAGE, part.site)

    def _sets_modes(self) -> bool:
        """Whether the file puts something in training mode, called or not."""
        calls = (each for each in self.tree.all(cst.Call) if self.names.method(each) == "train")
        return any(not each.args or self.names.argument(each, "mode", 0) is not None for each in calls)


def _left_in_eval(path: Path, event: Forward) -> Iterator[Module]:
    """The loaded models among the parts of one whose forward pass is trained, in the mode in which they were loaded."""
    trained = {each for step in path.of(Stepped) for each in step.parameters}
    trained &= {each for done in path.of(Backward) for each in done.parameters} & set(event.parameters)
    modes = [each for each in path.of(ModeSet) if each.time < event.time]
    for part in event.module.modules():
        asked = any(part in each.module.modules() for each in modes)
        own = not asked and not part.training and not part.escaped and not trained.isdisjoint(part.own)
        if own and part.opaque and surely_drops(part):
            yield part
