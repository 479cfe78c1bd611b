from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from lightlint.check import Check
from lightlint.facts.across import Place, calls_into, surely_run
from lightlint.facts.classes import DATASET
from lightlint.facts.cuda import starts_cuda
from lightlint.facts.datasets import READS
from lightlint.facts.mentions import occurs
from lightlint.facts.workers import LOADER, Method

_SPAWNED = r"set_start_method\(\s*(?:method\s*=\s*)?\\?['\"](?:spawn|forkserver)"


class CudaInDataloaderWorker(Check):
    def stands(self) -> bool:
        """Whether no other file of the project has its workers spawned."""
        return not occurs(self.facts.project, "set_start_method", _SPAWNED)

    def visit_Call(self, call: cst.Call) -> None:
        if self.names.call(call) != LOADER:
            return
        method = self.facts.workers.method(call)
        if method.pickles or method is Method.UNKNOWN:
            return
        count = self.facts.datasets.workers(call)
        if not isinstance(count, int) or count < 1:
            return
        starts = list(self._starts(call))
        here = {function for start in starts for function in self.hooks.reachable(start)}
        uses = [each for function in here for each in self.tree.within(function.body, cst.Call)]
        uses = [each for each in dict.fromkeys(uses) if starts_cuda(self.names, each)]
        for use in uses:
            self.report(use, "a worker that was forked cannot use CUDA, and this runs in the loader's workers")
        if uses:
            return
        places = [Place(self.facts, start) for start in starts] + list(self._elsewhere(call))
        where = next((place for start in places for place in self._using(start)), None)
        if where is not None:
            name = f"`{self._spelled(where)}` of {where.facts.path.name}"
            self.report(call, f"a worker that was forked cannot use CUDA, and {name} does in this loader's workers")

    def _starts(self, loader: cst.Call) -> Iterator[cst.FunctionDef]:
        """The functions of this file that run in a loader's workers: of the data set, and `collate_fn`."""
        for node in sorted(self.facts.datasets.classes_of(loader), key=self.tree.order):
            if self.classes.is_a(node, DATASET):
                methods = [self.classes.method(node, name) for name in READS]
                yield from (method for method in methods if method is not None)
        collate = self.names.argument(loader, "collate_fn", 6)
        if collate is not None and isinstance(collate.value, cst.Name):
            sites = [each.site for each in self.names.bindings.lookup(collate.value)]
            yield from (site for site in sites if isinstance(site, cst.FunctionDef) and len(sites) == 1)

    def _elsewhere(self, loader: cst.Call) -> Iterator[Place]:
        """The methods of data sets of other files that run in a loader's workers."""
        for name in sorted(self.facts.datasets.names_of(loader)):
            known = None if self.classes.local(name) else self.facts.project.find_class(name, self.facts.path.parent)
            if known is None or not self.classes.name_is_a(name, DATASET):
                continue
            if "cuda" not in self.facts.project.text(known[1]) and not calls_into(self.facts, known[1], "cuda"):
                continue
            found = self.facts.of_class(name)
            methods = [found[0].classes.method(found[1], each) for each in READS] if found is not None else []
            yield from (Place(found[0], each) for each in methods if found is not None and each is not None)

    def _using(self, start: Place) -> Iterator[Place]:
        """The functions of other files that use CUDA whenever a worker runs one."""
        for place in surely_run(self.facts, start, "cuda"):
            if place.facts is not self.facts and any(starts_cuda(place.facts.names, each) for each in place.calls()):
                yield place

    def _spelled(self, place: Place) -> str:
        return place.facts.names.qualified(place.function)
