from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events.huggingface import SettingsParsed
from lightlint.explore.questions.training_arguments import calls_of, said, word_of
from lightlint.facts.project.mentions import is_mentioned_elsewhere
from lightlint.facts.releases.hugging_face import tier_since
from lightlint.finding import Tier
from lightlint.frameworks.huggingface.values import is_on
from lightlint.values.core import Class, Unknown, number_of, site_of

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Site, Value
    from lightlint.values.training import Instance

_ANY = ("eval_strategy", "evaluation_strategy")
_COMPARES = "4.9"  # before, the save strategy was put aside: each evaluation saved the model
_OLD = ("evaluate_during_training", "do_eval")
_Said = Callable[[str], "Value | None"]


class BestModelWithoutEvaluation(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """TrainingArguments that are to keep the best model, and evaluate never, or at other times than they save."""
        tier = tier_since(self.facts, "transformers", _COMPARES)
        for event in calls_of(entry):
            if is_on(said(event, "load_best_model_at_end")):
                never = _never_evaluated(partial(said, event), set(event.given.keywords))
                message = never or (tier and _evaluated_apart(partial(said, event), set(event.given.keywords)))
                if message is not None:
                    yield Fault.of(event, message, tier=None if never else tier, argument="load_best_model_at_end")
        for parsed in entry.of(SettingsParsed):
            settings = parsed.settings
            site = _field(settings, "load_best_model_at_end")
            if site is None or settings.escaped or not is_on(settings.attributes.get("load_best_model_at_end")):
                continue
            message = _never_evaluated(settings.attributes.get, set(settings.attributes))
            message = message or (tier and _evaluated_apart(settings.attributes.get, set(settings.attributes)))
            if message is not None and not any(self._is_said_elsewhere(name) for name in (*_ANY, "save_strategy")):
                yield Fault(site, message, Tier.WARNING, (parsed.site,))

    def _is_said_elsewhere(self, name: str) -> bool:
        """Whether a script or another file may hand an argument to the command line."""
        return is_mentioned_elsewhere(self.facts.project, self.facts.source, name)


def _field(settings: Instance, name: str) -> Site | None:
    """Where a class of the program gives an argument its default."""
    for cls in settings.cls.lineage() if isinstance(settings.cls, Class) else ():
        if isinstance(cls, Class):
            for field, _, default in cls.fields:
                if field == name and default is not None:
                    return site_of(cls.file, default)
    return None


def _strategies(said_of: _Said, names: set[str]) -> tuple[str, str | None, str | None]:
    """The name that the evaluation strategy goes by, what it is, and the save strategy; None for unknown."""
    evaluates = next((name for name in _ANY if name in names), _ANY[0])
    evaluated = word_of(said_of(evaluates), "no")
    saved = word_of(said_of("save_strategy"), "steps")
    if saved is None or saved == "best" or any(name in names for name in _OLD):
        return evaluates, None, None
    return evaluates, evaluated, saved


def _never_evaluated(said_of: _Said, names: set[str]) -> str | None:
    evaluates, evaluated, _ = _strategies(said_of, names)
    if evaluated != "no":
        return None
    return f'nothing is evaluated, as `{evaluates}` is "no" by default: there is no best model to load'


def _evaluated_apart(said_of: _Said, names: set[str]) -> str | None:
    _, evaluated, saved = _strategies(said_of, names)
    if evaluated is None or evaluated == "no":
        return None
    if evaluated != saved:
        return f'the model is evaluated by "{evaluated}" and saved by "{saved}": the best one may not be saved'
    return _by_steps(said_of) if evaluated == "steps" else None


def _by_steps(said_of: _Said) -> str | None:
    steps, logged = said_of("eval_steps"), said_of("logging_steps")
    every = steps if steps is not None else logged
    saved, evaluated = number_of(said_of("save_steps")), number_of(every)
    saved = 500 if said_of("save_steps") is None else saved
    evaluated = 500 if every is None else evaluated
    if saved is None or evaluated is None or min(saved, evaluated) < 1 or isinstance(every, Unknown):
        return None
    if saved % evaluated == 0:
        return None
    return f"the model is saved every {saved} steps and evaluated every {evaluated}: no multiple of these"
