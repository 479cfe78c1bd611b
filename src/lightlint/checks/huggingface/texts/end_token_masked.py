from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import AttributeSet
from lightlint.engine.events.huggingface import TokensAdded, TrainerRan
from lightlint.values.core import END, Library, Mapping, Sequence, is_constant
from lightlint.values.training import Instance

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Site, Value


class EndTokenMasked(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Texts that end with the end token, which a collator takes for padding."""
        for path in entry.paths:
            for event in path.of(TrainerRan):
                collator = event.trainer.argument("data_collator", 2)
                if event.row is None or not isinstance(collator, Instance) or not _masks_padding(collator):
                    continue
                tokenizer = collator.argument("tokenizer", 0)
                site = _pads_with_end(path, tokenizer) if isinstance(tokenizer, Instance) else None
                if site is not None and any(map(_ends, event.row.items.values())):
                    message = "the end token pads, and the collator leaves padding out of the labels: the model never learns to stop"
                    yield Fault(site, message, None, () if collator.site is None else (collator.site,))


def _masks_padding(collator: Instance) -> bool:
    """Whether a collator makes the labels of a model that goes on with texts."""
    asked = collator.argument("mlm", 1)
    named = collator.name == "DataCollatorForLanguageModeling" and isinstance(collator.cls, Library)
    return named and is_constant(asked, False) and not collator.open_arguments


def _pads_with_end(path: Path, tokenizer: Instance) -> Site | None:
    """Where a tokenizer is told to pad with its end token."""
    for each in path.of(AttributeSet):
        if each.object is tokenizer and each.name in ("pad_token", "pad_token_id") and each.value.traits & END:
            return each.site
    for added in path.of(TokensAdded):
        given = added.given.get(0, "special_tokens_dict")
        pad = given.items.get("pad_token") if isinstance(given, Mapping) else None
        if added.tokenizer is tokenizer and pad is not None and pad.traits & END:
            return added.site
    return None


def _ends(value: Value, depth: int = 0) -> bool:
    """Whether texts, or the ids of texts, have the end token at their ends."""
    if isinstance(value, Sequence) and depth < 3:
        return any(_ends(each, depth + 1) for each in value.items)
    encoding = value.encoding
    return bool(value.traits & END) or (encoding is not None and bool(encoding.traits & END))
