from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, PoleReached
from lightlint.values.core import Mapping, Sequence
from lightlint.values.training import tensors_in

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Value

_ROOTS = re.compile(r"\b(?:sqrt|acos|arccos)\b|\*\*\s*0?\.5\b|\bpow\b")
_COSINES = re.compile(r"\bnormalize\b|\bnorm\b|\bcosine_similarity\b|\bCosineSimilarity\b|\bvector_norm\b")


class CosineAtItsPole(Check):
    def wants_passes(self) -> bool:
        text = self.facts.source.text
        return bool(_ROOTS.search(text) and _COSINES.search(text))

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Gradients that are infinite where two vectors have one direction, or opposite ones."""
        for path in entry.paths:
            for event in path.of(PoleReached):
                if not _comes_to_loss(path, event):
                    continue
                what = "`sqrt` of 1 - cosine²" if event.function == "sqrt" else f"`{event.function}` of a cosine"
                message = f"{what} has an infinite gradient where the cosine is 1 or -1, and from there on the weights are nan: nothing keeps it away from there"
                yield Fault.at(event, message)


def _comes_to_loss(path: Path, event: PoleReached) -> bool:
    """Whether a backward pass goes through it, or may outside: what is given back besides a result is a number to look at."""
    use = event.graph
    cut_short = not path.finished and not any(each.time > event.time for each in path.of(Backward))
    if use.used or use.escaped or cut_short:
        return True
    results = [part for each in path.machine.given_back for part in _results(each)]
    return any(use in tensor.graph for each in results for tensor in tensors_in(each))


def _results(given: Value) -> list[Value]:
    """What a function gives back first, or by names of losses."""
    if isinstance(given, Mapping):
        return [each for name, each in given.items.items() if "loss" in str(name)] or [given]
    return given.items[:1] if isinstance(given, Sequence) and given.kind == "tuple" else [given]
