from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.ranks.trainers import lightning_ranks
from lightlint.facts.ranks.world import Ranks
from lightlint.finding import Tier


class FabricLoaderNotSetUp(Check):
    def visit_For(self, loop: cst.For) -> None:
        drawn = self.values.iterated(loop.iter)
        origin = self.values.constructor(drawn)
        if origin is None or origin.call is None or not self.values.is_loader(drawn) or not self._trains(loop):
            return
        ranks, loading = lightning_ranks(self.facts), self.facts.loading
        if ranks is Ranks.ONE or loading.is_sampled(origin.call) or not loading.is_map_style(origin.call):
            return
        if self._is_told(origin.call, ranks):
            return
        self.report(
            loop.iter,
            f"`{self.code.text_of(drawn)}` is not set up by Fabric: every rank trains on the whole data set, in batches left on the CPU",
            tier=None if ranks is Ranks.MANY else Tier.NOTE,
        )

    def _trains(self, loop: cst.For) -> bool:
        """Whether a loop itself runs `fabric.backward`."""
        for call in self.tree.within(loop.body, cst.Call):
            func = call.func
            ran = (
                isinstance(func, cst.Attribute)
                and func.attr.value == "backward"
                and self.tree.loops(call)[:1] == [loop]
            )
            if ran and isinstance(func, cst.Attribute) and self.facts.fabrics.is_fabric(func.value):
                return True
        return False

    def _is_told(self, loader: cst.Call, ranks: Ranks) -> bool:
        """Whether loader-without-distributed-sampler speaks of it: it knows where the data comes from."""
        data = self.facts.loading.dataset(loader)
        return ranks is Ranks.MANY and data is not None and self.facts.processes.is_in_sight(data)
