"""What a function surely runs, also where that stands in other files of the project."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from pathlib import Path

    from lightlint.facts.linked import Linked

_MOST = 40  # functions after which a search gives up
OUTSIDE = ("torch.", "torchvision.", "builtins.", "lightning.", "numpy.")  # what no file of the project defines


@dataclass(frozen=True, slots=True)
class Place:
    """A function with the facts of the file it stands in."""

    facts: Linked
    function: cst.FunctionDef

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from others, also where a file was read twice."""
        return str(self.facts.path), self.facts.names.qualified(self.function)

    def calls(self) -> Iterator[cst.Call]:
        """The calls it makes whenever it runs, where there is a GPU."""
        return (call for call in self.facts.tree.own(self.function.body, cst.Call) if runs_always(self.facts, call))


def runs_always(facts: Linked, node: cst.CSTNode) -> bool:
    """Whether no test but for a GPU keeps what is around a node, a function or a module, from running it."""
    return all(_asks_for_gpu(facts, test, came) for test, came in facts.conditions(node))


def _asks_for_gpu(facts: Linked, test: cst.BaseExpression, came: bool) -> bool:
    """Whether a test comes out so wherever there is a GPU."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return _asks_for_gpu(facts, test.expression, not came)
    return facts.names.call(test) == "torch.cuda.is_available" and came


def elsewhere(facts: Linked, name: str, near: Path, *words: str) -> Place | None:
    """The one function that a canonical name, used in a file of the folder `near`, stands for, in a file that holds one of some words."""
    path = facts.project.find_function(name, near) if "." in name else None
    if path is None or not any(word in facts.project.text(path) for word in words):
        return None
    other = facts if path == facts.path else facts.other(path)
    if other is None:
        return None
    wanted = f"{other.module_name}.{name.rpartition('.')[2]}"
    nodes = [each for each in other.tree.all(cst.FunctionDef) if other.names.defined(each) == wanted]
    return Place(other, nodes[0]) if len(nodes) == 1 else None


def _called(facts: Linked, place: Place, call: cst.Call, word: str) -> Iterator[Place]:
    callee = place.facts.hooks.callee(call)
    if callee is not None:
        yield Place(place.facts, callee)
        return
    found = elsewhere(facts, place.facts.names.call(call) or "", place.facts.path.parent, word)
    if found is not None and not found.function.decorators:
        yield found
