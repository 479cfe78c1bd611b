from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from lightlint.check import Check
from lightlint.facts.classes import DATASET
from lightlint.facts.names import UNKNOWN
from lightlint.finding import Tier

_OPENERS = {
    "builtins.open": "open", "io.open": "open", "gzip.open": "gzip.open", "h5py.File": "h5py.File", "lmdb.open": "lmdb.open",
    "lmdb.Environment": "lmdb.Environment", "zipfile.ZipFile": "ZipFile", "tarfile.open": "tarfile.open",
    "tables.open_file": "tables.open_file", "netCDF4.Dataset": "netCDF4.Dataset", "sqlite3.connect": "sqlite3.connect",
}  # fmt: skip
_READ_AS_ONE = {"sqlite3.connect"}  # came out right when tried with forked readers; its makers still forbid it
_ITEMS = {"get", "begin", "cursor", "require_group"}
_CARES = {"__getstate__", "__reduce__", "__reduce_ex__"}
_RENEWS = {"get_worker_info", "register_at_fork", "getpid"}


class HandleSharedByWorkers(Check):
    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        start = self.classes.methods(node).get("__init__")
        loaders = self.facts.datasets.loaders_of(node)
        if start is None or not (loaders or self.classes.is_a(node, DATASET)) or self._renews(node):
            return
        counts = [self.facts.datasets.workers(each) for each in loaders]
        if counts and all(count == 0 for count in counts):
            return
        for opener, attribute in self._handles(node, start):
            if self._is_read(node, attribute):
                self._judge(opener, attribute, loaders, counts)
                return

    def _judge(self, opener: cst.Call, attribute: str, loaders: list[cst.Call], counts: list[object]) -> None:
        name = self.names.call(opener) or ""
        pickles = bool(loaders) and all(self.facts.workers.method(each).pickles for each in loaders)
        how = "is opened before the workers start: it cannot be pickled" if pickles else "is shared by all workers"
        end = "" if pickles else ", which move one position in it"
        if name in {"h5py.File", "lmdb.open", "lmdb.Environment", *_READ_AS_ONE} and not pickles:
            end = ", which it is not made for"
        sure = any(isinstance(count, int) and count > 0 for count in counts)
        tier = Tier.WARNING if name in _READ_AS_ONE or not sure else None
        known = sure or UNKNOWN in counts
        self.report(opener, f"`self.{attribute}`, a `{_OPENERS[name]}`, {how}{end}", tier=tier if known else Tier.NOTE)

    def _renews(self, node: cst.ClassDef) -> bool:
        """Whether the class, or the file, sees to handles of each process's own."""
        if any(self.classes.has_method(node, name) for name in _CARES):
            return True
        return any(name.value in _RENEWS for name in self.tree.within(node, cst.Name))

    def _handles(self, node: cst.ClassDef, start: cst.FunctionDef) -> Iterator[tuple[cst.Call, str]]:
        """What `__init__` opens and leaves open under an attribute, itself or in a method it calls."""
        for method in self.hooks.reachable(start):
            for assign in self.tree.own(method, cst.Assign):
                target = assign.targets[0].target
                opener = self._opened(assign.value)
                if (
                    opener is not None
                    and isinstance(target, cst.Attribute)
                    and self.classes.self_class(target.value) is not None
                    and not self._is_replaced(node, target.attr.value)
                ):
                    yield opener, target.attr.value

    def _opened(self, value: cst.BaseExpression, depth: int = 0) -> cst.Call | None:
        """The call that opened what a value reads from: the handle, or a group or transaction of it."""
        if depth > 4:
            return None
        match value:
            case cst.Call() if self.names.call(value) in _OPENERS:
                return None if self._is_in_memory(value) else value
            case cst.Call(func=cst.Attribute(value=receiver, attr=cst.Name(value=method))) if method in _ITEMS:
                return self._opened(receiver, depth + 1)
            case cst.Subscript():
                return self._opened(value.value, depth + 1)
            case cst.Attribute() if (node := self.classes.self_class(value.value)) is not None:
                held = self.classes.attribute_values(node, value.attr.value)
                replaced = self._is_replaced(node, value.attr.value)
                return self._opened(held[0], depth + 1) if len(held) == 1 and not replaced else None
            case cst.Name():
                found = self.names.bindings.lookup(value)
                only = found[0] if len(found) == 1 and not isinstance(found[0].site, cst.AsName) else None
                closed = any(
                    self.names.method(call) == "close" and self.names.key(call.func).partition(".")[0] == value.value
                    for call in self.tree.own(self.tree.owner(value), cst.Call)
                )
                return self._opened(only.value, depth + 1) if only and only.value and not closed else None
        return None

    def _is_in_memory(self, call: cst.Call) -> bool:
        driver, path = self.names.argument(call, "driver", 2), call.args[0].value if call.args else None
        writes = self.names.argument(call, "mode", 1)
        mode = self.names.constant(writes.value) if writes is not None else "r"
        core = driver is not None and self.names.constant(driver.value) == "core"
        return core or self.names.call(path) == "io.BytesIO" or (isinstance(mode, str) and mode[:1] in {"w", "a", "x"})

    def _is_replaced(self, node: cst.ClassDef, attribute: str) -> bool:
        """Whether the attribute is set a second time, closed or deleted, here or from outside the class."""
        keys = {f"self.{attribute}", f"{attribute}"}
        sets = [
            each
            for each in self.tree.all(cst.AssignTarget, cst.Del)
            for leaf in self.tree.within(each, cst.Attribute)
            if leaf.attr.value == attribute
        ]
        closes = [
            call
            for call in self.tree.within(node, cst.Call)
            if self.names.method(call) == "close"
            and self.names.key(call.func) in {f"{key}.close" for key in keys}
            and (owner := self.tree.function(call)) is not None
            and owner.name.value not in {"__del__", "close", "__exit__"}
        ]
        return len(sets) > 1 or bool(closes)

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
