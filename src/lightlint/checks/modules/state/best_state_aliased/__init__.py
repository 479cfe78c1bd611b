from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.checks.modules.state.best_state_aliased.aliases import is_live_holder, live_parameters, live_state
from lightlint.checks.modules.state.best_state_aliased.changed_weights import TRAINING, ChangedWeights
from lightlint.checks.modules.state.best_state_aliased.last_weights import are_kept_each_round, is_last_item
from lightlint.checks.modules.state.best_state_aliased.restores import restores
from lightlint.engine.events import AttributeSet, CalledUnknown, Event, StateLoaded, StateTaken, Stepped
from lightlint.facts.code.bindings import unpacked
from lightlint.finding import Applicability
from lightlint.fixes.edits import add_import, join, wrap
from lightlint.values.core import Mapping
from lightlint.values.training import Module

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path


class BestStateAliased(Check):
    @property
    def _weights(self) -> ChangedWeights:
        return ChangedWeights(self.facts)

    def visit_Assign(self, assign: cst.Assign) -> None:
        if len(assign.targets) != 1:
            return
        for target, source, path in unpacked(assign.targets[0].target, assign.value):
            shared = self._shared(source) if source is not None and not path else None
            if source is not None and shared is not None and self._weights.is_alias_of_best(assign, target, shared):
                key, model = self.names.key(target), self.code.text_of(shared)
                what = f"it is `{model}` itself" if shared is source else f"it has the weights of `{model}` itself"
                self.report(
                    source,
                    f"`{key}` is no copy: {what}, which training goes on to change",
                    repair=self._repair(shared, "copy the module", Applicability.UNSAFE) if shared is source else None,
                )
            if source is not None and not path:
                self._judge(assign, self.names.key(target), source)

    def _shared(self, source: cst.BaseExpression) -> cst.BaseExpression:
        """The module whose weights a value has: itself, or what it is a shallow copy of."""
        shallow = isinstance(source, cst.Call) and self.names.call(source) == "copy.copy" and len(source.args) == 1
        return source.args[0].value if isinstance(source, cst.Call) and shallow else source

    def _judge(self, assign: cst.Assign, key: str, source: cst.BaseExpression) -> None:
        """`best_state = model.state_dict()` and `best = [p.data for p in model.parameters()]`."""
        live = (live_state(self.tree, self.names, source) or live_parameters(self.names, source)) if key else None
        if live is None or not isinstance(live.func, cst.Attribute):
            return
        holder = live.func.value
        if not is_live_holder(self.values, self.classes, holder) or not self._is_used_late(assign, key, live):
            return
        model = self.code.text_of(holder)
        if self._weights.moves_first_later(assign, self.names.key(holder)) or are_kept_each_round(
            self.facts, assign, key
        ):
            return
        if self._is_fresh(live) or self._holds_place(assign, key) or self._is_rewritten(assign, key):
            return
        self.report(
            source,
            f"`{key}` is no copy: its tensors are the weights of `{model}`, which training goes on to change",
            repair=self._repair(source),
        )

    def visit_Call(self, call: cst.Call) -> None:
        """`states.append(model.state_dict())` in a loop that trains: every item is the same weights."""
        appends = self.names.method(call) == "append" and len(call.args) == 1
        key = self.names.key(call.func.value) if appends and isinstance(call.func, cst.Attribute) else ""
        live = live_state(self.tree, self.names, call.args[0].value) if key else None
        if live is None or not isinstance(live.func, cst.Attribute):
            return
        model = self.code.text_of(live.func.value)
        if is_live_holder(self.values, self.classes, live.func.value) and self._is_gathered(call, key, model):
            self.report(
                live,
                f"`{key}` gathers no copies: every item has the weights of `{model}` as they are after the last step",
                repair=self._repair(live),
            )

    def _is_gathered(self, call: cst.Call, key: str, model: str) -> bool:
        """Whether one model is trained on between two runs of an append, and what it gathers is used behind the loop only."""
        owner, loops = self.tree.owner(call), self.tree.loops(call)
        if not loops or not model.replace(".", "").replace("_", "").isalnum():
            return False
        flow, kills = self.facts.flow(owner), self._weights.rebound(owner, key, model)
        events = [each for each in self.tree.own(owner, cst.Call) if self._weights.changes(each, key, model)]
        between = [each for each in events if flow.reaches(call, [each], avoiding=kills)]
        named = [each for each in self.tree.own(owner, cst.Name, cst.Attribute) if self.names.key(each) == key]
        inside = [each for each in named if self.tree.contains(loops[-1], each)]
        behind = [each for each in named if self.tree.order(each) > self.tree.order(inside[-1])]
        again = any(flow.reaches(each, [call], avoiding=kills) for each in between)
        return again and len(inside) == 1 and any(not is_last_item(self.facts, each) for each in behind)

    def _holds_place(self, assign: cst.Assign, key: str) -> bool:
        """Whether a state only stands in for the first that a loop behind it keeps: what counts is what the loop takes."""
        if self.tree.loops(assign):
            return False
        later = [
            each
            for each in self.tree.own(self.tree.owner(assign), cst.Assign)
            if self.tree.loops(each) and self.tree.order(each) > self.tree.order(assign)
        ]
        targets = [target.target for each in later for target in each.targets]
        return any(
            self.names.key(name) == key for each in targets for name in (each, *self.tree.within(each, cst.Name))
        )

    def _is_rewritten(self, assign: cst.Assign, key: str) -> bool:
        """Whether the entries of a state are given other tensors: `state[name] = tensor.clone()`, `state.update(...)`."""
        owner = self.tree.owner(assign)
        stores = (target.target for each in self.tree.own(owner, cst.Assign) for target in each.targets)
        stored = (each for each in stores if isinstance(each, cst.Subscript) and self.names.key(each.value) == key)
        if any(not _has_fixed_key(each) for each in stored):
            return True
        return any(
            self.names.method(call) == "update"
            and isinstance(call.func, cst.Attribute)
            and self.names.key(call.func.value) == key
            for call in self.tree.own(owner, cst.Call)
        )

    def _is_used_late(self, assign: cst.Assign, key: str, live: cst.Call) -> bool:
        """Whether the model is trained on between the assignment and a use of what it saved."""
        owner = self.tree.owner(assign)
        flow, model = self.facts.flow(owner), self.names.key(getattr(live.func, "value", None))
        kills = self._weights.rebound(owner, key, model)
        calls = [call for call in self.tree.own(owner, cst.Call) if self._weights.changes(call, key, model)]
        events = [event for event in calls if flow.reaches(assign, [event], avoiding=kills)]
        back = [each for each in restores(self.tree, self.names) if (each.kept, each.model) == (key, model)]
        uses = [each.node for each in back if self.tree.owner(each.node) is owner]
        uses += [
            use
            for use in self._uses(owner, key)
            # a list of parameters that is returned or written is one of parameters
            if self.names.method(live) == "state_dict" or self.names.method(use) == "load_state_dict"
        ]
        written = [use for use in uses if self.names.call(use) == "torch.save"]
        same_turn = [use for use in written if self.tree.loops(use) == self.tree.loops(assign)]
        if any(flow.reaches(assign, [use], avoiding=[*kills, *events]) for use in same_turn):
            return False  # written while it is what it was
        if any(flow.reaches(event, uses, avoiding=kills) for event in events):
            return True
        return "." in key and self._is_kept_by_object(assign, key, model)

    def _is_kept_by_object(self, assign: cst.Assign, key: str, model: str) -> bool:
        """Whether a method keeps the best state in an attribute that other code loads later: an early stopper."""
        method, node = self.tree.function(assign), self.tree.enclosing_class(assign)
        if method is None or node is None or not key.startswith("self."):
            return False
        compared = [t for t, _ in self.facts.conditions(assign) if self.tree.within(t, cst.Comparison)]
        attribute = key.rpartition(".")[2]
        loads = [
            call
            for call in self.tree.all(cst.Call)
            if self.names.method(call) == "load_state_dict" and not self._follows(call, assign)
            if any(
                each.attr.value == attribute
                and (not self.classes.is_self(each.value) or self.tree.enclosing_class(call) is node)
                for arg in call.args
                for each in self.tree.within(arg, cst.Attribute)
            )
        ]
        written = [
            each.model
            for each in restores(self.tree, self.names)
            if each.kept.rpartition(".")[2] == attribute and "." in each.kept and not self._follows(each.node, assign)
        ]
        written += [self.names.key(call.func.value) for call in loads if isinstance(call.func, cst.Attribute)]
        return bool(compared and (loads or written)) or (model.startswith("self.") and model in written)

    def _follows(self, call: cst.CSTNode, assign: cst.Assign) -> bool:
        """Whether a call runs behind an assignment within one run of the method that holds both."""
        owner = self.tree.owner(assign)
        return self.tree.owner(call) is owner and self.facts.flow(owner).reaches(assign, [call])

    def _uses(self, owner: cst.CSTNode, key: str) -> Iterator[cst.CSTNode]:
        for call in self.tree.own(owner, cst.Call):
            loads = self.names.method(call) == "load_state_dict" or self.names.call(call) == "torch.save"
            if loads and any(self._weights.mentions(arg, key) for arg in call.args):
                yield call
        for statement in self.tree.own(owner, cst.Return):
            if statement.value is not None and self._returns(statement.value, key):
                yield statement

    def _returns(self, value: cst.BaseExpression, key: str) -> bool:
        parts = [each.value for each in value.elements] if isinstance(value, (cst.Tuple, cst.Dict)) else [value]
        return any(self.names.key(part) == key for part in parts)

    def _repair(
        self, value: cst.BaseExpression, what: str = "copy the tensors", how: Applicability = Applicability.SAFE
    ) -> Repair:
        imported = add_import(self.code, self.tree.module, "copy")
        return Repair(what, join(wrap(self.code, value, "copy.deepcopy(", ")"), imported), how)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """A module's state, taken without a copy, that is loaded back after steps have changed it."""
        message = "this is no copy: its tensors are the weights of the model, which training goes on to change"
        for path in entry.paths:
            stale = (taken for taken in path.of(StateTaken) if _is_stale(path, taken))
            yield from (Fault.at(taken, message) for taken in stale if not _stands_in(entry, path, taken))

    def _is_fresh(self, live: cst.Call) -> bool:
        """Whether the rehearsals took a state that nothing changed before it was loaded, or at all."""
        span, rehearsed = self.facts.positions.span(live), self.facts.rehearsed
        found = [
            (entry, path, taken)
            for entry in rehearsed.entries
            for path in entry.paths
            for taken in path.of(StateTaken)
            if rehearsed.span(taken.site) == span
        ]
        loaded = any(True for _, path, taken in found for _ in _loads(path, taken))
        return bool(found) and not any(
            _is_stale(path, taken) and not _stands_in(entry, path, taken) if loaded else _changes(path, taken)
            for entry, path, taken in found
        )


