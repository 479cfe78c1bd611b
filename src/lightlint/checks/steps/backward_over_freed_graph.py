from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward
from lightlint.explore.queries import in_sight, over_old_sum
from lightlint.facts.bindings import Binding
from lightlint.facts.carried_graphs import cuts
from lightlint.facts.kept_states import RECURRENT, hangs_on, kept_state
from lightlint.facts.tree import Loop
from lightlint.facts.updates import Owner
from lightlint.values.training import Module

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class BackwardOverFreedGraph(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if not self._is_plain_backward(call):
            return
        owner = self.tree.owner(call)
        carried = self._carried_state(call)
        if carried is not None:
            self.report(
                call, f"`{carried}` carries the graph of the iteration before, which is freed: the second pass raises"
            )
            return
        for binding in self.facts.carried_graphs.of(call.func):
            freed = self._freed_by(call, binding, owner)
            if freed is not None:
                what = "the call in the iteration before" if freed is call else f"`{self.code.text_of(freed.func)}()`"
                self.report(call, f"runs through `{binding.name}` again, whose graph {what} has freed")
                return

    def _is_plain_backward(self, call: cst.Call) -> bool:
        """Whether a call is a backward pass by `backward()` that is expected to work."""
        if self.names.method(call) != "backward" or not isinstance(call.func, cst.Attribute):
            return False
        above = self.tree.ancestors(call)
        return not any(
            isinstance(each, (cst.ExceptHandler, cst.Try, cst.With)) and self._expects(each) for each in above
        )

    def _expects(self, node: cst.CSTNode) -> bool:
        """Whether an exception is awaited around a node."""
        if isinstance(node, cst.With):
            return any("aise" in each.value for item in node.items for each in self.tree.within(item.item, cst.Name))
        return True

    def _frees(self, call: cst.Call) -> bool:
        retained = self.names.argument(call, "retain_graph", 1) or self.names.argument(call, "create_graph", 2)
        return retained is None and not self.names.has_star(call)

    def _freed_by(self, call: cst.Call, binding: Binding, owner: Owner) -> cst.Call | None:
        """The backward pass that surely has freed the graph of a binding when `call` runs through it."""
        flow, graphs = self.facts.flow(owner), self.facts.carried_graphs
        tests = {id(test) for test, _ in self.facts.conditions(call)}
        for other in self.tree.own(owner, cst.Call):
            if not self._is_plain_backward(other) or not self._frees(other):
                continue
            if binding.site not in {each.site for each in graphs.of(other.func)}:
                continue
            theirs = {id(test) for test, _ in self.facts.conditions(other)}
            if (theirs <= tests or tests <= theirs) and flow.reaches(other, [call], avoiding=[binding.site]):
                return other
        return None

    def _carried_state(self, call: cst.Call) -> str | None:
        """The recurrent state that a backward pass in a loop runs back through to the iteration before."""
        loops = self.tree.loops(call)
        if not loops or not self._frees(call):
            return None
        loop = loops[0]
        if any(self.tree.contains(loop.body, test) for test, _ in self.facts.conditions(call)):
            return None
        flow = self.facts.flow(self.tree.owner(call))
        for inner in self.tree.own(loop.body, cst.Call):
            state = self._state(inner, loop) or self._kept(inner, loop)
            if state is None or not flow.reaches_in_same_iteration(loop, inner, [call]):
                continue
            if flow.reaches_in_later_iteration(loop, call, [call]) and hangs_on(self.facts, call.func, inner):
                return state
        return None

    def _kept(self, call: cst.Call, loop: Loop) -> str | None:
        """The state that a module which a call runs keeps on itself."""
        return kept_state(self.facts, call, loop) if self.tree.loops(call)[:1] == [loop] else None

    def _state(self, call: cst.Call, loop: Loop) -> str | None:
        """`h` of `out, h = rnn(x, h)`, where the loop does nothing else to it and the network cuts nothing."""
        assign = self.tree.parent(call)
        if not isinstance(assign, cst.Assign) or self.tree.loops(call)[:1] != [loop] or len(call.args) < 2:
            return None
        target = assign.targets[0].target
        if not isinstance(target, cst.Tuple) or len(target.elements) != 2 or self.facts.gradients.may_be_off(call):
            return None
        state = target.elements[1].value
        if not isinstance(state, cst.Name) or not any(self._is_same(arg.value, state) for arg in call.args[1:]):
            return None
        uses = [each for each in self.tree.own(loop.body, cst.Name) if each.value == state.value]
        return state.value if len(uses) == 2 and self._is_recurrent(call) else None

    def _is_same(self, value: cst.BaseExpression, name: cst.Name) -> bool:
        return isinstance(value, cst.Name) and value.value == name.value

    def _is_recurrent(self, call: cst.Call) -> bool:
        """Whether a call runs a recurrent layer, or a module of this file that holds one and cuts nothing."""
        origin = self.values.constructor(call.func)
        if origin is None:
            return False
        if origin.name in RECURRENT:
            return True
        node = self.classes.local(origin.name)
        if node is None or cuts(self.tree, node) or not self.values.is_module(call.func):
            return False
        return any(self.names.call(each) in RECURRENT for each in self.tree.within(node, cst.Call))

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """A loss whose graph holds what an earlier backward pass has freed."""
        for path in entry.paths:
            for event in path.of(Backward):
                if (
                    event.twice
                    and not event.where.phase
                    and event.loss is not None
                    and not over_old_sum(path, event)  # which has a rule of its own
                    and in_sight([event.loss, *_owners(event)])
                ):
                    yield Fault.at(event, "runs through a graph that an earlier backward pass has freed: it raises")


def _owners(event: Backward) -> list[Module]:
    return [each.owner for each in event.parameters if each.owner is not None]
