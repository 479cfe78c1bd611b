from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import HandleUsed, LoaderWorked
from lightlint.explore.questions.certain import held_anyhow
from lightlint.finding import Tier
from lightlint.models.data.sources import OPENERS
from lightlint.values.core import Library, is_constant, number_of, text_of

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
                kept = handle.attributes.keys()
                if "#sure" in kept and "#closed" not in kept and not handle.escaped:
                    name = handle.cls.path if isinstance(handle.cls, Library) else ""
                    file = event.site[0]
                    at = next((site for site in (handle.site, *reversed(handle.called_at)) if site[0] == file), None)
                    of = "" if at is not None else f" of {Path(handle.site[0]).name}"
                    message = f"this `{OPENERS[name]}`{of} {_fate(name, pickles=pickles)}"
                    found.append((handle, Fault(at or event.site, message, _tier(name, handle, event.loader))))
        yield from (fault for _, fault in held_anyhow(found, lambda each: each[0].opened_under))


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
