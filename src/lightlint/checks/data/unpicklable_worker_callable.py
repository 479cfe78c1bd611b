from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.classes import CALLBACK, DATA_MODULE, MODULE
from lightlint.facts.names import UNKNOWN
from lightlint.facts.options import project_default
from lightlint.facts.pickling import Obstacle
from lightlint.facts.workers import Method, Starter
from lightlint.finding import Tier

_TASKS = {"map", "map_async", "imap", "imap_unordered", "starmap", "starmap_async", "apply", "apply_async", "submit"}
_PICKLERS = ("dill", "cloudpickle")
# arguments that reach a process as it starts, with their positions
_SENT: dict[Starter, tuple[tuple[str, int], ...]] = {
    Starter.LOADER: (("dataset", 0), ("collate_fn", 6), ("worker_init_fn", 10)),
    Starter.PROCESS: (("target", 1), ("args", 3)),
    Starter.POOL: (("initializer", 1), ("initargs", 2)),
    Starter.EXECUTOR: (("initializer", 2), ("initargs", 3)),
    Starter.SPAWN: (("fn", 0), ("args", 1)),
}


class UnpicklableWorkerCallable(Check):
    def visit_Call(self, call: cst.Call) -> None:
        starter = self.facts.workers.starter(call)
        if starter is not None:
            self._start(call, starter)
        elif self.names.method(call) in _TASKS and isinstance(call.func, cst.Attribute):
            self._task(call, call.func)

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        """What a launcher that spawns ranks has to pickle: the module, the data module, the callbacks."""
        if not self.classes.is_a(node, MODULE, DATA_MODULE, CALLBACK):
            return
        met = self.facts.pickling.state(node)
        if met is not None and self._ranks_are_spawned():
            self.report(met.node, f"`ddp_spawn` pickles `{node.name.value}`, and it holds {met.what}")

    def _task(self, call: cst.Call, func: cst.Attribute) -> None:
        """A function that goes to the workers of a pool through a queue: pickled whatever the start method."""
        pool = self.facts.workers.made(func.value)
        if self.facts.workers.starter(pool) not in {Starter.POOL, Starter.EXECUTOR} or self._pickles_more():
            return
        sent = self.names.argument(call, "func", 0) or self.names.argument(call, "fn", 0)
        met = self.facts.pickling.obstacle(sent.value) if sent else None
        if met is not None and sent is not None:
            self.report(sent.value, f"`{func.attr.value}` pickles its function, which {_is(met)}")

    def _start(self, call: cst.Call, starter: Starter) -> None:
        method = self.facts.workers.method(call)
        count = self.facts.workers.count(call) if starter is Starter.LOADER else 1
        if method in {Method.FORK, Method.UNKNOWN} or count == 0:
            return
        for keyword, position in _SENT[starter]:
            sent = self.names.argument(call, keyword, position)
            met = self.facts.pickling.obstacle(sent.value) if sent else None
            if met is None or sent is None:
                continue
            if method.pickles:
                how, tier = f"workers start by `{method}`", Tier.ERROR
            else:
                how, tier = "workers start by spawn or forkserver (macOS, Windows, Python 3.14)", Tier.WARNING
            place = met.node if isinstance(met.node, cst.Lambda) and self.tree.contains(sent, met.node) else sent.value
            self.report(
                place,
                f"`{keyword}` {_is(met)}, which cannot be pickled where {how}",
                tier=tier if count is not UNKNOWN or self._works_untold(call) else Tier.NOTE,
            )

    def _works_untold(self, loader: cst.Call) -> bool:
        """Whether a loader has workers in a program that is started without arguments."""
        count = self.facts.datasets.workers(loader)
        given = self.facts.workers.given(loader, "num_workers", 5)
        if count is UNKNOWN and len(given.values) == 1 and given.always:
            count = project_default(self.facts, given.values[0])
        return isinstance(count, int) and count > 0

    def _ranks_are_spawned(self) -> bool:
        """Whether every Trainer that may run this file's classes starts its ranks with `ddp_spawn`."""
        trainers = self.facts.world.trainers
        given = [
            [each.arguments.get(name) for name in ("strategy", "accelerator", "distributed_backend")]
            for each in trainers
        ]
        spawns = [any(isinstance(each, str) and each.startswith("ddp_spawn") for each in values) for values in given]
        return bool(spawns) and all(spawns)

    def _pickles_more(self) -> bool:
        """Whether the file brings a pickler that may take functions by value."""
        imports = self.tree.all(cst.Import, cst.ImportFrom)
        return any(name.value in _PICKLERS for each in imports for name in self.tree.within(each, cst.Name))


def _is(met: Obstacle) -> str:
    return f"{'holds' if met.held else 'is'} {met.what}"