def _has_fixed_key(stored: cst.Subscript) -> bool:
    index = stored.slice[0].slice if len(stored.slice) == 1 else None
    return isinstance(index, cst.Index) and isinstance(index.value, cst.SimpleString)


def _loads(path: Path, taken: StateTaken) -> Iterator[StateLoaded]:
    """Where a state, or a shallow copy of it, is loaded back into its module."""
    for event in path.of(StateLoaded):
        state = event.state
        same = isinstance(state, Mapping) and state.source is event.object is taken.object
        kept = isinstance(state, Mapping) and state.made == taken.time and not (state.escaped or state.rewritten)
        if same and kept:
            yield event


def _changes(path: Path, taken: StateTaken) -> list[Event]:
    """What changes the weights of a state's module later: steps, and training out of sight."""
    module = taken.object
    weights = set(module.parameters()) if isinstance(module, Module) else set()
    steps: list[Event] = [event for event in path.of(Stepped) if weights & set(event.parameters)]
    steps += [event for event in path.of(CalledUnknown) if module in event.values and _trains(event)]
    return [event for event in steps if event.time > taken.time]


def _trains(event: CalledUnknown) -> bool:
    return TRAINING.search(getattr(event.callee, "hint", "") or getattr(event.callee, "path", "")) is not None


