from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events.huggingface import TrainerRan
from lightlint.frameworks.huggingface.values import base_of
from lightlint.values.core import Class, Constant, Mapping, Sequence, text_of
from lightlint.values.training import Instance

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Site, Value

_LABELS = ("labels", "label")
_REPLACING = ("compute_loss", "get_train_dataloader", "training_step")


class IntegerMultiHotLabels(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Rows of integers as labels of a model for several labels at once."""
        for event in entry.of(TrainerRan):
            model = base_of(event.model)
            problem = text_of(model.arguments.get("problem_type")) if model is not None else None
            if event.method != "train" or problem != "multi_label_classification":
                continue
            if "compute_loss_func" in event.trainer.arguments or "data_collator" in _own_collator(event.trainer):
                continue
            if _has_own_loss(event.trainer):
                continue
            site = _integers(event.trainer.arguments.get("train_dataset"))
            if site is not None:
                yield Fault(site, "the labels are integers, and the loss of a multi-label model takes floats only")


def _has_own_loss(trainer: Instance) -> bool:
    """Whether a class of the program computes the loss, or makes the batches, itself."""
    cls = trainer.cls
    return isinstance(cls, Class) and any(cls.find(name) is not None for name in _REPLACING)


def _own_collator(trainer: Instance) -> set[str]:
    given = trainer.arguments.get("data_collator")
    known = given is None or (isinstance(given, Instance) and given.name == "DataCollatorWithPadding")
    return set() if known else {"data_collator"}


def _integers(rows: Value | None) -> Site | None:
    """Where the labels of a table were made, if they are integers."""
    row = rows.attributes.get("#row") if isinstance(rows, Instance) else None
    if not isinstance(row, Mapping):
        return None
    name = next((each for each in _LABELS if each in row.items), None)
    leaves = [*_leaves(row.items[name])] if name is not None else []
    whole = bool(leaves) and all(isinstance(each, Constant) and type(each.value) is int for each in leaves)
    return row.places().get(name) if whole else None


def _leaves(value: Value, depth: int = 0) -> Iterator[Value]:
    if isinstance(value, Sequence) and value.items and depth < 3:
        for each in value.items:
            yield from _leaves(each, depth + 1)
    else:
        yield value if depth else Sequence([])
