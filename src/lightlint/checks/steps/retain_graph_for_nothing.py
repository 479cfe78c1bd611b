from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Backward, Differentiated
from lightlint.explore.queries import in_batch, sure
from lightlint.facts.bindings import Kind
from lightlint.facts.loops import LoopKind
from lightlint.facts.outer_graphs import OuterGraphs
from lightlint.finding import Applicability
from lightlint.fixes.edits import remove_argument

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


_AGAIN = {"backward", "manual_backward", "grad", "register_hook", "hessian", "jacobian", "vjp", "jvp"}


class RetainGraphForNothing(Check):
    def visit_Call(self, call: cst.Call) -> None:
        kept = self.names.argument(call, "retain_graph", 1)
        loops = self.tree.loops(call)
        if not self.loops.is_backward(call) or kept is None or self.names.constant(kept.value) is not True or not loops:
            return
        if self.names.argument(call, "create_graph") is not None or self.loops.kind(loops[0]) is not LoopKind.BATCH:
            return
        others = [each for each in self.tree.all(cst.Call) if each is not call and self.names.method(each) in _AGAIN]
        if not others and self._is_made_here(call, loops[0]):
            self.report(
                call,
                "keeps what the forward pass saved, and nothing goes back over it again",
                repair=Repair("free the graph", remove_argument(self.code, call, kept), Applicability.UNSAFE),
            )

    def _is_made_here(self, backward: cst.Call, loop: cst.CSTNode) -> bool:
        """Whether each iteration computes its loss anew, of nothing that the one before left behind."""
        receiver = backward.func.value if isinstance(backward.func, cst.Attribute) else None
        if not isinstance(receiver, cst.Name):
            return False
        pending: list[cst.CSTNode] = [receiver]
        parts = list[cst.CSTNode]()
        inside = {
            name.value
            for target in self.tree.own(loop, cst.AssignTarget)
            for name in self.tree.within(target.target, cst.Name)
        }
        seen: set[str] = set()
        while pending:
            parts.append(part := pending.pop())
            for name in self.tree.within(part, cst.Name):
                if name.value in seen or name.value not in inside:
                    continue
                seen.add(name.value)
                for each in self.facts.reaching.bindings(name):
                    site = self.tree.statement(each.site)
                    if each.kind is Kind.AUGMENT or (site is not None and not self.tree.contains(loop, site)):
                        return False  # carried over from before the iteration
                    if each.value is not None:
                        pending.append(each.value)
        if receiver.value not in seen or self._writes_state(loop):
            return False
        return not OuterGraphs(self.facts, loop).may_be_used(parts)

    def _writes_state(self, loop: cst.CSTNode) -> bool:
        """Whether functions of this file keep something in attributes that may carry a graph into the next iteration."""
        bodies = self.facts.steps.bodies(loop)
        forwards = [each.body for each in self.tree.all(cst.FunctionDef) if each.name.value == "forward"]
        targets = [t.target for body in (*bodies, *forwards) for t in self.tree.within(body, cst.AssignTarget)]
        return any(isinstance(each, (cst.Attribute, cst.Subscript)) for each in targets)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Graphs that a pass has kept and no later one goes over, on each path."""
        again: set[Backward] = set()
        for path in entry.paths:
            kept: list[Backward] = []
            for event in path.events:
                if isinstance(event, (Backward, Differentiated)):
                    again |= {each for each in kept if each.graph & event.graph or _is_open(event)}
                    kept += [event] if isinstance(event, Backward) and event.kept else []
        yield from (
            Fault.at(event, "keeps what the forward pass saved, and nothing goes back over it again")
            for event in sure(entry, Backward, lambda each: _is_kept(each) and each not in again)
        )


def _is_kept(event: Backward) -> bool:
    graphs = not any(graph.escaped for graph in event.graph)
    known = event.loss is not None and not event.loss.mixed and bool(event.graph)
    return event.kept and known and graphs and in_batch(event.where)


def _is_open(event: Backward | Differentiated) -> bool:
    """Whether a pass may go over more than is known of."""
    loss = event.loss if isinstance(event, Backward) else None
    return not event.graph or (loss is not None and loss.mixed)
