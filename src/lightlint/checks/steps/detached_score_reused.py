from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, Stepped
from lightlint.explore.queries import in_sight
from lightlint.facts.autograd import KEEPING
from lightlint.facts.bindings import Kind
from lightlint.facts.names import UNKNOWN
from lightlint.facts.updates import Update
from lightlint.values.core import Cut

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


_CUTS = {"detach", "item", "size", "numel", "dim", "tolist"}
_DEPTH = 12


@dataclass(frozen=True, slots=True)
class _Score:
    """What a network gives for a detached value: `d_fake = d(fake.detach())`."""

    name: str
    call: cst.Call
    site: cst.CSTNode
    detached: str


def _reused(earlier: list[Backward], again: Backward, step: Stepped) -> Cut | None:
    """Where the result was detached that both passes hang on, the later one for the optimizer that made it."""
    own = set(step.parameters)
    if again.loss is None or not own & set(again.parameters) or not in_sight([step.optimizer, again.loss]):
        return None
    for event in earlier:
        if event.loss is not None and event.graph & again.graph and not own & set(event.parameters):
            shared = [cut for cut in event.loss.cuts & again.loss.cuts if cut.how == "detach" and cut.parameters & own]
            if shared:
                return shared[0]
    return None


@dataclass(frozen=True, slots=True)
class _End:
    """Where the graph of a value begins: a call of a network, None for what is out of sight; and the names on the way."""

    call: cst.Call | None
    names: tuple[cst.Name, ...] = ()


_Known = dict[tuple[int, int], list[_End]]  # by the `id` of a value, and how far from the start it is


