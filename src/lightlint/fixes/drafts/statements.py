"""Drop, add and guard statements."""

from __future__ import annotations

import re
from collections.abc import Sequence

import libcst as cst

from lightlint.fixes.code import Code, any_comment
from lightlint.fixes.draft import Draft, RawEdit
from lightlint.fixes.drafts.comments import comments_above

Statement = cst.BaseStatement | cst.BaseSmallStatement

_BLOCKS = (cst.Module, cst.IndentedBlock)
_STRINGS = (cst.SimpleString, cst.FormattedString, cst.TemplatedString)
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)?")


def drop_statement(code: Code, statement: cst.SimpleStatementLine | cst.BaseSmallStatement) -> Draft | None:
    """Remove a simple statement with its line, or by itself where it shares the line; `pass` keeps a block alive.

    Comments above stay; one beside it goes with the line.

    Returns:
        None for a docstring, and where the line holds what cannot be told apart from the statement.
    """
    line = line_of(code, statement)
    if line is None or _is_docstring(code, line, statement):
        return None
    start, end = code.spans.span(statement)
    comment_inside = (
        code.has_comment(statement)
        if isinstance(statement, cst.BaseSmallStatement)
        else any(code.has_comment(each) for each in line.body)
    )
    if isinstance(statement, cst.BaseSmallStatement) and len(line.body) > 1:
        return Draft((RawEdit(*_share_of_line(code, line, statement), ""),), comment_inside)
    block = code.spans.parent(line)
    alone = isinstance(line, cst.SimpleStatementSuite) or (
        isinstance(block, cst.IndentedBlock) and len(block.body) == 1
    )
    if alone:
        return Draft((RawEdit(start, end, "pass"),), comment_inside)
    tail = code.statement_line_end(end)
    if tail is None or code.margin(start) is None:
        return None
    line_end, comment_beside = tail
    return Draft((RawEdit(*whole_lines(code, start, line_end), ""),), comment_inside or comment_beside)


def replace_statement(code: Code, statement: cst.BaseSmallStatement, text: str) -> Draft:
    """Put another simple statement in the place of one; what shares its line stays."""
    return Draft((RawEdit(*code.spans.span(statement), text),), code.has_comment(statement))


def insert_before(code: Code, statement: Statement, text: str) -> Draft | None:
    """Put a statement, or several lines of them, in front of another and of the comments that belong to it.

    Returns:
        None in front of a docstring, a `__future__` import or an `elif`, and where the new statement does not fit the line.
    """
    line = line_of(code, statement)
    if line is not None and not _is_docstring(code, line, statement) and _shares_line(line, statement, first=True):
        start = code.spans.span(statement)[0]
        return _only_if(_is_simple(text) and not _is_future(line), Draft((RawEdit(start, start, f"{text}; "),)))
    place = line_before(code, statement)
    if place is None:
        return None
    start = _first_offset(code, line or statement)
    rows = _indented(text, code.margin(start) or "")
    return Draft((RawEdit(place, place, "".join(row + code.newline(start) for row in rows)),))


def line_before(code: Code, statement: Statement) -> int | None:
    """Where a line can go in front of a statement that has its line to itself or is the first there, and of its comments."""
    line = line_of(code, statement)
    if line is not None and (
        _is_docstring(code, line, statement) or _is_future(line) or _shares_line(line, statement, first=True)
    ):
        return None
    whole = line or statement
    start = _first_offset(code, whole)
    if code.margin(start) is None or not _in_block(code, whole) or any(at == start for at, _ in code.source.masked):
        return None
    return comments_above(code, start)


def decorate(code: Code, function: cst.FunctionDef | cst.ClassDef, text: str) -> Draft | None:
    """Put a decorator above the others of a function or class; comments above them stay there."""
    start = _first_offset(code, function)
    margin = code.margin(start)
    if margin is None:
        return None
    line_start = start - len(margin)
    return Draft((RawEdit(line_start, line_start, f"{_indent(margin)}{text}{code.newline(start)}"),))


