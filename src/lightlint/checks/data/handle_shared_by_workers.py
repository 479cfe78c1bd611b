from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import HandleUsed, LoaderWorked
from lightlint.facts.classes import DATASET
from lightlint.facts.handles import OPENERS, RENEWS, Handles, Opened
from lightlint.facts.names import UNKNOWN
from lightlint.finding import Tier
from lightlint.models.sources import OPENERS as CALLED
from lightlint.values.core import Library, number_of, text_of

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_READ_AS_ONE = {"sqlite3.connect"}  # came out right when tried with forked readers; its makers still forbid it
_CARES = {"__getstate__", "__reduce__", "__reduce_ex__"}


class HandleSharedByWorkers(Check):
    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        start = self.classes.methods(node).get("__init__")
        loaders = self.facts.datasets.loaders_of(node)
        if start is None or not (loaders or self.classes.is_a(node, DATASET)) or self._renews(node):
            return
        counts = [self.facts.datasets.workers(each) for each in loaders]
        if counts and all(count == 0 for count in counts):
            return
        for value, attribute in self._kept(start):
            opened = Handles(self.facts).opened(value) if self._is_read(node, attribute) else None
            if opened is not None and not Handles(self.facts).is_replaced(node, attribute):
                self._judge(opened, attribute, loaders, counts)
                return

    def _judge(self, opened: Opened, attribute: str, loaders: list[cst.Call], counts: list[object]) -> None:
        name = opened.opener
        pickles = bool(loaders) and all(self.facts.workers.method(each).pickles for each in loaders)
        how = "is opened before the workers start: it cannot be pickled" if pickles else "is shared by all workers"
        end = "" if pickles else ", which move one position in it"
        if name in {"h5py.File", "lmdb.open", "lmdb.Environment", *_READ_AS_ONE} and not pickles:
            end = ", which it is not made for"
        sure = any(isinstance(count, int) and count > 0 for count in counts)
        tier = Tier.WARNING if name in _READ_AS_ONE or not sure else None
        known = sure or UNKNOWN in counts
        message = f"`self.{attribute}`, a `{OPENERS[name]}`, {how}{end}"
        self.report(opened.call, message, tier=tier if known else Tier.NOTE)

    def _renews(self, node: cst.ClassDef) -> bool:
        """Whether the class, or the file, sees to handles of each process's own."""
        if any(self.classes.has_method(node, name) for name in _CARES):
            return True
        return any(name.value in RENEWS for name in self.tree.within(node, cst.Name))

    def _kept(self, start: cst.FunctionDef) -> Iterator[tuple[cst.BaseExpression, str]]:
        """What `__init__`, or a method it calls, keeps under an attribute."""
        for method in self.hooks.reachable(start):
            for assign in self.tree.own(method, cst.Assign):
                target = assign.targets[0].target
                if isinstance(target, cst.Attribute) and self.classes.self_class(target.value) is not None:
                    yield assign.value, target.attr.value

    def _is_read(self, node: cst.ClassDef, attribute: str) -> bool:
        """Whether samples are made with what the attribute holds, other than through its file number."""
        reads = self.facts.datasets.read_in(node)
        uses = [
            each
            for each in self.tree.within(node, cst.Attribute)
            if each.attr.value == attribute and self.classes.is_self(each.value) and self.tree.function(each) in reads
        ]
        above = [self.tree.parent(each) for each in uses]
        return any(not (isinstance(each, cst.Attribute) and each.attr.value == "fileno") for each in above)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Files that a worker reads from and that were open before it started."""
        for event in entry.of(LoaderWorked):
            given = event.loader.arguments
            pickles = text_of(given.get("multiprocessing_context")) in ("spawn", "forkserver")
            sure = bool(number_of(given.get("num_workers")))
            for used in event.events:
                handle = used.handle if isinstance(used, HandleUsed) else None
                if handle is None or handle.site is None or handle.made > event.time:
                    continue
                kept = handle.attributes.keys()
                if "#sure" in kept and "#closed" not in kept and not handle.escaped:
                    name = handle.cls.path if isinstance(handle.cls, Library) else ""
                    tier = Tier.WARNING if name in _READ_AS_ONE or not sure else None
                    yield Fault(
                        handle.site, f"this `{CALLED[name]}` {_fate(name, pickles=pickles)}", tier, handle.called_at
                    )


def _fate(name: str, *, pickles: bool) -> str:
    if pickles:
        return "is opened before the workers start: it cannot be pickled"
    alone = name in {"h5py.File", "lmdb.open", "lmdb.Environment", *_READ_AS_ONE}
    return "is shared by all workers, " + ("which it is not made for" if alone else "which move one position in it")
