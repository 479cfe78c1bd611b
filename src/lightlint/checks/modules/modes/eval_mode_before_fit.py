from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Backward, FitStarted, ModeSet, Stepped
from lightlint.finding import Applicability
from lightlint.fixes.edits import insert_after, insert_before
from lightlint.frameworks.huggingface.pretrained import surely_drops

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.training import Module

# what may set the mode, or leave the model as it is, in a callback or a file that uses the module
_TOUCHES = re.compile(r"\.train\(|def train\b|requires_grad|[Ff]reez|Finetuning|get_peft_model|\.training\b")


class EvalModeBeforeFit(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Modules that come to `fit` in eval mode, which Lightning keeps from 2.2 on."""
        for path in entry.paths:
            for event in path.of(FitStarted):
                asked = any(
                    e.module is event.module and not e.training and e.time < event.time for e in path.of(ModeSet)
                )
                put_back = any(e.training and e.time > event.time for e in path.of(ModeSet))
                if asked and not put_back and not event.training and event.by_mode and not event.module.escaped:
                    yield Fault.at(event, "the module comes to `fit` in eval mode and is trained in it")
                for part in event.in_eval:
                    if part.site is not None and _is_trained(path, part, event) and not self._is_touched():
                        yield Fault(part.site, _PRETRAINED)

    def repair(self, node: cst.CSTNode, fault: Fault) -> Repair | None:
        statement, above = self.tree.statement(node), self.tree.parent(node)
        if statement is None or not isinstance(node, cst.Call):
            return None
        if fault.message != _PRETRAINED:
            model = self.names.argument(node, "model", 0)
            key = self.names.key(model.value) if model is not None else ""
            draft = insert_before(self.code, statement, f"{key}.train()")
        else:
            key = self.names.key(above.targets[0].target) if isinstance(above, cst.Assign) else ""
            draft = insert_after(self.code, statement, f"{key}.train()")
        return Repair(f"call `{key}.train()`", draft, Applicability.UNSAFE) if key else None

    def _is_touched(self) -> bool:
        """Whether something sets modes, or leaves the model as it is: in sight, or in a file that uses this one."""
        project, path = self.facts.project, self.facts.path
        users = project.users(path, "Trainer", "Fabric", "LightningCLI")
        return any(map(_TOUCHES.search, [self.facts.source.text, *(project.text(each) for each in users)]))


_PRETRAINED = "`from_pretrained` gives this in eval mode, and `fit` trains it like that, without dropout"


def _is_trained(path: Path, part: Module, fit: FitStarted) -> bool:
    """Whether a part that surely has dropout is trained by a fit in the eval mode that `from_pretrained` gave it."""
    if not surely_drops(part) or any(part in event.module.modules() for event in path.of(ModeSet)):
        return False
    reached = {each for event in path.of(Backward) if event.time > fit.time for each in event.parameters}
    stepped = {each for event in path.of(Stepped) for each in event.parameters}
    return not reached.isdisjoint(stepped.intersection(part.parameters()))
