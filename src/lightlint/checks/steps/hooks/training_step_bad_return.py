from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import StepReturned
from lightlint.explore.questions.queries import in_sight, sure
from lightlint.values.core import Constant, Mapping, Sequence, Unknown, Value
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class TrainingStepBadReturn(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """What `training_step` gave, where it surely is what Lightning refuses."""
        for event in sure(entry, StepReturned, lambda each: each.automatic and bool(_refused(each.result))):
            if isinstance(event.result, Constant) and not _is_all_seen(entry):
                continue  # a sum that begins with 0 may grow behind a test that no rehearsal has turned
            if in_sight([event.module]) and not self.facts.optimization.is_refined(event.module.name):
                yield Fault.at(event, f"`training_step` returns {_refused(event.result)}")


def _is_all_seen(entry: Entry) -> bool:
    """Whether the rehearsals took both ways from each test that any of them came to."""
    ways = {(test, outcome) for path in entry.paths for test, outcome in path.machine.asked.items()}
    return all((test, not outcome) in ways for test, outcome in ways)


def _refused(value: Value) -> str:
    """What a result is, and what becomes of it; "" for one that Lightning may take."""
    raises = ": Lightning takes a tensor, a dict or None and raises"
    if isinstance(value, Sequence):
        return f"a {value.kind}{raises}" if value.kind in ("tuple", "list") else ""
    if isinstance(value, Constant) and value.value is not None:
        return f"a {'text' if isinstance(value.value, str) else 'number'}{raises}"
    if isinstance(value, Unknown) and isinstance(value.key, tuple) and value.key[:1] == ("item",) and value.plain:
        return f"a number{raises}"
    if not isinstance(value, Mapping):
        return ""
    loss = value.items.get("loss")
    if loss is None:
        return 'a dict without "loss": Lightning raises' if value.items and not value.more and not value.escaped else ""
    cut = loss.cuts and not loss.escaped and not (isinstance(loss, Tensor) and loss.parameters)
    return "a loss without its graph: the backward pass raises" if cut else ""
