"""Add an import that a fix needs, and remove one."""

from __future__ import annotations

import re

import libcst as cst
from libcst.helpers import get_full_name_for_node

from lightlint.fixes.code import Code
from lightlint.fixes.draft import Draft, RawEdit
from lightlint.fixes.drafts.statements import drop_statement, insert_after, insert_before


def add_import(code: Code, module: cst.Module, wanted: str) -> Draft | None:
    """Import a module (`"copy"`) or what a whole statement names (`"from contextlib import nullcontext"`) in a file.

    The line goes behind the first run of imports, where later ones may follow statements that need it already;
    without imports, behind the docstring.

    Returns:
        A draft without edits if the import is there already; None if its name may mean something else in the file.
    """
    statement = wanted if wanted.startswith(("import ", "from ")) else f"import {wanted}"
    new = _bindings(cst.ensure_type(cst.parse_module(statement).body[0], cst.SimpleStatementLine))
    lines = [line for line in module.body if _is_import(line)]
    present = {binding for line in lines for binding in _bindings(line)}
    if present.issuperset(new):
        return Draft()
    for name, meaning in new:
        others = {other for bound, other in present if bound == name}
        shadowed = not others and re.search(rf"\b{name}\b", code.source.text) and _uses(module, name)
        if shadowed or not all(other.startswith("import ") and meaning.startswith("import ") for other in others):
            return None
    return _insert(code, module, statement)


def drop_import(code: Code, module: cst.Module, name: str) -> Draft:
    """Remove the one import at the top of a file that binds a name, whoever uses it.

    Returns:
        A draft without edits where it is bound elsewhere, too, as `import a.b` or as `x as x`, which hand on more than the
        name, or where a comment would be lost.
    """
    lines = [line for line in module.body if _is_import(line) and name in {bound for bound, _ in _bindings(line)}]
    if len(lines) != 1:
        return Draft()
    found = [
        (each, list(each.names))
        for each in cst.ensure_type(lines[0], cst.SimpleStatementLine).body
        if isinstance(each, cst.Import | cst.ImportFrom) and not isinstance(each.names, cst.ImportStar)
    ]
    places = [(each, names, names.index(alias)) for each, names in found for alias in names if _binds_only(alias, name)]
    if len(places) != 1:
        return Draft()
    statement, names, index = places[0]
    if len(names) == 1:
        draft = drop_statement(code, statement) or Draft()
    else:
        draft = Draft((RawEdit(*_share(code, names, index), ""),))
    lost = draft.drops_comment or any("#" in code.source.text[each.start : each.end] for each in draft.edits)
    return Draft() if lost else draft


def _binds_only(alias: cst.ImportAlias, name: str) -> bool:
    """Whether a part of an import binds a name, and says no more by it."""
    written = alias.evaluated_name
    return written == name if alias.asname is None else alias.evaluated_alias == name != written


def _share(code: Code, names: list[cst.ImportAlias], index: int) -> tuple[int, int]:
    """The text of one of several imported names, with a comma."""
    start, end = code.spans.span(names[index])[0], code.spans.span(names[index].asname or names[index].name)[1]
    if index + 1 < len(names):
        return start, code.spans.span(names[index + 1])[0]
    return code.spans.span(names[index - 1].asname or names[index - 1].name)[1], end


def _insert(code: Code, module: cst.Module, statement: str) -> Draft | None:
    first = next((index for index, line in enumerate(module.body) if _is_import(line)), None)
    if first is not None:
        run = module.body[first:]
        last = next((index for index, line in enumerate(run) if not _is_import(line)), len(run)) - 1
        return insert_after(code, run[last], statement)
    if not module.body:
        return None
    if module.get_docstring() is None:
        return insert_before(code, module.body[0], statement)
    below = insert_after(code, module.body[0], statement)
    return below and Draft(tuple(RawEdit(at, end, code.newline(at) + text) for at, end, text in below.edits))


def _is_import(line: cst.CSTNode) -> bool:
    """Whether a line holds imports and nothing else."""
    return isinstance(line, cst.SimpleStatementLine) and all(
        isinstance(small, cst.Import | cst.ImportFrom) for small in line.body
    )


def _bindings(line: cst.CSTNode) -> list[tuple[str, str]]:
    """The names an import line binds, each with what it means, the same for `import a.b as c` and `from a import b as c`."""
    bindings = []
    for small in cst.ensure_type(line, cst.SimpleStatementLine).body:
        if not isinstance(small, cst.Import | cst.ImportFrom) or isinstance(small.names, cst.ImportStar):
            continue
        package = f"{_prefix(small)}." if isinstance(small, cst.ImportFrom) else ""
        for alias in small.names:
            name = alias.evaluated_name
            if package or alias.evaluated_alias:
                bindings.append((alias.evaluated_alias or name, f"as {package}{name}"))
            else:
                bindings.append((name.partition(".")[0], f"import {name}"))
    return bindings


def _prefix(node: cst.ImportFrom) -> str:
    return "." * len(node.relative) + (get_full_name_for_node(node.module) or "" if node.module else "")


def _uses(node: cst.CSTNode, name: str) -> bool:
    """Whether a name stands in a tree by itself, not as an attribute or the keyword of an argument."""
    if isinstance(node, cst.Name):
        return node.value == name
    if isinstance(node, cst.Attribute):
        return _uses(node.value, name)
    return any(
        _uses(child, name)
        for child in node.children
        if not (isinstance(node, cst.Arg) and child is node.keyword)
        and not (isinstance(node, cst.ImportFrom) and child is node.module)
    )
