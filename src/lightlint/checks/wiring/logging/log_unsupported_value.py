from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Logged
from lightlint.values.core import Constant, Mapping, Sequence, Unknown

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Value

_CALLS = {"builtins.str": "str", "builtins.list": "list", "builtins.tuple": "tuple", "builtins.dict": "dict"}


class LogUnsupportedValue(Check):
    def _kind(self, value: cst.BaseExpression) -> str:
        """The type of a value that surely cannot be logged, empty for all others."""
        match value:
            case cst.SimpleString() | cst.FormattedString() | cst.ConcatenatedString():
                return "str"
            case cst.List() | cst.ListComp():
                return "list"
            case cst.Tuple():
                return "tuple"
            case cst.Dict() | cst.DictComp():
                return "dict"
            case cst.Set() | cst.SetComp():
                return "set"
            case cst.Call():
                return _CALLS.get(self.names.of(value.func) or "", "")
        return ""

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        for event in entry.of(Logged):
            kind = _kind(event.value) if event.method == "log" else ""
            if kind == "str" or (kind and self.facts.lightning.surely_at_least("2.0")):
                message = f"`log` is given a `{kind}`: Lightning takes numbers, tensors and metrics, and raises"
                yield Fault.of(event, message)


def _kind(value: Value | None) -> str:
    """The type of a value that surely cannot be logged, empty for all others."""
    if isinstance(value, Constant):
        return "str" if isinstance(value.value, str) else ""
    if isinstance(value, Unknown):
        return "str" if isinstance(value.key, tuple) and value.key[:1] == ("text",) else ""
    if isinstance(value, Mapping):
        return "dict" if value.source is None else ""
    return value.kind if isinstance(value, Sequence) and value.kind in {"list", "tuple", "set"} else ""
