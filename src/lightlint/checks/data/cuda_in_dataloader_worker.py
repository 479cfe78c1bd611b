from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import CudaUsed, LoaderWorked
from lightlint.facts.across import Place, calls_into, runs_always, surely_run
from lightlint.facts.classes import DATASET
from lightlint.facts.cuda import device_given, starts_cuda
from lightlint.facts.datasets import READS
from lightlint.facts.kept_devices import is_kept_gpu
from lightlint.facts.mentions import occurs
from lightlint.facts.workers import LOADER, Method
from lightlint.values.core import NONE, is_constant, number_of

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_CANNOT = "a worker that was forked cannot use CUDA"
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
        uses = [each for each in dict.fromkeys(uses) if self._uses(each) or self._moves(each)]
        uses = [each for each in uses if not self._is_chosen(each)]
        for use in uses:
            self.report(use, "a worker that was forked cannot use CUDA, and this runs in the loader's workers")
        if uses:
            return
        places = [Place(self.facts, start) for start in starts] + list(self._elsewhere(call))
        where = next((place for start in places for place in self._using(start)), None)
        if where is not None:
            name = f"`{self._spelled(where)}` of {where.facts.path.name}"
            self.report(call, f"a worker that was forked cannot use CUDA, and {name} does in this loader's workers")

    def _uses(self, call: cst.Call) -> bool:
        """Whether a call uses CUDA, unless the object can be made not to: `if self.on_gpu:`."""
        if not starts_cuda(self.names, call):
            return False
        tests = [test for test, _ in self.facts.conditions(call)]
        return not any(self.classes.is_self(word) for test in tests for word in self.tree.within(test, cst.Name))

    def _is_chosen(self, call: cst.Call) -> bool:
        """Whether workers that run the function of a call pass it by, or use CUDA there for tests on what is unknown."""
        start, end = self.facts.positions.span(call)
        row, rehearsed = self.facts.source.row_of(start), self.facts.rehearsed
        events = [e for entry in rehearsed.entries for worked in entry.of(LoaderWorked) for e in worked.events]
        frames = [each.where.calls[-1].function for each in events if each.where.calls]
        path = str(self.facts.path)
        ran = any(f.file == path and f.node.lineno <= row <= (f.node.end_lineno or 0) for f in frames)
        used = [e for e in events if isinstance(e, CudaUsed) and rehearsed.span(e.site) == (start, end)]
        return ran and not any(all(c.known for c in each.where.conditions) for each in used)

    def _moves(self, call: cst.Call) -> bool:
        """Whether a call always moves something to the GPU that its object was made with."""
        device = device_given(self.names, call)
        return device is not None and is_kept_gpu(self.facts, device) and runs_always(self.facts, call)

    def _starts(self, loader: cst.Call) -> Iterator[cst.FunctionDef]:
        """The functions of this file that run in a loader's workers: of the data set, and `collate_fn`."""
        for node in sorted(self.facts.datasets.classes_of(loader), key=self.tree.order):
            if self.classes.is_a(node, DATASET):
                methods = [self.classes.method(node, name) for name in READS]
                yield from (method for method in methods if method is not None)
        for collate in self.facts.workers.given(loader, "collate_fn", 6).values:
            yield from self._called(collate)

    def _called(self, collate: cst.BaseExpression) -> Iterator[cst.FunctionDef]:
        """The function of this file that a `collate_fn` is, also behind `partial`, or the `__call__` of the object it is."""
        if isinstance(collate, cst.Call) and self.names.call(collate) == "functools.partial" and collate.args:
            collate = collate.args[0].value
        sites = [each.site for each in self.names.bindings.lookup(collate)] if isinstance(collate, cst.Name) else []
        if len(sites) == 1 and isinstance(sites[0], cst.FunctionDef):
            yield sites[0]
            return
        origin = self.values.constructor(collate)
        node = self.classes.local(origin.name) if origin is not None else None
        method = self.classes.method(node, "__call__") if node is not None else None
        if method is not None:
            yield method

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

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """What a forked worker does with CUDA, whatever tests say."""
        for event in entry.of(LoaderWorked):
            loader = event.loader
            forks = is_constant(loader.arguments.get("multiprocessing_context", NONE), None, "fork")
            if not forks or not number_of(loader.arguments.get("num_workers")) or loader.open_arguments:
                continue
            for used in event.events:
                if not isinstance(used, CudaUsed) or not all(each.known for each in used.where.conditions):
                    continue
                if used.site[0] == event.site[0]:
                    yield Fault(used.site, f"{_CANNOT}, and this runs in the loader's workers", None, (event.site,))
                elif used.where.calls:
                    function = used.where.calls[-1].function
                    owner = f"{function.owner.name}." if function.owner is not None else ""
                    name = f"`{owner}{function.name}` of {Path(function.file).name}"
                    yield Fault(event.site, f"{_CANNOT}, and {name} does in this loader's workers", None, (used.site,))
