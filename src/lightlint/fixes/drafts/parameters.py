"""Add and remove parameters of a function."""

from __future__ import annotations

import libcst as cst

from lightlint.fixes.code import Code
from lightlint.fixes.draft import Draft, RawEdit


def remove_parameter(code: Code, function: cst.FunctionDef, parameter: cst.Param) -> Draft | None:
    """Remove a parameter that is not the first.

    Returns:
        None if a `*` or `/` stands between it and the parameter before it.
    """
    before = _previous(function, parameter)
    if before is None:
        return None
    start, end = _end(code, before), _end(code, parameter)
    text = code.source.text[start : code.spans.span(parameter.name)[0]]
    if "*" in text or "/" in text:
        return None
    return Draft((RawEdit(start, end, ""),), drops_comment="#" in code.source.text[start:end])


def insert_parameter(code: Code, function: cst.FunctionDef, text: str) -> Draft | None:
    """Add a parameter behind the last positional one.

    Returns:
        None if there is no positional parameter.
    """
    plain = [*function.params.posonly_params, *function.params.params]
    if not plain:
        return None
    end = _end(code, plain[-1])
    return Draft((RawEdit(end, end, f", {text}"),))


def insert_default(code: Code, parameter: cst.Param, text: str) -> Draft | None:
    """Give a parameter a default value; the caller answers for the order of the parameters.

    Returns:
        None if it has one.
    """
    if parameter.default is not None:
        return None
    end = _end(code, parameter)
    return Draft((RawEdit(end, end, f" = {text}" if parameter.annotation else f"={text}"),))


def _previous(function: cst.FunctionDef, parameter: cst.Param) -> cst.Param | None:
    params = function.params
    found = [*params.posonly_params, *params.params, *params.kwonly_params]
    index = next((index for index, each in enumerate(found) if each is parameter), 0)
    return found[index - 1] if index else None


def _end(code: Code, parameter: cst.Param) -> int:
    last: cst.CSTNode = parameter.name
    if parameter.default is not None:
        last = parameter.default
    elif parameter.annotation is not None:
        last = parameter.annotation.annotation
    return code.spans.span(last)[1]
