from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Called
from lightlint.facts.lightning.training import ENTRY_POINTS
from lightlint.finding import Tier
from lightlint.values.core import Class, Library, Sequence, Value
from lightlint.values.training import Instance

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_PARTS = ("callbacks", "strategy")
_SHARED = "lightning.fabric."  # both packages have these from a third


class MixedLightningImports(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """What a Trainer of the other package is made with or gets, however it comes to it."""
        for event in entry.of(Called):
            trainer = event.receiver
            if trainer is None or trainer.kind != "trainer" or event.name not in ENTRY_POINTS:
                continue
            package = _package(trainer)
            for name, value in event.given.by_name().items() if package else ():
                if told := _told(value, package):
                    yield Fault.of(event, told, argument=name)
            for part in _parts(trainer) if package else ():
                told, site = _told(part, package), part.site
                if told and site is not None:
                    works = part.kind == "callback" and not part.name.endswith("ModelCheckpoint")
                    yield Fault(site, told, Tier.NOTE if works else None)


def _parts(trainer: Instance) -> Iterator[Instance]:
    for given in (trainer.arguments.get(each) for each in _PARTS):
        yield from (
            each for each in (given.items if isinstance(given, Sequence) else [given]) if isinstance(each, Instance)
        )


def _told(value: Value, package: str) -> str:
    """What is wrong with a value for a Trainer of a package, nothing where it may be of the same."""
    own = _package(value) if isinstance(value, Instance) else ""
    if not isinstance(value, Instance) or own in ("", package):
        return ""
    return f"`{value.name}` comes from `{own}`, the Trainer from `{package}`"


def _package(value: Instance) -> str:
    """The one package of Lightning that the class of an object comes from, empty for none and where a `try` chooses."""
    lineage = value.cls.lineage() if isinstance(value.cls, Class) else [value.cls]
    libraries = [each for each in lineage if isinstance(each, Library) and each.path.startswith("lightning.")]
    found = {each.package for each in libraries if not each.path.startswith(_SHARED)}
    return found.pop() if len(found) == 1 else ""
