"""What a training logs, and what its callbacks and schedules watch."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lightlint.engine.events import Configured, EvaluationGiven, FitStarted, Logged
from lightlint.values.core import Class, Function, Library, Mapping, Sequence, Site, Value, is_constant, text_of
from lightlint.values.training import Instance, Loader

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

CHECKPOINT = "lightning.callbacks.ModelCheckpoint"
STOPPING = "lightning.callbacks.EarlyStopping"
_MONITOR_PLACES = {CHECKPOINT: 2, STOPPING: 0}
_IN_SIGHT = ("lightning.", "torch.", "builtins.", "abc.")
_LOGS = ("log", "log_dict")
_READING = ("callback_metrics", "logged_metrics")
_AFTER = ("test_", "on_test_", "predict_", "on_predict_")
_PER_LOADER = {"validation_step", "on_validation_batch_start", "on_validation_batch_end", "test_step"}
_DERIVED = re.compile(r"(?:/dataloader_idx_\d+|_step|_epoch)$")
_SHOWN = 6


@dataclass(frozen=True)
class Key:
    """One key that is logged: in which hook, whether for single batches only, and with the number of a loader."""

    name: str
    hook: str
    single: bool = False
    numbered: bool = True


@dataclass(frozen=True)
class Monitor:
    """A metric that is watched; `site`: the call, or the dict, that says so."""

    watcher: str
    key: str
    site: Site


def spellings_of(key: str) -> set[str]:
    """A key that is asked for, and what may have been logged for Lightning to have it: `loss` for `loss_epoch`."""
    once = _DERIVED.sub("", key)
    return {key, once, _DERIVED.sub("", once)}


def listed(keys: Set[str]) -> str:
    """The first of some keys, as a message shows them."""
    shown = ", ".join(f"`{key}`" for key in sorted(keys)[:_SHOWN]) or "nothing"
    return shown + (", ..." if len(keys) > _SHOWN else "")


def logged(entry: Entry, fit: FitStarted) -> list[Key] | None:
    """Every key that a training logs; None where one may be out of sight."""
    cls, callbacks = fit.module.cls, fit.callbacks
    if not isinstance(cls, Class) or callbacks is None or any(each.module.escaped for each in entry.of(FitStarted)):
        return None
    if not all(path.finished for path in entry.paths):
        return None
    classes = [cls, *(each.cls for each in callbacks if isinstance(each.cls, Class))]
    bodies = [body for each in classes for body in each.lineage()]
    if not all(_is_known(body) for body in bodies) or cls.find("configure_callbacks") is not None:
        return None
    if any(each.find(name) is not None for each in classes for name in _LOGS):
        return None
    events = [each for each in entry.of(Logged) if each.module.cls is cls]
    if any(text_of(event.name) is None for event in events):
        return None
    found = [_key(event) for event in events]
    rest = list(_written(bodies, events))
    return None if None in rest else [*found, *(each for each in rest if each is not None)]


def _is_known(base: Value) -> bool:
    return isinstance(base, Class) or (isinstance(base, Library) and base.path.startswith(_IN_SIGHT))


def _key(event: Logged) -> Key:
    given = event.keywords
    single = is_constant(given.get("on_epoch"), False)
    numbered = given.get("add_dataloader_idx") is None or is_constant(given.get("add_dataloader_idx"), True)
    return Key(text_of(event.name) or "", event.where.hook, single, numbered and not event.open_keywords)


def _written(bodies: Iterable[Value], events: list[Logged]) -> Iterator[Key | None]:
    """What functions say that they log, of which no rehearsal has shown that they do; None for what is out of sight."""
    places = {site for event in events for site in event.where.places}
    for body in bodies:
        for held in body.names.values() if isinstance(body, Class) else ():
            if isinstance(held, Function) and isinstance(held.node, ast.FunctionDef):
                yield from _said(held, places)


def _said(function: Function, places: set[Site]) -> Iterator[Key | None]:
    node = function.node
    asked = [each for each in ast.walk(node) if isinstance(each, ast.Attribute) and each.attr in (*_LOGS, *_READING)]
    if any(each.attr in _READING for each in asked):
        yield None
    first, last = node.lineno, node.end_lineno or node.lineno
    seen = {site for site in places if site[0] == function.file and first <= site[1] <= last}
    calls = {id(each.func): each for each in ast.walk(node) if isinstance(each, ast.Call)}
    if len(seen) >= len(asked):
        return
    for each in asked:
        yield from _constants(calls.get(id(each)), function.name)


def _constants(call: ast.Call | None, hook: str) -> Iterator[Key | None]:
    """The keys that a call names outright."""
    first = call.args[0] if call is not None and call.args else None
    keys = first.keys if isinstance(first, ast.Dict) else [first]
    for each in keys:
        name = each.value if isinstance(each, ast.Constant) else None
        yield Key(name, hook, numbered=False) if isinstance(name, str) else None


def lost(keys: list[Key]) -> str:
    """Where a key is logged, if that is nowhere from where callbacks of a fit get it; else empty."""
    if all(key.hook.startswith(_AFTER) for key in keys):
        return "in tests only"
    if all(key.single and key.hook in ("validation_step", "test_step") for key in keys):
        return "for single batches of the validation only (`on_epoch=False`)"
    return ""


def is_per_loader(keys: list[Key]) -> bool:
    """Whether a key gets the number of a loader wherever it is logged, as soon as there are several."""
    return all(key.numbered and key.hook in _PER_LOADER for key in keys)


def loader_count(loaders: Value | None) -> int | None:
    """How many loaders there are; None where that is not known."""
    if isinstance(loaders, Loader):
        return 1
    held = loaders.items if isinstance(loaders, (Sequence, Mapping)) and not loaders.more else []
    each = [*held.values()] if isinstance(held, dict) else held
    return len(each) if each and all(isinstance(one, Loader) for one in each) else None


def evaluated_on(entry: Entry, fit: FitStarted) -> int | None:
    """With how many loaders a fit validates; None where that is not known, or differs from path to path."""
    given = [
        event for event in entry.of(EvaluationGiven) if event.module.cls is fit.module.cls and event.entry == "fit"
    ]
    here = [event for event in given if event.site == fit.site]
    counts = {None if event.open else loader_count(event.loaders) for event in here}
    return counts.pop() if len(counts) == 1 else None


def monitors(entry: Entry, fit: FitStarted) -> Iterator[Monitor]:
    """What the callbacks and schedules of a fit watch."""
    for made in fit.callbacks or ():
        key = monitor_of(made)
        tracked = _is_checkpoint(made) and key in ("epoch", "step")
        if key is not None and made.site is not None and not made.open_arguments and not tracked:
            yield Monitor(made.name, key, made.site)
    for event in entry.of(Configured):
        for each in event.schedules if event.module is fit.module else ():
            holder = each.config or each.beside
            key = text_of(holder.items.get("monitor")) if holder is not None else None
            if each.schedule.name == "ReduceLROnPlateau" and key is not None and holder is not None and holder.site:
                yield Monitor(each.schedule.name, key, holder.site)


def monitor_of(callback: Instance) -> str | None:
    """What one of Lightning's callbacks watches; None for nothing, and for what is out of sight."""
    place = _MONITOR_PLACES.get(callback.cls.path) if isinstance(callback.cls, Library) else None
    return text_of(callback.argument("monitor", place)) if place is not None else None


def _is_checkpoint(callback: Instance) -> bool:
    return isinstance(callback.cls, Library) and callback.cls.path == CHECKPOINT


def file_names(entry: Entry, fit: FitStarted) -> Iterator[tuple[str, Site]]:
    """How the checkpoints of a fit are named."""
    for made in fit.callbacks or ():
        text = text_of(made.argument("filename", 1))
        if _is_checkpoint(made) and text and made.site is not None:
            yield text, made.site
