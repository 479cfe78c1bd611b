from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events.huggingface import TrainerMade
from lightlint.facts.releases.hugging_face import tier_since
from lightlint.values.core import Class, Function

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_GIVEN = "num_items_in_batch"


class ComputeLossSignature(Check):
    users_with = ("TrainingArguments",)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Overrides of `compute_loss` that do not take what the Trainer gives them since Transformers 4.46."""
        tier = tier_since(self.facts, "transformers", "4.46")
        for event in entry.of(TrainerMade) if tier is not None else ():
            cls = event.trainer.cls
            own = cls.find("compute_loss") if isinstance(cls, Class) else None
            if not isinstance(own, Function) or (isinstance(cls, Class) and cls.find("training_step") is not None):
                continue
            parameters = own.node.args
            names = [each.arg for each in (*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs)]
            if parameters.kwarg is None and _GIVEN not in names:
                yield Fault(_name_of(own), f"`compute_loss` takes no `{_GIVEN}`, which the Trainer gives it", tier)


def _name_of(function: Function) -> tuple[str, int, int, int, int]:
    row, start = function.node.lineno, function.node.col_offset + len("def ")
    return function.file, row, start, row, start + len(function.name.encode())
