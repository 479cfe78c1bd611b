from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events.huggingface import Generated
from lightlint.finding import Tier
from lightlint.frameworks.huggingface.trainer import TOKENS
from lightlint.frameworks.huggingface.values import name_of
from lightlint.values.core import Constant, Mapping, text_of
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Site
    from lightlint.values.training import Encoding

_DECODERS = re.compile(r"ForCausalLM$|LMHeadModel$|^AutoPeftModelForCausalLM$")
_PADS_RIGHT = re.compile(
    r"^(?!unsloth/|.*-vl)(.*)(gpt2|gpt-?neo|gpt-?j|pythia|\bopt-|qwen(?!-)|llama[-_]?3|smollm|phi-?(1|2)|falcon|starcoder|olmo|stablelm"
    r"|codegen|santacoder|dialogpt)",
    re.IGNORECASE,
)
"""Models whose tokenizers pad on the right unless told otherwise."""


class PaddedOnTheRight(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Texts of several lengths that a decoder goes on with behind the padding of the shorter ones."""
        faulty: dict[Site, tuple[Generated, Encoding, Tier]] = {}
        right: set[Site] = set()
        for event in entry.of(Generated):
            encoding = _encoding(event)
            tier = _fault(encoding) if encoding is not None and _decodes(event) else None
            if encoding is not None and tier is not None:
                faulty[event.site] = event, encoding, tier
            elif encoding is not None:
                right.add(event.site)
        for site, (event, encoding, tier) in faulty.items():
            if site not in right:
                message = "the prompts are padded on the right: the shorter ones are continued behind their padding"
                yield Fault(encoding.site, message, tier, (site, *_places(encoding)), event.where.places[1:])


def _places(encoding: Encoding) -> list[Site]:
    return [encoding.tokenizer.site] if encoding.tokenizer.site is not None else []


def _decodes(event: Generated) -> bool:
    return _DECODERS.search(event.model.unwrapped().name) is not None


def _encoding(event: Generated) -> Encoding | None:
    """The call of a tokenizer that gave the tokens which are continued."""
    given = event.given.get(0, "input_ids") or event.given.get(0, "inputs")
    if isinstance(given, Mapping):
        given = given.items.get("input_ids")
    found: Encoding | None = given.encoding if isinstance(given, Tensor) and given.role == TOKENS else None
    return found


def _fault(encoding: Encoding) -> Tier | None:
    """The tier of padding on the wrong side, None for none."""
    if encoding.pads is not True or encoding.side in ("left", None):
        return None
    if not encoding.several and not _to_length(encoding):
        return None if encoding.several is False else Tier.NOTE
    name = name_of(encoding.tokenizer) or ""
    return Tier.WARNING if encoding.side == "right" or _PADS_RIGHT.search(name) else Tier.NOTE


def _to_length(encoding: Encoding) -> bool:
    given = encoding.given.get("padding")
    return isinstance(given, Constant) and text_of(given) == "max_length"
