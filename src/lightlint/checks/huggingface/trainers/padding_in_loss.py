from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import LossComputed
from lightlint.engine.events.huggingface import TrainerRan
from lightlint.frameworks.huggingface.trainer import TOKENS
from lightlint.values.training import Instance, Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path

_PADDING = (
    "DataCollatorForLanguageModeling",
    "DataCollatorForSeq2Seq",
    "DataCollatorWithPadding",
    "DataCollatorForTokenClassification",
)
_LOSSES = ("cross_entropy", "CrossEntropyLoss", "nll_loss", "NLLLoss")


class PaddingInLoss(Check):
    users_with = ("TrainingArguments",)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Losses over all token ids of a batch that a collator pads, the padding with them."""
        for path in entry.paths:
            for event in path.of(LossComputed):
                if _is_over_ids(event) and _pads(path, event):
                    yield Fault.at(event, "the loss counts the padding of the batch: its targets are the input ids")


def _is_over_ids(event: LossComputed) -> bool:
    target = event.target
    if event.function not in _LOSSES or event.ignores or event.reduction not in ("mean", "sum"):
        return False
    return isinstance(target, Tensor) and target.role == TOKENS


def _pads(path: Path, event: LossComputed) -> bool:
    before = [each for each in path.of(TrainerRan) if each.time < event.time]
    collator = before[-1].trainer.arguments.get("data_collator") if before else None
    return isinstance(collator, Instance) and collator.name in _PADDING and not collator.open_arguments
