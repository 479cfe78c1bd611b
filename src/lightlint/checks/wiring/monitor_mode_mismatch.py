from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.facts.monitors import CHECKPOINT, STOPPING, Monitor
from lightlint.finding import Applicability
from lightlint.fixes.edits import insert_argument, replace
from lightlint.values.core import text_of, written

_MORE = re.compile(
    r"(?:acc|accuracy|acc@?\d+|top@?\d+|f1|f1score|fscore|auc|auroc|auprc|iou|miou|jaccard|dice|psnr|ssim|bleu\d?|rouge\w?|recall|precision"
    r"|kappa|mcc|mAP|map@?50|map@?50@?95)$"
)
_LESS = re.compile(r"(?:loss|error|err|perplexity|ppl|mse|rmse|mae|wer|cer|nll|fid|lpips)$")
_TURNED = re.compile(
    r"(?:neg|negative|minus|inv|inverse|inverted|not|one|1|reverse|complement|distance|dist|gap|diff|drop)$"
)

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class MonitorModeMismatch(Check):
    def visit_Module(self, module: cst.Module) -> None:
        found = [*self.facts.monitors.callbacks, *self.facts.monitors.registered]
        for node in self.tree.all(cst.ClassDef):
            if self.facts.configured.methods and self.hooks.owner(node):
                found += self.facts.monitors.of_schedulers(node)
        for monitor in dict.fromkeys(found):
            wanted = _direction(monitor.key or "")
            if wanted and monitor.mode in {"min", "max"} and monitor.mode != wanted and not self._keeps_all(monitor):
                how = "the default `mode` is" if monitor.mode_written is None else "`mode` is"
                better = "more" if wanted == "max" else "less"
                self.report(
                    monitor.place,
                    f"{how} '{monitor.mode}' for `{monitor.key}`, of which {better} is better",
                    repair=self._repair(monitor, wanted),
                )

    def _keeps_all(self, monitor: Monitor) -> bool:
        """Whether a checkpoint callback keeps every checkpoint, or none by metric, as far as is in sight."""
        kept = monitor.kept
        return not kept.sure or (kept.value is not None and self.names.constant(kept.value) in (-1, 0))

    def _is_at(self, value: cst.BaseExpression, call: cst.Call) -> bool:
        """Whether a value is written in a call, and not in a dict that others may take it from, too."""
        return any(arg.value is value for arg in call.args)

    def _repair(self, monitor: Monitor, wanted: str) -> Repair | None:
        if monitor.call is None:
            return None
        if monitor.mode_written is None:
            draft = insert_argument(self.code, monitor.call, f'mode="{wanted}"')
        elif isinstance(monitor.mode_written, cst.SimpleString) and self._is_at(monitor.mode_written, monitor.call):
            quote = monitor.mode_written.quote
            draft = replace(self.code, monitor.mode_written, f"{quote}{wanted}{quote}")
        else:
            return None
        return Repair(f"take '{wanted}' for better", draft, Applicability.UNSAFE)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        for name, positions in ((CHECKPOINT, (2, None)), (STOPPING, (0, 4))):
            for event in entry.calls.get(name, ()):
                key = text_of(event.argument("monitor", positions[0]))
                given = event.argument("mode", positions[1])
                mode = "min" if given is None and event.given.exact else text_of(given)
                kept = event.argument("save_top_k")
                top = written(kept)
                keeps_all = kept is not None and (top is None or top.value in (-1, 0))
                wanted = _direction(key or "")
                if wanted and mode in {"min", "max"} and mode != wanted and not keeps_all:
                    how = "the default `mode` is" if given is None else "`mode` is"
                    better = "more" if wanted == "max" else "less"
                    yield Fault.of(event, f"{how} '{mode}' for `{key}`, of which {better} is better")


def _direction(key: str) -> str:
    """'max' or 'min' where the words of a metric's name agree on it, else empty; a loss or an error is one whatever it is made of."""
    words = [word for word in re.split(r"[_/.\s:-]+|(?<=[a-z])(?=[A-Z][a-z])", key) if word]
    lower = [word if word == "mAP" else word.lower() for word in words]
    more, less = ([bool(pattern.match(word)) for word in lower] for pattern in (_MORE, _LESS))
    if any(_TURNED.match(word) for word in lower) or (any(more) and any(less) and not less[-1]):
        return ""
    return "min" if any(less) else "max" if any(more) else ""
