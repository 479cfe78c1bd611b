from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.facts.lightning.monitors import CHECKPOINT, STOPPING
from lightlint.facts.ranks.world import TRAINER
from lightlint.values.core import Constant, Library, Sequence
from lightlint.values.training import Instance

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

# what tells the states of two callbacks of one kind apart in a checkpoint
_STATE_KEYS = {
    CHECKPOINT: {
        "monitor": None,
        "mode": "min",
        **dict.fromkeys(("every_n_train_steps", "train_time_interval", "every_n_epochs")),
    },
    STOPPING: {"monitor": None, "mode": "min"},
}


class TwinCallbacks(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        for event in entry.calls.get(TRAINER, ()) if not self.facts.lightning.may_be_below("1.6") else ():
            given = event.argument("callbacks")
            seen: dict[tuple[object, ...], Instance] = {}
            for made in given.items if isinstance(given, Sequence) else ():
                key = _told_apart(made) if isinstance(made, Instance) else None
                if (
                    key is None
                    or not isinstance(made, Instance)
                    or seen.setdefault(key, made) is made
                    or made.site is None
                ):
                    continue
                watched = f" that watches `{key[1]}`" if isinstance(key[1], str) else ""
                message = f"a second `{made.name}`{watched}: a Trainer takes only one of each"
                yield Fault(made.site, message, of_call=True)


def _told_apart(made: Instance) -> tuple[object, ...] | None:
    """The kind and settings by which a checkpoint names a callback's state; None where they are out of sight."""
    name = made.cls.path if isinstance(made.cls, Library) else ""
    settings = _STATE_KEYS.get(name)
    if settings is None or made.open_arguments:
        return None
    key: list[object] = [name]
    for setting, default in settings.items():
        given = made.arguments.get(setting)
        if given is not None and not isinstance(given, Constant):
            return None
        key.append(default if given is None else given.value)
    return tuple(key)
