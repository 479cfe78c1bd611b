from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events.huggingface import RowsMapped
from lightlint.values.core import NONE, Sequence, is_constant, text_of, written

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Mapping, Value
    from lightlint.values.training import Encoding

_OWN = {
    "input_ids",
    "attention_mask",
    "token_type_ids",
    "offset_mapping",
    "overflow_to_sample_mapping",
    "special_tokens_mask",
    "length",
    "labels",
}
"""What a tokenizer gives, and what is made of it."""


class RowsOutgrowColumns(Check):
    def wants_rest(self) -> frozenset[str]:
        """Where tables are changed, also in programs that do not train."""
        return frozenset({"map"}) if "return_overflowing_tokens" in self.facts.source.text else frozenset()

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Batches of which a tokenizer makes more rows than they had, and whose columns stay."""
        for event in entry.of(RowsMapped):
            encoding = _cut_into_windows(event.result)
            if encoding is None or not event.given.exact or not is_constant(event.given.get(2, "batched"), True):
                continue
            stays = _stays(event, encoding)
            if stays is not None:
                named = f"`{stays}`" if stays else "the columns of the table"
                message = f"the tokenizer makes several rows of a long text, and {named} cannot stay beside them: the lengths differ"
                yield Fault.at(event, message, encoding.site)


def _cut_into_windows(result: Mapping) -> Encoding | None:
    """The call of a tokenizer whose rows a function gave, where a long text has several of them."""
    ids = result.items.get("input_ids")
    encoding: Encoding | None = result.encoding
    if encoding is None and isinstance(ids, Sequence) and ids.items and not result.more:
        encoding = ids.items[0].encoding
    if encoding is None or not any(ids is each for each in encoding.rows):
        return None
    asked, tokenizer = encoding.given, encoding.tokenizer
    slow = is_constant(tokenizer.arguments.get("use_fast"), False) or tokenizer.open_arguments
    windows = is_constant(asked.get("return_overflowing_tokens"), True) and not slow
    return encoding if windows and _cuts(asked) else None


def _cuts(asked: dict[str, Value]) -> bool:
    """Whether long texts are cut: where they are told to be, or told a length and nothing else."""
    found = written(asked["truncation"]) if "truncation" in asked else None
    if found is not None:
        return found.value not in (False, None, "do_not_truncate")
    return "truncation" not in asked and not is_constant(asked.get("max_length", NONE), None)


def _stays(event: RowsMapped, encoding: Encoding) -> str | None:
    """A column that keeps the length that it had, "" where only that there is one is known; None for no such column."""
    result, removed = event.result, event.given.keywords.get("remove_columns")
    key = encoding.texts.key if encoding.texts is not None else None
    read = key[1] if isinstance(key, tuple) and key[0] == "entry" and isinstance(key[1], str) else ""
    if result.rewritten or read in result.items:
        return None
    if removed is None or is_constant(removed, None):
        return read if read or result.items.keys() <= _OWN else None
    if not isinstance(removed, Sequence) or removed.more or not read:
        return None
    names = [text_of(each) for each in removed.items]
    return None if None in names or read in names else read
