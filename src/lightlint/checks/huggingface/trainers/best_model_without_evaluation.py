from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.explore.questions.training_arguments import calls_of, said, word_of
from lightlint.frameworks.huggingface.values import is_on
from lightlint.values.core import Unknown, number_of

if TYPE_CHECKING:
    from lightlint.engine.events import Called
    from lightlint.explore.rehearsals import Entry

_ANY = ("eval_strategy", "evaluation_strategy")
_OLD = ("evaluate_during_training", "do_eval")


class BestModelWithoutEvaluation(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """TrainingArguments that are to keep the best model, and evaluate never, or at other times than they save."""
        for event in calls_of(entry):
            if is_on(said(event, "load_best_model_at_end")):
                message = _fault(event)
                if message is not None:
                    yield Fault.of(event, message, argument="load_best_model_at_end")


def _fault(event: Called) -> str | None:
    evaluates = next((name for name in _ANY if name in event.given.keywords), _ANY[0])
    evaluated = word_of(said(event, evaluates), "no")
    saved = word_of(said(event, "save_strategy"), "steps")
    if evaluated is None or saved is None or saved == "best" or any(name in event.given.keywords for name in _OLD):
        return None
    if evaluated == "no":
        return f'nothing is evaluated, as `{evaluates}` is "no" by default: there is no best model to load'
    if evaluated != saved:
        return f'the model is evaluated by "{evaluated}" and saved by "{saved}": the best one may not be saved'
    return _by_steps(event) if evaluated == "steps" else None


def _by_steps(event: Called) -> str | None:
    steps, logged = said(event, "eval_steps"), said(event, "logging_steps")
    every = steps if steps is not None else logged
    saved, evaluated = number_of(said(event, "save_steps")), number_of(every)
    saved = 500 if said(event, "save_steps") is None else saved
    evaluated = 500 if every is None else evaluated
    if saved is None or evaluated is None or min(saved, evaluated) < 1 or isinstance(every, Unknown):
        return None
    if saved % evaluated == 0:
        return None
    return f"the model is saved every {saved} steps and evaluated every {evaluated}: no multiple of these"
