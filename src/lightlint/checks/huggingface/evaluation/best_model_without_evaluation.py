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
        apart = tier_since(self.facts, "transformers", _COMPARES)
        for event in calls_of(entry):
            if is_on(said(event, "load_best_model_at_end")):
                for message, tier in _faults(partial(said, event), set(event.given.keywords), apart):
                    yield Fault.of(event, message, tier=tier, argument="load_best_model_at_end")
        for parsed in entry.of(SettingsParsed):
            settings = parsed.settings
            site = _field(settings, "load_best_model_at_end")
            if site is None or settings.escaped or not is_on(settings.attributes.get("load_best_model_at_end")):
                continue
            for message, _ in _faults(settings.attributes.get, set(settings.attributes), apart):
                if not any(self._is_said_elsewhere(name) for name in (*_ANY, "save_strategy")):
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


def _faults(said_of: _Said, names: set[str], apart: Tier | None) -> Iterator[tuple[str, Tier | None]]:
    """What keeps the best model from being known, with its tier, None for the page's.

    Args:
        said_of: what an argument is given.
        names: the arguments that are given.
        apart: the tier of strategies that differ, None where they may.
    """
    evaluates = next((name for name in _ANY if name in names), _ANY[0])
    evaluated = word_of(said_of(evaluates), "no")
    saved = word_of(said_of("save_strategy"), "steps")
    if evaluated is None or saved is None or saved == "best" or any(name in names for name in _OLD):
        return
    if evaluated == "no":
        yield f'nothing is evaluated, as `{evaluates}` is "no" by default: there is no best model to load', None
    elif apart is not None and evaluated != saved:
        yield f'the model is evaluated by "{evaluated}" and saved by "{saved}": the best one may not be saved', apart
    elif apart is not None and evaluated == "steps" and (message := _by_steps(said_of)):
        yield message, apart


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
