from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.classes import DATASET, ITERABLE_DATASET
from lightlint.facts.world import Ranks
from lightlint.finding import Tier

_SPLITS = ("sampler", "batch_sampler")


class FabricLoaderNotSetUp(Check):
    def visit_For(self, loop: cst.For) -> None:
        drawn = self.values.iterated(loop.iter)
        origin = self.values.constructor(drawn)
        if origin is None or origin.call is None or not self.values.is_loader(drawn) or not self._trains(loop):
            return
        ranks = self.facts.world.lightning
        if ranks is Ranks.ONE or not self._is_whole(origin.call):
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

    def _is_whole(self, loader: cst.Call) -> bool:
        """Whether a DataLoader surely draws from a whole map-style data set."""
        if self.names.has_star(loader) or any(self.names.argument(loader, each) for each in _SPLITS):
            return False
        shuffled = self.names.argument(loader, "shuffle", 2)
        if shuffled is not None and self.names.constant(shuffled.value) is True:
            return True  # which an IterableDataset refuses
        given = self.names.argument(loader, "dataset", 0)
        origin = self.values.constructor(given.value) if given is not None else None
        known = origin is not None and self.classes.name_is_a(origin.name, DATASET)
        return origin is not None and known and not self.classes.name_is_a(origin.name, ITERABLE_DATASET)
