from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Called
from lightlint.values.core import OF_TOKENS, Sequence, Unknown
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Value

_POWERS = ("math.exp", "torch.exp", "numpy.exp", "exp")
_MEANS = ("mean", "fmean", "average")
_DEPTH = 4
_MESSAGE = "the mean over batches counts each alike, and they have different numbers of tokens: the perplexity hangs on the batch size"


class PerplexityOfBatchMeans(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Perplexities of means over batches, each of which is a mean over another number of tokens."""
        for event in entry.of(Called):
            if event.path in _POWERS:
                given = event.receiver or event.argument("x", 0) or event.argument("input", 0)
                if given is not None and _is_mean_of_batches(given):
                    yield Fault.at(event, _MESSAGE)


def _is_mean_of_batches(value: Value, depth: int = 0) -> bool:
    """Whether each batch counts alike in a mean, or in a copy of one."""
    name, parts = value.terms or ("", ())
    if depth > _DEPTH:
        return False
    if name == "/" and len(parts) > 1:
        return bool(parts[0].traits & OF_TOKENS) and _counts_batches(parts[1])
    if name == "mean":
        return _lists_batches(parts[0])
    if isinstance(value, Unknown) and value.hint in _MEANS:
        return any(map(_lists_batches, value.lent))
    return False


def _counts_batches(value: Value) -> bool:
    """Whether a number is how many batches there were: a length, or a counter."""
    length = isinstance(value.key, tuple) and value.key[:1] == ("length",)
    return length or bool(value.traits & {"batches", "count"})


def _lists_batches(value: Value, depth: int = 0) -> bool:
    """Whether it is the losses of batches, one of each."""
    if isinstance(value, Sequence):
        return any(each.traits & OF_TOKENS for each in value.items)
    held = value.stacked if isinstance(value, Tensor) else value.lent if isinstance(value, Unknown) else ()
    listed = isinstance(value, Tensor) and not value.stacked and bool(value.traits & OF_TOKENS)
    return listed or (
        depth < _DEPTH and any(each.traits & OF_TOKENS or _lists_batches(each, depth + 1) for each in held)
    )
