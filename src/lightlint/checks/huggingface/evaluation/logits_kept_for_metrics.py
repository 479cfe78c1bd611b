from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events.huggingface import TrainerRan
from lightlint.frameworks.huggingface.rows import CHOSEN
from lightlint.frameworks.huggingface.values import base_of, is_off, replaces, setting
from lightlint.values.core import Class, Library, is_constant, text_of, written
from lightlint.values.training import Instance

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Value
    from lightlint.values.training import Module

_OVER_WORDS = re.compile(r"ForCausalLM$|ForMaskedLM$|LMHeadModel$|ForSeq2SeqLM$")
"""Models whose output has a number for each word of the vocabulary, at each place of a text."""
_REPLACING = ("evaluate", "evaluation_loop", "prediction_loop", "prediction_step", "predict")
_TRAINERS = ("transformers.Trainer", "transformers.Seq2SeqTrainer", "trl.SFTTrainer")
_SPARING = ("prediction_loss_only", "batch_eval_metrics", "predict_with_generate")


class LogitsKeptForMetrics(Check):
    users_with = ("TrainingArguments",)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Trainers that evaluate a language model, and keep all of its output until the metrics are computed."""
        for event in entry.of(TrainerRan):
            trainer, model = event.trainer, base_of(event.model)
            if model is None or trainer.site is None or not _gives_words(model) or not _keeps(trainer, event.settings):
                continue
            if _evaluates(event) and not _is_small(trainer.arguments.get("eval_dataset")):
                message = "all logits of the evaluation are kept for `compute_metrics`: a number for each word of the vocabulary at each place of each text"
                yield Fault(trainer.site, message, None, (), event.where.places[1:], argument="compute_metrics")


def _gives_words(model: Module) -> bool:
    known = isinstance(model.cls, Library) and model.cls.path.startswith("transformers.")
    return known and _OVER_WORDS.search(model.name) is not None


def _keeps(trainer: Instance, settings: Instance | None) -> bool:
    """Whether a Trainer surely hands its whole output to `compute_metrics`."""
    given = trainer.arguments
    computed, before = given.get("compute_metrics"), given.get("preprocess_logits_for_metrics")
    if computed is None or is_constant(computed, None) or not (before is None or is_constant(before, None)):
        return False
    if settings is None or trainer.open_arguments or trainer.escaped:
        return False
    cls = trainer.cls
    own = (isinstance(cls, Class) and not cls.sees_all()) or replaces(trainer, *_REPLACING)
    names = trainer.libraries()
    set_later = "preprocess_logits_for_metrics" in trainer.attributes
    known = bool(names) and names[0] in _TRAINERS and not own and not set_later
    return known and all(is_off(setting(settings, name)) for name in _SPARING)


def _evaluates(event: TrainerRan) -> bool:
    """Whether it surely evaluates."""
    if event.method != "train":
        return True
    asked = setting(event.settings, "eval_strategy", "evaluation_strategy")
    strategy = text_of(written(asked)) or (asked.last.lower() if isinstance(asked, Library) else "no")
    return strategy != "no"


def _is_small(rows: Value | None) -> bool:
    """Whether some rows of a table were chosen, perhaps few."""
    return isinstance(rows, Instance) and CHOSEN in rows.attributes
