from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import MetricUsed
from lightlint.values.core import Mapping, Sequence, Value, text_of
from lightlint.values.training import Instance, Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_LIBRARY = "torchmetrics."
_COLLECTION = "MetricCollection"
# metrics that come out different with predictions and targets exchanged; accuracy, F1 and squared errors do not
_ONE_WAY = {"Precision", "Recall", "Specificity", "AUROC", "AveragePrecision", "R2Score", "ROC", "PrecisionRecallCurve"}
_ONE_WAY |= {"MeanAbsolutePercentageError", "ExplainedVariance", "CalibrationError", "HingeLoss", "FBetaScore"}
_AVERAGED = {"Precision", "Recall", "Specificity", "FBetaScore"}
_KINDS = ("Binary", "Multiclass", "Multilabel")


class MetricArgumentsExchanged(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Metrics that are given what comes from the loader first, and what a model made of it second."""
        for event in entry.of(MetricUsed):
            if event.operation not in ("update", "forward") or len(event.args) != 2 or not _is_told_apart(event.metric):
                continue
            first, second = event.args
            raw = isinstance(first, Tensor) and first.role == "batch" and "predicted" not in first.traits
            if raw and "predicted" in second.traits and not first.escaped:
                message = "the target stands where torchmetrics takes the predictions, before the target"
                yield Fault.of(event, message)


def _is_told_apart(metric: Value) -> bool:
    """Whether a metric tells predictions and targets apart; a collection if one of its metrics does."""
    if not isinstance(metric, Instance) or not metric.libraries()[0].startswith(_LIBRARY):
        return False
    if metric.name == _COLLECTION:
        held = metric.argument("metrics", 0)
        values = (
            [*held.items.values()] if isinstance(held, Mapping) else held.items if isinstance(held, Sequence) else []
        )
        return any(map(_is_told_apart, values))
    kind = next((each for each in _KINDS if metric.name.startswith(each)), "")
    plain = metric.name.removeprefix(kind)
    if plain not in _ONE_WAY or metric.open_arguments:
        return False
    average = metric.arguments.get("average")
    if average is not None or plain not in _AVERAGED:
        return average is None or text_of(average) in {"macro", "weighted", "none"}
    return bool(kind) or text_of(metric.argument("task", 0)) == "binary"