class DetachedScoreReused(Check):
    def visit_Assign(self, assign: cst.Assign) -> None:
        for score in self._scores(assign):
            owner = self.tree.owner(assign)
            flow, updates = self.facts.flow(owner), self.facts.updates.updates(owner)
            backwards = [each for each in self.tree.own(owner, cst.Call) if self.loops.is_backward(each)]
            ours = [each for each in backwards if self._is_of_network_alone(each, score)]
            for first in ours:
                for second in (each for each in backwards if each is not first):
                    steps = [
                        each for each in updates if flow.reaches(first, [each.call], avoiding=[score.site, second])
                    ]
                    later = [each for each in updates if flow.reaches(second, [each.call], avoiding=[score.site])]
                    if flow.reaches(first, [second], avoiding=[score.site]) and self._judge(
                        score, second, steps, later
                    ):
                        return

    def _judge(self, score: _Score, second: cst.Call, steps: list[Update], later: list[Update]) -> bool:
        """Whether another optimizer than the network's, which has stepped already, is given a loss with its old score."""
        stepped, waiting = ({self.names.key(each.optimizer) for each in some} for some in (steps, later))
        use = self._use(second, score, [each.call for each in steps])
        if not stepped or not waiting or stepped & waiting or "" in stepped | waiting or use is None:
            return False
        if any(self.facts.updates.holds(each.optimizer, lambda net: self._is_network(net, score)) for each in later):
            return False
        given, done = self.code.text_of(later[0].optimizer), self.code.text_of(steps[0].optimizer)
        self.report(
            use,
            f"`{score.name}` was computed from `{score.detached}.detach()`, before `{done}` stepped: it gives `{given}` no gradient",
        )
        return True

    def _scores(self, assign: cst.Assign) -> Iterator[_Score]:
        """What an assignment binds to the answer of a network to a detached value, which itself has a graph."""
        for site in self.tree.within(assign, cst.Name):
            for bound in self.names.bindings.lookup(site):
                call = bound.value
                if bound.site is not site or bound.path or not isinstance(call, cst.Call):
                    continue
                detached = [each for each in map(self._detached, call.args) if each is not None]
                if detached and self._is_network_call(call) and self._has_graph(detached[0]) and self._is_cut(call):
                    yield _Score(bound.name, call, site, self.code.text_of(detached[0]))

    def _detached(self, arg: cst.Arg) -> cst.BaseExpression | None:
        """`fake` of an argument `fake.detach()`, also by a name."""
        sources = self.facts.reaching.sources(arg.value)
        func = sources[0].func if len(sources) == 1 and isinstance(sources[0], cst.Call) else None
        return func.value if isinstance(func, cst.Attribute) and func.attr.value == "detach" else None

    def _is_network_call(self, call: cst.Call) -> bool:
        """Whether a call may be one of a network: of an object, not of a function of a library or of this file."""
        return bool(self.names.key(call.func)) and not self.names.of(call.func) and self.hooks.callee(call) is None

    def _has_graph(self, value: cst.BaseExpression) -> bool:
        """Whether a value was computed here by another call, with autograd on."""
        made = [value] if isinstance(value, cst.Call) else self.facts.reaching.sources(value)
        calls = [each for each in made if isinstance(each, cst.Call)]
        networks = [each for each in calls if self._is_network_call(each)]
        return (
            bool(networks) and len(networks) == len(made) and not any(map(self.facts.gradients.is_switched, networks))
        )

    def _is_cut(self, call: cst.Call) -> bool:
        """Whether no other argument brings a graph in."""
        return not any(self._ends(arg.value) for arg in call.args)

    def _is_network(self, net: cst.BaseExpression, score: _Score) -> bool:
        return self.names.key(net).rpartition(".")[2] == self.names.key(score.call.func).rpartition(".")[2]

    def _is_of_network_alone(self, backward: cst.Call, score: _Score) -> bool:
        """Whether all of a loss was given by the network, so that the step behind it is that of the network's optimizer."""
        ends = self._ends(self._loss(backward))
        known = [each.call for each in ends if each.call is not None]
        key = self.names.key(score.call.func)
        return (
            len(known) == len(ends) and score.call in known and all(self.names.key(each.func) == key for each in known)
        )

    def _use(self, backward: cst.Call, score: _Score, steps: list[cst.Call]) -> cst.CSTNode | None:
        """Where a loss takes in the score: the last of the names on the way to it, before those of the steps done."""
        ways = [each.names for each in self._ends(self._loss(backward)) if each.call is score.call]
        if not ways:
            return None
        behind = [name for name in ways[0] if self.tree.order(name) > self.tree.order(steps[0])] if steps else []
        return behind[-1] if behind else backward

    def _loss(self, backward: cst.Call) -> cst.BaseExpression | None:
        """What a backward pass starts from: `loss.backward()`, `self.manual_backward(loss)`."""
        if backward.args and backward.args[0].keyword is None and not self._is_tensor(backward):
            return backward.args[0].value
        return backward.func.value if isinstance(backward.func, cst.Attribute) else None

    def _is_tensor(self, backward: cst.Call) -> bool:
        """Whether a call is `loss.backward(gradient)`: what it is called on is bound by an expression of the function."""
        func = backward.func
        return isinstance(func, cst.Attribute) and self.facts.results.is_tensor(func.value)

    def _ends(self, value: cst.CSTNode | None) -> list[_End]:
        """Where the graph of a value begins; batches, numbers and new tensors have none."""
        return self._ends_of(value, 0, {})

    def _ends_of(self, value: cst.CSTNode | None, depth: int, known: _Known) -> list[_End]:
        """Each once, by the first way to it."""
        if depth > _DEPTH:
            return [_End(None)]
        key = (id(value), depth)
        if key not in known:
            ends: dict[int, _End] = {}
            for end in self._ways(value, depth, known):
                ends.setdefault(id(end.call), end)
            known[key] = [*ends.values()]
        return known[key]

    def _ways(self, value: cst.CSTNode | None, depth: int, known: _Known) -> Iterator[_End]:
        parts: list[cst.CSTNode] = []
        match value:
            case cst.BinaryOperation() | cst.BooleanOperation():
                parts = [value.left, value.right]
            case cst.UnaryOperation():
                parts = [value.expression]
            case cst.IfExp():
                parts = [value.body, value.orelse]
            case cst.Tuple() | cst.List():
                parts = [each.value for each in value.elements]
            case cst.Subscript():
                parts = [value.value]
            case cst.Name() if self.names.constant(value) is UNKNOWN:
                yield from self._of_name(value, depth, known)
            case cst.Call():
                yield from self._of_call(value, depth, known)
        for part in parts:
            yield from self._ends_of(part, depth + 1, known)

    def _of_name(self, name: cst.Name, depth: int, known: _Known) -> Iterator[_End]:
        for each in self.facts.reaching.bindings(name):
            if each.kind in {Kind.ASSIGN, Kind.AUGMENT} and each.scope is self.tree.owner(name):
                for end in self._ends_of(each.value, depth + 1, known):
                    yield _End(end.call, (name, *end.names))

    def _of_call(self, call: cst.Call, depth: int, known: _Known) -> Iterator[_End]:
        method = self.names.method(call)
        if method in _CUTS and isinstance(call.func, cst.Attribute):
            return
        callee = self.hooks.callee(call)
        if callee is not None and any(
            self.names.method(each) in _CUTS for each in self.tree.own(callee.body, cst.Call)
        ):
            yield _End(None)
            return
        on_value = isinstance(call.func, cst.Attribute) and not self.names.of(call.func) and method in KEEPING
        inner = [end for arg in call.args for end in self._ends_of(arg.value, depth + 1, known)]
        if on_value and isinstance(call.func, cst.Attribute):
            inner += self._ends_of(call.func.value, depth + 1, known)
        if inner or on_value:
            yield from inner
        elif self._is_network_call(call) or callee is not None:
            yield _End(call)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Passes that go again over a critic's answer on detached pictures, for an optimizer of who made these."""
        for path in entry.paths:
            earlier: list[Backward] = []
            pending: Backward | None = None
            for event in path.events:
                if isinstance(event, Backward):
                    pending = event
                elif isinstance(event, Stepped) and pending is not None:
                    cut = _reused(earlier, pending, event)
                    if cut is not None:
                        message = "reuses what was computed from a detached result, before its optimizer stepped: it gives the one that steps next no gradient"
                        yield Fault.at(pending, message, cut.site)
                    earlier.append(pending)
                    pending = None
