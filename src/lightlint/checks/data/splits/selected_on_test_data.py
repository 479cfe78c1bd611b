from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Called, Forward, Logged, Stepped, Written
from lightlint.explore.questions.evaluation import evaluated_loaders
from lightlint.explore.questions.logged import STOPPING, monitor_of, spellings_of
from lightlint.explore.questions.queries import identity_of
from lightlint.models.python.files import REPORTING
from lightlint.values.core import Constant, Library, Sequence, is_constant, text_of
from lightlint.values.training import Instance, Loader

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Value

_TRAINING = re.compile("(?:on_)?train")
_MESSAGE = (
    "the data that says which epoch is the best is the data of the final test: its result is the best of many tries"
)


class SelectedOnTestData(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Data that a model is selected on while it trains, and tested on afterwards."""
        yield from self._of_trainer(entry)
        loaders = evaluated_loaders(entry)
        if len(loaders) < 2:
            return
        for path in entry.paths:
            kept = [event for event in path.of(Written) if event.name not in REPORTING]
            if not any("better" in each.traits for event in kept for each in event.where.conditions):
                continue
            for first, last in _same_data(path, {each: loader for each, (loader, _) in loaders.items()}):
                if first.site is not None:
                    yield Fault(first.site, _MESSAGE, None, (last.site,) if last.site is not None else ())

    def _of_trainer(self, entry: Entry) -> Iterator[Fault]:
        """A Trainer that validates and tests with one loader, or with two of one data set, and keeps the best."""
        for fit in entry.calls.get(".fit", ()):
            validated = _data(fit.argument("val_dataloaders", 2))
            trainer = fit.receiver
            watching = _watching(entry, trainer) if isinstance(trainer, Instance) and trainer.kind == "trainer" else ()
            if validated is None or not watching:
                continue
            if _data(fit.argument("train_dataloaders", 1)) is validated:  # one graph, of which masks choose the parts
                continue
            tests = [each for each in entry.calls.get(".test", ()) if each.receiver is trainer and each.time > fit.time]
            same = [each for each in tests if _data(each.argument("dataloaders", 1)) is validated]
            stops = any(isinstance(each.cls, Library) and each.cls.path == STOPPING for each in watching)
            chosen = stops or not any(_is_last(fit, each) for each in same)
            if (
                same and chosen and len(same) == len(tests)
            ):  # else another one is the final test, and this a second look
                yield Fault.at(fit, _MESSAGE, *(each.site for each in same))


def _watching(entry: Entry, trainer: Instance) -> list[Instance]:
    """What surely keeps, or stops at, what a Trainer's validation says is the best."""
    held = trainer.arguments.get("callbacks")
    given = held.items if isinstance(held, Sequence) else [held]
    found = [(each, monitor_of(each)) for each in given if isinstance(each, Instance)]
    return [each for each, key in found if key is not None and not _is_of_training(entry, key)]


def _is_of_training(entry: Entry, key: str) -> bool:
    """Whether a metric is one that training steps log, and no validation."""
    hooks = {event.where.hook for event in entry.of(Logged) if text_of(event.name) in spellings_of(key)}
    return all(_TRAINING.match(each) for each in hooks) if hooks else bool(_TRAINING.search(key))


def _is_last(fit: Called, test: Called) -> bool:
    """Whether what is tested is the model as training left it, whatever was kept as the best."""
    model, kept = test.argument("model", 0), test.argument("ckpt_path", 2)
    plain = kept is None or is_constant(kept, None)
    return plain and model is not None and model is fit.argument("model", 0)


def _data(value: Value | None) -> Value | None:
    return value.data if isinstance(value, Loader) else None


def _same_data(path: Path, loaders: dict[Hashable, Loader]) -> Iterator[tuple[Loader, Loader]]:
    """Loaders of one data set of which one is evaluated between steps, and only the other after the last step."""
    steps = path.of(Stepped)
    turns = {turn.loop for event in steps for turn in event.where.turns}
    between: dict[Hashable, tuple[Loader, Forward]] = {}
    after: dict[Hashable, tuple[Loader, Forward]] = {}
    trained = [each.batch_of for event in path.of(Forward) if event.training for each in event.inputs]
    train_data = [each.data for each in trained if each is not None]  # one graph, of which masks choose the parts
    for event in path.of(Forward):
        for loader in {each.batch_of for each in event.inputs} - {None}:
            assert loader is not None
            if identity_of(loader) in loaders and not event.training:
                inside = any(turn.loop in turns for turn in event.where.turns)
                (between if inside else after).setdefault(identity_of(loader), (loader, event))
    for mine, (first, _) in between.items():
        for other, (last, event) in after.items():
            alike = (
                first.data is last.data
                and not any(each is first.data for each in train_data)
                and not isinstance(first.data, (Constant, type(None)))
            )
            if alike and mine != other and other not in between and steps and event.time > steps[-1].time:
                yield first, last
