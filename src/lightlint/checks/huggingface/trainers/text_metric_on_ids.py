from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events.huggingface import TextsScored
from lightlint.values.core import IDS, text_of

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_OF_TEXTS = {
    "bleu",
    "sacrebleu",
    "google_bleu",
    "rouge",
    "meteor",
    "chrf",
    "ter",
    "wer",
    "cer",
    "bertscore",
    "bleurt",
    "comet",
}


class TextMetricOnIds(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Metrics of texts that are given token ids."""
        for event in entry.of(TextsScored):
            name = text_of(event.metric.arguments.get("path"))
            if name in _OF_TEXTS and any(each.traits & IDS for each in event.values):
                yield Fault.at(event, f"`{name}` compares texts, and is given token ids")
