from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Appended, CopySet, StateLoaded, Written
from lightlint.explore.questions.queries import is_held
from lightlint.finding import Applicability
from lightlint.fixes.drafts.expressions import replace

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class LearningRateSetOnCopy(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """What is written into groups of a state that no optimizer gets back."""
        for path in entry.paths:
            kept = [event.state for event in path.of(StateLoaded)] + [event.value for event in path.of(Appended)]
            kept += [event.value for event in path.of(Written) if event.value is not None]
            kept += path.machine.given_back
            for event in path.of(CopySet):
                if not event.group.escaped and not any(is_held(each, event.group) for each in kept):
                    message = "the groups of `state_dict()` are copies: what is written into them never comes to the optimizer"
                    yield Fault.at(event, message, *([event.group.site] if event.group.site is not None else []))

    def repair(self, _node: cst.CSTNode, fault: Fault) -> Repair | None:
        """The groups of the optimizer itself in the place of those of `optimizer.state_dict()`."""
        call = self.node_of(fault.also[0]) if fault.also else None
        item = self.tree.parent(call) if isinstance(call, cst.Call) else None
        func = call.func if isinstance(call, cst.Call) else None
        if not isinstance(item, cst.Subscript) or not isinstance(func, cst.Attribute) or len(item.slice) != 1:
            return None
        index = item.slice[0].slice
        if not isinstance(index, cst.Index) or self.names.constant(index.value) != "param_groups":
            return None
        name = self.code.text_of(func.value)
        draft = replace(self.code, item, f"{name}.param_groups")
        return Repair(f"change the groups of `{name}` itself", draft, Applicability.UNSAFE)
