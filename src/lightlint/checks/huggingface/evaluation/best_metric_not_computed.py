from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events.huggingface import MetricsComputed
from lightlint.explore.questions.queries import sure
from lightlint.explore.questions.training_arguments import call_of
from lightlint.frameworks.huggingface.values import setting
from lightlint.values.core import Class, Function, Mapping, Unknown, text_of
from lightlint.values.training import Instance

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_ALWAYS = (
    "loss",
    "runtime",
    "samples_per_second",
    "steps_per_second",
    "model_preparation_time",
    "num_samples",
    "epoch",
)
_REPLACING = (
    "evaluate",
    "evaluation_loop",
    "prediction_loop",
    "_maybe_log_save_evaluate",
    "_evaluate",
    "_determine_best_metric",
)


class BestMetricNotComputed(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Trainers whose best checkpoint is to be chosen by a metric that their `compute_metrics` does not give."""
        for event in sure(entry, MetricsComputed, lambda each: _missing(each) is not None):
            call, missing = call_of(entry, event.settings), _missing(event)
            if call is not None and missing is not None:
                name, given = missing
                message = f"`compute_metrics` gives no `{name}`, but {given}"
                yield Fault.of(call, message, argument="metric_for_best_model")


def _missing(event: MetricsComputed) -> tuple[str, str] | None:
    """The metric that is asked for and not given, and those that are; None where all is well, or something is out of sight."""
    result, wanted = event.result, text_of(setting(event.settings, "metric_for_best_model"))
    if not isinstance(result, Mapping) or result.more or wanted is None or not _evaluates(event):
        return None
    given = {key.removeprefix("eval_") for key in result.items if isinstance(key, str)}
    name = wanted.removeprefix("eval_")
    known = given | {*_ALWAYS}
    if len(given) < len(result.items) or name in known:
        return None
    if not _is_of_one(event.trainer) and any(name.endswith(f"_{each}") for each in known):
        return None  # each metric has the name of its data set ahead of its own
    return name, ", ".join(f"`{each}`" for each in sorted(given)) or "nothing"


def _is_of_one(trainer: Instance) -> bool:
    """Whether what is evaluated with is one data set, and no dict of several."""
    data = trainer.arguments.get("eval_dataset")
    return isinstance(data, Instance) and data.kind == "rows" and "#split" in data.attributes


def _evaluates(event: MetricsComputed) -> bool:
    strategy = setting(event.settings, "eval_strategy", "evaluation_strategy")
    return (
        not isinstance(strategy, Unknown)
        and strategy is not None
        and text_of(strategy) != "no"
        and _is_plain(event.trainer)
    )


def _is_plain(trainer: Instance) -> bool:
    """Whether the evaluation is the library's own, and its results are not changed."""
    cls = trainer.cls
    return not isinstance(cls, Class) or (
        cls.sees_all() and not any(isinstance(cls.find(name), Function) for name in _REPLACING)
    )
