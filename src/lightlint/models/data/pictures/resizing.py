"""Resizing: what becomes of labels of places when several of them are blended."""

from __future__ import annotations

import ast
import re

from lightlint.engine.arguments import Arguments
from lightlint.engine.events import Blended
from lightlint.engine.machine import Machine
from lightlint.models import tensors
from lightlint.models.registry import function
from lightlint.values.core import (
    ARRAYS,
    BLENDED,
    LASTING,
    Constant,
    Library,
    Unknown,
    Value,
    is_constant,
    text_of,
    traits_of,
)

_LABELS = re.compile(r"mask|label|lbl|(?:^|_)(?:seg|gt|msk|annot\w*|target)(?:_|\d|$)|ground_?truth", re.IGNORECASE)
_BLENDING = frozenset(["bilinear", "bicubic", "linear", "trilinear", "area"])


@function("cv2.resize")
def resize(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    """`cv2.resize(image, size)`, which blends four neighbours where it is not told otherwise."""
    way = given.get(5, "interpolation")
    near = is_constant(way, 0) or (isinstance(way, Library) and "NEAREST" in way.last)
    known = way is None or isinstance(way, Library)
    made = Unknown(None, traits_of(given.get(0, "src")) & (LASTING | ARRAYS), hint="resize")
    made.lent = given.values()
    if known and not near and given.exact and _is_of_labels(node):
        _note(machine, made, node)
    return made


@function("torch.nn.functional.interpolate")
def interpolate(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    """`interpolate(x, ..., mode=...)`, which takes the nearest where it is not told otherwise."""
    made = tensors.computed(machine, "interpolate", given, node)
    if text_of(given.get(3, "mode")) in _BLENDING and _is_of_labels(node):
        _note(machine, made, node)
    return made


@function("scipy.ndimage.zoom", "scipy.ndimage.rotate", "skimage.transform.resize", "skimage.transform.rotate")
def blend(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    """Functions that blend neighbours where their order is not 0."""
    made = Unknown(None, traits_of(given.get(0, "input")) & (LASTING | ARRAYS), hint="resize")
    made.lent = given.values()
    order = given.keywords.get("order")
    told = len(given.positional) <= _OF_ORDER and (order is None or (isinstance(order, Constant) and order.value != 0))
    if told and given.exact and _is_of_labels(node):
        _note(machine, made, node)
    return made


_OF_ORDER = 2  # at which place some take it


def _is_of_labels(node: ast.AST) -> bool:
    """Whether what is resized is called labels, or a mask."""
    first = node.args[0] if isinstance(node, ast.Call) and node.args else None
    while isinstance(first, (ast.Call, ast.Subscript)):  # `mask[None].float()`
        first = first.func if isinstance(first, ast.Call) else first.value
        first = first.value if isinstance(first, ast.Attribute) else first
    word = first.attr if isinstance(first, ast.Attribute) else first.id if isinstance(first, ast.Name) else ""
    return bool(_LABELS.search(word))


def _note(machine: Machine, made: Value, node: ast.AST) -> None:
    made.traits = made.traits | BLENDED
    machine.emit(Blended(machine.where(node)))
