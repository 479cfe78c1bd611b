from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events.huggingface import Labelled, TrainerRan
from lightlint.frameworks.huggingface.values import base_of, replaces
from lightlint.values.core import Unknown, is_constant, known_by, number_of

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Value

_SHIFTS = re.compile(r"ForCausalLM$|LMHeadModel$")
_MESSAGE = "the labels are the inputs one place further, and the model shifts them again: it learns to skip a token"


class LabelsShiftedTwice(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Labels that are shifted before they are given to a model which shifts them itself."""
        for event in entry.of(Labelled):
            ids = event.given.get(0, "input_ids")
            if _SHIFTS.search(event.model.unwrapped().name) and _is_next(ids, event.given.keywords["labels"]):
                yield Fault.at(event, _MESSAGE)
        for ran in entry.of(TrainerRan):
            model, row = base_of(ran.model), ran.row
            own = replaces(ran.trainer, "compute_loss")
            if row is None or model is None or own or not _SHIFTS.search(model.name):
                continue
            site = row.places().get("labels")
            if site is not None and _is_next(row.items.get("input_ids"), row.items["labels"]):
                yield Fault(site, _MESSAGE, argument="labels")


def _is_next(ids: Value | None, labels: Value | None) -> bool:
    """Whether labels are cut out of the same tokens as the inputs, from one place further on."""
    if ids is None or labels is None or labels.cut_from is None:
        return False
    whole, place = labels.cut_from
    begin = [(ids, None)] if ids.cut_from is None else [(ids, None), ids.cut_from]
    return any(_is_same(source, whole) and _follows(start, place) for source, start in begin)


def _is_same(one: Value, other: Value) -> bool:
    return one is other or (type(one) is Unknown and known_by(one.key) is not None and one.key == other.key)


def _follows(start: Value | None, other: Value | None) -> bool:
    first = 0 if start is None or is_constant(start, None) else number_of(start)
    second = number_of(other)
    if first is not None and second is not None:
        return second == first + 1
    key: Hashable = other.key if other is not None else None
    return start is not None and start.key is not None and key == ("+", start.key, ("constant", "int", 1))
