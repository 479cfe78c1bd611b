from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events.huggingface import AdapterAdded, EmbeddingsResized, TokensAdded, TrainerRan
from lightlint.values.core import Constant, Mapping, Sequence, is_constant, text_of
from lightlint.values.training import Instance

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Value

_KEEPING = ("modules_to_save", "trainable_token_indices", "layers_to_transform", "parent_module")
_EMBEDDINGS = ("emb", "wte", "lm_head", "shared", "tokens")
_LOW_RANK = ("LoraConfig", "AdaLoraConfig", "LoHaConfig", "LoKrConfig", "IA3Config", "VeraConfig")


class NewEmbeddingsFrozen(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Adapters that leave the embeddings frozen to which rows for new tokens were added."""
        found = [[*_frozen(path)] for path in entry.paths if _resizes(path)]
        if found and all(found):
            for event in found[0]:
                site = event.config.site if isinstance(event.config, Instance) else None
                message = "new tokens were added, and the adapter leaves the embeddings frozen: their rows stay as they were made"
                yield Fault(site or event.site, message, None, (event.site,))


def _resizes(path: Path) -> bool:
    """Whether embeddings are given other sizes, and a Trainer trains."""
    return bool(path.of(EmbeddingsResized)) and bool(path.of(TrainerRan))


def _frozen(path: Path) -> Iterator[AdapterAdded]:
    trained = [event.model for event in path.of(TrainerRan) if event.method == "train"]
    resized = [*_for_words(path)]
    for event in path.of(AdapterAdded):
        base = event.base.unwrapped()
        in_time = any(each.model.unwrapped() is base and each.time < event.time for each in resized)
        frozen = not any(each.requires_grad for each in base.own)
        if in_time and frozen and _leaves_embeddings(event.config) and any(each is event.model for each in trained):
            yield event


def _for_words(path: Path) -> Iterator[EmbeddingsResized]:
    """Where embeddings were given rows for tokens that were added right before."""
    last = 0
    for event in path.of(EmbeddingsResized):
        added = [each for each in path.of(TokensAdded) if last < each.time < event.time]
        last = event.time
        if any(_adds_words(each) for each in added):
            yield event


def _adds_words(event: TokensAdded) -> bool:
    """Whether tokens are added that texts are made of: the row of padding needs no training."""
    first = event.given.get(0, "new_tokens" if event.method == "add_tokens" else "special_tokens_dict")
    if event.method == "add_tokens":
        return isinstance(first, (Sequence, Constant)) and not (isinstance(first, Sequence) and not first.items)
    return isinstance(first, Mapping) and any(key != "pad_token" for key in first.items)


def _leaves_embeddings(config: Value | None) -> bool:
    if not isinstance(config, Instance) or config.name not in _LOW_RANK or config.open_arguments or config.escaped:
        return False
    given = {**config.arguments, **config.attributes}
    if any(not is_constant(given[name], None) for name in _KEEPING if name in given):
        return False
    targets = given.get("target_modules")
    if targets is None or text_of(targets) == "all-linear":
        return True
    if not isinstance(targets, Sequence) or targets.more:
        return False
    names = [text_of(each) for each in targets.items]
    return all(each is not None and not any(word in each for word in _EMBEDDINGS) for each in names)