def insert_after(code: Code, statement: Statement, text: str) -> Draft | None:
    """Put a statement, or several lines of them, behind another; behind a compound statement, behind its whole body.

    Returns:
        None where the new statement does not fit the line.
    """
    line = line_of(code, statement)
    if line is not None and _shares_line(line, statement, first=False):
        behind = code.spans.span(statement)[1]
        return _only_if(_is_simple(text), Draft((RawEdit(behind, behind, f"; {text}"),)))
    end = line_behind(code, statement)
    if end is None:
        return None
    margin = code.margin(_first_offset(code, line or statement)) or ""
    return Draft((RawEdit(end, end, "".join(code.newline(end) + row for row in _indented(text, margin))),))


def line_behind(code: Code, statement: Statement) -> int | None:
    """Where a line end and a line can go behind a statement that has its line to itself or is the last there."""
    line = line_of(code, statement)
    if line is not None and _shares_line(line, statement, first=False):
        return None
    whole = line or statement
    if code.margin(_first_offset(code, whole)) is None or not _in_block(code, whole):
        return None
    return _last_line_end(code, whole)


def wrap_statements(code: Code, statements: Sequence[cst.BaseStatement], header: str) -> Draft | None:
    """Put a run of neighbouring statements under a new header such as `if trainer.is_global_zero:`.

    Returns:
        None if they are not neighbours in one block, or hold a string of several lines (indenting would change it).
    """
    block = code.spans.parent(statements[0])
    if not isinstance(block, cst.Module | cst.IndentedBlock) or not _are_neighbours(block, statements):
        return None
    if any(_has_long_string(code, statement) for statement in statements):
        return None
    start, end = _first_offset(code, statements[0]), _last_line_end(code, statements[-1])
    margin = code.margin(start)
    if margin is None or end is None:
        return None
    unit = _indent_unit(code, block)
    rows = _LINE.findall(code.source.text[start - len(margin) : end])
    body = "".join(_deepened(row, _indent(margin), unit) for row in rows)
    head = _indent(margin) + header + code.newline(start)
    return Draft((RawEdit(start - len(margin), end, head + body),))


def line_of(code: Code, statement: Statement) -> cst.SimpleStatementLine | cst.SimpleStatementSuite | None:
    """The line of simple statements that a statement is, or is part of; None for a compound one."""
    line = code.spans.parent(statement) if isinstance(statement, cst.BaseSmallStatement) else statement
    return line if isinstance(line, cst.SimpleStatementLine | cst.SimpleStatementSuite) else None


def _only_if(condition: bool, draft: Draft) -> Draft | None:
    return draft if condition else None


def _shares_line(
    line: cst.SimpleStatementLine | cst.SimpleStatementSuite, statement: Statement, *, first: bool
) -> bool:
    """Whether a new neighbour has to go on the statement's line: others are on that side, or the line is a block's only one."""
    if isinstance(line, cst.SimpleStatementSuite):
        return True
    return isinstance(statement, cst.BaseSmallStatement) and line.body[0 if first else -1] is not statement


def _share_of_line(
    code: Code, line: cst.SimpleStatementLine | cst.SimpleStatementSuite, statement: cst.BaseSmallStatement
) -> tuple[int, int]:
    """The range of a statement and its `;` among the others of its line."""
    index = next(index for index, small in enumerate(line.body) if small is statement)
    start, end = code.spans.span(statement)
    if index + 1 < len(line.body):
        return start, code.spans.span(line.body[index + 1])[0]
    return code.spans.span(line.body[index - 1])[1], end


def whole_lines(code: Code, start: int, line_end: int) -> tuple[int, int]:
    """The range of the lines of a statement, with the newline behind; at the end of a text or cell, the one before."""
    line_start = code.line_start(start)
    newline = code.newline_at(line_end)
    if newline and line_end + len(newline) <= code.limit(start):
        return line_start, line_end + len(newline)
    text = code.source.text
    cell = code.source.cell_at(start)
    if line_start > (cell.start if cell else 0):
        line_start -= 2 if text.endswith("\r\n", 0, line_start) else 1
    return line_start, line_end


def _first_offset(code: Code, statement: cst.CSTNode) -> int:
    """Where a statement starts, decorators included."""
    decorators: Sequence[cst.Decorator] = getattr(statement, "decorators", ())
    return min(code.spans.span(node)[0] for node in (statement, *decorators))


