from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, Stepped
from lightlint.explore.questions.accelerators import accumulates, code_of, manager_of, scales
from lightlint.values.core import Unknown
from lightlint.values.training import Instance, Loader, Module, Optimizer, Tensor

if TYPE_CHECKING:
    from lightlint.engine.events import Called
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Site

_NO_MODEL = "the model was never prepared: each process trains one of its own, no gradients are exchanged"
# What a program names that gives each process its own part of the data by itself.
_SHARES = re.compile(
    r"process_index|(?:get_)?world_size|get_rank|shard|num_shards|split_between_processes|split_dataset_by_node|split_by_node"
)
_PREPARES = (".prepare", ".prepare_model", ".prepare_data_loader", ".prepare_optimizer")


class LeftUnprepared(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Loops of an Accelerator with a loader, a model or an optimizer that it was never given."""
        calls = [each for name in _PREPARES for each in entry.calls.get(name, ()) if _is_accelerator(each.receiver)]
        given = [value for each in calls for value in each.given.values()]
        if not calls or not all(each.given.exact for each in calls) or any(isinstance(each, Unknown) for each in given):
            return
        if not entry.turned and self._prepares_elsewhere(calls):
            return
        trains_one = any(isinstance(each, Module) for each in given)
        handed = any(each.receiver is not None and each.receiver.open_arguments for each in calls)
        given_at = {each.site for each in given if isinstance(each, Loader | Optimizer)}
        told: set[str] = set()
        for path in entry.paths:
            for event in path.of(Backward):
                message = _fault(path, event, given_at) if event.via == "accelerator" else None
                apart = trains_one or (handed and any(_is_handed(each) for each in event.parameters))
                if message is not None and message not in told and not (message == _NO_MODEL and apart):
                    told.add(message)
                    first = _nearest(calls, event)
                    yield Fault(first.site, message, None, (event.site,), first.where.places[1:])

    def _prepares_elsewhere(self, calls: list[Called]) -> bool:
        """Whether the file prepares something where no path has come: a test led past it."""
        seen = {self.facts.rehearsed.span(each.site) for each in calls}
        nodes = (each for each in self.tree.all(cst.Call) if f".{self.names.method(each)}" in _PREPARES)
        return any(self.facts.positions.span(each) not in seen for each in nodes)


def _is_handed(parameter: Tensor) -> bool:
    """Whether a parameter is one of a model that a function is given, which its callers may have prepared."""
    return parameter.owner is None or parameter.owner.assumed


def _is_accelerator(value: Instance | None) -> bool:
    return value is not None and value.kind == "accelerator"


def _nearest(calls: list[Called], event: Backward) -> Called:
    """The last call before a pass that prepared something."""
    before = [each for each in calls if each.time < event.time]
    return before[-1] if before else calls[0]


def _fault(path: Path, event: Backward, given_at: set[Site | None]) -> str | None:
    """What was left out; what another way prepares is no such thing, as this way may be one that does not train."""
    managers = {id(each): each for one in event.parameters if (each := manager_of(one)) is not None}
    loaders = [turn.loop.over for turn in event.where.turns if turn.loop.kind == "batch"]
    loader = loaders[-1] if loaders else None
    if event.parameters and not managers and not any(each.escaped for each in event.parameters):
        return _NO_MODEL
    left = isinstance(loader, Loader) and loader.site not in given_at and _is_whole(loader)
    if left and managers and not _may_share_out(path):
        return "the loader was never prepared: each process trains on all of the data"
    steps = [each for each in path.of(Stepped) if each.where.same_turn(event.where)]
    stepped = [each.optimizer for each in steps if not set(event.parameters).isdisjoint(each.parameters)]
    by = next(iter(managers.values()), None)
    for optimizer in stepped:
        known = isinstance(optimizer, Optimizer) and not optimizer.escaped and not optimizer.assumed
        known = known and optimizer.site not in given_at
        if known and by is not None and manager_of(optimizer) is None and not (by.escaped or by.open_arguments):
            if scales(by):
                return "the optimizer was never prepared: it steps along gradients that are still scaled"
            if accumulates(by):
                return "the optimizer was never prepared: it steps at each batch, also while gradients accumulate"
    return None


def _is_whole(loader: Loader) -> bool:
    """Whether nothing gives each process its own part of a loader's data."""
    plain = loader.sampler is None and "batch_sampler" not in loader.arguments
    free = not (loader.escaped or loader.open_arguments or loader.assumed)
    return plain and free and "#managed" not in loader.attributes


def _may_share_out(path: Path) -> bool:
    """Whether the program may give each process its own part of the data by hand."""
    names = (getattr(node, "id", getattr(node, "attr", getattr(node, "arg", None))) for node in code_of(path))
    return any(_SHARES.fullmatch(name) for name in names if isinstance(name, str))
