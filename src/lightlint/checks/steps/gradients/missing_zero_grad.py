from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Backward, Cleared, Stepped
from lightlint.explore.questions.queries import identity, in_batch, in_sight
from lightlint.finding import Applicability
from lightlint.fixes.edits import Draft, insert_after, insert_before
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Site

_MESSAGE = "nothing clears the gradients between two steps: each step uses the sum over all batches so far"

_OPTIMIZING = ("torch.optim", "optim.")  # words of files that make optimizers


class MissingZeroGrad(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Gradients that a step has used, added to by the next backward pass and used again; no path clears them."""
        for again in _faults(entry):
            if entry.turned or not self._clears_untried(entry, again.step):
                yield Fault.at(again.step, _MESSAGE, again.backward.site)

    def _clears_untried(self, entry: Entry, step: Stepped) -> bool:
        """Whether the function of a step has a call that clears, and that no path came to before the budget was spent."""
        node = self.node_of(step.site)
        calls = self.tree.within(self.tree.owner(node), cst.Call) if node is not None else ()
        tried = {self.facts.rehearsed.span(event.site) for event in entry.of(Cleared)}
        clears = (each for each in calls if self.names.method(each) == "zero_grad")
        return any(self.facts.positions.span(each) not in tried for each in clears)

    def wants_users(self) -> tuple[str, ...]:
        """Where an optimizer that an entry is given steps so: it may be one of another kind."""
        given = (again for entry in self.facts.rehearsed.entries for again in _faults(entry, given=True))
        return _OPTIMIZING if any(getattr(again.step.optimizer, "assumed", False) for again in given) else ()

    def repair(self, node: cst.CSTNode, fault: Fault) -> Repair | None:
        optimizer = self._optimizer(node)
        if optimizer is None or not isinstance(node, cst.Call):
            return None
        name = self.code.text_of(optimizer)
        draft = self._draft(node, optimizer, self.node_of(fault.also[0]))
        return Repair(f"call `{name}.zero_grad()`", draft, Applicability.UNSAFE)

    def _optimizer(self, step: cst.CSTNode) -> cst.BaseExpression | None:
        """`opt` of `opt.step()` and of `scaler.step(opt)`."""
        if not isinstance(step, cst.Call) or not isinstance(step.func, cst.Attribute):
            return None
        given = [arg.value for arg in step.args if arg.keyword is None and not arg.star]
        return given[0] if given and isinstance(given[0], (cst.Name, cst.Attribute)) else step.func.value

    def _draft(self, call: cst.Call, optimizer: cst.BaseExpression, backward: cst.CSTNode | None) -> Draft | None:
        """The call in front of the one backward pass beside the step, else behind the step."""
        clear, statement = f"{self.code.text_of(optimizer)}.zero_grad()", self.tree.statement(call)
        if not isinstance(statement, cst.BaseSmallStatement):
            return None
        first = self.tree.statement(backward) if backward is not None else None
        if isinstance(first, cst.BaseSmallStatement):
            beside = self._block(first) is self._block(statement)
            early = self.tree.order(first) < self.tree.order(statement)
            if beside and early and not self._is_bound_behind(first, optimizer):
                return insert_before(self.code, first, clear)
        return insert_after(self.code, statement, clear)

    def _block(self, statement: cst.BaseSmallStatement) -> cst.CSTNode | None:
        return self.tree.parent(self.tree.parent(statement) or statement)

    def _is_bound_behind(self, statement: cst.BaseSmallStatement, optimizer: cst.BaseExpression) -> bool:
        """Whether a name in an expression gets its value behind a statement of its function: it is not to be used there."""
        names = self.tree.within(optimizer, cst.Name)
        sites = [each.site for name in names for each in self.names.bindings.lookup(name)]
        return any(
            self.tree.owner(site) is self.tree.owner(statement) and self.tree.order(site) > self.tree.order(statement)
            for site in sites
        )


class _Again(NamedTuple):
    """A step on gradients of which some were used by an earlier one, and the backward pass that added to them."""

    step: Stepped
    before: Stepped
    parameter: Tensor
    backward: Backward


def _faults(entry: Entry, *, given: bool = False) -> Iterator[_Again]:
    """Steps by gradients of before, of parameters that nothing clears, or only something outside of their loop; also by
    optimizers that the entry was `given`."""
    cleared: dict[Hashable, set[Site]] = {}
    often: set[Hashable] = set()
    for event in entry.of(Cleared):
        for each in event.parameters if not event.implicit else ():
            cleared.setdefault(identity(each), set()).update(turn.loop.site for turn in event.where.turns)
            often |= {identity(each)} if in_batch(event.where) else set()
    for path in entry.paths:
        for again in _again(path):
            parameter, step = again.parameter, again.step
            if parameter.gradient_changed or parameter.escaped or step.via == "lightning":
                continue
            known = identity(parameter)
            rarely = known not in (often if in_batch(step.where) else cleared)
            if (given or in_sight([step.optimizer])) and (rarely or _is_kept(again, cleared[known])):
                yield again


def _is_kept(again: _Again, cleared: set[Site]) -> bool:
    """Whether both steps are turns of one loop, and gradients are cleared outside of it alone."""
    turns, before = again.step.where.turns, again.before.where.turns
    same = bool(turns and before) and turns[:-1] == before[:-1] and turns[-1].loop is before[-1].loop
    return same and turns[-1].loop.site not in cleared


def _again(path: Path) -> Iterator[_Again]:
    """The steps that are not the first with their parameters, where one still held what an earlier step had used."""
    added: set[Tensor] = set()
    used: dict[Tensor, Stepped] = {}
    stale: dict[Tensor, Backward] = {}
    for event in path.events:
        if isinstance(event, Backward):
            added |= set(event.parameters)
            stale |= {each: event for each in event.parameters if each in used}
        elif isinstance(event, Cleared):
            for each in event.parameters:
                added.discard(each)
                used.pop(each, None)
                stale.pop(each, None)
        elif isinstance(event, Stepped):
            first = next((each for each in event.parameters if each in stale), None)
            if first is not None:
                yield _Again(event, used[first], first, stale[first])
            for each in event.parameters:
                stale.pop(each, None)
            used |= {each: event for each in event.parameters if each in added}
