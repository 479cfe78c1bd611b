"""Which metrics callbacks and schedulers watch, and which way they take for better."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.bindings import Kind
from lightlint.facts.dicts import Given

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

CHECKPOINT = "lightning.callbacks.ModelCheckpoint"
STOPPING = "lightning.callbacks.EarlyStopping"
_PLACES = {CHECKPOINT: (2, None), STOPPING: (0, 4)}  # positions of `monitor` and `mode` that no release has moved
_TRACKED_ALWAYS = {"epoch", "step"}  # ModelCheckpoint adds them to what it can monitor


@dataclass(frozen=True, slots=True)
class Monitor:
    """A metric that is watched. `key` and `mode` are None where they are out of sight or can be several.

    `call` makes the callback or the scheduler, None where a loop does with options written elsewhere; `kept` is its
    `save_top_k`, `place` where it is written: the call, or the pair of class and options. `written` is the expression of the key, `mode_written` that of the mode,
    None where the default holds.
    """

    watcher: str
    call: cst.Call | None
    place: cst.BaseExpression
    written: cst.BaseExpression
    key: str | None
    mode: str | None
    mode_written: cst.BaseExpression | None
    kept: Given


class Monitors:
    """The monitors of one file."""

    def __init__(self, facts: FileFacts) -> None:
        self._tree = facts.tree
        self._names = facts.names
        self._dicts = facts.dicts
        self._strings = facts.strings
        self._configured = facts.configured
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
        monitor, mode = _PLACES[name]
        given = self._dicts.argument(call, "monitor", monitor).value
        if given is None:
            return None
        key = self.only(given)
        if name == CHECKPOINT and key in _TRACKED_ALWAYS:
            return None
        kept = self._dicts.argument(call, "save_top_k")
        return self._made(name, call, given, self._dicts.argument(call, "mode", mode), kept)

    @cached_property
    def registered(self) -> tuple[Monitor, ...]:
        """What callbacks watch that a loop makes of classes and options: `cls(**options) for cls, options in PAIRS`."""
        pairs = [pair for call in self._tree.all(cst.Call) for pair in self._pairs(call)]
        return tuple(monitor for pair in dict.fromkeys(pairs) if (monitor := self._of_pair(pair)))

    def _pairs(self, call: cst.Call) -> list[cst.BaseExpression]:
        """The pairs from which a call takes its class and, by two stars, all of its arguments."""
        options = call.args[0].value if len(call.args) == 1 and call.args[0].star == "**" else None
        if not isinstance(call.func, cst.Name) or not isinstance(options, cst.Name):
            return []
        made, given = (self._names.bindings.lookup(each) for each in (call.func, options))
        if len(made) != 1 or len(given) != 1 or made[0].kind is not Kind.LOOP or made[0].value is not given[0].value:
            return []
        paths, drawn = (made[0].path, given[0].path), made[0].value
        method = self._names.method(drawn)
        if paths != (((1, 0), (1, 1)) if method == "items" else ((0,), (1,))):
            return []
        if isinstance(drawn, cst.Call) and isinstance(drawn.func, cst.Attribute) and method in {"items", "values"}:
            held = self._dicts.held(drawn.func.value)
            return list(held.values.values()) if held is not None and held.perhaps == frozenset() else []
        found = self._names.bindings.lookup(drawn) if isinstance(drawn, cst.Name) else []
        display = found[0].value if len(found) == 1 and not found[0].path else drawn
        return [each.value for each in display.elements] if isinstance(display, (cst.List, cst.Tuple)) else []

    def _of_pair(self, pair: cst.BaseExpression) -> Monitor | None:
        parts = [each.value for each in pair.elements] if isinstance(pair, cst.Tuple) else []
        name = self._names.of(parts[0]) if len(parts) == 2 else None
        held = self._dicts.held(parts[1]) if name in _PLACES else None
        written = held.values.get("monitor") if held is not None else None
        if name is None or held is None or written is None:
            return None
        mode, kept = (Given(held.values.get(w), w in held.values or held.lacks(w)) for w in ("mode", "save_top_k"))
        return self._made(name, None, written, mode, kept, pair)

    def of_schedulers(self, node: cst.ClassDef) -> tuple[Monitor, ...]:
        """What the `ReduceLROnPlateau` schedulers that a LightningModule hands to the Trainer watch."""
        found = []
        for returned in self._configured.of_class(node):
            for scheduler in returned.schedulers:
                entries = scheduler.config or scheduler.beside
                written = entries.values.get("monitor") if entries else None
                for origin in scheduler.origins:
                    if written is not None and origin.call is not None and self._configured.is_plateau(origin):
                        mode = self._dicts.argument(origin.call, "mode", 1)
                        found.append(self._made("ReduceLROnPlateau", origin.call, written, mode, Given(None)))
        return tuple(found)

    @cached_property
    def keys(self) -> frozenset[str]:
        """The keys that are surely watched: in this file, and by callbacks of the files that train with what it defines."""
        own = [monitor.key for monitor in self.callbacks]
        for node in self._tree.all(cst.ClassDef):
            own += [monitor.key for monitor in self.of_schedulers(node)]
        others = [self._project.summary(path).calls for path in self._project.users(self._path, "Trainer")]
        found = [
            call.arguments.get("monitor", call.positional[_PLACES[call.name][0] : _PLACES[call.name][0] + 1])
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

    def _made(
        self,
        name: str,
        call: cst.Call | None,
        written: cst.BaseExpression,
        mode: Given,
        kept: Given,
        place: cst.BaseExpression | None = None,
    ) -> Monitor:
        direction = self.only(mode.value) if mode.value is not None else "min" if mode.sure else None
        where, watcher = place or call or written, name.rpartition(".")[2]
        return Monitor(watcher, call, where, written, self.only(written), direction, mode.value, kept)
