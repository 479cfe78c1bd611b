"""States of a wrapper that another program of the project saves to the path from which this one loads a bare model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lightlint.engine.events import Called, StateLoaded, StateTaken, Written
from lightlint.values.core import Mapping, Unknown, text_of, written
from lightlint.values.training import Module

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.facts.file import FileFacts
    from lightlint.values.core import Site, Value

PREPARED = "accelerate"
"""What an Accelerator prepares: it is wrapped where several processes train."""
WRAPPERS = ("ddp", "data-parallel", PREPARED)
"""The wrappers that hold a model as `module`."""


class Saved(NamedTuple):
    """What another file saves of a wrapper: where, and under which path."""

    site: Site
    state: Mapping
    wrapper: str
    path: str


def source_of(load: StateLoaded) -> tuple[Value | None, object]:
    """The path that a state was read from, and under which key it was there."""
    held = load.state.loaded if isinstance(load.state, (Unknown, Mapping)) else None
    call, under = held if isinstance(held, tuple) else (held, None)
    return (call.argument("f", 0) if isinstance(call, Called) else None), under


def states_in(content: Value | None) -> dict[object, Value | None]:
    """The parts of what is saved by their keys; a state that is saved by itself has none."""
    is_dict = isinstance(content, Mapping) and not isinstance(content.source, Module)
    return dict(content.items) if isinstance(content, Mapping) and is_dict else {None: content}


def saved_elsewhere(facts: FileFacts, entry: Entry, load: StateLoaded) -> Saved | None:
    """What another program saves of a wrapper to the path of a load: if all that it saves there is of one."""
    where, key = source_of(load)
    path = text_of(written(where))
    if path is None or not Path(path).suffix or any(_is_to(each, path) for each in entry.of(Written)):
        return None
    found: list[Saved | None] = []
    for other in _writers(facts, path):
        for each in facts.rehearsed.of_other(other):
            found += _saves(each, path, key)
    first = found[0] if found else None
    return first if first is not None and None not in found else None


def _writers(facts: FileFacts, path: str) -> Iterator[Path]:
    """The other programs that train and spell out how a file is called."""
    project, here = facts.project, facts.path
    for each in project.mentioning("optim.", "DataLoader", "Accelerator"):
        text = project.text(each) if each != here else ""
        if Path(path).name in text and "save(" in text:
            yield each


def _saves(entry: Entry, path: str, key: object) -> Iterator[Saved | None]:
    """What an entry saves to a path under a key: None for what is of no wrapper."""
    for way in entry.paths:
        taken = {event.time: event for event in way.of(StateTaken)}
        for event in way.of(Written):
            state = states_in(event.value).get(key) if _is_to(event, path) else None
            if state is None:
                continue
            source = taken.get(state.made) if isinstance(state, Mapping) else None
            model = state.source if isinstance(state, Mapping) else None
            if (
                isinstance(state, Mapping)
                and source is not None
                and isinstance(model, Module)
                and model.wrapper in WRAPPERS
            ):
                yield Saved(source.site, state, model.wrapper, path)
            else:
                yield None


def _is_to(event: Written, path: str) -> bool:
    return text_of(written(event.path)) == path
