from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.checks.modules.checkpoints.wrapped_state_dict_prefix.lightning_checkpoints import LightningCheckpoints
from lightlint.checks.modules.checkpoints.wrapped_state_dict_prefix.lightning_elsewhere import LightningElsewhere
from lightlint.checks.modules.checkpoints.wrapped_state_dict_prefix.saved_elsewhere import (
    PREPARED,
    WRAPPERS,
    saved_elsewhere,
    source_of,
    states_in,
)
from lightlint.checks.modules.checkpoints.wrapped_state_dict_prefix.saved_states import SavedStates
from lightlint.engine.events import Called, StateLoaded, StateTaken
from lightlint.finding import Applicability, Tier
from lightlint.fixes.edits import replace
from lightlint.values.core import Mapping, Unknown
from lightlint.values.training import Module

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.facts.linked import Linked
    from lightlint.values.core import Value


class WrappedStateDictPrefix(Check):
    def visit_Module(self, _: cst.Module) -> None:
        states = SavedStates(self.facts)
        loads = list(states.bare_loads())
        if not loads or states.knows_prefixes():
            return
        for save in self.tree.all(cst.Call):
            for keys, state in states.of(save):
                prefix = states.prefix(state)
                load = next((call for call, _, under in loads if under == keys), None)
                if prefix and load is not None and states.all_have(keys, prefix):
                    self._report_save(state, prefix, load)
        checkpoints, elsewhere = LightningCheckpoints(self.facts), LightningElsewhere(self.facts)
        for load, read, keys in loads:
            self._check_elsewhere(load, read, keys)
            self._check_beside(load, read, keys)
            found = checkpoints.wrapped(load, read, keys) or elsewhere.wrapped(load, read, keys)
            if found is not None:
                self.report(
                    load,
                    f"the keys that Lightning saves of `{found.module}` start with `{found.attribute}.`: "
                    f"the load into a bare `{found.network}` {self._effect(load)}",
                )

    def _report_save(self, state: cst.Call, prefix: str, load: cst.Call) -> None:
        if not isinstance(state.func, cst.Attribute):
            return
        model, row = state.func.value, self.facts.source.locate(self.facts.span(load)[0]).row
        text, inner = self.code.text_of(model), prefix.rpartition(".")[0]
        self.report(
            state,
            f"the keys that `{text}` saves start with `{prefix}`: the load into the bare model in line {row} "
            f"{self._effect(load)}",
            repair=Repair("save the model inside", replace(self.code, model, f"{text}.{inner}"), Applicability.UNSAFE),
        )

    def _check_elsewhere(self, load: cst.Call, read: cst.Call, keys: tuple[str, ...]) -> None:
        """A file that another one of the project saves, by the name of the path that this one imports from it."""
        path = self.names.argument(read, "f", 0)
        module, _, constant = (self.names.of(path.value) or "" if path is not None else "").rpartition(".")
        other = self.facts.of_module(module) if module else None
        states = SavedStates(other) if other is not None else None
        if states is None or other is None or states.knows_prefixes():
            return
        saved = states.under_constant(constant, keys)
        if saved is not None:
            self._report_saved(load, constant, other, saved)

    def _check_beside(self, load: cst.Call, read: cst.Call, keys: tuple[str, ...]) -> None:
        """A file that another one in the folder saves to the same path: where several do, all with the prefix."""
        given = self.names.argument(read, "f", 0)
        path = self.names.constant(given.value) if given is not None else None
        if not isinstance(path, str) or next(SavedStates(self.facts).saves_to(path), None) is not None:
            return
        project, here = self.facts.project, self.facts.path
        near = [
            each for each in project.mentioning("optim.", "DataLoader") if each != here and each.parent == here.parent
        ]
        texts = [(each, project.text(each)) for each in near]
        linked = [self.facts.other(each) for each, text in texts if path in text and "torch.save" in text]
        rooms = [(other, SavedStates(other)) for other in linked if other is not None]
        found = [
            (other, states, states.under_text(path, keys)) for other, states in rooms if any(states.saves_to(path))
        ]
        if not found or any(states.knows_prefixes() or state is None for _, states, state in found):
            return
        other, _, state = found[0]
        if state is not None:
            self._report_saved(load, path, other, state)

    def _report_saved(self, load: cst.Call, path: str, other: Linked, saved: tuple[cst.CSTNode, str]) -> None:
        """Report a load of what another file saves with a prefix before its keys."""
        row = other.source.locate(other.span(saved[0])[0]).row
        self.report(
            load,
            f"the keys in `{path}` start with `{saved[1]}`, as line {row} of {other.path.name} saves them: "
            f"the load into the bare model {self._effect(load)}",
        )

    def _effect(self, load: cst.Call) -> str:
        strict = self.names.argument(load, "strict", 1)
        is_lax = strict is not None and self.names.constant(strict.value) is False
        return "loads none of them" if is_lax else "raises RuntimeError"

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """States of a wrapper under a key and path from which a bare module is loaded."""
        if SavedStates(self.facts).knows_prefixes():
            return
        for path in entry.paths:
            loads = [event for event in path.of(StateLoaded) if _is_bare(event)]
            taken = {event.time: event for event in path.of(StateTaken)}
            for save in path.of(Called):
                content = save.argument("obj", 0) if save.path == "torch.save" else None
                for key, state in states_in(content).items():
                    source = taken.get(state.made) if isinstance(state, Mapping) else None
                    load = next((each for each in loads if _is_from(each, key, save)), None)
                    wrapper = self._wrapper(state)
                    if source is not None and wrapper and load is not None:
                        effect = f"the load into the bare model in line {load.site[1]} raises RuntimeError"
                        message = f"the keys that the wrapper saves start with `module.`{_when(wrapper)}: {effect}"
                        yield Fault.at(source, message, tier=_tier(wrapper))
            for load in loads:
                saved = saved_elsewhere(self.facts, entry, load)
                if saved is not None and self._wrapper(saved.state):
                    place = f"line {saved.site[1]} of {Path(saved.site[0]).name} saves them"
                    keys = f"the keys in `{saved.path}` start with `module.`{_when(saved.wrapper)}, as {place}"
                    yield Fault.at(
                        load, f"{keys}: the load into the bare model raises RuntimeError", tier=_tier(saved.wrapper)
                    )

    def _wrapper(self, state: Value | None) -> str:
        """How a wrapper came about whose state has its prefix; empty for no wrapper, or for one that may be none."""
        name = state.source.wrapper if isinstance(state, Mapping) and isinstance(state.source, Module) else ""
        return name if name in WRAPPERS and (name != PREPARED or not self.facts.world.is_run_alone) else ""


def _when(wrapper: str) -> str:
    return " where several processes train" if wrapper == PREPARED else ""


def _tier(wrapper: str) -> Tier | None:
    return Tier.WARNING if wrapper == PREPARED else None


def _is_bare(event: StateLoaded) -> bool:
    """Whether a state from a file is loaded into a module that nothing wraps."""
    known = isinstance(event.state, (Unknown, Mapping))
    return known and isinstance(event.object, Module) and not event.object.wrapper


def _is_from(load: StateLoaded, key: object, save: Called) -> bool:
    """Whether a load reads what a save writes, under the same key."""
    read, under = source_of(load)
    to = save.argument("f", 1)
    same = to is not None and read is not None and to.key is not None and to.key == read.key
    return same and under == key
