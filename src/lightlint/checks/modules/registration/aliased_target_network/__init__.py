from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.checks.modules.registration.aliased_target_network.twins import Pair, Twins
from lightlint.engine.events import AttributeSet, ItemSet, ParametersChanged, StateLoaded, Stepped
from lightlint.explore.questions.certain import anyhow
from lightlint.finding import Applicability
from lightlint.fixes.edits import add_import, join, wrap
from lightlint.values.core import Mapping, Site
from lightlint.values.training import Instance, Module

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.training import Tensor

_TARGET = re.compile(r"target(?!s$)", re.IGNORECASE)
_MOVES = {"copy_", "lerp_", "mul_", "add_"}
_LOADING, _MOVING = "loading one's weights into the other", "moving one towards the other"


class AliasedTargetNetwork(Check):
    def visit_Module(self, _: cst.Module) -> None:
        twins = Twins(self.facts)
        told: set[int] = set()
        for moved, source, without in self._meant_as_two(twins):
            if self.names.key(moved) == self.names.key(source) or not twins.same(moved, source):
                continue
            alias = self._alias(twins, moved, source)
            if alias is not None and id(alias[0]) not in told:
                told.add(id(alias[0]))
                self._tell(twins, alias[0], alias[1], f"`{self.names.key(moved)}`", self.names.key(source), without)

    def _tell(self, twins: Twins, value: cst.BaseExpression, shared: bool, key: str, other: str, without: str) -> None:
        module = twins.stripped(value)
        repair = None
        if not shared and isinstance(module, (cst.Name, cst.Attribute)) and not self._is_shallow(value):
            imported = add_import(self.code, self.tree.module, "copy")
            copied = join(wrap(self.code, module, "copy.deepcopy(", ")"), imported)
            repair = Repair("copy the module", copied, Applicability.UNSAFE)
        what = "share their parameters" if self._is_shallow(value) else "are one module"
        self.report(value, f"{key} and `{other}` {what}: {without}", repair=repair)

    def _is_shallow(self, value: cst.BaseExpression) -> bool:
        return any(self.names.call(each) == "copy.copy" for each in self.tree.within(value, cst.Call))

    def _alias(
        self, twins: Twins, moved: cst.BaseExpression, source: cst.BaseExpression
    ) -> tuple[cst.BaseExpression, bool] | None:
        """Where one of two names got the module of the other, and whether that made both names."""
        sources = [twins.source(each) for each in (moved, source)]
        found = [each[0] for each in sources if each is not None]
        if len(found) == 2 and found[0] is found[1]:
            return found[0], True
        second = [each for each in found if isinstance(twins.stripped(each), (cst.Name, cst.Attribute))]
        latest = sorted(found, key=self.tree.order)
        chosen = second[0] if second else latest[-1] if latest else None
        return (chosen, False) if chosen is not None else None

    def _meant_as_two(self, twins: Twins) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression, str]]:
        """The pairs of modules of which one follows the other, with what becomes of that if they are one."""
        for call in self.tree.all(cst.Call):
            if self.names.method(call) == "load_state_dict" and call.args and isinstance(call.func, cst.Attribute):
                given = call.args[0].value
                if self.names.method(given) == "state_dict" and isinstance(given, cst.Call):
                    loaded = given.func.value if isinstance(given.func, cst.Attribute) and not given.args else None
                    for moved, source in twins.pairs(call.func.value, loaded) if loaded is not None else ():
                        yield moved, source, "loading one's weights into the other does nothing"
        for loop in self.tree.all(cst.For):
            for moved, source in self._moved(twins, loop):
                yield moved, source, "moving one towards the other does nothing"
        for moved, source in self._frozen():
            yield moved, source, "the one that should hold still changes with every step"

    def _moved(self, twins: Twins, loop: cst.For) -> Iterator[Pair]:
        """The modules of `for p, q in zip(a.parameters(), b.parameters())` whose body writes into one's parameters."""
        zipped = loop.iter
        if not isinstance(zipped, cst.Call) or self.names.call(zipped) != "builtins.zip" or len(zipped.args) != 2:
            return
        held = [self._module(arg.value) for arg in zipped.args]
        writes = any(self.names.method(each) in _MOVES for each in self.tree.within(loop.body, cst.Call)) or any(
            isinstance(each.target, cst.Attribute) and each.target.attr.value == "data"
            for each in self.tree.within(loop.body, cst.AssignTarget)
        )
        if writes and held[0] is not None and held[1] is not None:
            yield from ((second, first) for first, second in twins.pairs(held[0], held[1]))

    def _module(self, value: cst.BaseExpression) -> cst.BaseExpression | None:
        """The module of `module.parameters()`."""
        if not isinstance(value, cst.Call) or value.args or self.names.method(value) != "parameters":
            return None
        return value.func.value if isinstance(value.func, cst.Attribute) else None

    def _frozen(self) -> Iterator[Pair]:
        """What is called a target and runs without gradients in a step, beside each module that an optimizer trains."""
        runs = [
            call.func
            for call in self.tree.all(cst.Call)
            if isinstance(call.func, (cst.Name, cst.Attribute))
            and _TARGET.search(self.names.key(call.func).rpartition(".")[2])
            and self.facts.gradients.may_be_off(call)
            and any(map(self.loops.is_backward, self.tree.own(self.tree.owner(call), cst.Call)))
        ]
        for call in self.tree.all(cst.Call) if runs else ():
            module = self._module(call)
            above = (each for each in self.tree.ancestors(call) if isinstance(each, cst.Call))
            if module is not None and any(self.values.is_optimizer(each) for each in above):
                room = self.tree.enclosing_class(call) or self.tree.module
                yield from ((run, module) for run in runs if self.tree.contains(room, run))

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Modules under two names of an object, one a target's, that are loaded with their own state or moved towards themselves."""
        found: dict[Site, tuple[AttributeSet, str, str]] = {}
        spared: set[Site] = set()
        for path in entry.paths:
            own = {id(event.object) for event in path.of(StateLoaded) if _is_own(path, event)}
            moved = _moved_to_themselves(path)
            for event in path.of(AttributeSet):
                if not _TARGET.search(event.name):
                    continue
                other = _twin(event)
                if other is None:
                    spared.add(event.site)
                elif id(event.value) in own:
                    found[event.site] = event, other, _LOADING
                elif isinstance(event.value, Module) and not moved.isdisjoint(event.value.parameters()):
                    found[event.site] = event, other, _MOVING
        left = {event: said for site, (event, *said) in found.items() if site not in spared}
        for event in anyhow(left):
            other_name, what = left[event]
            yield Fault.at(event, f"`self.{event.name}` and `self.{other_name}` are one module: {what} does nothing")
        twice = {event: said for path in entry.paths for event, *said in _held_twice(path)}
        for given in anyhow(twice):
            name, what = twice[given]
            yield Fault.at(given, f"the target and `{name}` are one module: {what} does nothing")


