from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import LoaderMade, LoaderWorked, WorkerAsked
from lightlint.facts.classes import ITERABLE_DATASET
from lightlint.facts.loading import Driver
from lightlint.facts.wholes import Wholes
from lightlint.facts.world import Ranks
from lightlint.values.core import Class, Function, number_of
from lightlint.values.training import Instance

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_SHARES = re.compile(
    r"worker|shard|split_by|stride|num_proc|partition|get_rank|rank$|world_size|replica", re.IGNORECASE
)
_SHARES_RANKS = re.compile(r"rank|world|replica|shard|split_by|node|process|num_proc|partition", re.IGNORECASE)
_DRAWS = re.compile(r"rand(?!om_?split|perm)|sample|choice|normal|uniform", re.IGNORECASE)
_REORDERS = re.compile(r"shuffle|perm", re.IGNORECASE)


class IterableDatasetUnsharded(Check):
    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        if not self.classes.is_a(node, ITERABLE_DATASET):
            return
        start = self.classes.method(node, "__iter__")
        loaders = [each for each in self.facts.datasets.loaders_of(node) if not self._is_told(each)]
        if start is None or not loaders or not self._is_first(node, start):
            return
        self._judge(node, start, loaders)

    def _is_first(self, node: cst.ClassDef, start: cst.FunctionDef) -> bool:
        """Whether a class is the one to be judged of those that share a way to iterate: each is drawn from."""
        sharing = [each for each in self.tree.all(cst.ClassDef) if self.classes.method(each, "__iter__") is start]
        return next(each for each in sharing if self.facts.datasets.loaders_of(each)) is node

    def _judge(self, node: cst.ClassDef, start: cst.FunctionDef, loaders: list[cst.Call]) -> None:
        words = self._words(node)
        if self._calls(node, _DRAWS) or not Wholes(self.facts).reads(start):
            return
        counts = [self.facts.datasets.workers(each) for each in loaders]
        several = [count for count in counts if isinstance(count, int) and count > 1]
        if several and not any(_SHARES.search(word) for word in words):
            self.report(
                start.name,
                f"each of the {max(several)} workers yields every sample of `{node.name.value}`: none takes a share",
            )
        elif (
            not any(_SHARES_RANKS.search(word) for word in words)
            and not self._calls(node, _REORDERS)
            and any(map(self._is_on_ranks, loaders))
        ):
            self.report(
                start.name,
                f"each rank draws every sample of `{node.name.value}`: an IterableDataset gets no DistributedSampler",
            )

    def _is_told(self, loader: cst.Call) -> bool:
        """Whether a function of the loader's may give each worker its share."""
        given = self.facts.workers.given(loader, "worker_init_fn", 10)
        return not given.whole or any(self.names.constant(each) is not None for each in given.values)

    def _words(self, node: cst.ClassDef) -> set[str]:
        """The names in a class, in those of this file above it and in the functions that make its samples."""
        above = [each for name in self.classes.ancestors(node) if (each := self.classes.local(name)) is not None]
        rooms = [node, *above, *self.facts.datasets.read_in(node)]
        return {name.value for room in rooms for name in self.tree.within(room, cst.Name)}

    def _calls(self, node: cst.ClassDef, pattern: re.Pattern[str]) -> bool:
        """Whether what makes the samples calls something of that kind: drawn at random, no two workers yield the same."""
        calls = [
            call for function in self.facts.datasets.read_in(node) for call in self.tree.within(function, cst.Call)
        ]
        return any(pattern.search(self.names.method(call)) for call in calls)

    def _is_on_ranks(self, loader: cst.Call) -> bool:
        given = self.facts.loading.dataset(loader)
        if given is None or self.facts.processes.may_be_share(given):
            return False
        if self.facts.loading.training.get(loader) is Driver.LIGHTNING:
            return self.facts.world.lightning is Ranks.MANY and not self.facts.world.is_untold
        return self.facts.world.raw is Ranks.MANY and self.facts.processes.per_rank(loader)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """IterableDatasets that several workers go through, none of which asks which worker it is."""
        for path in entry.paths:
            worked = [inner for event in path.of(LoaderWorked) for inner in event.events]
            asked = any(isinstance(event, WorkerAsked) for event in (*path.events, *worked))
            for event in path.of(LoaderMade):
                data, workers = event.loader.data, number_of(event.loader.arguments.get("num_workers"))
                if (
                    not isinstance(data, Instance)
                    or not isinstance(data.cls, Class)
                    or not workers
                    or workers < 2
                    or asked
                ):
                    continue
                own = data.cls.find("__iter__")
                streams = any(name.endswith("IterableDataset") for name in data.libraries()) and isinstance(
                    own, Function
                )
                free = (
                    "worker_init_fn" not in event.loader.arguments
                    and not event.loader.open_arguments
                    and not data.escaped
                )
                if streams and free and isinstance(own, Function) and id(own.node) in path.machine.called:
                    message = (
                        f"each of the {int(workers)} workers yields every sample of `{data.name}`: none takes a share"
                    )
                    yield Fault.at(event, message)
