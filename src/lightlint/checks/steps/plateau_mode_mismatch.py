from __future__ import annotations

import re

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.finding import Applicability
from lightlint.fixes.edits import insert_argument, replace

_PLATEAU = "torch.optim.lr_scheduler.ReduceLROnPlateau"
_RISING = {"acc", "accuracy", "accuracies", "f1", "auc", "auroc", "iou", "miou", "dice", "psnr", "ssim", "bleu", "recall", "precision"}  # fmt: skip
_FALLING = {"loss", "losses", "err", "error", "mse", "mae", "rmse", "perplexity", "ppl", "cer", "wer", "nll"}


class PlateauModeMismatch(Check):
    def visit_Call(self, call: cst.Call) -> None:
        func = call.func
        if self.names.method(call) != "step" or not isinstance(func, cst.Attribute) or not call.args:
            return
        origin = self.values.constructor(func.value)
        if origin is None or origin.name != _PLATEAU or origin.call is None or self.names.has_star(origin.call):
            return
        given = self.names.argument(origin.call, "mode", 1)
        mode = self.names.constant(given.value) if given is not None else "min"
        wanted = self._wanted(call.args[0].value)
        if not wanted or mode not in ("min", "max") or mode == wanted:
            return
        metric = self.code.text_of(call.args[0].value)
        draft = (
            insert_argument(self.code, origin.call, f'mode="{wanted}"')
            if given is None
            else replace(self.code, given.value, f'"{wanted}"')
        )
        better = "rises" if wanted == "max" else "falls"
        self.report(
            call,
            f'the scheduler waits with `mode="{mode}"` for `{metric}`: it lowers the learning rate while that {better}, as it should',
            repair=Repair(f'make it `mode="{wanted}"`', draft, Applicability.UNSAFE),
        )

    def _wanted(self, metric: cst.BaseExpression) -> str:
        """The mode a metric's name asks for, empty where it asks for none, or for both."""
        if isinstance(metric, cst.Call) and isinstance(metric.func, cst.Attribute) and metric.func.attr.value == "item":
            metric = metric.func.value
        key = self.names.key(metric)
        turned = (cst.UnaryOperation, cst.BinaryOperation)
        if not key or any(
            isinstance(each, turned) and self._is_turned(each) for each in self.facts.reaching.sources(metric)
        ):
            return ""
        last = re.split(r"[.\[]", key)[-1]
        words = set(re.findall(r"[a-z]+\d?", re.sub(r"([a-z])([A-Z])", r"\1_\2", last).lower()))
        rising, falling = bool(words & _RISING), bool(words & _FALLING)
        if rising == falling:
            return ""
        return "max" if rising else "min"

    def _is_turned(self, value: cst.BaseExpression) -> bool:
        """Whether a value may be a metric turned round: `-accuracy`, `1 - accuracy`."""
        if isinstance(value, cst.UnaryOperation):
            return True
        return isinstance(value, cst.BinaryOperation) and isinstance(value.operator, cst.Subtract)
