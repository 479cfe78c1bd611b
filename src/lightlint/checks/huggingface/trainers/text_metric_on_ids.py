from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events.huggingface import TextsScored
from lightlint.values.core import IDS, Sequence, text_of

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Value

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


_FUNCTIONS = (
    "sacrebleu.corpus_bleu",
    "sacrebleu.corpus_chrf",
    "sacrebleu.corpus_ter",
    "sacrebleu.sentence_bleu",
    "jiwer.wer",
    "jiwer.cer",
    "bert_score.score",
)


_DEEPEST = 3  # a list of the references of each text, and these as lists


class TextMetricOnIds(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Metrics of texts that are given token ids."""
        for event in entry.of(TextsScored):
            name = text_of(event.metric.arguments.get("path"))
            if name in _OF_TEXTS and any(map(_are_ids, event.values)):
                yield Fault.at(event, f"`{name}` compares texts, and is given token ids")
        for name in _FUNCTIONS:
            for called in entry.calls.get(name, ()):
                if any(_are_ids(each) for each in called.given.values()):
                    yield Fault.at(called, f"`{name}` compares texts, and is given token ids")


def _are_ids(value: Value, depth: int = 0) -> bool:
    """Whether a value is an array of token ids, or a list of such."""
    if isinstance(value, Sequence):
        return depth < _DEEPEST and any(_are_ids(each, depth + 1) for each in value.items)
    return bool(value.traits & IDS)
