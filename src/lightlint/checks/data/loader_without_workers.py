from __future__ import annotations

import re

import libcst as cst

from lightlint.check import Check
from lightlint.facts.workers import Starter

_MOVES = {"cuda", "to"}
_TRAIN = re.compile(r"(?:^|_)(?:train|training)(?:_|$|(?:data)?loader|dl$)", re.IGNORECASE)
_SHUFFLES = {"RandomSampler", "WeightedRandomSampler", "SubsetRandomSampler", "DistributedSampler"}


class LoaderWithoutWorkers(Check):
    def visit_Call(self, call: cst.Call) -> None:
        workers = self.facts.workers
        if workers.starter(call) is not Starter.LOADER or workers.count(call) != 0 or self._is_on_device(call):
            return
        if self._is_training(call):
            self.report(call, "this loader makes each batch in the training process, while the step waits for it")

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
