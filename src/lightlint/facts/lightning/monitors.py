"""Which metrics callbacks and schedulers watch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.lightning.configured import Configured

if TYPE_CHECKING:
    from lightlint.facts.linked import Linked

CHECKPOINT = "lightning.callbacks.ModelCheckpoint"
STOPPING = "lightning.callbacks.EarlyStopping"
_PLACES = {CHECKPOINT: 2, STOPPING: 0}  # positions of `monitor`, which no release has moved
_TRACKED_ALWAYS = {"epoch", "step"}  # ModelCheckpoint adds them to what it can monitor


@dataclass(frozen=True, slots=True)
class Monitor:
    """A metric that is watched.

    `written` is the expression of its key; `key` is None where it is out of sight or can be several.
    """

    watcher: str
    written: cst.BaseExpression
    key: str | None


class Monitors:
    """The monitors of one file."""

    def __init__(self, facts: Linked) -> None:
        self._tree = facts.tree
        self._names = facts.names
        self._dicts = facts.dicts
        self._strings = facts.strings
        self._configured = facts.fact(Configured)
        self._project = facts.project
        self._path = facts.path

    @cached_property
    def callbacks(self) -> tuple[Monitor, ...]:
        """What the checkpoint and early-stopping callbacks made in this file watch."""
        return tuple(monitor for call in self._tree.all(cst.Call) if (monitor := self.of_callback(call)))

    def of_callback(self, call: cst.Call) -> Monitor | None:
        """What a callback's constructor call watches; None for other calls and for callbacks that watch nothing."""
        name = self._names.of(call.func)
        if name not in _PLACES:
            return None
        given = self._dicts.argument(call, "monitor", _PLACES[name]).value
        if given is None:
            return None
        key = self.only(given)
        if name == CHECKPOINT and key in _TRACKED_ALWAYS:
            return None
        return Monitor(name.rpartition(".")[2], given, key)

    def of_schedulers(self, node: cst.ClassDef) -> tuple[Monitor, ...]:
        """What the `ReduceLROnPlateau` schedulers that a LightningModule hands to the Trainer watch."""
        found = []
        for returned in self._configured.of_class(node):
            for scheduler in returned.schedulers:
                entries = scheduler.config or scheduler.beside
                written = entries.values.get("monitor") if entries else None
                for origin in scheduler.origins:
                    if written is not None and origin.call is not None and self._configured.is_plateau(origin):
                        found.append(Monitor("ReduceLROnPlateau", written, self.only(written)))
        return tuple(found)

    @cached_property
    def keys(self) -> frozenset[str]:
        """The keys that are surely watched: in this file, and by callbacks of the files that train with what it defines."""
        own = [monitor.key for monitor in self.callbacks]
        for node in self._tree.all(cst.ClassDef):
            own += [monitor.key for monitor in self.of_schedulers(node)]
        others = [self._project.summary(path).calls for path in self._project.users(self._path, "Trainer")]
        found = [
            call.arguments.get("monitor", call.positional[_PLACES[call.name] : _PLACES[call.name] + 1])
            for calls in others
            for call in calls
            if call.name in _PLACES
        ]
        spelled = [each[0] if isinstance(each, tuple) and each else each for each in found]
        return frozenset(key for key in [*own, *spelled] if isinstance(key, str))

    def only(self, expression: cst.BaseExpression) -> str | None:
        """The one string an expression can be."""
        found = self._strings.possible(expression)
        return next(iter(found)) if found and len(found) == 1 else None
