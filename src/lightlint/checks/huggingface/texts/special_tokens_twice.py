from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events.huggingface import Encoded
from lightlint.finding import Tier
from lightlint.frameworks.huggingface.values import name_of
from lightlint.values.core import TEMPLATED, is_constant

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_BEGINS = re.compile(
    r"(^|/)((meta-)?(code)?llama-[23]|mi[sx]tral-|(code)?gemma-|(c4ai-)?command-r|deepseek-).*(chat|instruct|-it\b|command)",
    re.IGNORECASE,
)
"""Models whose tokenizers and whose templates both put a token at the beginning of a text."""
_BEGINS_NOT = re.compile(
    r"qwen|gpt|phi|smollm|pythia|olmo|falcon|stablelm|opt-|zephyr|tinyllama|hermes|dolphin|openchat", re.IGNORECASE
)
"""Models of which the tokenizer or the template puts none there."""
_OWN = {"add_bos_token", "add_eos_token", "chat_template", "bos_token"}


class SpecialTokensTwice(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Texts of a chat template that are given special tokens once more."""
        for event in entry.of(Encoded):
            encoding = event.encoding
            given, tokenizer = encoding.given, encoding.tokenizer
            if not encoding.traits & TEMPLATED or "add_special_tokens" in given or tokenizer.escaped:
                continue
            if _OWN & (tokenizer.attributes.keys() | tokenizer.arguments.keys()):
                continue
            name = name_of(tokenizer) or ""
            if is_constant(given.get("split_special_tokens"), True) or _BEGINS_NOT.search(name):
                continue
            message = "a chat template has put the special tokens into this text, and the tokenizer puts its own in front of them again"
            yield Fault.at(event, message, tier=Tier.WARNING if _BEGINS.search(name) else Tier.NOTE)
