from __future__ import annotations

import re

import libcst as cst

from lightlint.check import Check
from lightlint.facts.loading import Driver
from lightlint.facts.names import UNKNOWN
from lightlint.facts.world import FABRIC, Ranks
from lightlint.finding import Tier

_SHARDING = ("accelerate.", "deepspeed.", "transformers.", "horovod.", "ray.", "colossalai.", "webdataset.", "litdata.")
_SHARING_BATCHES = ("tensor", "_tensor", "pipelin", "rpc", "device_mesh")  # ranks that need the same batch
_MODEL_PARALLEL = tuple(f"torch.distributed.{name}" for name in _SHARING_BATCHES)
_ALONE = re.compile(
    r"distributed|ddp|world|rank|gpu|is_initialized|multi|parallel|num_(?:devices|nodes)", re.IGNORECASE
)
_BATCH_SAMPLER = "torch.utils.data.BatchSampler"


class LoaderWithoutDistributedSampler(Check):
    def visit_Call(self, call: cst.Call) -> None:
        loading = self.facts.loading
        driver = loading.training.get(call)
        if driver is None:
            return
        if driver is Driver.LIGHTNING:
            self._judge_batch_sampler(call)
        if loading.is_sampled(call) or not loading.is_map_style(call) or self._is_sharded(call, driver):
            return
        if driver is Driver.LIGHTNING:
            self._judge_lightning(call)
        elif self._is_fabric():
            self.report(
                call, "no `setup_dataloaders` gives this loader a sampler: every rank trains on all of its data"
            )
        elif self._is_data_parallel(call):
            self.report(call, "no `DistributedSampler` in this loader: every rank trains on all of its data")

    def _judge_lightning(self, call: cst.Call) -> None:
        if self.facts.world.lightning is not Ranks.MANY:
            return
        if self._left_alone():
            self.report(
                call, "no sampler here and none from the Trainer: every rank trains on all of this loader's data"
            )
        else:
            self.report(call, "Lightning puts a `DistributedSampler` into this loader on each rank", tier=Tier.NOTE)

    def _judge_batch_sampler(self, call: cst.Call) -> None:
        """A batch sampler of another class than torch's: Lightning cannot build it again around its own sampler."""
        arg = self.names.argument(call, "batch_sampler", 4)
        if arg is None or self.facts.world.lightning is not Ranks.MANY or self._left_alone(unless_unknown=False):
            return
        origin = self.values.constructor(arg.value)
        node = self.classes.local(origin.name) if origin is not None else None
        if node is None or not self.classes.complete(node) or self.classes.is_a(node, _BATCH_SAMPLER):
            return
        if self.classes.has_method(node, "batch_size") or not self._is_sampler(node):
            return
        self.report(arg.value, f"`{node.name.value}` is no `BatchSampler`: Lightning raises on several ranks")

    def _is_sampler(self, node: cst.ClassDef) -> bool:
        return self.classes.is_a(node, "torch.utils.data.Sampler", "builtins.object") or not node.bases

    def _left_alone(self, *, unless_unknown: bool = True) -> bool:
        """Whether every Trainer in sight is told to leave samplers alone; an unknown value counts where silence is safe."""
        settings = [
            each.arguments.get("use_distributed_sampler", each.arguments.get("replace_sampler_ddp", True))
            for each in self.facts.world.trainers
        ]
        told = [each is False for each in settings]
        if unless_unknown:
            return bool(told) and all(told)
        return any(told) or UNKNOWN in settings or any(each.starred for each in self.facts.world.trainers)

    def _is_fabric(self) -> bool:
        world = self.facts.world
        return world.lightning is Ranks.MANY and any(each.name == FABRIC for each in world.trainers)

    def _is_data_parallel(self, call: cst.Call) -> bool:
        """Whether this file wraps the model for several ranks, with no library around that shares out batches."""
        called = self.facts.world.called
        if any(name.startswith((*_SHARDING, *_MODEL_PARALLEL)) for name in called):
            return False
        several = self.facts.world.raw is Ranks.MANY and self.facts.processes.wraps
        return several and self.facts.processes.per_rank(call)

    def _is_sharded(self, call: cst.Call, driver: Driver) -> bool:
        """Whether the data may be shared out by hand or out of sight, or the loader made where one process trains."""
        data = self.facts.loading.dataset(call)
        if data is None or self._is_alone(call) or self.facts.processes.may_be_share(data):
            return True
        if driver is Driver.LIGHTNING:
            above = self.tree.enclosing_class(call)
            return above is not None and self.facts.processes.may_share_in(above, call)
        return not self.facts.processes.is_in_sight(data)

    def _is_alone(self, node: cst.CSTNode, depth: int = 0) -> bool:
        """Whether tests around a node, or around every call of its function, ask for the number of processes."""
        tests = [test for test, _ in self.facts.conditions(node)]
        if any(_ALONE.search(name.value) for test in tests for name in self.tree.within(test, cst.Name)):
            return True
        function = self.tree.function(node)
        calls = self.hooks.calls_of.get(function, ()) if function is not None else ()
        return bool(calls) and depth < 4 and all(self._is_alone(each, depth + 1) for each in calls)
