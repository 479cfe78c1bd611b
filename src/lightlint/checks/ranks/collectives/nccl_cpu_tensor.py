from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Collective, GroupStarted
from lightlint.explore.questions.defaults import of_default_run
from lightlint.explore.questions.queries import is_left_open, speaks_of, sure
from lightlint.facts.tensors.tensors import FACTORIES
from lightlint.finding import Applicability
from lightlint.fixes.edits import insert_argument
from lightlint.values.core import is_constant, text_of, written
from lightlint.values.training import Instance, Tensor, tensors_in

if TYPE_CHECKING:
    from lightlint.engine.arguments import Arguments
    from lightlint.explore.rehearsals import Entry

_WITHOUT_DEVICE = {"torch.from_numpy", "torch.Tensor", "torch.FloatTensor", "torch.LongTensor"}
_DEVICE = re.compile("gpu|cuda|cpu|device", re.IGNORECASE)
_BACKEND = re.compile("backend|gloo|nccl|cpu", re.IGNORECASE)


class NcclCpuTensor(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Collectives of nccl that are given a tensor that was made on the CPU or brought there."""
        if not self._uses_nccl() or is_left_open(entry, _DEVICE):
            return
        options = [each.get(0, "backend") for each in _joined(entry)]
        for event in sure(of_default_run(entry, options), Collective, lambda each: _on_cpu(each) is not None):
            tensor = _on_cpu(event)
            asked = any(speaks_of(each.key, _BACKEND) for each in event.where.conditions)
            if tensor is not None and not asked and _is_of_nccl(event):
                also = (tensor.site,) if tensor.site is not None else ()
                yield Fault.at(event, "this tensor lies on the CPU, and nccl exchanges CUDA tensors only", *also)

    def _uses_nccl(self) -> bool:
        """Whether each process group that the file starts is one of nccl's."""
        given = [given for each in self.facts.rehearsed.entries for given in _joined(each)]
        return bool(given) and all(text_of(written(each.get(0, "backend"))) == "nccl" for each in given)

    def repair(self, _node: cst.CSTNode, fault: Fault) -> Repair | None:
        span = self.facts.rehearsed.span(fault.also[0]) if fault.also else None
        made = self._node_at(*span) if span is not None else None
        if not isinstance(made, cst.Call) or self.names.call(made) not in FACTORIES - _WITHOUT_DEVICE:
            return None
        if self.names.argument(made, "device") is not None:
            return None
        draft = insert_argument(self.code, made, 'device="cuda"')
        return Repair("make it on the GPU", draft, Applicability.UNSAFE)


def _on_cpu(event: Collective) -> Tensor | None:
    """A tensor of a collective that surely lies on the CPU."""
    if not event.name.startswith("dist.") or "object" in event.name:
        return None
    given = (tensor for value in event.args for tensor in tensors_in(value))
    return next((each for each in given if each.device == "cpu" and each.sure_device), None)


def _is_of_nccl(event: Collective) -> bool:
    """Whether a collective is one of the default group, or of a group with its backend or nccl."""
    group = event.group
    if group is None:
        return True
    return (
        isinstance(group, Instance) and group.kind == "group" and is_constant(group.arguments["backend"], None, "nccl")
    )


def _joined(entry: Entry) -> list[Arguments]:
    """What process groups are joined with, where the program does so itself."""
    started = (event for event in entry.of(GroupStarted) if event.by == "init_process_group")
    return [event.given for event in started if event.given is not None]
