from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Called, GroupStarted, StateLoaded
from lightlint.facts.checkpoints import LOAD, SAVE
from lightlint.facts.world import Ranks
from lightlint.finding import Applicability, Tier
from lightlint.fixes.edits import insert_argument
from lightlint.values.core import Mapping, Unknown
from lightlint.values.training import Module, Optimizer

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_NUMBERS = re.compile(r"sched|scaler", re.IGNORECASE)  # of one that comes from out of sight


class LoadWithoutMapLocation(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if (
            self.names.call(call) != LOAD
            or self.names.has_star(call)
            or self.names.argument(call, "map_location", 1) is not None
            or not self._goes_into_state(call)
        ):
            return
        tier: Tier | None = Tier.NOTE
        if self._is_on_ranks(call) and self._uses_cuda():
            message = "every rank loads onto the GPU that the file was saved from: all onto one"
            tier = None if self._saves() else Tier.NOTE
        elif self._runs_without_cuda():
            message = "a file saved from a GPU does not load where there is none, and this program is made to run there"
        else:
            return
        draft = insert_argument(self.code, call, 'map_location="cpu"')
        self.report(call, message, tier=tier, repair=Repair("load onto the CPU", draft, Applicability.UNSAFE))

    def _goes_into_state(self, load: cst.Call) -> bool:
        """Whether what is loaded is put into a module or an optimizer, and so is no data set."""
        return any(
            self.names.method(call) == "load_state_dict"
            and call.args
            and not self._holds_numbers_only(call)
            and self._comes_from(call.args[0].value, load)
            for call in self.tree.all(cst.Call)
        )

    def _holds_numbers_only(self, call: cst.Call) -> bool:
        """Whether a state is that of a learning-rate scheduler or a scaler, which has no tensors: its place does not matter."""
        if not isinstance(call.func, cst.Attribute):
            return False
        owner = call.func.value
        return (
            bool(_NUMBERS.search(self.names.key(owner)))
            or self.facts.updates.is_scheduler(owner)
            or self.facts.updates.is_scaler(owner)
        )

    def _comes_from(self, value: cst.BaseExpression, load: cst.Call) -> bool:
        held = self.facts.checkpoints.held(value)
        return held is not None and held[0] is load

    def _is_on_ranks(self, call: cst.Call) -> bool:
        processes = self.facts.processes
        return self.facts.world.raw is Ranks.MANY and processes.per_rank(call) and not self.guards.guarded(call)

    def _uses_cuda(self) -> bool:
        words = {name.value for name in self.tree.all(cst.Name)}
        texts = {self.names.constant(text) for text in self.tree.all(cst.SimpleString)}
        return (
            "cuda" in words
            or "nccl" in texts
            or any(isinstance(each, str) and each.startswith("cuda") for each in texts)
        )

    def _saves(self) -> bool:
        """Whether the file writes the checkpoints that it loads, from models that live on a GPU by then."""
        return any(self.names.call(call) == SAVE for call in self.tree.all(cst.Call))

    def _runs_without_cuda(self) -> bool:
        """Whether the file asks for a GPU and takes the CPU where there is none."""
        for choice in self.tree.all(cst.IfExp, cst.If):
            asked = any(
                self.names.call(call) == "torch.cuda.is_available" for call in self.tree.within(choice.test, cst.Call)
            )
            other = choice.orelse
            texts = (
                {self.names.constant(text) for text in self.tree.within(other, cst.SimpleString)} if other else set()
            )
            if asked and "cpu" in texts:
                return True
        return False

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Loads of states, without a word of the device, that each rank does."""
        for first, second in entry.pairs():
            others = {event.site for event in second.of(StateLoaded)}
            for event in first.of(StateLoaded):
                held = event.state.loaded if isinstance(event.state, (Unknown, Mapping)) else None
                call = held[0] if isinstance(held, tuple) else held
                if not isinstance(event.object, Module | Optimizer):
                    continue  # a schedule holds no tensors
                if not isinstance(call, Called) or event.site not in others or not first.of(GroupStarted):
                    continue
                told = call.argument("map_location", 1) is not None or not call.given.exact
                if not told and self._uses_cuda():
                    message = "every rank loads onto the GPU that the file was saved from: all onto one"
                    yield Fault.at(call, message, tier=None if self._saves() else Tier.NOTE)
