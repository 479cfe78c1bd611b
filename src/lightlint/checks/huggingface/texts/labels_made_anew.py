from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events.huggingface import TrainerRan
from lightlint.values.core import LEFT_OUT, Library, Sequence, is_constant
from lightlint.values.training import Instance, Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Value

_MAKING = ("DataCollatorForLanguageModeling", "DataCollatorForWholeWordMask")


class LabelsMadeAnew(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Labels with -100 in them that a collator throws away."""
        for event in entry.of(TrainerRan):
            collator = event.trainer.argument("data_collator", 2)
            if event.row is None or not isinstance(collator, Instance) or collator.name not in _MAKING:
                continue
            site = event.row.places().get("labels")
            if site is None or any(map(_is_asked, event.row.items.values())):
                continue  # -100 may stand where padding does, which the collator finds, too
            if isinstance(collator.cls, Library) and _leaves_out(event.row.items["labels"]):
                also = () if collator.site is None else (collator.site,)
                message = f"`{collator.name}` makes labels of the input ids anew: the -100 in these are lost"
                yield Fault(site, message, None, also, argument="labels")


def _is_asked(value: Value) -> bool:
    """Whether tokens were looked at one by one."""
    first = value.items[0] if isinstance(value, Sequence) and value.items else value
    return first.encoding is not None and first.encoding.asked


def _leaves_out(value: Value, depth: int = 0) -> bool:
    """Whether some labels are said to count for nothing."""
    if isinstance(value, Sequence) and depth < 3:
        return any(_leaves_out(each, depth + 1) for each in value.items)
    return is_constant(value, -100) or (isinstance(value, Tensor) and bool(value.traits & LEFT_OUT))
