"""Which calls write files, and under which names."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import libcst as cst

from lightlint.facts.code.bindings import Kind
from lightlint.facts.code.names import Names
from lightlint.facts.code.tree import Tree
from lightlint.facts.values.values import Values
from lightlint.models.names.writing import FUNCTIONS, METHODS, spelled


class What(StrEnum):
    """What a writing call makes."""

    FILE = "file"
    DIRECTORY = "directory"


@dataclass(frozen=True, slots=True)
class Write:
    """A call that writes. `name` is how a message calls it; `path` is the expression that names the file."""

    name: str
    path: cst.BaseExpression
    what: What = What.FILE


_FUNCTIONS = {"torch.save": (1, "f"), **FUNCTIONS}
# methods that write to a path, and the package whose objects have them: the file must import it
_OWNERS = {name: "matplotlib" if name == "savefig" else "pandas" for name in METHODS}
_OF_PATHS = {"write_text", "write_bytes", "open", "mkdir"}
_PATH_CALLS = {"pathlib.Path", "pathlib.PosixPath", "pathlib.PurePath"}
_SAME_PATH = {"parent", "with_suffix", "with_name", "with_stem", "resolve", "absolute", "joinpath", "expanduser"}
_BUFFERS = {"io.BytesIO", "io.StringIO"}


class Writes:
    """The writing calls of one file."""

    def __init__(self, tree: Tree, names: Names, values: Values) -> None:
        self._tree = tree
        self._names = names
        self._values = values

    def of(self, call: cst.Call) -> Write | None:
        """The write that a call is; None for one that writes into memory or into a file opened elsewhere."""
        name = self._names.call(call) or ""
        if name in {"builtins.open", "io.open"}:
            return self._opened(call, "open", self._argument(call, 0, "file"), position=1)
        if name in {"os.makedirs", "os.mkdir"}:
            path = self._argument(call, 0, "path" if name == "os.mkdir" else "name")
            return None if path is None or self._exists_ok(call, 2) else Write(name, path, What.DIRECTORY)
        if name in _FUNCTIONS:
            path = self._argument(call, *_FUNCTIONS[name])
            return Write(spelled(name), path) if path is not None and not self._is_open(path) else None
        return self._method(call)

    def _method(self, call: cst.Call) -> Write | None:
        if not isinstance(call.func, cst.Attribute):
            return None
        method, receiver = call.func.attr.value, call.func.value
        if method in METHODS:
            path = self._argument(call, 0, METHODS[method])
            imported = self._imports(_OWNERS[method])
            return Write(method, path) if imported and path is not None and not self._is_open(path) else None
        if method not in _OF_PATHS or not self.is_path(receiver):
            return None
        if method == "open":
            return self._opened(call, "open", receiver, position=0)
        if method == "mkdir":
            return None if self._exists_ok(call, 2) else Write("mkdir", receiver, What.DIRECTORY)
        return Write(method, receiver)

    def is_path(self, expression: cst.BaseExpression, depth: int = 0) -> bool:
        """Whether a value surely is a `pathlib.Path`."""
        if depth > 4:
            return False
        match expression:
            case cst.BinaryOperation(operator=cst.Divide()):
                return self.is_path(expression.left, depth + 1)
            case cst.Attribute() if expression.attr.value in _SAME_PATH:
                return self.is_path(expression.value, depth + 1)
            case cst.Call(func=cst.Attribute() as func) if func.attr.value in _SAME_PATH:
                return self.is_path(func.value, depth + 1)
            case cst.Name():
                found = self._names.bindings.lookup(expression)
                values = [each.value for each in found if each.kind is Kind.ASSIGN and not each.path and each.value]
                if values and len(values) == len(found) and all(self.is_path(each, depth + 1) for each in values):
                    return True
        origin = self._values.constructor(expression)
        return origin is not None and origin.name in _PATH_CALLS

    def _opened(self, call: cst.Call, name: str, path: cst.BaseExpression | None, *, position: int) -> Write | None:
        mode = self._names.argument(call, "mode", position)
        value = self._names.constant(mode.value) if mode is not None else "r"
        writing = isinstance(value, str) and value[:1] in {"w", "a", "x"}
        return Write(name, path) if writing and path is not None else None

    def _argument(self, call: cst.Call, position: int, keyword: str) -> cst.BaseExpression | None:
        arg = self._names.argument(call, keyword, position)
        return arg.value if arg is not None else None

    def _exists_ok(self, call: cst.Call, position: int) -> bool:
        """Whether `exist_ok` is given, as anything but a plain False, or may be."""
        arg = self._names.argument(call, "exist_ok", position)
        return self._names.has_star(call) or (arg is not None and self._names.constant(arg.value) is not False)

    def _imports(self, package: str) -> bool:
        tops = self._names.bindings.by_scope.get(self._tree.module, {}).values()
        dotted = [each.dotted for found in tops for each in found if each.kind is Kind.IMPORT]
        return any(each == package or each.startswith(f"{package}.") for each in dotted)

    def _is_open(self, expression: cst.BaseExpression) -> bool:
        """Whether a value is a buffer or a file that is open already: its own call writes, if any does."""
        if self._names.constant(expression) is None:
            return True
        if isinstance(expression, cst.Name):
            found = self._names.bindings.lookup(expression)
            if any(each.kind is Kind.WITH for each in found):
                return True
        origins = self._values.origins(expression)
        opened = {"builtins.open", "io.open", "gzip.open", "fsspec.open"}
        return any(each.name in _BUFFERS | opened for each in origins)
