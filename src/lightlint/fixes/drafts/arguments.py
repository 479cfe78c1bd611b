"""Add, remove and rename arguments of a call, in the layout the call has."""

from __future__ import annotations

import re

import libcst as cst

from lightlint.fixes.code import Code
from lightlint.fixes.draft import Draft, RawEdit

_LINE_REST = re.compile(r"[ \t\f]*(?:#[^\r\n]*)?")
_KEYWORD = re.compile(r"(\w+)\s*=(?!=)")


def insert_argument(code: Code, call: cst.Call, text: str) -> Draft | None:
    """Add an argument (`"name=value"` or `"value"`) at the end of a call: a keyword before `**kwargs`, a value before keywords.

    A call with one argument a line gets a new line; everything there, comments and trailing comma included, stays.

    Returns:
        None if the call has this keyword, or stands in an f-string.
    """
    keyword = _KEYWORD.match(text)
    if code.in_formatted_string(call) or (keyword and _has_keyword(call, keyword[1])):
        return None
    if not call.args:
        return _insert_only(code, call, text)
    index = _place(call, is_keyword=keyword is not None)
    if index == 0:
        return _insert_first(code, call, text)
    opening, closing = _generator_brackets(code, call)
    if _one_a_line(code, call):
        return opening + closing + _insert_line(code, call.args[index - 1], text)
    end = _end(code, call.args[index - 1])
    return opening + closing + Draft((RawEdit(end, end, f", {text}"),))


def remove_argument(code: Code, call: cst.Call, argument: cst.Arg) -> Draft | None:
    """Remove an argument of a call with its comma, and with its lines where it has them to itself.

    Returns:
        None if the call stands in an f-string.
    """
    if code.in_formatted_string(call):
        return None
    index = next(index for index, arg in enumerate(call.args) if arg is argument)
    start, end = _start(code, argument), _end(code, argument)
    comma = _comma(code, argument)
    before = _end(code, call.args[index - 1]) if index else None
    line_end = _rest_of_line(code, end if comma is None else comma + 1)
    if len(call.args) == 1:
        edits = [(_trivia_start(code, call), code.trivia_end(end if comma is None else comma + 1))]
    elif code.starts_line(start) and line_end is not None:
        edits = [(code.line_start(start), line_end + len(code.newline_at(line_end)))]
        if comma is None and (last_comma := _comma(code, call.args[index - 1])) is not None:
            edits.insert(0, (last_comma, last_comma + 1))
    elif before is not None:
        edits = [(before, end)]
    else:
        edits = [(start, _start(code, call.args[1]))]
    trivia = [(start, code.spans.span(argument.value)[0])]
    trivia += [part for left, right in edits for part in ((left, min(start, right)), (max(end, left), right))]
    drops = code.has_comment(argument.value) or any("#" in code.source.text[low:high] for low, high in trivia)
    return Draft(tuple(RawEdit(left, right, "") for left, right in edits), drops)


def replace_argument(code: Code, argument: cst.Arg, text: str) -> Draft | None:
    """Put another argument (`"name=value"` or `"value"`) in the place of one.

    Returns:
        None if the call stands in an f-string, or has the new keyword already.
    """
    call, keyword = code.spans.parent(argument), _KEYWORD.match(text)
    if code.in_formatted_string(argument) or (
        keyword and isinstance(call, cst.Call) and _has_keyword(call, keyword[1])
    ):
        return None
    start, end = _start(code, argument), _end(code, argument)
    between = code.source.text[start : code.spans.span(argument.value)[0]]
    return Draft((RawEdit(start, end, text),), code.has_comment(argument.value) or "#" in between)


def replace_argument_name(code: Code, argument: cst.Arg, name: str) -> Draft | None:
    """Rename a keyword argument.

    Returns:
        None if the argument is no keyword, or its call has one of the new name.
    """
    call = code.spans.parent(argument)
    if argument.keyword is None or code.in_formatted_string(argument):
        return None
    if isinstance(call, cst.Call) and _has_keyword(call, name):
        return None
    return Draft((RawEdit(*code.spans.span(argument.keyword), name),))


