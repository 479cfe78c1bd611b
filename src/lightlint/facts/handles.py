"""Which calls open a file, and which values read from one that stays open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.bindings import Kind

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

OPENERS = {
    "builtins.open": "open", "io.open": "open", "gzip.open": "gzip.open", "h5py.File": "h5py.File", "lmdb.open": "lmdb.open",
    "lmdb.Environment": "lmdb.Environment", "zipfile.ZipFile": "ZipFile", "tarfile.open": "tarfile.open",
    "tables.open_file": "tables.open_file", "netCDF4.Dataset": "netCDF4.Dataset", "sqlite3.connect": "sqlite3.connect",
}  # fmt: skip
RENEWS = {"get_worker_info", "register_at_fork", "getpid"}
_ITEMS = {"get", "begin", "cursor", "require_group"}
_DEPTH = 4


@dataclass(frozen=True, slots=True)
class Opened:
    """An open file: the call of this file that gives it, and the canonical name of what opens it."""

    call: cst.Call
    opener: str


class Handles:
    """The open files of one file's code."""

    def __init__(self, facts: FileFacts) -> None:
        self._facts = facts
        self._tree = facts.tree
        self._names = facts.names
        self._classes = facts.classes

    def opened(self, value: cst.BaseExpression, depth: int = 0) -> Opened | None:
        """What opened what a value reads from: the handle, or a group or transaction of it."""
        if depth > _DEPTH:
            return None
        match value:
            case cst.Call() if (name := self._names.call(value)) in OPENERS and name is not None:
                return None if self._is_in_memory(value) else Opened(value, name)
            case cst.Call(func=cst.Attribute(value=receiver, attr=cst.Name(value=method))) if method in _ITEMS:
                return self.opened(receiver, depth + 1)
            case cst.Call():
                return self._by_helper(value, depth)
            case cst.Subscript():
                return self.opened(value.value, depth + 1) if self._is_by_name(value) else None
            case cst.Attribute() if (node := self._classes.self_class(value.value)) is not None:
                held = self._classes.attribute_values(node, value.attr.value)
                replaced = self.is_replaced(node, value.attr.value)
                return self.opened(held[0], depth + 1) if len(held) == 1 and not replaced else None
            case cst.Name():
                found = self._names.bindings.lookup(value)
                only = found[0] if len(found) == 1 and found[0].kind is Kind.ASSIGN and not found[0].path else None
                closed = any(
                    self._names.method(call) == "close" and self._names.key(call.func).partition(".")[0] == value.value
                    for call in self._tree.own(self._tree.owner(value), cst.Call)
                )
                return self.opened(only.value, depth + 1) if only and only.value and not closed else None
        return None

    def _is_by_name(self, part: cst.Subscript) -> bool:
        """Whether an item is a part of the file, not what was read from one: `file["images"][:]` is in memory."""
        index = part.slice[0].slice
        read = not isinstance(index, cst.Index) or isinstance(index.value, (cst.Tuple, cst.Ellipsis, cst.Integer))
        return len(part.slice) == 1 and not read

    def _by_helper(self, call: cst.Call, depth: int) -> Opened | None:
        """As `opened`, for what a function gives, of this file or one it imports."""
        if any(isinstance(mode := self._names.constant(arg.value), str) and mode[:1] in "wax" for arg in call.args):
            return None
        helpers = self._facts.hooks.callees(call)
        if helpers:
            opener = self._given_by(helpers[0], depth) if len(helpers) == 1 else None
        else:
            opener = self._imported(call, depth)
        return Opened(call, opener) if opener is not None else None

    def _imported(self, call: cst.Call, depth: int) -> str | None:
        """What a function of another file of the project opens, asked where a loader of this file may share it."""
        if not self._facts.datasets.loaders:
            return None
        module, _, word = (self._names.call(call) or "").rpartition(".")
        near = self._facts.path.parent
        path = self._facts.project.find_module(module, near) if module and not word[:1].isupper() else None
        other = self._facts.other(path) if path is not None and path != self._facts.path else None
        for function in other.tree.all(cst.FunctionDef) if other is not None else ():
            if function.name.value == word and other is not None and isinstance(other.tree.scope(function), cst.Module):
                return Handles(other)._given_by(function, depth)
        return None

    def _given_by(self, function: cst.FunctionDef, depth: int) -> str | None:
        """What opens the files that a function gives, one anew at each call; None where that is not certain."""
        renewed = any(name.value in RENEWS for name in self._tree.within(function, cst.Name))
        given = self._facts.values.returns(function) if not function.decorators and not renewed else []
        found = [self.opened(each, depth + 1) if each is not None else None for each in given]
        openers = {each.opener if each is not None else None for each in found}
        return openers.pop() if len(openers) == 1 else None

    def _is_in_memory(self, call: cst.Call) -> bool:
        driver, path = self._names.argument(call, "driver", 2), call.args[0].value if call.args else None
        writes = self._names.argument(call, "mode", 1)
        mode = self._names.constant(writes.value) if writes is not None else "r"
        core = driver is not None and self._names.constant(driver.value) == "core"
        return core or self._names.call(path) == "io.BytesIO" or (isinstance(mode, str) and mode[:1] in {"w", "a", "x"})

    def is_replaced(self, node: cst.ClassDef, attribute: str) -> bool:
        """Whether an attribute is set a second time, closed or deleted, here or from outside the class."""
        keys = {f"self.{attribute}", f"{attribute}"}
        sets = [
            each
            for each in self._tree.all(cst.AssignTarget, cst.Del)
            for leaf in self._tree.within(each, cst.Attribute)
            if leaf.attr.value == attribute
        ]
        closes = [
            call
            for call in self._tree.within(node, cst.Call)
            if self._names.method(call) == "close"
            and self._names.key(call.func) in {f"{key}.close" for key in keys}
            and (owner := self._tree.function(call)) is not None
            and owner.name.value not in {"__del__", "close", "__exit__"}
        ]
        return len(sets) > 1 or bool(closes)
