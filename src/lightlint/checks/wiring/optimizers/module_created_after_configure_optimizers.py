from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import AttributeSet, Configured, OptimizerMade
from lightlint.values.training import Module, Tensor

_LATE = {
    "on_train_start", "on_train_epoch_start", "on_train_batch_start", "training_step", "on_train_batch_end",
    "on_train_epoch_end", "on_validation_start", "on_validation_epoch_start", "validation_step",
}  # fmt: skip
_LATE_SINCE_2 = {"on_fit_start"}

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class ModuleCreatedAfterConfigureOptimizers(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        late = _LATE if self.facts.lightning.may_be_below("2.0") else _LATE | _LATE_SINCE_2
        copied = {event.site for event in entry.calls.get("copy.deepcopy", ())}
        for path in entry.paths:
            configured = {event.module.number: event.time for event in path.of(Configured)}
            given = {id(each) for event in path.of(OptimizerMade) for each in event.optimizer.parameters}
            for event in path.of(AttributeSet):
                made, since = event.value, configured.get(getattr(event.object, "number", 0))
                if since is None or event.where.hook not in late or event.before is not None:
                    continue
                if not isinstance(made, (Module, Tensor)) or made.made <= since or made.site in copied:
                    continue
                own = made.parameters() if isinstance(made, Module) else [made] if made.parameter else []
                if any(each.requires_grad and not each.escaped and id(each) not in given for each in own):
                    kind = made.name if isinstance(made, Module) else "Parameter"
                    late_part = f"`self.{event.name}` gets its `{kind}` after the optimizer got its parameters"
                    yield Fault.of(event, f"{late_part}: it is never trained")
