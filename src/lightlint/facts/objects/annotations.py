"""Which class an annotation promises."""

from __future__ import annotations

import libcst as cst

from lightlint.facts.code.bindings import dotted_name
from lightlint.facts.code.names import Names
from lightlint.facts.code.tree import Scope

_NO_CLASSES = ("typing.", "typing_extensions.", "collections.abc.")


def annotated(names: Names, annotation: cst.BaseExpression, scope: Scope) -> str | None:
    """The canonical name of the one class an annotation names, None besides; in quotes or not.

    None for several classes, for a container, and for what is no class, such as `Any`.
    """
    if isinstance(annotation, cst.SimpleString):
        try:
            return annotated(names, cst.parse_expression(str(annotation.evaluated_value)), scope)
        except cst.ParserSyntaxError:
            return None
    sides: list[cst.BaseExpression] = []
    if isinstance(annotation, cst.BinaryOperation):  # `Optimizer | None`
        sides = [annotation.left, annotation.right]
    elif isinstance(annotation, cst.Subscript):
        outer = (names.written_in(dotted_name(annotation.value), scope) or "").rpartition(".")[2]
        if outer in {"Optional", "Union", "Annotated", "Final"}:
            sides = [each.slice.value for each in annotation.slice if isinstance(each.slice, cst.Index)]
            sides = sides[:1] if outer == "Annotated" else sides
    else:
        name = names.written_in(dotted_name(annotation), scope) or ""
        return name if "." in name and name != "builtins.object" and not name.startswith(_NO_CLASSES) else None
    sides = [each for each in sides if not is_none(each)]
    return annotated(names, sides[0], scope) if len(sides) == 1 else None


def is_none(node: cst.CSTNode | None) -> bool:
    """Whether an expression is `None`."""
    return isinstance(node, cst.Name) and node.value == "None"
