"""Modules as `ast` parses them, and what a look at their text tells."""

from __future__ import annotations

import ast
from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from typing import Any, cast

_NAMED = (ast.Attribute, ast.Name)
_FRAMES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_MOST_TEXT = 600_000  # characters of modules that are kept parsed, at some 60 bytes each


class Parsed:
    """A module of the program."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self._last_answers: dict[int, frozenset[int]] = {}

    @property
    def idle_tests(self) -> frozenset[tuple[int, int]]:
        """The places of tests that decide only about messages: rehearsing them the other way would show nothing."""
        return self._seen[0]

    def is_generator(self, function: ast.AST) -> bool:
        """Whether one of its functions yields."""
        return id(function) in self._seen[1]

    def last_answers(self, function: ast.AST) -> frozenset[int]:
        """The tests (by id) behind which a function gives its last value: where they fail, it raises or gives none."""
        found = self._last_answers.get(id(function))
        if found is None:
            body = getattr(function, "body", [])
            found = self._last_answers[id(function)] = frozenset(_last_answers(body if isinstance(body, list) else []))
        return found

    @cached_property
    def _seen(self) -> tuple[frozenset[tuple[int, int]], frozenset[int]]:
        """Idle tests, and the ids of functions that yield: one walk for both, each node before what is in it."""
        nodes: list[ast.AST] = [self.tree]
        above: list[tuple[int, str, int]] = [(0, "", 0)]  # of each node: its parent, as what, and its frame
        generators: set[int] = set()
        for position, node in enumerate(nodes):
            frame = above[position][2]
            kind = type(node)
            if kind is ast.Yield or kind is ast.YieldFrom:
                generators.add(frame)
            elif isinstance(node, _FRAMES):
                frame = id(node)
            for name in _parts(cast(Any, kind)):
                part = getattr(node, name, None)
                for each in part if type(part) is list else (part,):
                    if isinstance(each, ast.AST):
                        nodes.append(each)
                        above.append((position, name, frame))
        acting = bytearray(map(_acts, nodes))
        sides = bytearray(len(nodes))  # whether something happens in the body or behind the `else` of an `if`
        for position in range(len(nodes) - 1, 0, -1):
            if acting[position]:
                parent, name, _ = above[position]
                acting[parent] = 1
                sides[parent] |= name in ("body", "orelse")
        tests = [node.test for node, acts in zip(nodes, sides, strict=True) if isinstance(node, ast.If) and not acts]
        return frozenset((test.lineno, test.col_offset) for test in tests), frozenset(generators)


def _last_answers(body: list[ast.stmt]) -> Iterator[int]:
    end = body[-2:-1] if body and isinstance(body[-1], ast.Raise) else body[-1:]
    for last in end:
        if isinstance(last, ast.With):
            yield from _last_answers(last.body)
        elif isinstance(last, ast.If):
            answer = last.body[-1]
            if isinstance(answer, ast.Return) and answer.value is not None and not last.orelse:
                yield id(last)
            yield from _last_answers(last.orelse)


@cache
def _parts(kind: type[Any]) -> tuple[str, ...]:
    """The fields of a node that hold others."""
    return tuple(name for name in kind._fields if name not in ("ctx", "op", "ops", "id", "attr", "kind", "arg"))


def _acts(node: ast.AST) -> bool:
    """Whether a node does more than to tell something."""
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        return name not in _TALK
    return isinstance(node, _ACTS)


class Kept:
    """Parsed modules by file, those that were used last up to some amount of text."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[str, Parsed | None]] = OrderedDict()
        self._size = 0

    def of(self, file: str, text: str, parse: Callable[[str], ast.Module | None]) -> Parsed | None:
        """The module that a file's text is, None where Python refuses it."""
        known, parsed = self._kept.pop(file, ("", None))
        self._size -= len(known)
        if known != text:
            tree = parse(text)
            parsed = Parsed(tree) if tree is not None else None
        self._kept[file] = text, parsed
        self._size += len(text)
        while self._size > _MOST_TEXT and len(self._kept) > 1:
            self._size -= len(self._kept.popitem(last=False)[1][0])
        return parsed


_ACTS = (
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
)
_TALK = frozenset(
    [
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
        "makedirs",
        "mkdir",
        "manual_seed",
        "manual_seed_all",
        "seed",
        "seed_everything",
        "exists",
        "isdir",
        "isfile",
        "expanduser",
        "abspath",
        "basename",
        "dirname",
        "device_count",
        "get_device_name",
        "flush",
        "add_histogram",
        "add_figure",
        "add_text",
        "float",
        "int",
    ]
)
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
        "load",
        "state_dict",
        "set_epoch",
        "compute",
        "update",
        "cross_entropy",
        "nll_loss",
        "binary_cross_entropy_with_logits",
        "binary_cross_entropy",
        "kl_div",
        "LambdaLR",
        "param_groups",
        "mse_loss",
        "l1_loss",
        "smooth_l1_loss",
        "huber_loss",
        "criterion",
        "loss_fn",
        "prepare",
        "Trainer",
        "Fabric",
        "ModelCheckpoint",
        "EarlyStopping",
        "setup",
        "reduce",
        "gather",
        "all_to_all",
        "new_group",
        "new_subgroups",
        "init_device_mesh",
        "fully_shard",
        "FSDP",
        "FullyShardedDataParallel",
        "random_split",
        "loader",
        "train_loader",
        "dataloader",
    ]
)


def trains(function: ast.FunctionDef) -> bool:
    """Whether a function has a word of training in it: others are rehearsed where they are called."""
    return not _TRAINING.isdisjoint(_words(function))


def training_functions(functions: list[ast.FunctionDef]) -> list[ast.FunctionDef]:
    """Functions and methods with a word of training in them or in another that they name, those that none names first."""
    words: dict[str, set[str]] = {}
    for each in functions:
        words.setdefault(each.name, set()).update(_words(each))
    named = {name: (found & words.keys()) - {name} for name, found in words.items()}
    training = {name for name, found in words.items() if not _TRAINING.isdisjoint(found)}
    while more := {name for name, others in named.items() if others & training} - training:
        training |= more
    inner = set().union(*named.values())
    return sorted((each for each in functions if each.name in training), key=lambda each: each.name in inner)


def drives(function: ast.FunctionDef) -> bool:
    """Whether a function may hand modules to a framework, or do its work."""
    return not _DRIVING.isdisjoint(_words(function))


_DRIVING = frozenset(["fit", "launch", "configure_optimizers"])


def _words(function: ast.AST) -> set[str]:
    nodes = ast.walk(function)
    return {each.attr if isinstance(each, ast.Attribute) else each.id for each in nodes if isinstance(each, _NAMED)}
