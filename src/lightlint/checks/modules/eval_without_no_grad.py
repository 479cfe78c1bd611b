from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import BatchDrawn, Forward, ModeSet
from lightlint.explore.queries import goes_nowhere, in_sight
from lightlint.facts.loops import LoopKind
from lightlint.facts.phases import Phases
from lightlint.finding import Applicability
from lightlint.fixes.edits import decorate

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_GRADIENTS = re.compile(r"grad|backward|attack|adversar|saliency|attribut|perturb|adapt|freeze", re.IGNORECASE)
# words of every training step, which say nothing about an evaluation beside it
_ORDINARY = re.compile(r"backward|zero_grad|optimizer_zero_grad|clip_grad_\w+|[Gg]rad_?[Ss]caler|set_to_none")
_DERIVATIVES = {"torch.autograd.grad", "torch.autograd.functional.jacobian", "torch.enable_grad"}
_LOADER = re.compile(r"loaders?(?:$|\[)|(?:^|[._])(?:train|val|valid|test|eval|dev)?_?dl$", re.IGNORECASE)

Owner = cst.FunctionDef | cst.Module


class EvalWithoutNoGrad(Check):
    def visit_Module(self, module: cst.Module) -> None:
        self._judge(module)

    def visit_FunctionDef(self, function: cst.FunctionDef) -> None:
        self._judge(function)

    def _judge(self, owner: Owner) -> None:
        body = owner.body if isinstance(owner, cst.FunctionDef) else owner
        calls = self.tree.own(body, cst.Call)
        modes = [call for call in calls if self.names.method(call) in {"eval", "train"}]
        if not modes:
            return
        backwards = [call for call in calls if self.loops.is_backward(call)]
        found = self._evaluated(owner, calls, modes, backwards) or self._by_switch(owner, calls, modes, backwards)
        if found is not None and not self.facts.gradients.may_be_off(found) and not self._models_take_gradients():
            if self.runs_right(found, Forward, lambda event: event.grad):
                return
            self.report(
                found,
                f"`{self.names.key(found.func)}` is evaluated with gradients recorded: `eval()` does not turn them off",
                repair=self._repair(owner) if not backwards else None,
            )

    def _models_take_gradients(self) -> bool:
        """Whether the forward pass of a module of this file takes derivatives, as one of forces does: those need the graph."""
        forwards = [each for each in self.tree.all(cst.FunctionDef) if each.name.value == "forward"]
        bodies = (body for each in forwards if self.tree.class_of(each) for body in self.facts.steps.bodies(each.body))
        calls = (call for body in bodies for call in self.tree.within(body, cst.Call))
        return any(self.names.of(call.func) in _DERIVATIVES for call in calls)

    def _evaluated(
        self, owner: Owner, calls: list[cst.Call], modes: list[cst.Call], backwards: list[cst.Call]
    ) -> cst.Call | None:
        """The forward pass of a loop behind `eval()`, in a function for it or beside the training."""
        if not backwards and (not isinstance(owner, cst.FunctionDef) or self._needs_gradients(owner)):
            return None
        for mode in modes:
            model = self._receiver(mode)
            if self.names.method(mode) != "eval" or mode.args or not model:
                continue
            passes = [call for call in calls if self.names.key(call.func) == model and self._is_per_batch(call)]
            trains = [each for each in modes if self.names.method(each) == "train" and self._receiver(each) == model]
            for call in passes:
                if self._is_evaluated(owner, mode, call, trains, backwards):
                    return call
        return None

    def _by_switch(
        self, owner: Owner, calls: list[cst.Call], modes: list[cst.Call], backwards: list[cst.Call]
    ) -> cst.Call | None:
        """The forward pass of a loop that trains, or evaluates, as a switch says, and always records."""
        phases = Phases(self.facts)
        switch = phases.switch(owner, backwards) if backwards else None
        if switch is None:
            return None
        models = {self._receiver(mode) for mode in modes if phases.evaluates(mode, switch)} - {""}
        passes = [call for call in calls if self.names.key(call.func) in models and self._is_per_batch(call)]
        passes = [call for call in passes if not phases.asks(call, switch) and not self._speaks_of_gradients(call)]
        return passes[0] if passes else None

    def _receiver(self, mode: cst.Call) -> str:
        return self.names.key(mode.func.value) if isinstance(mode.func, cst.Attribute) else ""

    def _speaks_of_gradients(self, call: cst.Call) -> bool:
        """Whether the loop around a pass, or what it calls, is after gradients otherwise than to train."""
        return self.facts.steps.speaks(self.tree.loops(call)[0].body, _is_unusual)

    def _needs_gradients(self, function: cst.FunctionDef) -> bool:
        """Whether something in the function, or in what it calls, may be after gradients."""
        return _is_of_gradients(function.name.value) or self.facts.steps.speaks(function.body, _is_of_gradients)

    def _is_per_batch(self, call: cst.Call) -> bool:
        loops = self.tree.loops(call)
        if not loops or not isinstance(loops[0], cst.For):
            return False
        drawn = self.values.iterated(loops[0].iter)
        key = self.names.key(drawn.value if isinstance(drawn, cst.Subscript) else drawn)
        return bool(_LOADER.search(key)) or self.loops.kind(loops[0]) is LoopKind.BATCH

    def _is_evaluated(
        self, owner: Owner, mode: cst.Call, call: cst.Call, trains: list[cst.Call], backwards: list[cst.Call]
    ) -> bool:
        """Whether every way to the forward pass leads through `eval()`, and none through `train()` after it; and whether
        some code of the file calls the function, so that its callers are in sight, or it trains by itself."""
        flow = self.facts.flow(owner)
        if self.tree.order(call) < self.tree.order(mode) or not flow.always_before(call, [mode]):
            return False
        if any(flow.reaches(each, [call], avoiding=[mode]) for each in reversed(trains)):
            return False
        if backwards:
            # what the pass gives may go into the loss of a step, unless the model is first told to train
            return not flow.reaches(call, backwards, avoiding=trains) and not self._speaks_of_gradients(call)
        return isinstance(owner, cst.FunctionDef) and bool(self.facts.steps.calls_of.get(owner))

    def _repair(self, function: Owner) -> Repair | None:
        if not isinstance(function, cst.FunctionDef) or function.asynchronous is not None:
            return None
        if self.names.written_in("torch", self.tree.module) != "torch":
            return None
        draft = decorate(self.code, function, "@torch.no_grad()")
        return Repair("record no gradients in the function", draft, Applicability.UNSAFE)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Forward passes in eval mode whose graph nothing uses, on any path."""
        useful = {event.site for event in entry.of(Forward) if not goes_nowhere(event.graph)}
        for path in entry.paths:
            evaluated = {m for event in path.of(ModeSet) if not event.training for m in event.module.modules()}
            drawing = {event.where.turns[-1].loop for event in path.of(BatchDrawn) if event.where.turns}
            for event in path.of(Forward):
                recorded = event.grad and not event.training and event.graph and event.parameters
                loops = {turn.loop for turn in event.where.turns if turn.loop.kind in ("batch", "while")}
                idle = event.site not in useful and loops & drawing and not event.where.phase
                known = in_sight([event.module]) or (not event.module.escaped and _is_called(event))
                if recorded and idle and event.module in evaluated and known and not self._wants_gradients(event):
                    message = "this module is evaluated with gradients recorded: `eval()` does not turn them off"
                    yield Fault(event.where.in_loop("batch"), message, also=event.where.places)

    def _wants_gradients(self, event: Forward) -> bool:
        """Whether the code around a pass speaks of gradients otherwise than to train."""
        first, last = self.facts.rehearsed.around(event.site[1])
        words = {
            word
            for line in self.facts.source.text.splitlines()[first - 1 : last]
            for word in re.findall(r"\w+", line.partition("#")[0])
        }
        return any(_is_unusual(word) and word != "no_grad" for word in words)


def _is_called(event: Forward) -> bool:
    """Whether another function of the program called the one that runs a module, so that no caller may turn gradients off."""
    return sum(each.function.scope.function is None for each in event.where.calls) > 1


def _is_of_gradients(word: str) -> bool:
    return _GRADIENTS.search(word) is not None


def _is_unusual(word: str) -> bool:
    """Whether a word is of gradients, and none of those that training has."""
    return _is_of_gradients(word) and not _ORDINARY.fullmatch(word)
