"""Write a library's new name for its old one, where it is used or imported."""

from __future__ import annotations

import libcst as cst

from lightlint.facts.code.bindings import dotted_name
from lightlint.facts.file import FileFacts
from lightlint.fixes.code import Code
from lightlint.fixes.draft import Draft, join
from lightlint.fixes.drafts.expressions import rename, replace
from lightlint.fixes.drafts.imports import add_import


def rename_to(facts: FileFacts, place: cst.Attribute | cst.Name | cst.ImportAlias, old: str, new: str) -> Draft | None:
    """Put a full name in the place of another; an imported name stays what the file calls it.

    Args:
        place: where the old name is used, or the part of a `from` import that imports it.
        old, new: full names, such as "torch.ger" and "torch.outer".

    Returns:
        None where the file cannot reach the new name from there.
    """
    code = Code(facts.source, facts)
    room, last = new.rpartition(".")[::2]
    if isinstance(place, cst.ImportAlias):
        return _in_import(facts, code, place, old, new)
    if not isinstance(place, cst.Attribute):
        return None
    if old.rpartition(".")[0] == room and place.attr.value == old.rpartition(".")[2]:
        return rename(code, place, last)
    root: cst.CSTNode = place
    while isinstance(root, cst.Attribute):
        root = root.value
    reached = facts.names.of(root) if isinstance(root, cst.Name) else None
    if isinstance(root, cst.Name) and reached and new.startswith(f"{reached}."):
        return replace(code, place, root.value + new.removeprefix(reached))
    return join(replace(code, place, new), add_import(code, facts.tree.module, new.partition(".")[0]))


def _in_import(facts: FileFacts, code: Code, alias: cst.ImportAlias, old: str, new: str) -> Draft | None:
    statement = facts.tree.parent(alias)
    if not isinstance(statement, cst.ImportFrom) or statement.module is None or not isinstance(alias.name, cst.Name):
        return None
    module = dotted_name(statement.module)
    room, last = new.rpartition(".")[::2]
    if old.rpartition(".")[0] == room and alias.name.value == old.rpartition(".")[2]:
        return rename(code, alias.name, last if alias.asname else f"{last} as {alias.name.value}")
    alone = not isinstance(statement.names, cst.ImportStar) and len(statement.names) == 1
    if alone and last == alias.name.value and module == old.rpartition(".")[0]:
        return replace(code, statement.module, room)
    return None
