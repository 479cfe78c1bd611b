"""Which calls compute a loss of torch, as a function or as an instance of its class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.unknown import UNKNOWN

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_FUNCTIONS = {
    "cross_entropy": "CrossEntropyLoss",
    "nll_loss": "NLLLoss",
    "kl_div": "KLDivLoss",
    "binary_cross_entropy": "BCELoss",
    "binary_cross_entropy_with_logits": "BCEWithLogitsLoss",
    "mse_loss": "MSELoss",
    "l1_loss": "L1Loss",
    "smooth_l1_loss": "SmoothL1Loss",
    "huber_loss": "HuberLoss",
}
_CLASSES = {f"torch.nn.{name}" for name in _FUNCTIONS.values()}


@dataclass(frozen=True, slots=True)
class Criterion:
    """A loss: the name of its class in `torch.nn`, what it is given, and the call that holds its settings."""

    name: str
    input: cst.BaseExpression
    target: cst.BaseExpression | None
    settings: cst.Call | None


class Criteria:
    """Losses of one file."""

    def __init__(self, facts: FileFacts) -> None:
        self._facts = facts

    def of(self, call: cst.Call) -> Criterion | None:
        """The loss that a call computes."""
        names = self._facts.names
        made_by: cst.Call | None = call
        name = names.of(call.func) or ""
        if name.startswith("torch.nn.functional."):
            name = _FUNCTIONS.get(name.rpartition(".")[2], "")
        elif name in _CLASSES or not call.args:
            return None  # makes the criterion
        else:
            origins = self._facts.values.origins(call.func)
            kinds = {origin.name for origin in origins}
            name = kinds.pop().removeprefix("torch.nn.") if len(kinds) == 1 and kinds <= _CLASSES else ""
            made_by = origins[0].call if len(origins) == 1 else None
        given = names.argument(call, "input", 0)
        target = names.argument(call, "target", 1)
        if not name or given is None or given.star:
            return None
        return Criterion(name, given.value, target.value if target else None, made_by)

    def reduction(self, criterion: Criterion) -> object:
        """The reduction a loss was made with: "mean" unless it says otherwise, UNKNOWN if that is out of sight."""
        names = self._facts.names
        if criterion.settings is None or names.has_star(criterion.settings):
            return UNKNOWN
        old = [names.argument(criterion.settings, each) for each in ("reduce", "size_average")]
        given = names.argument(criterion.settings, "reduction")
        if any(old):
            return UNKNOWN
        return names.constant(given.value) if given else "mean"
