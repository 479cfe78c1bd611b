from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import HandleUsed, LoaderMade, LoaderWorked
from lightlint.explore.questions.certain import held_anyhow
from lightlint.finding import Tier
from lightlint.models.data.sources import OPENERS
from lightlint.values.core import FALSE, Library, is_constant, number_of, text_of

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.training import Instance, Loader

_LMDB = {"lmdb.open", "lmdb.Environment"}
_READ_AS_ONE = {"sqlite3.connect"}  # came out right when tried with forked readers; its makers still forbid it


class HandleSharedByWorkers(Check):
    users_with = ("DataLoader",)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Files that a worker reads from and that were open before it started."""
        found: list[tuple[Instance, Fault]] = []
        for event in entry.of(LoaderWorked):
            pickles = text_of(event.loader.arguments.get("multiprocessing_context")) in ("spawn", "forkserver")
            for used in event.events:
                handle = used.handle if isinstance(used, HandleUsed) else None
                if handle is None or handle.site is None or handle.made > event.time:
                    continue
                if not pickles and _has_one_reader(entry, handle):
                    continue
                kept = handle.attributes.keys()
                if "#sure" in kept and "#closed" not in kept and not handle.escaped:
                    name = handle.cls.path if isinstance(handle.cls, Library) else ""
                    file = event.site[0]
                    at = next((site for site in (handle.site, *reversed(handle.called_at)) if site[0] == file), None)
                    of = "" if at is not None else f" of {Path(handle.site[0]).name}"
                    message = f"this `{OPENERS[name]}`{of} {_fate(name, pickles=pickles)}"
                    found.append((handle, Fault(at or event.site, message, _tier(name, handle, event.loader))))
        yield from (fault for _, fault in held_anyhow(found, lambda each: each[0].opened_under))


def _has_one_reader(entry: Entry, handle: Instance) -> bool:
    """Whether only one worker ever reads from an open file: every loader asks for one, and nobody else reads once it runs."""
    loaders = {event.loader for event in entry.of(LoaderMade)}
    single = all(is_constant(each.arguments.get("num_workers"), 1) and not each.assumed for each in loaders)
    lasting = any(not is_constant(each.arguments.get("persistent_workers", FALSE), False) for each in loaders)
    if not loaders or not single or (lasting and len(loaders) > 1):
        return False
    begun = [event.time for event in entry.of(LoaderWorked)]
    return not any(used.handle is handle and used.time > min(begun) for used in entry.of(HandleUsed))


def _tier(name: str, handle: Instance, loader: Loader) -> Tier | None:
    if loader.assumed:
        return Tier.NOTE
    sure = bool(number_of(loader.arguments.get("num_workers")))
    unlocked = name in _LMDB and is_constant(handle.arguments.get("lock"), False)
    return Tier.WARNING if name in _READ_AS_ONE or unlocked or not sure else None


def _fate(name: str, *, pickles: bool) -> str:
    if pickles:
        return "is opened before the workers start: it cannot be pickled"
    alone = name in {"h5py.File", *_LMDB, *_READ_AS_ONE}
    return "is shared by all workers, " + ("which it is not made for" if alone else "which move one position in it")
