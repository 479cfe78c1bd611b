from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Called, EnvironmentSet
from lightlint.engine.machine import WORKER
from lightlint.facts.tensors.cuda import ASKING, STARTING
from lightlint.facts.tensors.cuda_uses import asks_nvml, at_import, fixes_devices, is_late, module_using_cuda
from lightlint.facts.values.keywords import entries, keywords
from lightlint.finding import Tier
from lightlint.values.core import text_of
from lightlint.values.training import Module

if TYPE_CHECKING:
    from lightlint.engine.events import Where
    from lightlint.explore.rehearsals import Entry

_PROCESSES = ("subprocess.", "multiprocessing.", "torch.multiprocessing.", "os.system", "os.exec", "os.spawn")
_VARIABLE = "CUDA_VISIBLE_DEVICES"
_DEVICES = ("torch.device", "torch.cuda.set_device", "torch.cuda.device")
_DEPTH = 3
_LATE = "CUDA is in use before this line, and does not read the variable again"


class VisibleDevicesTooLate(Check):
    def visit_Assign(self, assign: cst.Assign) -> None:
        number = isinstance(self.names.constant(assign.value), int)  # which raises TypeError: nothing comes behind it
        if not number and len(assign.targets) == 1 and self._is_variable(assign.targets[0].target):
            self._judge(assign, assign.targets[0].target)

    def visit_Call(self, call: cst.Call) -> None:
        if self._sets_variable(call):
            self._judge(call, call)

    def _judge(self, node: cst.Assign | cst.Call, place: cst.CSTNode) -> None:
        owner = self.tree.owner(node)
        before = self._uses() if isinstance(owner, cst.FunctionDef) else []
        before = [use for use in before if self.tree.order(use) < self.tree.order(owner)]
        if before or is_late(self.facts, node) or (not self._starts_processes() and self._is_called_late(owner)):
            self.report(place, _LATE, tier=self._tier(node))
            return
        module = self._imported_before(node, owner)
        if module:
            self.report(place, f"CUDA is in use since `{module}` was imported, and does not read the variable again")

    def _tier(self, node: cst.CSTNode | None) -> Tier | None:
        """A note where the device is told by the same number: the right GPU is used, as the variable is not read."""
        value = node.value if isinstance(node, cst.Assign) else None
        words = {key for each in self._words(value) if (key := self.names.key(each))} if value is not None else set()
        told = (
            call
            for call in self.tree.all(cst.Call)
            if self.names.call(call) in _DEVICES or self.names.method(call) in ("to", "cuda")
        )
        named = (self.names.key(each) for call in told for arg in call.args for each in self._words(arg.value))
        return Tier.NOTE if any(key in words for key in named) else None

    def _words(self, value: cst.BaseExpression) -> list[cst.Name | cst.Attribute]:
        return [*self.tree.within(value, cst.Name, cst.Attribute)]

    def _is_called_late(self, owner: cst.FunctionDef | cst.Module, depth: int = 0) -> bool:
        """Whether every call of a function stands behind a use of CUDA."""
        calls = self.hooks.calls_of.get(owner, ()) if isinstance(owner, cst.FunctionDef) and depth < _DEPTH else ()
        return bool(calls) and all(
            is_late(self.facts, each) or self._is_called_late(self.tree.owner(each), depth + 1) for each in calls
        )

    def _sets_variable(self, call: cst.Call) -> bool:
        """`os.environ.update(CUDA_VISIBLE_DEVICES=...)`, with a dict too, and `setdefault`."""
        name = self.names.of(call.func) or ""
        if name == "os.environ.setdefault" and call.args:
            return self.names.constant(call.args[0].value) == _VARIABLE
        if name != "os.environ.update":
            return False
        dicts = [arg.value for arg in call.args if arg.keyword is None and not arg.star]
        given = [*keywords(self.facts, call), *(key for each in dicts for key in entries(self.facts, each, call))]
        return any(each.name == _VARIABLE for each in given)

    def _starts_processes(self) -> bool:
        """Whether the variable may be for processes that this one starts."""
        return any((self.names.call(each) or "").startswith(_PROCESSES) for each in self.tree.all(cst.Call))

    def _imported_before(self, node: cst.CSTNode, owner: cst.FunctionDef | cst.Module) -> str:
        """The module of the project that started CUDA when this one was imported; empty where none is in sight."""
        if self._starts_processes():
            return ""
        found = module_using_cuda(self.facts, owner, node)
        if found or isinstance(owner, cst.Module):
            return found
        return module_using_cuda(self.facts, self.tree.module, owner)

    def _is_variable(self, target: cst.BaseExpression) -> bool:
        match target:
            case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=key))]):
                return self.names.of(target.value) == "os.environ" and self.names.constant(key) == _VARIABLE
        return False

    def _uses(self) -> list[cst.Call]:
        """The calls of the module itself that surely start CUDA and run without a test."""
        found = [call for call in at_import(self.facts) if fixes_devices(self.facts, call)]
        return [call for call in found if not self.facts.conditions(call)]

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """The variable set by a function, of whichever file, that is called when CUDA is in use."""
        calls = entry.calls
        if self._starts_processes() or any(path.startswith(_PROCESSES) for path in calls):
            return
        for path in entry.paths:
            told = [e for e in path.of(EnvironmentSet) if e.name == _VARIABLE and e.where.phase != WORKER]
            uses = [each for each in path.of(Called) if self._uses_cuda(each)] if told else []
            for event in told[:1]:  # set before CUDA is in use, it may be set to the same again
                before = (e.where for e in uses if _is_before(e.where, event.where))
                if any(_comes_first(e, event.where) and (entry.whole or _same_call(e, event.where)) for e in before):
                    node = self.node_of(event.site)
                    statement = self.tree.statement(node) if node is not None else None
                    yield Fault.of(event, _LATE, tier=self._tier(statement))

    def _uses_cuda(self, event: Called) -> bool:
        """Whether a call surely makes CUDA's driver read which devices it may see."""
        if isinstance(event.receiver, Module):
            device = text_of(event.argument("device", 0)) or ""
            return event.path == "cuda" or (event.path == "to" and device.startswith("cuda"))
        return event.path in STARTING or (event.path in ASKING and not asks_nvml(self.facts))


def _is_before(use: Where, later: Where) -> bool:
    """Whether a call comes first: what an import runs is ahead of all else on paper, whichever line it stands on."""
    return use.time < later.time and (use.time > 0 or use.site[0] == later.site[0])


def _same_call(use: Where, later: Where) -> bool:
    """Whether one call led to both: what nobody in sight calls is rehearsed in an order that the program may not have."""
    return bool(use.calls) and use.calls[:1] == later.calls[:1]


def _comes_first(use: Where, later: Where) -> bool:
    """Whether CUDA is used whenever something comes to the later place: no test that may fail stands before the use alone."""
    return all(each.known or each in later.conditions for each in use.conditions)
