from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Appended, Backward, Differentiated, Emptied, Summed
from lightlint.explore.questions.queries import goes_nowhere, in_batch
from lightlint.facts.code.bindings import Kind, unpacked
from lightlint.facts.data.loops import LoopKind
from lightlint.facts.graphs.autograd import Graph
from lightlint.facts.lightning.hooks import TRAINING_STEP
from lightlint.facts.steps.keepers import Keeper
from lightlint.finding import Applicability, Tier
from lightlint.fixes.edits import join, wrap
from lightlint.values.core import Sequence, number_of
from lightlint.values.training import Tensor, tensors_in

if TYPE_CHECKING:
    from lightlint.engine.frames import Turn
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Site

_FEW = 8  # things that a list may hold for as long as a function runs


class GraphKeptByAccumulation(Check):
    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        self._check(node)

    def visit_Assign(self, node: cst.Assign) -> None:
        self._check(node)

    def visit_Call(self, call: cst.Call) -> None:
        if isinstance(self.tree.parent(call), cst.Expr):
            self._check(call)
            self._check_meter(call)

    def _check_meter(self, call: cst.Call) -> None:
        """An object of this file that adds what it is given to a sum of its own: `losses.update(loss, n)`."""
        if not isinstance(call.func, cst.Attribute) or self.classes.is_self(call.func.value):
            return
        callee = self.facts.steps.callee(call)
        if callee is None or self.tree.class_of(callee) is None or self.loops.per_batch(self._around(call)) is None:
            return
        for statement in self.tree.own(callee.body, cst.AugAssign, cst.Assign):
            keeper = self.facts.keepers.of(statement)
            if keeper is None or any(map(self.facts.keepers.cuts, keeper.values)):
                continue
            trained, leaves = self.facts.keepers.reaches(keeper)
            if trained or self.facts.gradients.may_be_off(statement):
                continue
            words = [word for value in keeper.values for word in self.tree.within(value, cst.Name)]
            for word in words:
                bound = self.facts.reaching.bindings(word)
                if len(bound) != 1 or bound[0].kind is not Kind.PARAMETER:
                    continue
                given = self.values.given(callee, call, word.value)
                graphs = self.facts.gradients.graphs(given) if given is not None else []
                if graphs and given is not None and (not leaves or all(graph.freed for graph in graphs)):
                    self.report(
                        call,
                        f"`{self.code.text_of(call.func)}` keeps the autograd graph of every `{self.code.text_of(given)}`",
                        repair=self._repair(graphs),
                    )
                    return

    def _around(self, call: cst.Call) -> cst.CSTNode:
        """A call, or the outermost of the loops around it that only go through what a dict holds."""
        node: cst.CSTNode = call
        for loop in self.tree.loops(call):
            if not isinstance(loop, cst.For) or self.names.method(loop.iter) not in {"items", "values"}:
                break
            node = loop
        return node

    def _check(self, node: cst.CSTNode) -> None:
        keeper = self.facts.keepers.of(node)
        if keeper is None or self._is_average(keeper) or self.facts.gradients.may_be_off(node):
            return
        if isinstance(keeper.loop, cst.For) and _holds_few(self.values.iterated(keeper.loop.iter)):
            return
        graphs = [graph for value in keeper.values for graph in self.facts.gradients.graphs(value)]
        if not graphs or self._is_of_one_batch(keeper):
            return
        freed = all(graph.freed for graph in graphs)
        trained, leaves = self.facts.keepers.reaches(keeper)
        if trained or (not freed and not self._is_kept_for_nothing(keeper, leaves=leaves)):
            return
        what = self.code.text_of(graphs[0].node)
        whole = "" if freed else ", with all that its backward pass would need"
        self.report(
            node,
            f"`{keeper.key}` keeps the autograd graph of every `{what}`{whole}",
            tier=self._tier(keeper, freed=freed),
            repair=self._repair(graphs),
        )

    def _is_average(self, keeper: Keeper) -> bool:
        """Whether a module keeps an average of what its layers give, graphs and all; it is reported then."""
        kept = self._averaged(keeper)
        if kept:
            message = f"`{keeper.key}` keeps the autograd graph of every `{self.code.text_of(kept[0])}`"
            cut = join(*(wrap(self.code, each, "", ".detach()") for each in kept))
            self.report(keeper.node, message, repair=Repair("detach what is kept", cut, Applicability.UNSAFE))
        return bool(kept)

    def _averaged(self, keeper: Keeper) -> list[cst.BaseExpression]:
        """What an average of a module is made of that has a graph."""
        return [*self.facts.averages.carried(keeper)] if not keeper.is_list and keeper.loop is None else []

    def _is_of_one_batch(self, keeper: Keeper) -> bool:
        """Whether each batch begins it anew, for the losses of a few networks."""
        around = [each for each in self.tree.loops(keeper.node) if each is not keeper.loop]
        batches = [each for each in around if self.loops.kind(each) is LoopKind.BATCH]
        return "." not in keeper.key and any(
            self.names.key(target) == keeper.key and not (keeper.loop and self.tree.contains(keeper.loop, assign))
            for each in batches
            for assign in self.tree.own(each.body, cst.Assign)
            for given in assign.targets
            for target, _, _ in unpacked(given.target, assign.value)
        )

    def _repair(self, graphs: Collection[Graph]) -> Repair | None:
        if any(graph.held for graph in graphs):
            return None
        return Repair(
            "detach what is kept",
            join(*(wrap(self.code, graph.node, "", ".detach()") for graph in graphs)),
            Applicability.SAFE if all(graph.tensor for graph in graphs) else Applicability.UNSAFE,
        )

    def _is_kept_for_nothing(self, keeper: Keeper, *, leaves: bool) -> bool:
        """Whether no backward pass outside of sight can be what the graphs are kept for: this one trains or evaluates.

        What a step begins anew goes with its batch.
        """
        if keeper.loop is None or ("." not in keeper.key and self._is_in_step(keeper)):
            return False
        if self.facts.steps.runs(keeper.loop.body, self.loops.is_backward) or not leaves:
            return True
        calls = self.tree.own(self.tree.owner(keeper.node), cst.Call)
        return any(self.names.method(call) == "eval" and not call.args for call in calls)

    def _tier(self, keeper: Keeper, *, freed: bool) -> Tier:
        function = self.tree.function(keeper.node)
        if freed:
            in_step = self._is_in_step(keeper)
            short = "." not in keeper.key or self.facts.keepers.is_emptied(
                keeper
            )  # a local name, or emptied each epoch
            few = self.facts.keepers.is_restarted(keeper) or self._is_one_update(keeper) or self._goes_over_nets(keeper)
            return Tier.NOTE if (in_step and short) or few else Tier.WARNING
        if keeper.loop is not None and self.facts.steps.runs(keeper.loop.body, self.loops.is_backward):
            return Tier.WARNING
        uncalled = function is not None and not self.facts.steps.calls_of.get(function)
        return Tier.NOTE if uncalled else Tier.ERROR  # others may call it under `no_grad()`

    def _is_in_step(self, keeper: Keeper) -> bool:
        function = self.tree.function(keeper.node)
        hook = self.hooks.of(function) if function is not None else None
        return hook is not None and hook.name == TRAINING_STEP

    def _goes_over_nets(self, keeper: Keeper) -> bool:
        """Whether the loop goes over networks, each with an optimizer of its own: it gives that a step."""
        if not isinstance(keeper.loop, cst.For) or "." in keeper.key:
            return False
        turned = {name.value for name in self.tree.within(keeper.loop.target, cst.Name)}
        calls = filter(self._steps, self.tree.own(keeper.loop.body, cst.Call))
        return any(isinstance(each.func, cst.Attribute) and self.names.key(each.func.value) in turned for each in calls)

    def _is_one_update(self, keeper: Keeper) -> bool:
        """Whether the loop only adds up the gradients of one update: the optimizer of its function steps behind it."""
        loop = keeper.loop
        if loop is None or "." in keeper.key or self.facts.steps.runs(loop.body, self._steps):
            return False
        inside = self.facts.steps.runs(loop.body, self.loops.is_backward)
        calls = self.tree.own(self.tree.owner(keeper.node), cst.Call)
        return bool(inside) and any(map(self._steps, calls))

    def _steps(self, call: cst.Call) -> bool:
        return self.names.method(call) == "step"

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Sums and lists that hold the graphs of iterations whose backward pass is over, or that nothing goes backward through."""
        used = {
            event.site
            for event in entry.of(Summed)
            if not event.consumed_before and not goes_nowhere(event.result.graph)
        }
        trained = [event.loss for event in entry.of(Backward) if event.loss is not None]
        gone_over = {site for loss in trained for site in (loss.site, *(each for each, _ in loss.sums))}
        needed = {site for path in entry.paths for site in _needed(path)}
        for path in entry.paths:
            sums = {event.site for event in path.of(Summed)}
            for event in path.of(Summed):
                if any(_is_around(each, event.site) for each in sums):  # its terms are told with it
                    continue
                graphs = event.before.graph
                kept = event.carried and in_batch(event.where) and goes_nowhere(event.result.graph)
                if kept and not event.consumed_before and gone_over & {event.site, *_of_terms(event)}:
                    continue  # another way through the same loop goes backward over what has come together
                open_ended = event.consumed_before or kept
                if event.site in used or event.before.escaped or event.result.escaped or not graphs or not open_ended:
                    continue
                if any(graph.used for graph in event.waiting):
                    continue  # its own terms are gone over later: an earlier pass has freed what they share
                keeper = self._keeper_around(self.node_of(event.site))
                told = keeper is not None and bool(self._averaged(keeper))  # by `_is_average`
                of_one = in_batch(event.where) and not event.earlier  # one that runs on is told in the next batch
                if not (told or of_one) and not any(graph.open for graph in graphs):
                    restarted = keeper is not None and self.facts.keepers.is_restarted(keeper)
                    tier = Tier.NOTE if restarted else None
                    yield Fault.at(event, "the sum keeps the autograd graph of every iteration alive", tier=tier)
            yield from (
                Fault.at(event, "the list keeps the autograd graph of every iteration alive")
                for event in _kept(path)
                if event.site not in needed
            )

    def _keeper_around(self, node: cst.CSTNode | None) -> Keeper | None:
        """What keeps a sum, by the statement that makes it."""
        around = (node, *self.tree.ancestors(node)) if node is not None else ()
        statement = next((each for each in around if isinstance(each, (cst.AugAssign, cst.Assign))), None)
        return self.facts.keepers.of(statement) if statement is not None else None


def _of_terms(event: Summed) -> set[Site | None]:
    """Where what is added was made."""
    terms = event.result.terms[1] if event.result.terms is not None else ()
    return {each.site for each in terms if isinstance(each, Tensor)}


def _is_around(outer: Site, inner: Site) -> bool:
    """Whether an expression or statement is another's part."""
    begins, ends = outer[1:3] <= inner[1:3], inner[3:] <= outer[3:]
    return outer != inner and outer[0] == inner[0] and begins and ends


