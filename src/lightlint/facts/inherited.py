"""What objects keep in their attributes, set by their own class or by one above it in another file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.across import OUTSIDE
from lightlint.facts.origins import Origin

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts


def kept(facts: FileFacts, expression: cst.BaseExpression) -> list[tuple[FileFacts, Origin]]:
    """The constructors that the value of `self.attribute` comes from, each with the facts of its file; for any other
    expression those of this file. Empty if one is out of sight: whole trees are read, so ask when a finding hangs on it."""
    node = facts.classes.self_class(expression.value) if isinstance(expression, cst.Attribute) else None
    if node is None or not isinstance(expression, cst.Attribute):
        return [(facts, origin) for origin in facts.values.origins(expression)]
    above = [name for name in facts.classes.ancestors(node) if facts.classes.local(name) is None]
    rooms = [facts.of_class(name) for name in above if name and not name.startswith(OUTSIDE)]
    lines = [(facts, each) for each in facts.classes.line(node)] + [each for each in rooms if each is not None]
    found: list[tuple[FileFacts, Origin]] = []
    for room, each in lines:
        for value, path in room.classes.attribute_sources(each, expression.attr.value):
            origins = room.values.origins(value) if value is not None and not path else ()
            if not origins:
                return []
            found += [(room, origin) for origin in origins]
    return found if None not in rooms and "" not in above else []
