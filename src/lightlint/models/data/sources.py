"""What samples are made from: open files and random generators."""

from __future__ import annotations

import ast

from lightlint.engine.arguments import Arguments
from lightlint.engine.events import HandleUsed, RandomDrawn
from lightlint.engine.machine import WORKER, Machine
from lightlint.models.data import orders
from lightlint.models.registry import FunctionModel, attributes, function, methods
from lightlint.values.core import NONE, TRUE, Constant, Library, Sequence, Unknown, Value, text_of
from lightlint.values.training import Instance

_GENERATORS = ("numpy.random.default_rng", "numpy.random.RandomState", "random.Random", "torch.Generator")
_NUMBERS = (
    "random",
    "uniform",
    "integers",
    "randint",
    "randrange",
    "choice",
    "normal",
    "standard_normal",
    "rand",
    "randn",
)
_SEEDS = ("seed", "manual_seed", "set_state", "setstate")
OPENERS = {
    "open": "open", "gzip.open": "gzip.open", "h5py.File": "h5py.File", "lmdb.open": "lmdb.open",
    "lmdb.Environment": "lmdb.Environment", "zipfile.ZipFile": "ZipFile", "tarfile.open": "tarfile.open",
    "tables.open_file": "tables.open_file", "netCDF4.Dataset": "netCDF4.Dataset", "sqlite3.connect": "sqlite3.connect",
}  # fmt: skip
"""What opens a file that stays open, as a message calls it."""
_PARTS = ("get", "begin", "cursor", "require_group")
_NO_USE = ("fileno", "__init__", "__enter__", "__exit__")
_CACHES = ("cache", "lru_cache", "cached", "memoize")


def _generator(path: str) -> FunctionModel:
    def make(machine: Machine, _: Arguments, node: ast.AST) -> Value:
        return machine.instance(Library(path), "random", node)

    return make


for _path in _GENERATORS:
    function(_path)(_generator(_path))


@methods("random")
def generator_method(machine: Machine, generator: Value, name: str, given: Arguments, node: ast.AST) -> Value:
    """A method of a random generator: it is seeded, or drawn from."""
    assert isinstance(generator, Instance)
    if name in _SEEDS:
        if machine.phases[-1] == WORKER:  # else each worker gets a copy of what the program has seeded
            generator.attributes["#seeded"] = TRUE
        return generator
    draw(machine, generator, node)
    if name == "permutation":
        return orders.permuted(machine, given)
    if name == "shuffle":
        return orders.shuffled(given)
    machine.clock += 1
    return Unknown(("drawn", machine.clock) if name in _NUMBERS else None)


def draw(machine: Machine, generator: Value | None, node: ast.AST) -> None:
    """Write down that a worker draws from a generator as it came with the data set."""
    if machine.phases[-1] == WORKER and isinstance(generator, Instance) and "#seeded" not in generator.attributes:
        machine.emit(RandomDrawn(machine.where(node), generator))


def open_file(machine: Machine, path: str, source: Value | None, node: ast.AST) -> Instance:
    """An open file; `#sure` where it is opened anew in each call."""
    made = machine.instance(Library(path), "handle", node)
    made.called_at = tuple(each.site for each in machine.calls)
    made.opened_under = tuple(machine.conditions)
    makers = [each.function.node for each in machine.calls]
    names = {
        getattr(at, "attr", getattr(at, "id", ""))
        for each in makers
        for decorator in getattr(each, "decorator_list", [])
        for at in [decorator.func if isinstance(decorator, ast.Call) else decorator]
    }
    in_memory = isinstance(source, Instance) and source.kind == "file"
    if names.isdisjoint(_CACHES) and not in_memory:
        made.attributes["#sure"] = TRUE
    return made


def _opener(path: str) -> FunctionModel:
    def make(machine: Machine, given: Arguments, node: ast.AST) -> Value:
        made = open_file(machine, path, given.get(0, "name"), node)
        if text_of(given.keywords.get("driver")) == "core":
            made.attributes.pop("#sure", None)
        made.arguments.update(given.sure())
        return made

    return make


for _path in OPENERS:
    function(_path if "." in _path else f"io.{_path}")(_opener(_path))


@methods("handle")
def handle_method(machine: Machine, handle: Value, name: str, _: Arguments, node: ast.AST) -> Value:
    """A method of an open file: a part of it that reads from it, too, or some of what is in it."""
    assert isinstance(handle, Instance)
    if name == "close":
        handle.attributes["#closed"] = TRUE
        return NONE
    if name in _PARTS and not (name == "get" and handle.name in ("open", "Environment")):
        return _part(machine, handle, node)
    if name not in _NO_USE:
        use(machine, handle, node)
    found = Unknown()
    found.given_by = handle if name == "read" else None
    return found


@attributes("handle")
def handle_attribute(_: Machine, __: Value, name: str, ___: ast.AST) -> Value | None:
    """An attribute of an open file: none reads from it."""
    return Unknown() if name in ("shape", "dtype", "attrs", "name", "filename", "mode", "size") else None


def handle_item(machine: Machine, handle: Instance, index: Value, node: ast.AST) -> Value:
    """`file[index]`: by name a part of it, else numbers."""
    if isinstance(index, Constant) and isinstance(index.value, str):
        return _part(machine, handle, node)
    whole = isinstance(index, Sequence) and index.kind == "slice"
    use(machine, handle, node)
    return Unknown() if whole else Unknown(hint="row")


def _part(machine: Machine, handle: Instance, node: ast.AST) -> Instance:
    part = machine.instance(handle.cls, "handle", node)
    part.attributes["#of"] = handle
    return part


def use(machine: Machine, handle: Instance, node: ast.AST) -> None:
    """Write down that a worker or the program itself reads from an open file."""
    root: Value = handle
    while isinstance(root, Instance) and "#of" in root.attributes:
        root = root.attributes["#of"]
    if isinstance(root, Instance):
        machine.emit(HandleUsed(machine.where(node), root))
