from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events.huggingface import TrainerRan
from lightlint.explore.questions.queries import in_sight
from lightlint.explore.questions.training_arguments import call_of
from lightlint.explore.samples import is_stream
from lightlint.frameworks.huggingface.values import replaces, setting
from lightlint.values.core import Class, number_of
from lightlint.values.training import Instance

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Value

_TRAINERS = ("Trainer", "Seq2SeqTrainer")  # those of TRL may make a table with a length of what they are given
_NAME = "max_steps"


class StreamWithoutMaxSteps(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Trainers of a data set without a length that are told no number of steps."""
        for event in entry.of(TrainerRan):
            trainer, settings = event.trainer, event.settings
            data = trainer.arguments.get("train_dataset")
            call = call_of(entry, settings)
            if settings is None or call is None or data is None or trainer.site is None:
                continue
            if not _is_plain(trainer) or not in_sight([trainer, settings, data]) or trainer.open_arguments:
                continue
            if _has_no_length(data) and _is_unset(setting(settings, _NAME)):
                message = "what it trains on has no length, and no `max_steps` says when to end: the Trainer raises"
                yield Fault(trainer.site, message, also=(event.site, call.site), argument="train_dataset")


def _is_unset(steps: Value | None) -> bool:
    """Whether the number of steps is left at -1, its default."""
    number = number_of(steps) if steps is not None else -1
    return number is not None and number <= 0


def _is_plain(trainer: Instance) -> bool:
    """Whether a Trainer of Transformers is made as the library makes it."""
    names = trainer.libraries()
    return bool(names) and names[0].rpartition(".")[2] in _TRAINERS and not replaces(trainer, "__init__")


def _has_no_length(data: Value) -> bool:
    cls = data.cls if isinstance(data, Instance) else None
    return is_stream(data) and not (isinstance(cls, Class) and cls.find("__len__") is not None)
