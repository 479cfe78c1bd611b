"""Replace, wrap and rename expressions, with brackets where precedence asks for them."""

from __future__ import annotations

import ast
import warnings

import libcst as cst

from lightlint.fixes.code import Code
from lightlint.fixes.draft import Draft, RawEdit

_STATEMENTS = (cst.BaseStatement, cst.BaseSmallStatement, cst.BaseSuite)
_BRACKETED_IN_STATEMENTS = (cst.NamedExpr, cst.Yield, cst.GeneratorExp, cst.Tuple)


def replace(code: Code, node: cst.BaseExpression, text: str) -> Draft | None:
    """Put another expression in the place of one.

    Returns:
        None inside an f-string.
    """
    if code.in_formatted_string(node):
        return None
    start, end = code.spans.span(node)
    content = _set_apart(code, start, end, text)
    if _needs_brackets(code, node, text):
        content = f"({text})"
    return Draft((RawEdit(start, end, content),), code.has_comment(node))


def rename(code: Code, node: cst.Name | cst.Attribute, name: str) -> Draft | None:
    """Give a name, or the last part of a dotted one, another name.

    Returns:
        None inside an f-string.
    """
    target = node.attr if isinstance(node, cst.Attribute) else node
    return None if code.in_formatted_string(node) else Draft((RawEdit(*code.spans.span(target), name),))


def wrap(code: Code, node: cst.BaseExpression, before: str, after: str) -> Draft | None:
    """Put text around an expression, such as `float(` and `)`, or nothing and `.detach()`; the expression stays as it is.

    Returns:
        None inside an f-string.
    """
    if code.in_formatted_string(node):
        return None
    start, end = code.spans.span(node)
    text = code.source.text[start:end]
    if not _same(f"{before}{text}{after}", f"{before}({text}){after}"):
        before, after = f"{before}(", f"){after}"
    if _needs_brackets(code, node, f"{before}{text}{after}"):
        before, after = f"({before}", f"{after})"
    edits = (RawEdit(start, start, _lead(code, start, before)), RawEdit(end, end, _trail(code, end, after)))
    return Draft(tuple(edit for edit in edits if edit.content))


def _needs_brackets(code: Code, node: cst.BaseExpression, text: str) -> bool:
    """Whether an expression in the place of a node would be read differently than in brackets of its own."""
    try:
        expression = cst.parse_expression(text)
    except cst.ParserSyntaxError:
        return True
    outermost = _outermost(code, node)
    if outermost is node:
        loop = code.spans.parent(node)
        if isinstance(loop, cst.For) and loop.target is node:
            return False
        return isinstance(expression, _BRACKETED_IN_STATEMENTS) and not expression.lpar
    low, high = code.spans.span(outermost)
    start, end = code.spans.span(node)
    head, tail = code.source.text[low:start], code.source.text[end:high]
    return not _same(f"{head}{_set_apart(code, start, end, text)}{tail}", f"{head}({text}){tail}")


def _outermost(code: Code, node: cst.BaseExpression) -> cst.BaseExpression:
    """The largest expression of the statement that holds a node."""
    found = node
    current: cst.CSTNode | None = node
    while current is not None and not isinstance(current, _STATEMENTS):
        if isinstance(current, cst.BaseExpression):
            found = current
        current = code.spans.parent(current)
    return found


def _same(left: str, right: str) -> bool:
    """Whether two expressions mean the same; False where this Python cannot tell."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.dump(ast.parse(f"({left}\n)", mode="eval")) == ast.dump(ast.parse(f"({right}\n)", mode="eval"))
    except SyntaxError:
        return False


def _set_apart(code: Code, start: int, end: int, content: str) -> str:
    return _trail(code, end, _lead(code, start, content))


def _lead(code: Code, start: int, content: str) -> str:
    """The content with a space in front where it would grow together with a word, as in `return(x)`."""
    before = code.source.text[start - 1 : start]
    return f" {content}" if _is_word(before) and (_is_word(content[:1]) or content[:1] in {'"', "'"}) else content


def _trail(code: Code, end: int, content: str) -> str:
    after = code.source.text[end : end + 1]
    return f"{content} " if _is_word(after) and _is_word(content[-1:]) else content


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"
