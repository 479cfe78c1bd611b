"""Make a plain list or dict a container that registers the modules in it."""

from __future__ import annotations

import libcst as cst

from lightlint.facts.file import FileFacts
from lightlint.facts.values.displays import Display
from lightlint.fixes.code import Code
from lightlint.fixes.draft import Draft
from lightlint.fixes.drafts.expressions import replace, wrap


def container_for(held: Display) -> str | None:
    """The class of `torch.nn` that holds what a display holds; None for tuples and for dicts with other keys than strings."""
    if isinstance(held, (cst.List, cst.ListComp)):
        return "ModuleList"
    spelled = isinstance(held, cst.Dict) and all(
        isinstance(each, cst.DictElement) and isinstance(each.key, cst.SimpleString) for each in held.elements
    )
    return "ModuleDict" if spelled else None


def as_container(facts: FileFacts, value: cst.BaseExpression, container: str) -> Draft | None:
    """Wrap a value in a class of `torch.nn`, or write its empty call; None where the file has no name for `torch.nn`."""
    code, scope = Code(facts.source, facts), facts.tree.scope(value)
    room = next((each for each in ("nn", "torch.nn") if facts.names.written_in(each, scope) == "torch.nn"), None)
    if room is None:
        return None
    called = facts.names.call(value) in {"builtins.list", "builtins.dict"}
    empty = called or (isinstance(value, (cst.List, cst.Dict)) and not value.elements)
    if empty:
        return replace(code, value, f"{room}.{container}()")
    return wrap(code, value, f"{room}.{container}(", ")")
