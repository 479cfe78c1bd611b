"""Modules as `ast` parses them, and what a look at their text tells."""

from __future__ import annotations

import ast
from collections import OrderedDict
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from lightlint.models.names.tables import COLLECTIVES
from lightlint.syntax import statements_in, tree_of, walked

_FRAMES = frozenset([ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef])
_YIELDS = frozenset([ast.Yield, ast.YieldFrom])
_MOST_TEXT = 3_000_000  # characters of modules that are kept parsed, at some 60 bytes each


class Parsed:
    """A module of the program."""

    def __init__(self, tree: ast.Module, text: str) -> None:
        self.tree, self._text = tree, text
        self._may_yield = "yield" in text
        self._named_again: dict[str, bool] = {}
        self._last_answers: dict[int, frozenset[int]] = {}
        self._generators: dict[int, bool] = {}  # as the others by the id of a node
        self._idle: dict[int, bool] = {}

    def names_again(self, name: str) -> bool:
        """Whether a name that it imports stands in its text once more."""
        found = self._named_again.get(name)
        if found is None:
            found = self._named_again[name] = self._text.count(name) > 1
        return found

    def is_idle(self, test: ast.If) -> bool:
        """Whether a test decides only about messages: rehearsing it the other way would show nothing."""
        found = self._idle.get(id(test))
        if found is None:
            sides = (each for part in (*test.body, *test.orelse) for each in walked(part))
            found = self._idle[id(test)] = not any(map(_acts, sides))
        return found

    def is_generator(self, function: ast.AST) -> bool:
        """Whether one of its functions yields."""
        found = self._generators.get(id(function))
        if found is None:
            found = self._generators[id(function)] = self._may_yield and _yields(function)
        return found

    def last_answers(self, function: ast.AST) -> frozenset[int]:
        """The tests (by id) behind which a function gives its last value: where they fail, it raises or gives none."""
        found = self._last_answers.get(id(function))
        if found is None:
            body = getattr(function, "body", [])
            found = frozenset(_last_answers(body) if isinstance(body, list) else ()) | frozenset(_found(function))
            self._last_answers[id(function)] = found
        return found


def _yields(function: ast.AST) -> bool:
    """Whether a function has a `yield` of its own."""
    return any(type(node) in _YIELDS for node in walked(function, _FRAMES))


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


def _found(function: ast.AST) -> Iterator[int]:
    """The tests in a loop that looks for something, where a loop that finds nothing raises: in its `else`, or right behind it."""
    statements = [*statements_in([function])] if isinstance(function, ast.stmt) else []
    parts = [part for each in statements for name in ("handlers", "cases") for part in getattr(each, name, ())]
    for node in (*statements, *parts):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            for loop, after in zip(block, [*block[1:], None], strict=False) if isinstance(block, list) else ():
                if isinstance(loop, (ast.For, ast.While)):
                    raises = loop.orelse[-1:] or [after]
                    wanted = ast.Break if loop.orelse else ast.Return
                    if isinstance(raises[0], ast.Raise):
                        yield from (
                            id(each)
                            for each in loop.body
                            if isinstance(each, ast.If) and isinstance(each.body[-1], wanted)
                        )


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

    def of(self, file: str, text: str) -> Parsed | None:
        """The module that a file's text is, None where Python refuses it."""
        known, parsed = self._kept.pop(file, ("", None))
        self._size -= len(known)
        if known != text:
            tree = tree_of(text)
            parsed = Parsed(tree, text) if tree is not None else None
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
_TRAINING = COLLECTIVES | frozenset(
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
        "Seq2SeqTrainer",
        "SFTTrainer",
        "DPOTrainer",
        "GRPOTrainer",
        "RewardTrainer",
        "TrainingArguments",
        "Seq2SeqTrainingArguments",
        "SFTConfig",
        "DPOConfig",
        "GRPOConfig",
        "Accelerator",
        "generate",
        "LightningCLI",
        "Fabric",
        "ModelCheckpoint",
        "EarlyStopping",
        *(f"{each} =" for each in ("in_features", "out_features", "in_channels", "out_channels")),
        "autocast",
        "GradScaler",
        "setup",
        "reduce",
        "gather",
        "all_to_all",
        "init_process_group",
        "irecv",
        "new_group",
        "new_subgroups",
        "init_device_mesh",
        "fully_shard",
        "FSDP",
        "FullyShardedDataParallel",
        "random_split",
        "train_test_split",
        "loader",
        "train_loader",
        "dataloader",
    ]
)


