from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events.huggingface import Labelled, TrainerRan
from lightlint.facts.releases.hugging_face import tier_since
from lightlint.frameworks.huggingface.values import base_of, name_of_collator, replaces
from lightlint.values.core import Library, Sequence, Unknown, is_constant
from lightlint.values.training import Instance, Tensor

if TYPE_CHECKING:
    from collections.abc import Hashable

    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Value
    from lightlint.values.training import Module

_PAIRS = re.compile(r"For(?:ConditionalGeneration|Seq2SeqLM|SpeechSeq2Seq)$|EncoderDecoderModel$")
_SHIFTED = "4.12"  # before, the decoder of an EncoderDecoderModel moved the labels itself
_MESSAGE = (
    "the decoder is shown the labels themselves, none of them moved: each place sees the token that it is to predict"
)


class DecoderShownLabels(Check):
    users_with = ("TrainingArguments",)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Inputs of a decoder that are the labels, not moved by one place."""
        for event in entry.of(Labelled):
            given = event.given.keywords
            if self._is_pair(event.model) and _is_same(given.get("decoder_input_ids"), given["labels"]):
                yield Fault.at(event, _MESSAGE)
        for ran in entry.of(TrainerRan):
            model, row = base_of(ran.model), ran.row
            own = replaces(ran.trainer, "compute_loss", "training_step")
            if row is None or model is None or own or not self._is_pair(model) or _makes_inputs(ran.trainer):
                continue
            site = row.places().get("decoder_input_ids")
            if site is not None and _is_same(row.items.get("decoder_input_ids"), row.items.get("labels")):
                yield Fault(site, _MESSAGE, argument="decoder_input_ids")

    def _is_pair(self, model: Module) -> bool:
        """Whether a model compares each output with the label at its place."""
        name, cls = model.unwrapped().name, model.unwrapped().cls
        if not isinstance(cls, Library) or not cls.path.startswith("transformers.") or not _PAIRS.search(name):
            return False
        return not name.endswith("EncoderDecoderModel") or tier_since(self.facts, "transformers", _SHIFTED) is not None


def _makes_inputs(trainer: Instance) -> bool:
    """Whether a collator makes the inputs of the decoder anew, or may."""
    collator = trainer.argument("data_collator", 2)
    if collator is None or is_constant(collator, None):
        return False
    named = name_of_collator(collator)
    alone = isinstance(collator, Instance) and not collator.open_arguments and collator.argument("model", 1) is None
    return not (
        named in ("default_data_collator", "DefaultDataCollator") or (named == "DataCollatorForSeq2Seq" and alone)
    )


def _is_same(shown: Value | None, labels: Value | None) -> bool:
    """Whether two values are the same tokens, from the same place on, but for those that were left out of the labels."""
    first, second = _origin(shown), _origin(labels)
    return first is not None and first == second


def _origin(value: Value | None, depth: int = 0) -> Hashable:
    """What tokens are moves, copies and views of; None where it is not known, and where a part was cut out."""
    while isinstance(value, Tensor):
        before = value.made_of
        if value.cut_from is not None:
            return None
        if before is None:
            return value.key
        value = before
    if value is None or value.cut_from is not None:
        return None
    if isinstance(value, Sequence):
        held = {_origin(each, depth + 1) for each in value.items if not is_constant(each, -100)} if depth < 3 else set()
        return held.pop() if len(held) == 1 else None
    return value.key if isinstance(value, Unknown) else None
