from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import CalledUnknown, Collective
from lightlint.explore.rehearsals import Entry, Path
from lightlint.facts.bindings import dotted_name
from lightlint.facts.hooks import Owner
from lightlint.facts.processes import DATA_PARALLEL
from lightlint.facts.rank_tests import COLLECTIVES, on_some_ranks, other_ways
from lightlint.facts.trainers import is_trainer
from lightlint.values.core import Site

_OUTPUT = re.compile(
    r"^(?:info|debug|warning|error|log|print|write|append|exit|format|rank_zero_\w+|mkdir|touch|unlink|exists|is_file"
    r"|is_dir|write_text|write_bytes|writelines|writerows?|extractall|urlretrieve)$"
)
# packages that know nothing of ranks, where nothing runs code that is handed to it
_APART = {
    "builtins", "collections", "csv", "glob", "gzip", "hashlib", "io", "json", "logging", "os", "pathlib", "pickle", "random",
    "re", "requests", "shutil", "string", "subprocess", "sys", "tarfile", "tempfile", "time", "urllib", "warnings", "zipfile",
}  # fmt: skip
# tests that tell a run of several processes from one of a single process
_SEVERAL = re.compile(
    r"^(?:not )?[\w.]*(?:is_initialized|is_available|is_distributed|get_world_size|world_size)\b[^,]*$"
)
_DEPTH = 3
_SAVING_WAITS = "2.1"  # the release that put a barrier into `Trainer.save_checkpoint`
_ACCELERATE = {"wait_for_everyone", "gather", "gather_for_metrics", "reduce", "pad_across_processes"}
_STRATEGY = {"barrier", "broadcast", "all_gather", "reduce", "all_reduce"}


