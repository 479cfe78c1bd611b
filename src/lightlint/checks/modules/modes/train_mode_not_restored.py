from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Forward, ModeSet, Stepped
from lightlint.engine.frames import Condition, Loop, Turn
from lightlint.explore.questions.queries import acts_by_mode
from lightlint.facts.project.mentions import occurs
from lightlint.finding import Applicability, Tier
from lightlint.fixes.edits import insert_after, insert_before
from lightlint.values.core import Site
from lightlint.values.training import Module

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_DEPTH = 3
_OTHERS = r"\n[ \t]*(?:from|import)[ \t]+(?!(?:torch|numpy|math|typing|collections|functools|copy|os|sys|__future__)\b)"
_ACTS = rf"(?:(?i:drop|norm|resnet|torchvision|hub\b)|{_OTHERS})"
"""What a file says that has layers which act by the mode, or may have them from elsewhere."""


class TrainModeNotRestored(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Modules that were trained in train mode and later, at the same place, in eval mode."""
        for path in entry.paths:
            stepped = {each for event in path.of(Stepped) for each in event.parameters}
            trained: dict[tuple[Module, Site], tuple[Turn, ...]] = {}
            left: dict[Module, ModeSet] = {}
            for event in path.events:
                if isinstance(event, ModeSet):
                    for whole in [each for each in left if _is_part(event.module, each)]:
                        left.pop(whole)  # which modes its parts are to have is set one by one
                    for module in event.module.modules():
                        if event.training:
                            left.pop(module, None)
                        elif not any(map(_holds_once, event.where.conditions)):
                            left[module] = event
                elif isinstance(event, Forward) and event.grad and event.by_mode and not event.where.phase:
                    used = any(graph.consumed for graph in event.graph) and stepped & set(event.parameters)
                    if not used or event.module.escaped:
                        continue
                    if event.training:
                        trained[event.module, event.site] = event.where.turns
                        continue
                    before = trained.get((event.module, event.site))
                    if before is not None and event.module in left and not self._is_plain(event.module):
                        yield from _fault(left[event.module], event, before)

    def _is_plain(self, module: Module) -> bool:
        """Whether the class of a net that no import leads to stands in the project all the same, and has no layer that acts by
        the mode."""
        net = module.unwrapped()
        name, project = net.hint if net.opaque else "", self.facts.project
        word = re.escape(name)
        if not name or not occurs(project, name, rf"(?m)^class {word}\b"):
            return False
        return not occurs(project, name, rf"(?s)\nclass {word}\b.*{_ACTS}|{_ACTS}.*\nclass {word}\b")

    def repair(self, node: cst.CSTNode, fault: Fault) -> Repair | None:
        key = self._left_in_eval(node, _DEPTH) if isinstance(node, cst.Call) else ""
        span = self.facts.rehearsed.span(fault.fixed_at) if fault.fixed_at is not None else None
        loop = next((each for each in self.tree.loops(node) if span and self.facts.span(each)[0] == span[0]), None)
        first = loop.body.body[0] if loop is not None and isinstance(loop.body, cst.IndentedBlock) else None
        draft = insert_before(self.code, first, f"{key}.train()") if first is not None else None
        statement = self.tree.statement(node)
        if span == self.facts.span(node) and isinstance(statement, cst.BaseSmallStatement):
            draft = insert_after(self.code, statement, f"{key}.train()")
        unit = fault.message.rpartition(" ")[2]
        return Repair(f"call `{key}.train()` in each {unit}", draft, Applicability.UNSAFE) if key else None

    def _left_in_eval(self, call: cst.Call, depth: int) -> str:
        """What a function calls the module that a call puts in eval mode, itself or in a helper."""
        if self.names.method(call) == "eval" and isinstance(call.func, cst.Attribute):
            return self.names.key(call.func.value)
        callee = self.hooks.callee(call) if depth else None
        for inner in self.tree.own(callee.body, cst.Call) if callee is not None else ():
            key = self._left_in_eval(inner, depth - 1)
            if callee is not None and key:
                return key if key.startswith("self.") else self.names.key(self.values.given(callee, call, key))
        return ""


def _fault(left: ModeSet, trained: Forward, before: tuple[Turn, ...]) -> Iterator[Fault]:
    """What is told where, in the loop that trains again, a module is left in eval mode.

    `before`: the turns in which it was trained in train mode; its turn may be the one that leaves it, further up.
    """
    first, later = ({turn.loop: turn.number for turn in turns} for turns in (before, trained.where.turns))
    shared = [
        (n, turn.loop)
        for n, turn in enumerate(left.where.turns)
        if later.get(turn.loop, 0) > turn.number or first.get(turn.loop, turn.number) < turn.number
    ]
    if not shared:
        return
    depth, loop = shared[-1]
    site = next((call.site for call in left.where.calls if call.turns > depth), left.site)
    how = "" if site == left.site else "this call leaves it there and "
    message = f"the model is trained in eval mode from here on: {how}no `train()` comes before the next {_unit(loop)}"
    tier = Tier.ERROR if acts_by_mode(trained.module) else None
    behind = (
        None if site == left.site else site
    )  # where the same turn trains on, which a `train()` at its top is no help for
    yield Fault(
        site, message, tier, fixed_at=loop.site if later.get(loop, 0) > left.where.turns[depth].number else behind
    )


def _unit(loop: Loop) -> str:
    return "iteration" if loop.kind in ("batch", "while") else "epoch"


def _is_part(module: Module, whole: Module) -> bool:
    return module is not whole and module in whole.modules()


def _holds_once(condition: Condition) -> bool:
    """Whether a test of a counter may hold in one turn alone, which can be the last: `epoch == epochs - 1`."""
    match condition.key:
        case ("==" | "!=" as symbol, left, right):
            counts = bool({"count", "index"} & condition.traits) and "%" not in f"{left}{right}"
            return counts and condition.outcome is (symbol == "==")
    return False
