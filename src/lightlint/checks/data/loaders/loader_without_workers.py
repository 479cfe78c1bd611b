from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, BatchDrawn, LoaderMade
from lightlint.facts.data.workers import Starter
from lightlint.values.core import is_constant
from lightlint.values.training import Instance, Loader, tensors_in

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Site

_MESSAGE = "this loader makes each batch in the training process, while the step waits for it"

_MOVES = {"cuda", "to"}
_TRAIN = re.compile(r"(?:^|_)(?:train|training)(?:_|$|(?:data)?loader|dl$)", re.IGNORECASE)
_SHUFFLES = {"RandomSampler", "WeightedRandomSampler", "SubsetRandomSampler", "DistributedSampler"}


class LoaderWithoutWorkers(Check):
    def visit_Call(self, call: cst.Call) -> None:
        workers = self.facts.workers
        if workers.starter(call) is not Starter.LOADER or workers.count(call) != 0 or self._is_on_device(call):
            return
        if self._is_training(call):
            self.report(call, _MESSAGE)

    def _is_training(self, call: cst.Call) -> bool:
        """Whether a loader shuffles, is named for training, is what `train_dataloader` makes, is given to `fit`, or feeds
        a backward pass."""
        if self._is_shuffled(call) or self._is_named(call):
            return True
        if any(hook.name == "train_dataloader" for hook in self.hooks.around(call)):
            return True
        fits = (each for each in self.tree.all(cst.Call) if self.names.method(each) == "fit")
        given = [self.names.argument(fit, "train_dataloaders", 1) for fit in fits]
        drawn = [self.values.iterated(loop.iter) for loop in self.tree.all(cst.For) if self._trains(loop)]
        drawn += [arg.value for arg in given if arg is not None]
        return any(origin.call is call for each in drawn for origin in self.values.origins(each))

    def _is_shuffled(self, call: cst.Call) -> bool:
        """Whether a loader shuffles, or has a sampler of torch's that does."""
        shuffle, sampler = self.names.argument(call, "shuffle", 2), self.names.argument(call, "sampler", 3)
        if shuffle is not None and self.names.constant(shuffle.value) is True:
            return True
        made = self.facts.workers.made(sampler.value) if sampler is not None else None
        if made is None or not (self.names.call(made) or "").startswith("torch.utils.data."):
            return False
        order = self.names.argument(made, "shuffle", 3)
        in_order = order is not None and self.names.constant(order.value) is False
        return self.names.method(made) in _SHUFFLES and not in_order

    def _is_named(self, call: cst.Call) -> bool:
        """Whether what the loader is assigned to, or the function that returns it, is named for training."""
        above, function = self.tree.parent(call), self.tree.function(call)
        if isinstance(above, cst.Return) and function is not None:
            return bool(_TRAIN.search(function.name.value))
        targets = above.targets if isinstance(above, cst.Assign) else []
        return any(_TRAIN.search(self.names.key(each.target).rpartition(".")[2]) for each in targets)

    def _trains(self, loop: cst.For) -> bool:
        callees = (self.hooks.callee(call) for call in self.tree.own(loop.body, cst.Call))
        return self.loops.is_backward_in(loop.body) or any(
            self.loops.is_backward_in(callee.body) for callee in callees if callee is not None
        )

    def _is_on_device(self, call: cst.Call) -> bool:
        """Whether the data set is made of tensors that were moved to a device, which workers must not touch."""
        dataset = self.names.argument(call, "dataset", 0)
        made = self.facts.workers.made(dataset.value) if dataset else None
        if made is None:
            return False
        parts = [each for arg in made.args for each in (arg.value, self.facts.workers.made(arg.value)) if each]
        return any(self.names.method(each) in _MOVES for part in parts for each in self.tree.within(part, cst.Call))

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Loaders without workers that shuffle, or that a backward pass waits for."""
        in_order = {event.site for event in entry.of(LoaderMade) if not _shuffles(event.loader)}
        for path in entry.paths:
            for event in path.of(LoaderMade):
                loader = event.loader
                trains = event.site not in in_order or _feeds(path, loader)
                if trains and _works_alone(loader, given=entry.name == "main") and not _is_resident(loader):
                    yield Fault.of(event, _MESSAGE)

    def clears(self, entry: Entry) -> Iterator[Site]:
        """Loaders of data that lies on a device."""
        yield from (event.site for event in entry.of(LoaderMade) if _is_resident(event.loader, {"cuda"}))


def _works_alone(loader: Loader, *, given: bool) -> bool:
    """Whether a loader of torch's surely has no workers: what nobody in sight has `given` may be another number."""
    workers = loader.arguments.get("num_workers")
    of_torch = any(path.startswith("torch.utils.data.") for path in loader.libraries())
    return of_torch and not loader.open_arguments and (workers is None or (given and is_constant(workers, 0)))


def _is_resident(loader: Loader, devices: Collection[str | None] = ("cuda", None)) -> bool:
    """Whether the data lies, or may lie, on a device, which workers must not touch."""
    held = loader.data.arguments.get("tensors") if isinstance(loader.data, Instance) else None
    return any(each.device in devices for each in tensors_in(held))


def _shuffles(loader: Loader) -> bool:
    sampler = loader.sampler
    if not isinstance(sampler, Instance):
        return is_constant(loader.arguments.get("shuffle"), True)
    told = is_constant(sampler.arguments.get("shuffle"), True)  # evaluation shares its data by one that shuffles, too
    return sampler.name in _SHUFFLES and (told or sampler.name != "DistributedSampler")


def _feeds(path: Path, loader: Loader) -> bool:
    """Whether a backward pass comes in turns that draw a batch."""
    turns = {event.where.turns for event in path.of(BatchDrawn) if event.loader.number == loader.number}
    passes = [each for each in path.of(Backward) if each.parameters or each.loss is None]
    return any(each.where.turns[: len(drawn)] == drawn for each in passes for drawn in turns if drawn)
