from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import SampleMade
from lightlint.engine.events.huggingface import TokenCompared
from lightlint.frameworks.huggingface.values import name_of
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.training import Instance


class StartTokenTwice(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Labels of Whisper that are to lose their start token, and are asked for a token that none begins with."""
        inside = (each for sample in entry.of(SampleMade) for each in sample.events if isinstance(each, TokenCompared))
        for event in chain(entry.of(TokenCompared), inside):
            part = isinstance(event.other, Tensor) and event.other.part_of is not None
            if event.name == "bos_token_id" and part and _is_whisper(event.tokenizer):
                message = "Whisper's labels begin with `decoder_start_token_id`, never with `bos_token_id`: the start token stays, and comes twice"
                yield Fault.at(event, message)


def _is_whisper(tokenizer: Instance) -> bool:
    named = (name_of(tokenizer) or "").lower()
    return tokenizer.name.startswith("Whisper") or named.startswith(("openai/whisper-", "distil-whisper/"))
