"""The project's modules as a rehearsal imports them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from pathlib import Path

_FRAMES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


class ProjectSources:
    """Files of a project, parsed when first asked for.

    Args:
        find: the file of a module by dotted name (without leading dots) as seen from a folder, None for a library's.
        read: the tree of a file, None for one that cannot be read.
        given: trees that are at hand.
    """

    def __init__(
        self,
        find: Callable[[str, Path], Path | None],
        read: Callable[[Path], ast.Module | None],
        given: Mapping[str, ast.Module],
    ) -> None:
        self._find, self._read = find, read
        self._trees: dict[str, ast.Module | None] = dict(given)
        self._found: dict[tuple[str, str], str | None] = {}
        self._generators: dict[int, bool] = {}

    def find(self, dotted: str, importer: str) -> str | None:
        """The file of a module as `importer` imports it, None for a library's."""
        key = (dotted, str(Path(importer).parent))
        if key not in self._found:
            self._found[key] = self._look_up(dotted, Path(importer))
        return self._found[key]

    def _look_up(self, dotted: str, importer: Path) -> str | None:
        if dotted.startswith("."):
            level = len(dotted) - len(dotted.lstrip("."))
            folder = importer.parent
            for _ in range(level - 1):
                folder = folder.parent
            inner = dotted.lstrip(".")
            if inner:
                self._find(inner, folder)  # so that who keeps what was asked for knows when such a file appears
            target = folder.joinpath(*(part for part in inner.split(".") if part))
            for candidate in (target.with_suffix(".py") if target != folder else folder, target / "__init__.py"):
                if candidate.suffix == ".py" and candidate.is_file():
                    return str(candidate)
            return None
        found = self._find(dotted, importer.parent)
        return str(found) if found is not None and str(found) != str(importer) else None

    def tree(self, file: str) -> ast.Module | None:
        """What `ast` makes of a file, None for one that cannot be read."""
        if file not in self._trees:
            self._trees[file] = self._read(Path(file))
        return self._trees[file]

    def is_generator(self, node: ast.AST) -> bool:
        """Whether a function yields."""
        found = self._generators.get(id(node))
        if found is None:
            found = self._generators[id(node)] = _yields(node)
        return found


def _yields(function: ast.AST) -> bool:
    left: list[ast.AST] = list(getattr(function, "body", []))
    while left:
        node = left.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(node, _FRAMES):
            left += ast.iter_child_nodes(node)
    return False


_TALK = [
    "print",
    "log",
    "info",
    "debug",
    "warn",
    "warning",
    "error",
    "write",
    "add_scalar",
    "add_scalars",
    "add_image",
    "format",
    "item",
    "time",
    "join",
    "len",
    "str",
    "round",
    "set_description",
    "set_postfix",
    "getLogger",
    "perf_counter",
    "strftime",
    "float",
    "int",
]


_TRAINING = frozenset(
    [
        "backward",
        "manual_backward",
        "step",
        "zero_grad",
        "DataLoader",
        "fit",
        "eval",
        "train",
        "no_grad",
        "inference_mode",
        "DistributedDataParallel",
        "DDP",
        "barrier",
        "all_reduce",
        "all_gather",
        "broadcast",
        "save",
        "clip_grad_norm_",
        "load_state_dict",
        "state_dict",
        "set_epoch",
        "compute",
        "update",
        "cross_entropy",
        "nll_loss",
        "binary_cross_entropy_with_logits",
        "binary_cross_entropy",
        "criterion",
        "loss_fn",
        "prepare",
        "setup",
    ]
)


def trains(function: ast.FunctionDef) -> bool:
    """Whether a function has a word of training in it: others are rehearsed where they are called."""
    for node in ast.walk(function):
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        if name in _TRAINING:
            return True
    return False


def idle_tests(tree: ast.Module) -> set[tuple[int, int]]:
    """The places of tests that decide only about messages: rehearsing them the other way would show nothing."""
    found: set[tuple[int, int]] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and not any(_matters(each) for each in (*node.body, *node.orelse)):
            found.add((node.test.lineno, node.test.col_offset))
    return found


def _matters(statement: ast.stmt) -> bool:
    for node in ast.walk(statement):
        if isinstance(
            node,
            (
                ast.Assign,
                ast.AugAssign,
                ast.AnnAssign,
                ast.Return,
                ast.Break,
                ast.Continue,
                ast.Raise,
                ast.For,
                ast.While,
                ast.With,
                ast.Delete,
            ),
        ):
            return True
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name not in _TALK:
                return True
    return False
