from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Called, CalledUnknown
from lightlint.engine.events.huggingface import Rewarded, TalkAsked
from lightlint.values.core import Sequence

if TYPE_CHECKING:
    from lightlint.engine.events import Event
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Site, Value

_SEARCHES = ("search", "match", "fullmatch", "findall", "finditer", "split", "sub", "subn")


class MessagesSearchedAsText(Check):
    users_with = ("Trainer",)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Reward functions that take the messages of a completion for a text."""
        found = [_asked_in(path) for path in entry.paths if path.of(Rewarded)]
        everywhere = set.intersection(*map(set, found)) if found else set()  # a version may have its prompts made texts
        for faults in found:
            yield from (fault for site, fault in faults.items() if site in everywhere)


def _asked_in(path: Path) -> dict[Site, Fault]:
    found: dict[Site, Fault] = {}
    for event in path.of(Rewarded):
        for each in event.inside:
            asked, raises = _asked_as_text(each)
            if asked:
                what = "raises" if raises else "finds nothing"
                message = f"the prompts are messages, and so is a completion: {asked} {what} in this list, whose `content` is the text"
                found[each.site] = Fault.at(each, message, event.site)
    return found


def _asked_as_text(event: Event) -> tuple[str, bool]:
    """What messages are asked for that only a text has, and whether that raises."""
    if isinstance(event, TalkAsked):
        return event.asked, event.raises
    if isinstance(event, Called) and event.path.startswith("re.") and any(map(_is_talk, event.given.values())):
        return f"`{event.path}`", True
    if isinstance(event, CalledUnknown) and getattr(event.callee, "hint", "") in _SEARCHES:
        return (f"`{getattr(event.callee, 'hint', '')}`", True) if any(map(_is_talk, event.values)) else ("", False)
    return "", False


def _is_talk(value: Value) -> bool:
    return isinstance(value, Sequence) and value.talk
