"""What TrainingArguments say, as a call of them says it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.engine.events import Called
from lightlint.models.names.huggingface import ARGUMENTS
from lightlint.models.names.kinds import kind_of
from lightlint.values.core import Library, Unknown, Value, text_of

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.training import Instance


def calls_of(entry: Entry) -> Iterator[Called]:
    """The calls that make TrainingArguments, or the configuration of one of TRL's trainers."""
    for path, events in entry.calls.items():
        if kind_of(path) == ARGUMENTS:
            yield from events


def call_of(entry: Entry, settings: Instance | None) -> Called | None:
    """The call that made some TrainingArguments."""
    return next((each for each in calls_of(entry) if settings is not None and each.site == settings.site), None)


def said(event: Called, *names: str) -> Value | None:
    """What a call says under one of some names, None for the default, unknown where a dict out of sight may say it."""
    found = next((each for name in names if (each := event.given.keywords.get(name)) is not None), None)
    if found is None:
        return None if event.given.exact else Unknown()
    return found if event.given.exact or names[0] in event.given.sure() else Unknown()


def word_of(value: Value | None, default: str) -> str | None:
    """A setting that is a word, also as a member of an enumeration; None where it is unknown."""
    if value is None:
        return default
    if isinstance(value, Library):
        return value.last.lower()
    return text_of(value)
