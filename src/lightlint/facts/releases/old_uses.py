"""Where a file uses names that torch or a companion removed or deprecated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import dotted_name
from lightlint.facts.releases.compat import is_versioned
from lightlint.facts.releases.fallbacks import is_fallback
from lightlint.facts.releases.torch_api import OldName, last_words, old_name_in, old_names
from lightlint.values.canonical import canonical

if TYPE_CHECKING:
    from lightlint.facts.linked import Linked

Used = cst.Attribute | cst.Name | cst.ImportAlias
_WRITERS = (cst.AssignTarget, cst.AnnAssign, cst.AugAssign, cst.Del)


def old_uses(
    facts: Linked, node: cst.Import | cst.ImportFrom | cst.Attribute | cst.Call
) -> Iterator[tuple[Used, OldName]]:
    """The old names that a node itself imports, names or calls, each with the place that does.

    A name imported by `from` counts once, where it is imported. Code that runs for some versions only has none.
    """
    for place, entry in _uses(facts, node):
        if not (is_versioned(facts, place) or is_fallback(facts, place) or _is_tabled(facts, place)):
            yield place, entry


def _is_tabled(facts: Linked, place: Used) -> bool:
    """Whether a dict keeps what a name stands for under that name: to patch it or to look it up, not to call it."""
    item = facts.tree.parent(place)
    if not isinstance(item, cst.DictElement) or item.value is not place or not isinstance(place, cst.Attribute):
        return False
    return facts.names.constant(item.key) == place.attr.value


def _uses(facts: Linked, node: cst.CSTNode) -> Iterator[tuple[Used, OldName]]:
    match node:
        case cst.Import():
            for alias in node.names:
                if entry := _module(dotted_name(alias.name)):
                    yield alias, entry
        case cst.ImportFrom(module=cst.Name() | cst.Attribute() as module) if not node.relative:
            yield from _imported(node, module)
        case cst.Attribute(attr=cst.Name(value=word)) if word in last_words():
            found = old_names().get(facts.names.of(node) or "")
            written = isinstance(facts.tree.parent(node), _WRITERS)
            if found and not found.is_called_name and not written and not _is_in_import(facts, node):
                yield node, found
        case cst.Call(func=cst.Attribute() | cst.Name() as func):
            found = old_names().get(facts.names.of(func) or "")
            if found and found.is_called_name:
                yield func, found


def _imported(node: cst.ImportFrom, module: cst.Name | cst.Attribute) -> Iterator[tuple[Used, OldName]]:
    dotted = dotted_name(module)
    if entry := _module(dotted):
        yield module, entry
    elif not isinstance(node.names, cst.ImportStar):
        for alias in node.names:
            entry = old_names().get(canonical(f"{dotted}.{dotted_name(alias.name)}"))
            if entry and not entry.is_called_name:
                yield alias, entry


def _module(dotted: str) -> OldName | None:
    entry = old_name_in(dotted)
    return entry if entry and entry.is_module else None


def _is_in_import(facts: Linked, node: cst.CSTNode) -> bool:
    return any(isinstance(above, (cst.Import, cst.ImportFrom)) for above in facts.tree.ancestors(node))
