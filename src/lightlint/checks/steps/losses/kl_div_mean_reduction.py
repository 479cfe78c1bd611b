from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, LossComputed, Stepped
from lightlint.explore.questions.queries import speaks_of
from lightlint.explore.questions.scales import evens
from lightlint.finding import Tier
from lightlint.values.core import Library, Unknown, Value, number_of
from lightlint.values.training import Instance, Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.explore.rehearsals import Path as Way


class KlDivMeanReduction(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Divergences that are divided by the number of all elements."""
        for way, event in ((path, event) for path in entry.paths for event in path.of(LossComputed)):
            named = event.function in ("kl_div", "KLDivLoss") and event.reduction == "mean"
            if not named or any(map(_counts_classes, event.factors)) or self._is_multiplied(event):
                continue
            if (
                isinstance(event.input, Tensor)
                and event.input.role == "log-probabilities"
                and _are_of_classes(event.input)
            ):
                message = 'reduction "mean" divides the divergence by the number of classes, too'
                tier = Tier.NOTE if _is_evened(way, event) else None
                yield Fault(event.made or event.site, message, tier, (event.site,))

    def _is_multiplied(self, event: LossComputed) -> bool:
        """Whether the loss is multiplied where it is computed with what is called a number of classes, whatever that is set to."""
        file, row, column, last_row, end = event.site
        lines = self.facts.project.text(Path(file)).encode().splitlines()
        before = lines[row - 1][:column].decode()
        behind = b"\n".join([lines[last_row - 1][end:], *lines[last_row : last_row + 2]]).decode()
        return bool(_FACTOR_BEFORE.search(before) or _FACTOR_BEHIND.match(behind))


def _is_evened(path: Way, event: LossComputed) -> bool:
    """Whether the optimizers that step by it step by nothing else, and the same however small all gradients are."""
    divergences = {id(each.factors) for each in path.of(LossComputed) if each.function == event.function}
    own = [(each, losses) for each, losses in _losses_by_optimizer(path).items() if id(event.factors) in losses]
    return bool(own) and all(
        isinstance(each.cls, Library) and evens(each.cls.path, decays=False) and losses <= divergences
        for each, losses in own
    )


def _losses_by_optimizer(path: Way) -> dict[Instance, set[int | None]]:
    """What went backward before the steps of each optimizer, since any steps of others before: a loss by what it was multiplied
    with, None for one out of sight."""
    found: dict[Instance, set[int | None]] = {}
    waiting: set[int | None] = set()
    stepped = False
    for event in path.events:
        if isinstance(event, Backward):
            waiting = set() if stepped else waiting
            waiting.add(id(event.loss.factors) if event.loss is not None else None)
            stepped = False
        elif isinstance(event, Stepped):
            found.setdefault(event.optimizer, set()).update(waiting)
            stepped = True
    return found


def _are_of_classes(given: Tensor) -> bool:
    """Whether probabilities are of classes beside each other; each that a sigmoid gave stands for itself."""
    return given.activation is None or "sigmoid" not in given.activation[0].lower()


_FACTOR_BEFORE = re.compile(r"(?i)(?:class|vocab)\w*\s*\*\s*$")
_FACTOR_BEHIND = re.compile(r"(?i)(?:\s*\*[\s\\]*[\w.]+)*?\s*\*[\s\\]*[\w.]*(?:class|vocab)")
_CLASSES = re.compile(r"(?i)class|vocab")


def _counts_classes(factor: Value) -> bool:
    """Whether a factor is the number of classes, by its name or as the size of the last dimension, or a product with it."""
    if isinstance(factor, Unknown) and factor.hint == "size":
        return any(number_of(each) in (1, -1) for each in factor.lent)
    return _is_of_classes(factor.key)


def _is_of_classes(key: Hashable) -> bool:
    match key:
        case ("size", _, 1 | -1):
            return True
        case tuple():
            return any(map(_is_of_classes, key))
    return speaks_of(key, _CLASSES)
