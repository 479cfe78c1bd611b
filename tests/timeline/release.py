"""What one release of Lightning offers, as far as the data file tells of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from timeline.wheel import Wheel, own_statements

Parameters = tuple[str, ...]
"""Names without self; `x?` has a default, `*x` and `**x` take the rest: the data file's own spelling."""

PACKAGE = "pytorch_lightning"
CLASSES = {
    "lightning_module": "LightningModule",
    "callback": "Callback",
    "lightning_data_module": "LightningDataModule",
}
"""The classes that users derive from, by the name of their section."""

ENTRY_POINTS = ("fit", "validate", "test", "predict")


@dataclass(frozen=True)
class Members:
    """The public names of a class over its bases inside of the package, and what its methods take."""

    names: frozenset[str]
    signatures: dict[str, Parameters]


@dataclass(frozen=True)
class Release:
    """The reading of one wheel. `trainer_names` holds whatever the package sets on a Trainer, too."""

    version: str
    trainer_arguments: Parameters
    trainer_is_keyword_only: bool
    trainer_names: frozenset[str]
    entry_points: dict[str, Parameters]
    members: dict[str, Members]


def read(wheel: Wheel) -> Release:
    """Reads what a release offers.

    Raises:
        ValueError: the wheel holds no Trainer, so it is none of Lightning.
    """
    trainer = members(wheel, f"{PACKAGE}.Trainer", private=("__init__",))
    if "__init__" not in trainer.signatures:
        raise ValueError(
            f"the wheel of {wheel.version} has no {PACKAGE}.Trainer: it is no release of pytorch-lightning"
        )
    return Release(
        version=wheel.version,
        trainer_arguments=trainer.signatures["__init__"],
        trainer_is_keyword_only=_is_keyword_only(wheel),
        trainer_names=(trainer.names | _set_on_trainer(wheel)) - {"__init__"},
        entry_points={name: trainer.signatures[name] for name in ENTRY_POINTS if name in trainer.signatures},
        members={section: members(wheel, f"{PACKAGE}.{name}") for section, name in CLASSES.items()},
    )


def members(wheel: Wheel, dotted: str, private: tuple[str, ...] = ()) -> Members:
    """The names of a class: public ones, and some private ones."""
    names: set[str] = set()
    signatures: dict[str, Parameters] = {}
    for each in wheel.lookup_order(dotted):
        new: dict[str, Parameters | None] = {}
        for node in own_statements(each.node):
            for name in _defined(node):
                if name in names or (name.startswith("_") and name not in private) or name.isupper():
                    continue
                new[name] = parameters(node) if isinstance(node, ast.FunctionDef) and not is_property(node) else None
        names |= new.keys()
        signatures |= {name: taken for name, taken in new.items() if taken is not None}
    return Members(frozenset(names), signatures)


def parameters(function: ast.FunctionDef) -> Parameters:
    """What a method takes, spelled like in the data file."""
    taken = function.args
    positional = [*taken.posonlyargs, *taken.args]
    required = len(positional) - len(taken.defaults)
    made = [each.arg + ("" if place < required else "?") for place, each in enumerate(positional)]
    if not _has_decorator(function, "staticmethod"):
        del made[:1]
    if taken.vararg:
        made.append(f"*{taken.vararg.arg}")
    pairs = zip(taken.kwonlyargs, taken.kw_defaults, strict=True)
    made += [each.arg + ("" if default is None else "?") for each, default in pairs]
    if taken.kwarg:
        made.append(f"**{taken.kwarg.arg}")
    return tuple(made)


def is_property(function: ast.FunctionDef) -> bool:
    """Whether a method reads like an attribute."""
    return _has_decorator(function, "property", "setter", "deleter", "cached_property")


def _has_decorator(function: ast.FunctionDef, *names: str) -> bool:
    return any(ast.unparse(each).rpartition(".")[2] in names for each in function.decorator_list)


def _defined(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield node.name
        case ast.Assign():
            yield from (each.id for each in node.targets if isinstance(each, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name


def _is_keyword_only(wheel: Wheel) -> bool:
    for each in wheel.lookup_order(f"{PACKAGE}.Trainer"):
        for node in own_statements(each.node):
            if isinstance(node, ast.FunctionDef) and node.name == "__init__":
                return len(node.args.args) == 1
    return False


def _set_on_trainer(wheel: Wheel) -> set[str]:
    """Attributes that a Trainer gets at run time: from its own methods and from the parts that hold it."""
    found: set[str] = set()
    for each in wheel.lookup_order(f"{PACKAGE}.Trainer"):
        found.update(_stored(each.node, "self"))
    for module in wheel.modules(PACKAGE):
        if wheel.mentions(module, "trainer."):
            found.update(_stored(wheel.tree(module), "trainer"))
    return {name for name in found if not name.startswith("_")}


def _stored(tree: ast.AST, receiver: str) -> Iterator[str]:
    """The attributes of a receiver, such as `self.trainer` or `trainer`, that are assigned."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            holder = node.value.id if isinstance(node.value, ast.Name) else getattr(node.value, "attr", "")
            if holder == receiver:
                yield node.attr
