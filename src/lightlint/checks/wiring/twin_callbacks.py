from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.monitors import CHECKPOINT, STOPPING
from lightlint.facts.names import UNKNOWN
from lightlint.facts.world import TRAINER

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
    def visit_Call(self, trainer: cst.Call) -> None:
        if self.names.of(trainer.func) != TRAINER or self.facts.lightning.may_be_below("1.6"):
            return
        seen: dict[tuple[object, ...], cst.Call] = {}
        for made in self.facts.training.callbacks(trainer) or ():
            key = self._state_key(made) if self._surely_joins(made, trainer) else None
            if key is None or seen.setdefault(key, made) is made:
                continue
            short = (self.names.of(made.func) or "").rpartition(".")[2]
            watched = f" that watches `{key[1]}`" if isinstance(key[1], str) else ""
            self.report(made, f"a second `{short}`{watched}: a Trainer takes only one of each")

    def _surely_joins(self, made: cst.Call, trainer: cst.Call) -> bool:
        """Whether no condition of its own stands between a callback and the Trainer: one of two branches may add it."""
        held = self.facts.conditions(trainer)
        return all(condition in held for condition in self.facts.conditions(made))

    def _state_key(self, made: cst.Call) -> tuple[object, ...] | None:
        """The kind and settings by which a checkpoint names a callback's state; None where they are out of sight."""
        name = self.names.of(made.func) or ""
        settings = _STATE_KEYS.get(name)
        if settings is None or self.names.has_star(made):
            return None
        places = {"monitor": 2 if name == CHECKPOINT else 0}
        key: list[object] = [name]
        for setting, default in settings.items():
            given = self.names.argument(made, setting, places.get(setting))
            key.append(default if given is None else self.names.constant(given.value))
        return None if UNKNOWN in key or any(isinstance(each, list) for each in key) else tuple(key)