def _last_line_end(code: Code, statement: cst.CSTNode) -> int | None:
    """End of a statement's last line, before the newline; comments that close an indented body belong to it."""
    found = code.statement_line_end(code.spans.span(statement)[1])
    if found is None:
        return None
    end = found[0]
    if isinstance(statement, cst.SimpleStatementLine):
        return end
    limit = code.limit(code.spans.span(statement)[0])
    outer = _indent(code.margin(_first_offset(code, statement)) or "")
    position = end + len(code.newline_at(end))
    while end < position < limit and (row := _LINE.match(code.source.text, position)):
        content = row[0].strip()
        indent = row[0][: len(row[0]) - len(row[0].lstrip(" \t"))]
        if content and not (content.startswith("#") and indent.startswith(outer) and indent != outer):
            break
        if content:
            end = position + len(row[0].rstrip("\r\n"))
        position = row.end()
    return end


def _in_block(code: Code, statement: cst.CSTNode) -> bool:
    """Whether a statement stands in a block of its own lines, not behind a colon or as an `elif`."""
    return isinstance(code.spans.parent(statement), _BLOCKS)


def _is_simple(text: str) -> bool:
    """Whether a text is one simple statement of one line."""
    body = cst.parse_module(text).body
    return len(body) == 1 and isinstance(body[0], cst.SimpleStatementLine) and not any_comment(body[0])


def _is_docstring(code: Code, line: cst.CSTNode, statement: cst.CSTNode) -> bool:
    """Whether a statement is the string that documents its module, class or function."""
    if not isinstance(line, cst.SimpleStatementLine | cst.SimpleStatementSuite):
        return False
    small = line.body[0]
    if statement not in (line, small) or not isinstance(small, cst.Expr):
        return False
    if not isinstance(small.value, cst.SimpleString | cst.ConcatenatedString):
        return False
    above = code.spans.parent(line)
    if isinstance(above, cst.Module | cst.IndentedBlock):
        if above.body[0] is not line:
            return False
        above = code.spans.parent(above) if isinstance(above, cst.IndentedBlock) else above
    return isinstance(above, cst.Module | cst.FunctionDef | cst.ClassDef)


def _is_future(line: cst.SimpleStatementLine | cst.SimpleStatementSuite) -> bool:
    return any(
        isinstance(small, cst.ImportFrom) and isinstance(small.module, cst.Name) and small.module.value == "__future__"
        for small in line.body
    )


def _are_neighbours(block: cst.Module | cst.IndentedBlock, statements: Sequence[cst.BaseStatement]) -> bool:
    first = next((index for index, statement in enumerate(block.body) if statement is statements[0]), None)
    if first is None:
        return False
    run = block.body[first : first + len(statements)]
    return len(run) == len(statements) and all(a is b for a, b in zip(run, statements, strict=True))


def _has_long_string(code: Code, node: cst.CSTNode) -> bool:
    if isinstance(node, _STRINGS):
        return bool(re.search(r"[\r\n]", code.text_of(node)))
    return any(_has_long_string(code, child) for child in node.children)


def _indent(margin: str) -> str:
    """The part of a margin that Python counts: what follows the last form feed."""
    return margin.rpartition("\f")[2]


def _indented(text: str, margin: str) -> list[str]:
    indent = _indent(margin)
    return [indent + row if row.strip() else row for row in text.splitlines()]


def _deepened(row: str, indent: str, unit: str) -> str:
    """A row one unit deeper: behind the indent it shares with its block, so that tabs and spaces stay in order."""
    if not row.strip():
        return row
    feed = re.match(r"(?:[ \t]*\f)*", row)
    head = feed[0] if feed else ""
    shared = indent if row.startswith(indent, len(head)) else ""
    return head + shared + unit + row[len(head) + len(shared) :]


def _indent_unit(code: Code, block: cst.Module | cst.IndentedBlock) -> str:
    """One level of indentation as the block, or else its module, writes it."""
    if isinstance(block, cst.IndentedBlock) and block.indent:
        return block.indent
    module: cst.CSTNode | None = block
    while module is not None and not isinstance(module, cst.Module):
        module = code.spans.parent(module)
    return module.default_indent if isinstance(module, cst.Module) else "    "
