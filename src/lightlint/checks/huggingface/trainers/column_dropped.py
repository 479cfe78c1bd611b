from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events.huggingface import ColumnAsked
from lightlint.frameworks.huggingface.trainer import model_of, settings_of
from lightlint.frameworks.huggingface.values import base_of, is_own
from lightlint.values.core import Class, Library, Unknown, is_constant
from lightlint.values.training import Instance

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_OF_MODELS = re.compile(
    r"input|attention|token|position|head|decoder|encoder|pixel|label|past|output|use_|return_|cross|mask|bbox|box|start|end_"
    r"|next|mc_|global|lang|entity|visual|image|audio|speech|feature|query|spatial|task|class|num_|target|ids$"
)
"""What models call their arguments."""
_REPLACING = (
    "_set_signature_columns_if_needed",
    "_remove_unused_columns",
    "get_train_dataloader",
    "_prepare_inputs",
    "_get_collator_with_removed_columns",
)


class ColumnDropped(Check):
    users_with = ("TrainingArguments",)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Columns that a `compute_loss` asks for, and that the Trainer drops, for the model takes no such argument."""
        for event in entry.of(ColumnAsked):
            if isinstance(event.trainer, Instance) and not _OF_MODELS.search(event.name) and _drops(event.trainer):
                message = f"the Trainer drops `{event.name}`, which the model takes no argument for: there is no such key in the batch"
                yield Fault.at(event, message)


def _drops(trainer: Instance) -> bool:
    """Whether a Trainer surely hands on only those columns that its model takes."""
    settings, model = settings_of(trainer), base_of(model_of(trainer))
    cls = trainer.cls
    names = trainer.libraries()
    if settings is None or model is None or not isinstance(cls, Class) or not names:
        return False
    if not names[0].startswith("transformers.") or any(cls.find(name) is not None for name in _REPLACING):
        return False
    asked = [
        settings.arguments.get(name) or settings.attributes.get(name)
        for name in ("remove_unused_columns", "label_names")
    ]
    known = not (settings.open_arguments or settings.escaped or model.escaped or model.open_arguments)
    kept = asked[0] is not None and not is_constant(asked[0], True)
    collator = trainer.argument("data_collator", 2)
    own = collator is not None and (is_own(collator) or isinstance(collator, Unknown))
    of_library = isinstance(model.cls, Library) and model.cls.path.startswith("transformers.")
    return known and of_library and not kept and asked[1] is None and not own
