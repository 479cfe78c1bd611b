from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events.huggingface import TrainerRan
from lightlint.frameworks.huggingface.values import base_of, problem_of, replaces
from lightlint.values.core import INTEGERS, WHOLE, Class, Constant, Sequence
from lightlint.values.training import Instance, Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Mapping, Site, Value

_LABELS = ("labels", "label")
_REPLACING = ("compute_loss", "get_train_dataloader", "training_step")


class IntegerMultiHotLabels(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Rows of integers as labels of a model for several labels at once."""
        for event in entry.of(TrainerRan):
            model = base_of(event.model)
            problem = problem_of(model) if model is not None else None
            if model is None or event.method != "train" or problem != "multi_label_classification" or event.row is None:
                continue
            if "compute_loss_func" in event.trainer.arguments or _has_other_collator(event.trainer):
                continue
            if replaces(event.trainer, *_REPLACING):
                continue
            site = _integers(event.row)
            if site is not None:
                told = "the labels are integers, and the loss of a multi-label model takes floats only"
                yield Fault(site, told, also=(model.site or event.site, event.site))  # who says what it is for


def _has_other_collator(trainer: Instance) -> bool:
    """Whether a collator of a library makes the batches that may change labels."""
    given = trainer.arguments.get("data_collator")
    return isinstance(given, Instance) and not isinstance(given.cls, Class) and given.name != "DataCollatorWithPadding"


def _integers(row: Mapping) -> Site | None:
    """Where the labels of a row were made, if they are integers."""
    name = next((each for each in _LABELS if each in row.items), None)
    return row.places().get(name) if name is not None and _are_integers(row.items[name]) else None


def _are_integers(value: Value, depth: int = 0) -> bool:
    """Whether several numbers are surely integers."""
    if isinstance(value, Sequence) and value.items and depth < 3:
        return all(_are_integers(each, depth + 1) for each in value.items)
    if isinstance(value, Tensor):
        return value.dtype == "int64"
    if isinstance(value, Constant):
        return depth > 0 and type(value.value) is int
    return bool(value.traits & INTEGERS) or (depth > 0 and bool(value.traits & WHOLE))