def _start(code: Code, argument: cst.Arg) -> int:
    return code.spans.span(argument)[0]


def _end(code: Code, argument: cst.Arg) -> int:
    """End of an argument without its comma."""
    return code.spans.span(argument.value)[1]


def _has_keyword(call: cst.Call, name: str) -> bool:
    return any(arg.keyword is not None and arg.keyword.value == name for arg in call.args)


def _place(call: cst.Call, *, is_keyword: bool) -> int:
    """Index at which a new argument goes."""
    for index, arg in enumerate(call.args):
        if arg.star == "**" or (not is_keyword and arg.keyword is not None):
            return index
    return len(call.args)


def _comma(code: Code, argument: cst.Arg) -> int | None:
    """Offset of the comma behind an argument."""
    offset = code.trivia_end(_end(code, argument))
    return offset if code.source.text[offset : offset + 1] == "," else None


def _trivia_start(code: Code, call: cst.Call) -> int:
    """Offset behind the opening bracket of a call's arguments."""
    return code.trivia_end(code.spans.span(call.func)[1]) + 1


def _rest_of_line(code: Code, offset: int) -> int | None:
    """End of the line (before its newline) if only space and a comment follow an offset."""
    found = _LINE_REST.match(code.source.text, offset)
    end = found.end() if found else offset
    return end if code.newline_at(end) else None


def _one_a_line(code: Code, call: cst.Call) -> bool:
    """Whether each argument (the first aside, if it is not the only one) starts a line."""
    return all(code.starts_line(_start(code, arg)) for arg in call.args[1:] or call.args)


def _margin(code: Code, offset: int) -> str:
    return code.source.text[code.line_start(offset) : offset]


def _insert_only(code: Code, call: cst.Call, text: str) -> Draft:
    """Fill empty brackets; a comment between them stays."""
    start = _trivia_start(code, call)
    end = code.trivia_end(start)
    if "#" not in code.source.text[start:end]:
        return Draft((RawEdit(start, end, text),))
    line_start, newline = code.line_start(end), code.newline(start)
    return Draft((RawEdit(line_start, line_start, f"{_margin(code, end)}    {text},{newline}"),))


def _insert_first(code: Code, call: cst.Call, text: str) -> Draft:
    start = _start(code, call.args[0])
    separator = f",{code.newline(start)}{_margin(code, start)}" if code.starts_line(start) else ", "
    return Draft((RawEdit(start, start, text + separator),))


def _insert_line(code: Code, previous: cst.Arg, text: str) -> Draft:
    """A line of its own behind an argument, and behind the comment beside that one."""
    start, end = _start(code, previous), _end(code, previous)
    line = f"{code.newline(end)}{_margin(code, start)}{text}"
    comma = _comma(code, previous)
    if comma is not None and "#" not in code.source.text[end:comma]:
        line_end = _rest_of_line(code, comma + 1)
        if line_end is not None:
            return Draft((RawEdit(line_end, line_end, f"{line},"),))
    line_end = _rest_of_line(code, end)
    if line_end is None or "#" not in code.source.text[end:line_end]:
        return Draft((RawEdit(end, end, f",{line}"),))
    return Draft((RawEdit(end, end, ","), RawEdit(line_end, line_end, line)))


def _generator_brackets(code: Code, call: cst.Call) -> tuple[Draft, Draft]:
    """The brackets a generator needs once it is not the only argument."""
    value = call.args[0].value
    if len(call.args) > 1 or not isinstance(value, cst.GeneratorExp) or value.lpar:
        return Draft(), Draft()
    start, end = code.spans.span(value)
    return Draft((RawEdit(start, start, "("),)), Draft((RawEdit(end, end, ")"),))