class CollectiveInRankGuard(Check):
    def visit_Call(self, call: cst.Call) -> None:
        name = self._collective(call)
        if name and on_some_ranks(self.facts, call) and not self._is_balanced(call, name):
            self.report(call, f"`{name}` waits for all ranks, and only some of them get here")
            return
        led = "" if name else self._led_to(call, 0)
        if led and on_some_ranks(self.facts, call) and not self._is_met(call):
            shown = self.names.method(call)
            self.report(call, f"`{shown}` leads to `{led}`, which waits for all ranks, and only some of them get here")

    def _is_met(self, call: cst.Call) -> bool:
        """Whether the other ranks may join what a helper waits for, in a branch or under a rank test of their own."""
        if any(map(self._may_join, other_ways(self.facts, call))):
            return True
        others = [each for each in self.tree.own(self.tree.owner(call), cst.Call) if each is not call]
        waiting = [each for each in others if self._collective(each) or self._led_to(each, 0)]
        return any(self.guards.may_be_test(test) for each in waiting for test, _ in self.facts.conditions(each))

    def _led_to(self, call: cst.Call, depth: int) -> str:
        """The collective that a helper of this file surely comes to where there is more than one process."""
        helper = self.hooks.callee(call) if depth < _DEPTH else None
        for inner in self.tree.own(helper.body, cst.Call, cst.Attribute) if helper is not None else []:
            if isinstance(inner, cst.Attribute):
                found = "trainer.log_dir" if self._is_log_dir(inner) else ""
            else:
                found = self._collective(inner) or self._led_to(inner, depth + 1)
            if found and all(_SEVERAL.search(self.code.text_of(test)) for test, _ in self.facts.conditions(inner)):
                return found
        return ""

    def visit_Attribute(self, attribute: cst.Attribute) -> None:
        if self._is_log_dir(attribute) and on_some_ranks(self.facts, attribute):
            self.report(attribute, "`trainer.log_dir` is broadcast to all ranks, and only some of them read it here")

    def _is_log_dir(self, attribute: cst.Attribute) -> bool:
        return attribute.attr.value == "log_dir" and is_trainer(self.facts, attribute.value)

    def _collective(self, call: cst.Call) -> str:
        """What a call that every rank has to join is called, empty for any other."""
        name = self.names.call(call) or ""
        if self.names.argument(call, "group") is not None:
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
            origin = self.values.constructor(call.func.value)
            if origin is not None and origin.name == "accelerate.Accelerator":
                return f"accelerator.{last}"
        if (
            last == "save_checkpoint"
            and isinstance(call.func, cst.Attribute)
            and is_trainer(self.facts, call.func.value)
        ):
            return "trainer.save_checkpoint" if self.facts.lightning.may_be_at_least(_SAVING_WAITS) else ""
        if last == "all_gather" and isinstance(call.func, cst.Attribute) and self.classes.is_self(call.func.value):
            node = self.tree.enclosing_class(call)
            return "self.all_gather" if self.hooks.owner(node) is Owner.MODULE and node is not None else ""
        if last == "compute" and isinstance(call.func, cst.Attribute) and self._lightning(call):
            return spelled if self._is_metric(call.func.value) else ""
        return ""

    def _is_metric(self, value: cst.BaseExpression) -> bool:
        """Whether an attribute is a torchmetrics metric, whose `compute` gathers the states of all ranks first."""
        origin = self.values.constructor(value) if isinstance(value, cst.Attribute) else None
        made = origin.call if origin is not None and origin.name.startswith("torchmetrics.") else None
        if made is None or self.names.has_star(made):
            return False
        return not any(self.names.argument(made, each) for each in ("sync_on_compute", "process_group"))

    def _lightning(self, node: cst.CSTNode) -> bool:
        return self.hooks.owner(self.tree.enclosing_class(node)) is not None

    def _is_of_trainer(self, func: cst.BaseExpression, room: str) -> bool:
        """Whether `trainer.strategy.barrier`, with `room` before its last word, is one of a trainer's strategy."""
        if room.endswith("trainer.strategy") and self._lightning(func):
            return True
        strategy = func.value if isinstance(func, cst.Attribute) else None
        return isinstance(strategy, cst.Attribute) and is_trainer(self.facts, strategy.value)

    def _is_balanced(self, call: cst.Call, name: str) -> bool:
        """Whether the function has a second call of the kind under a rank test: each rank then joins one of them."""
        owner = self.tree.owner(call)
        others = [
            each for each in self.tree.own(owner, cst.Call) if each is not call and self._collective(each) == name
        ]
        if any(any(map(self.guards.may_be_test, (t for t, _ in self.facts.conditions(each)))) for each in others):
            return True
        return any(self._may_join(other) for other in other_ways(self.facts, call))

    def _may_join(self, call: cst.Call) -> bool:
        """Whether a call may wait with the others: it leads to a collective, or is out of sight and no output."""
        if self.facts.steps.leads(call, lambda each: bool(self._collective(each))):
            return True
        harmless = (self.names.call(call) or "").partition(".")[0] in _APART
        return self.facts.steps.callee(call) is None and not harmless and not _OUTPUT.search(self.names.method(call))

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Collectives that a test of the rank keeps some ranks from, in two rehearsals that differ in the rank alone."""
        for first, second in entry.pairs():
            if _names(first) == _names(second) or _unknown(first) != _unknown(second):
                continue  # matched by others, or perhaps by code out of sight
            for path, other in ((first, second), (second, first)):
                there = {event.site for event in other.of(Collective)}
                for event in path.of(Collective):
                    if (
                        event.site not in there
                        and event.where.depends_on("rank")
                        and event.name.startswith(("dist.", "strategy.", "self."))
                    ):
                        message = f"`{event.name}` waits for all ranks, and only some of them get here"
                        yield Fault.at(event, message)


def _names(path: Path) -> list[str]:
    return [event.name for event in path.of(Collective)]


def _unknown(path: Path) -> set[Site]:
    return {event.site for event in path.of(CalledUnknown)}
