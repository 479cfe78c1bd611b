from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Called, SplitDrawn
from lightlint.values.core import Class

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Value

_FITTING = ("fit", "fit_transform")
_ROOMS = ("sklearn.preprocessing.", "sklearn.decomposition.", "sklearn.impute.", "sklearn.feature_extraction.")
_BY_ROW = {"Normalizer", "FunctionTransformer", "Binarizer", "HashingVectorizer", "FeatureHasher"}


class FittedAgainOnTestData(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Transformers that are fitted on both parts of a split, each on its own."""
        for path in entry.paths:
            fits = [event for event in path.of(Called) if _fits(event)]
            for split in path.of(SplitDrawn) if fits else ():
                parts = split.parts.items
                pairs = [*zip(parts[::2], parts[1::2], strict=False)] if split.name == "train_test_split" else []
                for train, test in pairs:
                    yield from _fitted_twice(fits, train, test)


def _fits(event: Called) -> bool:
    receiver = event.receiver
    if (
        receiver is None
        or receiver.kind != "estimator"
        or event.path not in _FITTING
        or isinstance(receiver.cls, Class)
    ):
        return False
    return receiver.cls.path.startswith(_ROOMS) and receiver.name not in _BY_ROW


def _fitted_twice(fits: list[Called], train: Value, test: Value) -> Iterator[Fault]:
    first = {_name(event) for event in fits if event.argument("X", 0) is train}
    for event in fits:
        if event.argument("X", 0) is test and _name(event) in first:
            message = f"`{_name(event)}` is fitted anew on the test rows: what they become is not what it made of the training rows"
            yield Fault.at(event, message)


def _name(event: Called) -> str:
    return event.receiver.name if event.receiver is not None else ""