def _held_twice(path: Path) -> Iterator[tuple[ItemSet, str, str]]:
    """Where a dict was given a module as a target that it has under another key too, whose parameters or state go into
    themselves; with that key, and what is done for nothing."""
    moved = _moved_to_themselves(path)
    loaded = [event.object for event in path.of(StateLoaded) if _is_own(path, event)]
    for event in path.of(ItemSet) if moved or loaded else ():
        module, key = event.value, event.key
        named = isinstance(key, str) and _TARGET.search(key) is not None
        other = next((each for each, held in event.container.items.items() if held is module and each != key), None)
        if not named or other is None or not isinstance(module, Module):
            continue
        if not moved.isdisjoint(module.parameters()):
            yield event, str(other), _MOVING
        elif any(each is module for each in loaded):
            yield event, str(other), _LOADING


def _moved_to_themselves(path: Path) -> set[Tensor]:
    """The parameters into which something made of themselves is written."""
    changes = path.of(ParametersChanged)
    return {each for event in changes for each in event.parameters if any(each is one for one in event.given)}


def _is_own(path: Path, event: StateLoaded) -> bool:
    """Whether a module is loaded with the state that it has: nothing has changed it since that was taken."""
    state = event.state
    if not isinstance(state, Mapping) or state.source is not event.object:
        return False
    return not any(state.made < each.time < event.time for each in path.of(Stepped))


def _twin(event: AttributeSet) -> str | None:
    """Another attribute of the same object that holds the same value."""
    held = event.object.attributes.items() if isinstance(event.object, Instance) else ()
    return next((name for name, value in held if value is event.value and name != event.name), None)
