"""Which calls every rank has to join, and which helpers come to one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.bindings import dotted_name
from lightlint.facts.hooks import Owner
from lightlint.facts.processes import DATA_PARALLEL
from lightlint.facts.rank_tests import COLLECTIVES
from lightlint.facts.trainers import is_trainer

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

# tests that tell a run of several processes from one of a single process
_SEVERAL = re.compile(
    r"^(?:not )?[\w.]*(?:is_initialized|is_available|is_distributed|get_world_size|world_size)\b[^,]*$"
)
_DEPTH = 3
_SAVING_WAITS = "2.1"  # the release that put a barrier into `Trainer.save_checkpoint`
_ACCELERATE = {"wait_for_everyone", "gather", "gather_for_metrics", "reduce", "pad_across_processes"}
_STRATEGY = {"barrier", "broadcast", "all_gather", "reduce", "all_reduce"}


class Collectives:
    """The collectives of one file."""

    def __init__(self, facts: FileFacts) -> None:
        self._facts = facts
        self._led: dict[tuple[int, int], str] = {}  # by helper and depth: each is looked into once

    def led_to(self, call: cst.Call, depth: int = 0) -> str:
        """The collective that a helper of this file surely comes to where there is more than one process."""
        helper = self._facts.hooks.callee(call) if depth < _DEPTH else None
        if helper is None:
            return ""
        key = id(helper), depth
        if key not in self._led:
            self._led[key] = self._comes_to(helper, depth)
        return self._led[key]

    def _comes_to(self, helper: cst.FunctionDef, depth: int) -> str:
        for inner in self._facts.tree.own(helper.body, cst.Call, cst.Attribute):
            if isinstance(inner, cst.Attribute):
                found = "trainer.log_dir" if self.is_log_dir(inner) else ""
            else:
                found = self.name(inner) or self.led_to(inner, depth + 1)
            if found and all(self._tells_several(test) for test, _ in self._facts.conditions(inner)):
                return found
        return ""

    def _tells_several(self, test: cst.BaseExpression) -> bool:
        start, end = self._facts.span(test)
        return bool(_SEVERAL.search(self._facts.source.text[start:end]))

    def is_log_dir(self, attribute: cst.Attribute) -> bool:
        return attribute.attr.value == "log_dir" and is_trainer(self._facts, attribute.value)

    def name(self, call: cst.Call) -> str:
        """What a call that every rank has to join is called, empty for any other."""
        name = self._facts.names.call(call) or ""
        if self._facts.names.argument(call, "group") is not None:
            return ""
        if name in COLLECTIVES:
            return "dist." + name.rpartition(".")[2]
        if name == DATA_PARALLEL:
            return "DistributedDataParallel"
        spelled = dotted_name(call.func)
        room, _, last = spelled.rpartition(".")
        if last in _STRATEGY and room.endswith(".strategy") and self._is_of_trainer(call.func, room):
            return f"trainer.strategy.{last}"
        if last in _ACCELERATE and isinstance(call.func, cst.Attribute):
            origin = self._facts.values.constructor(call.func.value)
            if origin is not None and origin.name == "accelerate.Accelerator":
                return f"accelerator.{last}"
        if (
            last == "save_checkpoint"
            and isinstance(call.func, cst.Attribute)
            and is_trainer(self._facts, call.func.value)
        ):
            return "trainer.save_checkpoint" if self._facts.lightning.may_be_at_least(_SAVING_WAITS) else ""
        if (
            last == "all_gather"
            and isinstance(call.func, cst.Attribute)
            and self._facts.classes.is_self(call.func.value)
        ):
            node = self._facts.tree.enclosing_class(call)
            return "self.all_gather" if self._facts.hooks.owner(node) is Owner.MODULE and node is not None else ""
        if last == "compute" and isinstance(call.func, cst.Attribute) and self._lightning(call):
            return spelled if self._is_metric(call.func.value) else ""
        return ""

    def _is_metric(self, value: cst.BaseExpression) -> bool:
        """Whether an attribute is a torchmetrics metric, whose `compute` gathers the states of all ranks first."""
        origin = self._facts.values.constructor(value) if isinstance(value, cst.Attribute) else None
        made = origin.call if origin is not None and origin.name.startswith("torchmetrics.") else None
        if made is None or self._facts.names.has_star(made):
            return False
        return not any(self._facts.names.argument(made, each) for each in ("sync_on_compute", "process_group"))

    def _lightning(self, node: cst.CSTNode) -> bool:
        return self._facts.hooks.owner(self._facts.tree.enclosing_class(node)) is not None

    def _is_of_trainer(self, func: cst.BaseExpression, room: str) -> bool:
        """Whether `trainer.strategy.barrier`, with `room` before its last word, is one of a trainer's strategy."""
        if room.endswith("trainer.strategy") and self._lightning(func):
            return True
        strategy = func.value if isinstance(func, cst.Attribute) else None
        return isinstance(strategy, cst.Attribute) and is_trainer(self._facts, strategy.value)
