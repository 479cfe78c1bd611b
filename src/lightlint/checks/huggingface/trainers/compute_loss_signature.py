from __future__ import annotations

import ast
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
            if not isinstance(own, Function) or (isinstance(cls, Class) and _trains_itself(cls)):
                continue
            parameters = own.node.args
            names = [each.arg for each in (*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs)]
            if parameters.kwarg is None and _GIVEN not in names:
                yield Fault(_name_of(own), f"`compute_loss` takes no `{_GIVEN}`, which the Trainer gives it", tier)


def _trains_itself(cls: Class) -> bool:
    """Whether the class calls `compute_loss` itself, as far as is known: its step is its own, or its whole loop."""
    loops = (cls.find("train"), cls.find("_inner_training_loop"))
    return cls.find("training_step") is not None or any(
        isinstance(each, Function) and not _asks_the_base(each) for each in loops
    )


def _asks_the_base(function: Function) -> bool:
    return any(isinstance(node, ast.Name) and node.id == "super" for node in ast.walk(function.node))


def _name_of(function: Function) -> tuple[str, int, int, int, int]:
    row, start = function.node.lineno, function.node.col_offset + len("def ")
    return function.file, row, start, row, start + len(function.name.encode())
