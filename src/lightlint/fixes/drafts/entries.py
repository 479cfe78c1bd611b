"""Add and remove the entries of dict displays."""

from __future__ import annotations

import libcst as cst

from lightlint.fixes.code import Code
from lightlint.fixes.draft import Draft, RawEdit


def insert_entry(code: Code, display: cst.Dict, text: str) -> Draft | None:
    """Add an entry (`"key": value`) at the end of a dict, on a line of its own where the others have one.

    Returns:
        None for an empty dict, one with comments, and one in an f-string.
    """
    if not display.elements or _is_closed(code, display):
        return None
    first, last = display.elements[0], display.elements[-1]
    start, end = code.spans.span(first)[0], code.spans.span(last.value)[1]
    separator = f",{code.newline(start)}{code.margin(start)}" if code.starts_line(start) else ", "
    return Draft((RawEdit(end, end, separator + text),))


def remove_entry(code: Code, display: cst.Dict, key: cst.CSTNode) -> Draft | None:
    """Remove the entry of a key with its comma.

    Returns:
        None for the only entry, and in a dict with comments or one in an f-string.
    """
    elements = list(display.elements)
    index = next((i for i, each in enumerate(elements) if isinstance(each, cst.DictElement) and each.key is key), None)
    if index is None or len(elements) < 2 or _is_closed(code, display):
        return None
    starts = [code.spans.span(each)[0] for each in elements]
    ends = [code.spans.span(each.value)[1] for each in elements]
    if index + 1 < len(elements):
        return Draft((RawEdit(starts[index], starts[index + 1], ""),))
    return Draft((RawEdit(ends[index - 1], ends[index], ""),))


def _is_closed(code: Code, display: cst.Dict) -> bool:
    return "#" in code.text_of(display) or code.in_formatted_string(display)
