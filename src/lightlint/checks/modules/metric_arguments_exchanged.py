from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import MetricUsed
from lightlint.facts.lambda_schedules import handed
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
_DEPTH = 5
_KINDS = ("Binary", "Multiclass", "Multilabel")
_TARGETS = {"y_true", "target", "targets", "label", "labels", "true_labels", "ground_truth", "gt"}
_PREDICTIONS = {"y_pred", "y_hat", "pred", "preds", "prediction", "predictions", "pred_labels", "logits", "probs"}


class MetricArgumentsExchanged(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if len(call.args) != 2 or any(arg.keyword is not None or arg.star for arg in call.args):
            return
        first, second = (_word(arg.value) for arg in call.args)
        if first not in _TARGETS or second not in _PREDICTIONS:
            return
        func = call.func
        updates = isinstance(func, cst.Attribute) and func.attr.value in {"update", "forward"}
        metric = func.value if isinstance(func, cst.Attribute) and updates else func
        if self._tells_apart(metric):
            self.report(
                call.args[0].value, f"`{first}` stands where torchmetrics takes the predictions, before the target"
            )

    def _tells_apart(self, metric: cst.BaseExpression, depth: int = 0) -> bool:
        """Whether a value surely is such a metric, also a clone of one, kept in an attribute or handed to a function."""
        origins = self.values.origins(metric)
        if origins:
            return all(self._is_one_way(each.name, each.call) for each in origins)
        if depth > _DEPTH:
            return False
        sources: list[cst.BaseExpression] = []
        if (
            isinstance(metric, cst.Call)
            and self.names.method(metric) == "clone"
            and isinstance(metric.func, cst.Attribute)
        ):
            sources = [metric.func.value]
        elif isinstance(metric, cst.Attribute):
            node = self.classes.self_class(metric.value)
            parts = self.classes.attribute_sources(node, metric.attr.value) if node is not None else []
            sources = [value for value, path in parts if value is not None and not path]
            sources = sources if len(sources) == len(parts) else []
        elif isinstance(metric, cst.Name):
            sources = handed(self.facts, metric) or [
                each for each in self.facts.reaching.sources(metric) if each is not metric
            ]
        return bool(sources) and all(self._tells_apart(each, depth + 1) for each in sources)

    def _is_one_way(self, name: str, made: cst.Call | None) -> bool:
        """Whether an object of torchmetrics tells predictions and targets apart; a collection if one of its metrics does."""
        if made is None or not name.startswith(_LIBRARY):
            return False
        if name.rpartition(".")[2] != _COLLECTION:
            return self._differs(made)
        return any(self._differs(each) for each in self.tree.within(made, cst.Call) if each is not made)

    def _differs(self, made: cst.Call) -> bool:
        """Whether a call makes a metric that differs with its arguments exchanged: over all classes at once most do not."""
        name = self.names.call(made) or ""
        kind = next((each for each in _KINDS if each and name.rpartition(".")[2].startswith(each)), "")
        plain = name.rpartition(".")[2].removeprefix(kind)
        if not name.startswith(_LIBRARY) or plain not in _ONE_WAY or self.names.has_star(made):
            return False
        average = self.names.argument(made, "average")
        if average is not None or plain not in _AVERAGED:
            return average is None or self.names.constant(average.value) in {"macro", "weighted", "none", None}
        task = self.names.argument(made, "task", 0)
        return bool(kind) or (task is not None and self.names.constant(task.value) == "binary")

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


def _word(value: cst.BaseExpression) -> str:
    """The name that an argument has, also behind methods that leave it what it is: `labels.int()`."""
    while isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute) and not value.args:
        value = value.func.value
    return value.value if isinstance(value, cst.Name) else ""


def _is_told_apart(metric: Value) -> bool:
    """Whether a metric tells predictions and targets apart; a collection if one of its metrics does."""
    if not isinstance(metric, Instance) or not metric.libraries()[0].startswith(_LIBRARY):
        return False
    if metric.name == _COLLECTION:
        held = metric.arguments.get("metrics", metric.arguments.get("#0"))
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
    return bool(kind) or text_of(metric.arguments.get("task", metric.arguments.get("#0"))) == "binary"
