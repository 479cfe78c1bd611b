from __future__ import annotations

import re

import libcst as cst

from lightlint.check import Check
from lightlint.facts.objects.classes import DATASET
from lightlint.facts.ranks.world import Ranks
from lightlint.finding import Tier

_LOCKS = {f"threading.{name}" for name in ("Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore")}
_THREADS = re.compile(r"Thread|Executor|Observer|Timer|start_new_thread|to_thread|add_done_callback")


class ThreadLockAcrossProcesses(Check):
    def visit_With(self, node: cst.With) -> None:
        for item in node.items:
            self._judge(item.item, node.body)

    def visit_Call(self, call: cst.Call) -> None:
        method = self.names.method(call)
        if method == "acquire" and isinstance(call.func, cst.Attribute):
            self._judge(call.func.value, self.tree.owner(call))
        elif method == "enter_context" and call.args:
            self._judge(call.args[0].value, self.tree.owner(call))

    def _judge(self, lock: cst.BaseExpression, protected: cst.CSTNode) -> None:
        """A lock that is held in code which several processes run and no second thread of one does."""
        origin = self.values.constructor(lock)
        if origin is None or origin.name not in _LOCKS or origin.call is None:
            return
        above = self.tree.enclosing_class(lock)
        owner = self.hooks.owner(above)
        writes = any(self.facts.writes.of(call) for call in self.tree.within(protected, cst.Call))
        shared = owner is not None or (self.classes.is_a(above, DATASET) and writes)
        if not shared or self.facts.world.lightning is Ranks.ONE or self._has_threads():
            return
        self.report(
            origin.call,
            f"`{origin.name}` holds back threads of one process, each rank and worker has a lock of its own",
            tier=Tier.NOTE if self.facts.world.is_untold else None,
        )

    def _has_threads(self) -> bool:
        """Whether anything in this file is named like the start of a thread."""
        return any(_THREADS.search(name.value) for name in self.tree.all(cst.Name))
