from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward
from lightlint.engine.events.huggingface import EmbeddingsResized, TokensAdded, TokensRead, TrainerRan
from lightlint.finding import Tier
from lightlint.frameworks.huggingface.pretrained import RESIZED
from lightlint.frameworks.huggingface.tokenizers import ADDED
from lightlint.frameworks.huggingface.values import base_of, loaded_as, name_of
from lightlint.values.core import Mapping, Sequence, text_of
from lightlint.values.training import Instance, Module

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Value

_HAS_ROOM = re.compile(
    r"qwen|phi|olmo|deepseek|gemma|mistral|nemo|stablelm|pythia|neox|(?<!code)t5|deberta-v[23]|bloom|mpt|polyglot|\bopt-|nllb|m2m",
    re.IGNORECASE,
)
"""Models whose embeddings have more rows than their tokenizers have tokens."""
_FULL = re.compile(
    r"gpt-?2|gpt-neo-|bert|roberta|electra|xlm|xlnet|longformer|bart|pegasus|llama|smollm|falcon|starcoder|codet5|dialogpt|marian|opus-mt",
    re.IGNORECASE,
)
"""Models that have a row for each token and no more."""
_KNOWN = re.compile(
    r"</?s>|<unk>|<pad>|<mask>|<\|[a-z_]+\|>|\[(?:UNK|CLS|SEP|MASK|PAD|unused\d+)\]|<\w+_of_\w+>|[\w!?.]{1,3}|"
)
"""Tokens that many models have."""


class EmbeddingsNotResized(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Tokens that are added, and a model without rows for them that is trained on these."""
        trained = [path for path in entry.paths if _trained(path)]
        if not trained or any(True for _ in entry.of(EmbeddingsResized)):
            return
        found = [[*_without_rows(path)] for path in trained]
        if all(found):
            for tokenizer in found[0]:
                site = getattr(tokenizer.attributes[ADDED], "site", None)
                if site is not None:
                    message = "the tokens that are added have no embedding: the model is not resized"
                    yield Fault(site, message, None if _FULL.search(name_of(tokenizer) or "") else Tier.NOTE)


def _trained(path: Path) -> list[Module]:
    """The models that a Trainer trains, or that read tokens where the program trains; also as parts of its own."""
    read = [each.model for each in path.of(TokensRead)] if path.of(Backward) else []
    given = [base for each in path.of(TrainerRan) if (base := base_of(each.model)) is not None]
    whole = [each for each in given if not any(part.name == "Embedding" for part in each.modules())]
    held = [part for base in (*whole, *read) for part in base.modules() if loaded_as(part) is not None]
    return list({id(each): each for each in held}.values())


def _tokenizers(path: Path) -> list[Instance]:
    """The tokenizers that were given tokens, or that gave what a model computes its loss of."""
    found = [each.tokenizer for each in path.of(TokensAdded)]
    found += [each.ids.encoding.tokenizer for each in path.of(TokensRead) if each.ids.encoding is not None]
    return list({id(each): each for each in found if ADDED in each.attributes}.values())


def _without_rows(path: Path) -> Iterator[Instance]:
    models = _trained(path)
    for tokenizer in _tokenizers(path):
        name = name_of(tokenizer)
        mine = [each for each in models if _is_of(each, tokenizer)]
        unsure = [each for each in (*mine, tokenizer) if each.escaped or each.open_arguments]
        sized = [each for each in mine if _may_have_size(each.arguments.get("config")) or RESIZED in each.attributes]
        if not mine or unsure or sized or (name is not None and _HAS_ROOM.search(name)):
            continue
        if any(not _KNOWN.fullmatch(each) for each in _texts(tokenizer.attributes[ADDED])):
            yield tokenizer


def _may_have_size(config: Value | None) -> bool:
    """Whether a model may have been told another number of rows than the one it was saved with."""
    if config is None:
        return False
    if not isinstance(config, Instance) or config.escaped or config.open_arguments:
        return True
    return "vocab_size" in config.attributes


def _is_of(model: Module, tokenizer: Instance) -> bool:
    """Whether a model was loaded under the name that its tokenizer was loaded under."""
    names = [loaded_as(model), loaded_as(tokenizer)]
    keys = [each.key for each in names if each is not None]
    return len(keys) == len(names) and keys[0] == keys[1] is not None and not model.assumed


def _texts(given: Value | None, depth: int = 0) -> Iterator[str]:
    if isinstance(given, (Mapping, Sequence)) and depth < 4:
        for each in given.items.values() if isinstance(given, Mapping) else given.items:
            yield from _texts(each, depth + 1)
    elif (text := text_of(given)) is not None:
        yield text
