from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.explore.questions.training_arguments import calls_of, said, word_of
from lightlint.finding import Applicability
from lightlint.fixes.edits import insert_argument
from lightlint.frameworks.huggingface.values import is_on
from lightlint.models.names.metrics import direction
from lightlint.values.core import text_of, written

if TYPE_CHECKING:
    from lightlint.engine.events import Called
    from lightlint.explore.rehearsals import Entry

_DEFAULT = "the default of `greater_is_better` is"


class BestMetricDirection(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """TrainingArguments that take the worst checkpoint for the best, by the direction of their metric."""
        for event in calls_of(entry):
            message, argument = _message(event)
            if message:
                yield Fault.of(event, message, argument=argument)

    def repair(self, node: cst.CSTNode, fault: Fault) -> Repair | None:
        if not isinstance(node, cst.Call) or not fault.message.startswith(_DEFAULT):
            return None
        draft = insert_argument(self.code, node, "greater_is_better=False")
        return Repair("take less for better", draft, Applicability.UNSAFE)


def _message(event: Called) -> tuple[str, str]:
    """What is wrong with the direction, and at which argument; both empty where nothing is."""
    named, greater = said(event, "metric_for_best_model"), said(event, "greater_is_better")
    metric = "loss" if named is None else text_of(written(named))
    if metric is None or not _chooses(event):
        return "", ""
    wanted = direction(metric)
    if greater is None:
        wrong = wanted == "min" and not metric.endswith("loss")
        message = f"{_DEFAULT} True for `{metric}`, of which less is better: the worst checkpoint is kept"
        return (message, "metric_for_best_model") if wrong else ("", "")
    found = written(greater)
    if found is None or not isinstance(found.value, bool) or not wanted or found.value == (wanted == "max"):
        return "", ""
    better = "more" if wanted == "max" else "less"
    message = f"`greater_is_better` is {found.value} for `{metric}`, of which {better} is better: the worst checkpoint is kept"
    return message, "greater_is_better"


def _chooses(event: Called) -> bool:
    """Whether a checkpoint is surely chosen by the metric."""
    return is_on(said(event, "load_best_model_at_end")) or word_of(said(event, "save_strategy"), "steps") == "best"
