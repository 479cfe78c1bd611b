"""What attributes may hold, as far as a look at how they are set tells: asked before anything is rehearsed for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import libcst as cst

from lightlint.facts.code.bindings import Kind
from lightlint.facts.code.names import Names
from lightlint.facts.code.tree import Tree
from lightlint.facts.code.unknown import UNKNOWN
from lightlint.facts.objects.classes import NN_MODULE, Classes
from lightlint.text import words_of

_BY_TEXT = frozenset(["setattr", "__setattr__", "__dict__", "vars", "add_module", "register_module"])
_SCALARS = (cst.Comparison, cst.Lambda, cst.FormattedString, cst.ConcatenatedString)
_MODULES = ("torch.nn.", "torchvision.", "torchmetrics.")
_NO_MODULES = ("torch.nn.functional.", "torch.nn.init.", "torch.nn.utils.", "torch.nn.Parameter", "torch.nn.parameter.")
_LIBRARIES = (
    "builtins.", "torch.", "numpy.", "math.", "random.", "collections.", "typing.", "pathlib.", "os.", "re.", "time.",
    "datetime.", "logging.", "omegaconf.", "dataclasses.", "argparse.", "json.", "PIL.", "tqdm.",
)  # fmt: skip


class KeptValues:
    """What the attributes of a file's objects may hold."""

    def __init__(self, tree: Tree, names: Names, classes: Classes, text: str) -> None:
        self._tree, self._names, self._classes, self._text = tree, names, classes, text

    def may_hold(self, is_wanted: Callable[[cst.BaseExpression], bool]) -> bool:
        """Whether an attribute may be set to a value of a kind, of which `is_wanted` says False for those that surely are none."""
        if not _BY_TEXT.isdisjoint(words_of(self._text)):
            return True
        return any(is_wanted(side) for value in self._values() for side in sides(value))

    def _values(self) -> Iterator[cst.BaseExpression]:
        """What attributes are set to; the whole of what is unpacked."""
        for assign in self._tree.all(cst.Assign, cst.AnnAssign):
            targets = [each.target for each in assign.targets] if isinstance(assign, cst.Assign) else [assign.target]
            if assign.value is not None and any(self._tree.within(each, cst.Attribute) for each in targets):
                whole = all(isinstance(each, cst.Attribute) for each in targets)
                parts = [each.value for each in assign.value.elements] if isinstance(assign.value, cst.Tuple) else []
                yield from [assign.value] if whole or not parts else parts
        for each in self._tree.all(cst.AugAssign):
            if isinstance(each.target, cst.Attribute):
                yield each.value

    def is_scalar(self, value: cst.BaseExpression) -> bool:
        """Whether a value surely is a number, a text, a function or what the caller gives."""
        if isinstance(value, cst.Name):
            bound = self._names.bindings.lookup(value)
            if bound and all(each.kind is Kind.PARAMETER for each in bound):
                return True
        return isinstance(value, _SCALARS) or self._names.constant(value) is not UNKNOWN

    def may_be_module(self, call: cst.Call) -> bool:
        """Whether what a call makes may be a module."""
        name = self._names.call(call)
        if name is None:
            return True
        if name.startswith(_MODULES):
            return not name.startswith(_NO_MODULES)
        return not name.startswith(_LIBRARIES) and self._classes.name_may_be_a(name, NN_MODULE)


def sides(value: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """The values that an expression may have: those of `a if test else b`, and of `a or b`."""
    if isinstance(value, cst.IfExp):
        yield from sides(value.body)
        yield from sides(value.orelse)
    elif isinstance(value, cst.BooleanOperation):
        yield from sides(value.left)
        yield from sides(value.right)
    else:
        yield value
