"""Add an import that a fix needs."""

from __future__ import annotations

import re

import libcst as cst
from libcst.helpers import get_full_name_for_node

from lightlint.fixes.code import Code
from lightlint.fixes.draft import Draft, RawEdit
from lightlint.fixes.statements import drop_statement, insert_after, insert_before


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


def drop_import(code: Code, module: cst.Module, name: str, besides: int) -> Draft:
    """Remove the one `from` import at the top of a file that binds a name, if its text has the name nowhere else.

    Args:
        besides: how many uses of the name the fix takes out itself.

    Returns:
        A draft without edits where the name may still be needed, or a comment would be lost.
    """
    lines = [line for line in module.body if _is_import(line) and name in {bound for bound, _ in _bindings(line)}]
    used = re.findall(rf"(?<![\w.]){name}\b", code.source.text)
    statement = cst.ensure_type(lines[0], cst.SimpleStatementLine).body[0] if len(lines) == 1 else None
    if (
        not isinstance(statement, cst.ImportFrom)
        or len(used) != besides + 1
        or isinstance(statement.names, cst.ImportStar)
    ):
        return Draft()
    names = list(statement.names)
    index = next((i for i, each in enumerate(names) if each.asname is None and each.evaluated_name == name), None)
    if index is None:
        return Draft()
    if len(names) == 1:
        draft = drop_statement(code, statement) or Draft()
    elif index + 1 < len(names):
        draft = Draft((RawEdit(code.spans.span(names[index].name)[0], code.spans.span(names[index + 1].name)[0], ""),))
    else:
        draft = Draft(
            (RawEdit(code.spans.span(names[-2].asname or names[-2].name)[1], code.spans.span(names[-1].name)[1], ""),)
        )
    lost = draft.drops_comment or any("#" in code.source.text[each.start : each.end] for each in draft.edits)
    return Draft() if lost else draft


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