def _holds_few(over: cst.CSTNode) -> bool:
    """Whether a loop goes over a few things that stand there."""
    parts = over.elements if isinstance(over, (cst.List, cst.Tuple)) else ()
    return 0 < len(parts) <= _FEW and not any(isinstance(each, cst.StarredElement) for each in parts)


def _needed(path: Path) -> Iterator[Site]:
    """Where tensors go into lists whose graphs a pass behind the loop goes over: as those of the tasks of a meta-learner."""
    later: list[Backward | Differentiated] = [*path.of(Backward), *path.of(Differentiated)]
    for event in path.of(Appended) if later else ():
        graphs = frozenset(graph for each in tensors_in(event.value) for graph in each.graph)
        turns = len(event.where.turns)
        if graphs and any(e.time > event.time and len(e.where.turns) < turns and e.graph & graphs for e in later):
            yield event.site


def _is_short(turn: Turn) -> bool:
    """Whether a loop goes over a few things that stand there, as the two networks of a pair, or a few times around."""
    over, times = turn.loop.over, number_of(turn.loop.bound)
    if times is not None:
        return times <= _FEW
    if turn.loop.known:
        return turn.loop.turn <= _FEW
    return isinstance(over, Sequence) and not over.more and len(over.items) <= _FEW


def _kept(path: Path) -> Iterator[Appended]:
    """The second time that a tensor with a freed graph goes into a list which is older than the loop and never emptied."""
    emptied = {id(event.container) for event in path.of(Emptied)}
    seen: set[tuple[int, object]] = set()
    for event in path.of(Appended):
        container = event.container
        held = [each for each in tensors_in(event.value) if each.graph and not each.escaped]
        if (
            all(any(graph.open for graph in each.graph) for each in held)
            or container.escaped
            or container.kind == "deque"
            or all(map(_is_short, event.where.turns[container.depth :]))
            or any(turn.loop.kind == "batch" for turn in event.where.turns[: container.depth])
        ):
            continue
        if container.made and container.depth < len(event.where.turns) and id(container) not in emptied:
            if (id(container), event.site) in seen and event.consumed_before:
                yield event
            seen.add((id(container), event.site))