def _is_stale(path: Path, taken: StateTaken) -> bool:
    """Whether a state, or the last one taken at its place, is loaded after its module has changed.

    One that is taken, or kept, where something got better stays while the turns behind it go on to train.
    """
    later = _changes(path, taken)
    if any(event.time < load.time for load in _loads(path, taken) for event in later):
        return True
    kept = (event.where.conditions for event in path.of(AttributeSet) if event.value is taken.state)
    tests = [*taken.where.conditions, *(each for conditions in kept for each in conditions)]
    if not any("better" in each.traits and not each.known for each in tests):
        return False
    loops = {turn.loop for turn in taken.where.turns}
    again = [event for event in later if loops & {turn.loop for turn in event.where.turns}]
    others = [each for each in path.of(StateTaken) if each.site == taken.site and each.object is taken.object]
    loads = [load for other in others for load in _loads(path, other)]
    behind = [load for load in loads if not loops & {turn.loop for turn in load.where.turns}]
    return any(event.time < load.time for load in behind for event in again)


def _stands_in(entry: Entry, path: Path, taken: StateTaken) -> bool:
    """Whether a state is only loaded back where no round got better: the first that does has another in its place."""
    loads = {load.site for load in _loads(path, taken)}
    for other in entry.paths if loads else ():
        same = [each for each in other.of(StateTaken) if each.site == taken.site]
        kept = [each for each in other.of(StateTaken) if each.site != taken.site and _got_better(each)]
        own = {load.site for each in same for load in _loads(other, each)}
        if same and kept and loads & ({event.site for event in other.of(StateLoaded)} - own):
            return True
    return False


def _got_better(event: StateTaken) -> bool:
    return any("better" in each.traits for each in event.where.conditions)
