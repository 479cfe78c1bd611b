from __future__ import annotations

import re

import libcst as cst

from lightlint.check import Check
from lightlint.facts.bindings import Kind
from lightlint.facts.classes import ITERABLE_DATASET
from lightlint.facts.loading import Driver
from lightlint.facts.world import Ranks

_SHARES = re.compile(
    r"worker|shard|split_by|stride|num_proc|partition|get_rank|rank$|world_size|replica", re.IGNORECASE
)
_SHARES_RANKS = re.compile(r"rank|world|replica|shard|split_by|node|process|num_proc|partition", re.IGNORECASE)
_DRAWS = re.compile(r"rand(?!om_?split|perm)|sample|choice|normal|uniform", re.IGNORECASE)
_REORDERS = re.compile(r"shuffle|perm", re.IGNORECASE)
_WHOLE = {
    "builtins.range", "builtins.open", "io.open", "gzip.open", "builtins.sorted", "builtins.list", "glob.glob", "glob.iglob",
    "os.listdir", "os.scandir", "os.walk", "json.load", "numpy.load", "pandas.read_csv",
}  # fmt: skip
_OF_WHOLE = {
    "items", "values", "keys", "readlines", "splitlines", "split", "iterrows", "itertuples", "glob", "rglob", "iterdir", "read",
}  # fmt: skip
_PASSES = {"builtins.enumerate", "builtins.zip", "builtins.map", "builtins.filter", "builtins.iter", "builtins.reversed", "csv.reader", "csv.DictReader", "itertools.chain", "tqdm.tqdm"}  # fmt: skip
_DEPTH = 6


class IterableDatasetUnsharded(Check):
    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        start = self.classes.methods(node).get("__iter__")
        if start is None or not self.classes.is_a(node, ITERABLE_DATASET):
            return
        loaders = [each for each in self.facts.datasets.loaders_of(node) if not self._is_told(each)]
        words = self._words(node)
        if not loaders or self._calls(node, _DRAWS) or not self._reads_whole(start):
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
        given = self.names.argument(loader, "worker_init_fn", 10)
        return self.names.has_star(loader) or (given is not None and self.names.constant(given.value) is not None)

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

    def _reads_whole(self, start: cst.FunctionDef) -> bool:
        """Whether what `__iter__` goes through is all there is: a range, a file, a list that was given as it is."""
        loops = [loop for loop in self.tree.own(start, cst.For) if not any(self.tree.loops(loop))]
        passed = [each.item for each in self.tree.own(start, cst.From)]
        returned = [each.value for each in self.tree.own(start, cst.Return) if isinstance(each.value, cst.Call)]
        sources = [loop.iter for loop in loops] or passed or returned
        return bool(sources) and all(self._is_whole(source, 0) for source in sources)

    def _is_whole(self, value: cst.CSTNode | None, depth: int) -> bool:
        if depth > _DEPTH:
            return False
        match value:
            case cst.List() | cst.Tuple() | cst.ListComp() | cst.SimpleString() | cst.Dict():
                return True
            case cst.Call() if self.names.call(value) in _WHOLE:
                return True
            case cst.Call() if self.names.call(value) in _PASSES:
                lazy = self.names.call(value) in {"builtins.map", "builtins.filter"}
                return all(self._is_whole(arg.value, depth + 1) for arg in value.args[lazy:] if arg.keyword is None)
            case cst.Call(func=cst.Attribute()):
                return self.names.method(value) in _OF_WHOLE
            case cst.Name():
                found = self.names.bindings.lookup(value)
                return bool(found) and all(
                    self._is_bound_whole(each.kind, each.value, each.scope, value, depth) for each in found
                )
            case cst.Attribute():
                node = self.classes.self_class(value.value)
                sources = self.classes.attribute_sources(node, value.attr.value) if node is not None else []
                return bool(sources) and all(not path and self._is_whole(each, depth + 1) for each, path in sources)
        return False

    def _is_bound_whole(
        self, kind: Kind, value: cst.BaseExpression | None, scope: cst.CSTNode, name: cst.Name, depth: int
    ) -> bool:
        if kind in {Kind.ASSIGN, Kind.WITH}:
            return self._is_whole(value, depth + 1)
        if kind is not Kind.PARAMETER or not isinstance(scope, cst.FunctionDef):
            return False
        made = self.hooks.constructions.get(scope, ())
        given = [self.values.given(scope, call, name.value) for call in made]
        return bool(given) and all(self._is_whole(each, depth + 1) for each in given)
