from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.checks.steps.activations.single_logit_softmax.outputs import SingleOutputs
from lightlint.engine.events import LossComputed, OneNormalised
from lightlint.explore.questions.queries import holds, sure
from lightlint.models.tensors import forms
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_LOSSES = ("cross_entropy", "CrossEntropyLoss")
_WORDS = frozenset(["softmax", "log_softmax", *_LOSSES])


class SingleLogitSoftmax(Check):
    def wants_passes(self) -> bool:
        return SingleOutputs(self).may_be_normalised()

    def wants_rest(self) -> frozenset[str]:
        return _WORDS if SingleOutputs(self).may_be_normalised() else frozenset()

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Losses and softmaxes over classes of which the last layer has one."""
        for event in sure(entry, LossComputed, _is_over_one):
            message = "cross entropy over one class is 0, whatever the model says: its last layer has one output"
            yield Fault.of(event, message)
        for single in entry.of(OneNormalised):
            message = f"`{single.function}` over the one output of a layer is the same for every input"
            yield Fault.of(single, message)


def _is_over_one(event: LossComputed) -> bool:
    """Whether the classes of a loss, which lie in dimension 1, are the one output of a layer for each example."""
    given = event.input
    if event.function not in _LOSSES or not isinstance(given, Tensor) or given.escaped:
        return False
    if any(holds(each.key, "size") for each in event.where.conditions):
        return False  # a test of how many there are leads here
    return forms.is_single_output(given) and given.rank in (None, 2)
