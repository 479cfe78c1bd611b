from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import (
    AttributeSet,
    BatchDrawn,
    Called,
    Event,
    Forward,
    LoaderMade,
    Logged,
    Looped,
    StateTaken,
    Stepped,
    Written,
)
from lightlint.engine.events.huggingface import TrainerMade
from lightlint.explore.questions.evaluation import evaluated_loaders
from lightlint.explore.questions.logged import STOPPING, monitor_of, spellings_of
from lightlint.explore.questions.queries import identity_of
from lightlint.frameworks.huggingface.rows import SPLIT
from lightlint.models.python.files import REPORTING
from lightlint.values.core import Constant, Library, Sequence, is_constant, text_of
from lightlint.values.training import Instance, Loader

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Site, Value

_TRAINING = re.compile("(?:on_)?train")
_MESSAGE = (
    "the data that says which epoch is the best is the data of the final test: its result is the best of many tries"
)


class SelectedOnTestData(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Data that a model is selected on while it trains, and tested on afterwards."""
        yield from self._of_trainer(entry)
        yield from _of_data_modules(entry)
        yield from _of_hugging_face(entry)
        loaders = evaluated_loaders(entry)
        yield from _beside_unused(entry, {each: loader for each, (loader, _) in loaders.items()})
        if len(loaders) < 2:
            return
        for path in entry.paths:
            if not _keeps_best(path):
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


def _keeps_best(path: Path) -> bool:
    """Whether a checkpoint, or a copy of the weights, is made where a result is better than before."""
    kept: list[Event] = [event for event in path.of(Written) if event.name not in REPORTING]
    kept += path.of(StateTaken)
    return any("better" in each.traits for event in kept for each in event.where.conditions)


def _beside_unused(entry: Entry, evaluated: dict[Hashable, Loader]) -> Iterator[Fault]:
    """Loaders of a part that was set aside of the training data and is drawn from on no path, where the best model is chosen on
    other data that is also tested on in the end."""
    drawn = {identity_of(event.loop.over) for event in entry.of(Looped)}
    drawn |= {identity_of(event.loader) for event in entry.of(BatchDrawn)}
    for path in entry.paths if evaluated else ():
        made = [event for event in path.of(LoaderMade) if event.loader.site is not None]
        trained = {each.batch_of for event in path.of(Forward) if event.training for each in event.inputs}
        bases = {id(whole) for each in trained if each is not None and (whole := _split_of(each)) is not None}
        unused = [
            each for each in made if identity_of(each.loader) not in drawn and id(_split_of(each.loader)) in bases
        ]
        if not unused or not _keeps_best(path) or not all(each.finished for each in entry.paths):
            continue
        steps = path.of(Stepped)
        turns = {turn.loop for event in steps for turn in event.where.turns}
        passes = [(each.batch_of, event) for event in path.of(Forward) for each in event.inputs if not event.training]
        own = [(one, event) for one, event in passes if one is not None and identity_of(one) in evaluated]
        between = {identity_of(one) for one, e in own if any(turn.loop in turns for turn in e.where.turns)}
        after = {identity_of(one) for one, e in own if steps and e.time > steps[-1].time}
        for event in unused if between and between == after else ():
            if not (event.loader.escaped or event.loader.open_arguments):
                message = "nothing draws from this loader: the best model is chosen on the data of the final test, beside a part that was set aside for it"
                yield Fault.at(event, message)


def _split_of(loader: Loader) -> Instance | None:
    """The whole of which `random_split` gave the part that a loader has."""
    data = loader.data
    part = isinstance(data, Instance) and isinstance(data.cls, Library) and data.name == "Subset"
    whole = data.arguments.get("dataset") if isinstance(data, Instance) and part else None
    return whole if isinstance(whole, Instance) else None


def _of_data_modules(entry: Entry) -> Iterator[Fault]:
    """Data modules that make the loaders for validation and for the final test of one data set, and a Trainer that keeps the best."""
    for path in entry.paths:
        calls = path.of(Called)
        fits = [each for each in calls if each.path == "fit" and isinstance(each.receiver, Instance)]
        watching = [one for each in fits if each.receiver is not None for one in _watching(entry, each.receiver)]
        made = {name: each for each in path.of(LoaderMade) for name in _inside(each)}
        first, last = made.get("val_dataloader"), made.get("test_dataloader")
        if (
            not watching
            or first is None
            or last is None
            or any(_is_last(fits[0], each) for each in calls if each.path == "test")
        ):
            continue
        held = [{each.name for each in path.of(AttributeSet) if each.value is one.loader.data} for one in (first, last)]
        trained = made.get("train_dataloader")
        if held[0] & held[1] and not (trained is not None and trained.loader.data is first.loader.data):
            yield Fault(_inside(first)["val_dataloader"], _MESSAGE, None, (_inside(last)["test_dataloader"],))


def _inside(event: LoaderMade) -> dict[str, Site]:
    """The functions in which a loader is made, by their names, and where in each."""
    sites = [*(call.site for call in event.where.calls[1:]), event.site]
    return {call.function.name: site for call, site in zip(event.where.calls, sites, strict=False)}


def _of_hugging_face(entry: Entry) -> Iterator[Fault]:
    """Trainers of Transformers that load the best model by a data set, on which they predict in the end."""
    for path in entry.paths:
        calls = path.of(Called)
        for made in path.of(TrainerMade):
            trainer, settings = made.trainer, made.settings
            best = settings.arguments.get("load_best_model_at_end") if settings is not None else None
            data = trainer.argument("eval_dataset", 4)
            tests = [each for each in calls if each.path == "predict" and each.receiver is trainer]
            same = [each for each in tests if data is not None and each.argument("test_dataset", 0) is data]
            split = data.attributes.get(SPLIT) if isinstance(data, Instance) else None
            named = "test" in (text_of(split) or "")  # else it may be looked at once more
            if is_constant(best, True) and same and len(same) == len(tests) and named:
                event = next((each for each in calls if each.site == made.site and each.receiver is None), same[0])
                yield Fault.of(event, _MESSAGE, argument="eval_dataset")


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
