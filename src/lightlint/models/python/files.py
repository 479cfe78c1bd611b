"""Files and directories: paths, what is written to them, and what is named after the process."""

from __future__ import annotations

import ast

from lightlint.engine.arguments import Arguments
from lightlint.engine.events import DirectoryMade, Written
from lightlint.engine.machine import Machine
from lightlint.models import objects
from lightlint.models.names.writing import FUNCTIONS, METHODS, spelled
from lightlint.models.python.builtins import writes
from lightlint.models.registry import FunctionModel, function, methods
from lightlint.values.core import NONE, Library, Unknown, Value, is_constant, traits_of

_THERE = frozenset({"there"})  # whether a file is there
_OF_PROCESS = frozenset({"process"})
_WRITING = {**FUNCTIONS, "cv2.imwrite": (0, "filename"), "torch.jit.save": (1, "f")}
REPORTING = frozenset({*METHODS, "plt.savefig"})
"""Who writes tables and pictures."""


def _writing(name: str, position: int, keyword: str) -> FunctionModel:
    def write(machine: Machine, given: Arguments, node: ast.AST) -> Value:
        machine.emit(Written(machine.where(node), name, given.get(position, keyword)))
        return NONE

    return write


for _path_of, _given in _WRITING.items():
    function(_path_of)(_writing(spelled(_path_of), *_given))


def note_method(machine: Machine, name: str, given: Arguments, node: ast.AST) -> None:
    """A method of something out of sight that writes a file wherever there is one of this name."""
    path = given.get(0, METHODS.get(name, ""))
    if name in METHODS and path is not None:
        machine.emit(Written(machine.where(node), name, path))


@function("pathlib.Path.cwd", "pathlib.Path.home")
def _path(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    return objects.path(machine, node, *given.positional)


@function("os.path.join", "os.path.abspath", "os.path.dirname", "os.path.expanduser")
def _text(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    return objects.path(machine, node, *given.positional, is_text=True)


@function("os.makedirs")
def _make_directories(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    _made(machine, "os.makedirs", given.get(0, "name"), given, node)
    return NONE


@function("os.mkdir")
def _make_directory(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    _made(machine, "os.mkdir", given.get(0, "path"), given, node)
    return NONE


def _made(machine: Machine, name: str, path: Value | None, given: Arguments, node: ast.AST) -> None:
    exists_ok = given.get(2, "exist_ok")
    if given.exact and path is not None and (exists_ok is None or is_constant(exists_ok, False)):
        machine.emit(DirectoryMade(machine.where(node), name, path))


@function("os.path.exists", "os.path.isfile", "os.path.isdir")
def _exists(_: Machine, given: Arguments, __: ast.AST) -> Value:
    path = given.get(0, "path")
    key = path.key if path is not None else None
    return Unknown(("path", key, "exists") if key is not None else None, _THERE | traits_of(path), plain=True)


@function("io.BytesIO", "io.StringIO")
def _in_memory(machine: Machine, _: Arguments, node: ast.AST) -> Value:
    return machine.instance(Library("io.BytesIO"), "file", node)


@function(
    "os.getpid", "uuid.uuid1", "uuid.uuid4", "socket.gethostname", "platform.node", "tempfile.mkdtemp", "tempfile.mkstemp",
    "tempfile.mktemp", "tempfile.gettempdir", "tempfile.TemporaryDirectory", "tempfile.NamedTemporaryFile",
    "tempfile.TemporaryFile",
)  # fmt: skip
def _of_process(_: Machine, __: Arguments, ___: ast.AST) -> Value:
    return Unknown(None, _OF_PROCESS)


@methods("path")
def path_method(machine: Machine, value: Value, name: str, given: Arguments, node: ast.AST) -> Value:
    """A method of a path."""
    if name in ("write_text", "write_bytes"):
        machine.emit(Written(machine.where(node), name, value))
        return NONE
    if name == "open":
        if writes(given.get(0, "mode")):
            machine.emit(Written(machine.where(node), "open", value))
        made = machine.instance(Library("io.File"), "file", node)
        made.arguments["file"] = value
        return made
    if name in ("read_text", "read_bytes"):
        read = Unknown(None, traits_of(value), plain=True)
        read.given_by = value
        return read
    if name == "mkdir":
        _made(machine, name, value, given, node)
        return NONE
    if name in ("exists", "is_file", "is_dir"):
        return Unknown(("path", value.key, name), _THERE, plain=True)
    if name in ("joinpath", "with_suffix", "with_name", "resolve", "absolute", "expanduser"):
        return objects.path(machine, node, value, *given.positional)
    return Unknown(None, traits_of(value))