class Named(NamedTuple):
    """A function and what it is called: also a lambda that a module gives a name."""

    name: str
    node: ast.FunctionDef | ast.Lambda


def functions_of(body: list[ast.stmt]) -> list[Named]:
    """The functions that a module or class defines."""
    found = [Named(each.name, each) for each in body if isinstance(each, ast.FunctionDef)]
    for each in body:
        if (
            isinstance(each, ast.Assign)
            and isinstance(each.value, ast.Lambda)
            and isinstance(each.targets[0], ast.Name)
        ):
            found.append(Named(each.targets[0].id, each.value))
    return found


_BACKWARD = frozenset(["backward", "manual_backward", "training_step"])
_DRIVING = frozenset(["fit", "launch", "configure_optimizers"])
COMMANDS = _DRIVING | {"test", "validate", "predict", "evaluate", "load_from_checkpoint", "backward", "eval"}
"""Words of a function that trains or evaluates by itself."""
_LONGEST_NAME = 80


class Said(NamedTuple):
    """What some code says.

    Args:
        names: the names in it, also those that `getattr` is given; of what is set, `name =`, too.
        own: the functions of its module or methods of its object that it may name.
        texts: the last words of its texts.
    """

    names: set[str]
    own: set[str]
    texts: set[str]


class Words:
    """What the functions of a module say, and whether they train: each is read once."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        self._said: dict[int, Said] = {}  # by the id of a node
        self._renamed: dict[str, str] = {}

    def said(self, node: ast.AST) -> Said:
        """What some code says, what is imported under another name by its own, too."""
        found = self._said.get(id(node))
        if found is None:
            plain = said_in(node)
            own = {self._imported.get(name, name) for name in plain.names} | plain.names
            found = self._said[id(node)] = plain._replace(names=own)
        return found

    @cached_property
    def _imported(self) -> dict[str, str]:
        """The names that a module gives what it imports under another, and `partial(F.kl_div, ...)` and the like of it."""
        imports = (each for each in statements_in(self._tree.body) if isinstance(each, ast.ImportFrom))
        found = {each.asname: each.name for node in imports for each in node.names if each.asname is not None}
        for node in self._tree.body:
            if isinstance(node, ast.Assign):
                said = said_in(node.value).names
                words = _TRAINING & (said | {found.get(name, name) for name in said})
                names = [each.id for each in node.targets if isinstance(each, ast.Name)]
                found |= {name: min(words) for name in names if words}
        return found

    def trains(self, function: ast.AST) -> bool:
        """Whether a function has a word of training in it: others are rehearsed where they are called."""
        return not _TRAINING.isdisjoint(self.said(function).names)

    def driving(self, functions: list[Named]) -> list[Named]:
        """Functions that may do a framework's work, and those that name them, those that none names first."""
        return self._with_words(functions, _DRIVING)

    def training(self, functions: list[Named]) -> list[Named]:
        """Functions and methods with a word of training in them or in another that they name, those that none names first."""
        return self._with_words(functions, _TRAINING)

    def _with_words(self, functions: list[Named], wanted: frozenset[str]) -> list[Named]:
        words: dict[str, set[str]] = {}
        inner: set[str] = set()
        for name, node in functions:
            words.setdefault(name, set()).update(self.said(node).names)
            inner |= self.said(node).own - {name}
        named = {name: (found & words.keys()) - {name} for name, found in words.items()}
        having = {name for name, found in words.items() if not wanted.isdisjoint(found)}
        while more := {name for name, others in named.items() if others & having} - having:
            having |= more
        found = [each for each in functions if each.name in having]
        return sorted(found, key=lambda each: (each.name in inner, _BACKWARD.isdisjoint(words[each.name])))


def said_in(code: ast.AST) -> Said:
    """What some code says."""
    names: set[str] = set()
    own: set[str] = set()
    texts: set[str] = set()
    for node in walked(code):
        if isinstance(node, ast.Name):
            names.add(node.id)
            own.add(node.id)
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
            if isinstance(node.ctx, ast.Store):
                names.add(f"{node.attr} =")
            if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
                own.add(node.attr)
        elif isinstance(node, ast.Constant):
            if isinstance(node.value, str) and len(node.value) < _LONGEST_NAME:
                texts.add(node.value.rpartition(".")[2])
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "getattr":
            given = (each.value for each in node.args if isinstance(each, ast.Constant))
            names.update(each for each in given if isinstance(each, str))
    return Said(names, own, texts)
