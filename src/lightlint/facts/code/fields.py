"""Which fields of libcst's nodes mean something, in the order of the source, and in that of evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import fields
from operator import attrgetter
from typing import Any

import libcst as cst

_PUNCTUATION = {
    "comma", "semicolon", "colon", "dot", "equal", "lpar", "rpar", "lbracket", "rbracket", "lbrace", "rbrace", "header",
    "footer", "indent", "star", "posonly_ind", "operator", "asynchronous", "encoding", "newline", "first_colon",
    "second_colon", "relative", "separator", "trailing_comma",
}  # fmt: skip
# where libcst declares the fields of a node in another order than Python writes them
_IN_ORDER: dict[type, tuple[str, ...]] = {
    cst.Arg: ("keyword", "value"),
    cst.ClassDef: ("decorators", "name", "type_parameters", "bases", "keywords", "body"),
    cst.ExceptHandler: ("type", "name", "body"),
    cst.ExceptStarHandler: ("type", "name", "body"),
    cst.FormattedString: ("parts",),
    cst.FunctionDef: ("decorators", "name", "type_parameters", "params", "returns", "body"),
    cst.IfExp: ("body", "test", "orelse"),
    cst.MatchCase: ("pattern", "guard", "body"),
    cst.Module: ("body",),
    cst.Parameters: ("posonly_params", "params", "star_arg", "kwonly_params", "star_kwarg"),
}
_SEMANTIC: dict[type, tuple[str, ...]] = dict(_IN_ORDER)
# what is evaluated with a node in another order than it is written, or only in part
_ORDER: dict[type[cst.CSTNode], tuple[str, ...]] = {
    cst.Assign: ("value", "targets"),
    cst.AnnAssign: ("value", "target", "annotation"),
    cst.AugAssign: ("value", "target"),
    cst.NamedExpr: ("value", "target"),
    cst.FunctionDef: ("decorators", "params", "returns"),
    cst.ClassDef: ("decorators", "bases", "keywords"),
    cst.Lambda: ("params",),
}


def semantic_fields(kind: type) -> tuple[str, ...]:
    """Names of the fields of a node class that can hold nodes with meaning, in source order."""
    if kind not in _SEMANTIC:
        names = [field.name for field in fields(kind)]
        _SEMANTIC[kind] = tuple(
            name
            for name in names
            if name not in _PUNCTUATION and "whitespace" not in name and not name.startswith(("leading_", "lines_"))
        )
    return _SEMANTIC[kind]


def children(node: cst.CSTNode) -> list[cst.CSTNode]:
    """The nodes directly below a node, in source order."""
    found: list[cst.CSTNode] = []
    for value in VALUES[type(node)](node):
        kind = type(value)
        if kind is tuple or kind is list:
            found.extend(item for item in value if IS_NODE[type(item)])
        elif IS_NODE[kind]:
            found.append(value)
    return found


class _Values(dict[type, Callable[[cst.CSTNode], Sequence[Any]]]):
    """What gives the values of a node's semantic fields, by its type: in one call into C."""

    def __missing__(self, kind: type) -> Callable[[cst.CSTNode], Sequence[Any]]:
        names = semantic_fields(kind)
        self[kind] = _getter(names)
        return self[kind]


def _getter(names: Sequence[str]) -> Callable[[cst.CSTNode], Sequence[Any]]:
    if len(names) > 1:
        return attrgetter(*names)
    if not names:
        return lambda _node: ()
    get = attrgetter(*names)
    return lambda node: (get(node),)


VALUES = _Values()


class _NodeKinds(dict[type, bool]):
    """Whether a type is a node's: remembered, since `isinstance` on libcst's abstract classes is half of a walk's time."""

    def __missing__(self, kind: type) -> bool:
        self[kind] = issubclass(kind, cst.CSTNode)
        return self[kind]


IS_NODE = _NodeKinds()


def backwards(root: cst.CSTNode, whole: Set[type]) -> Iterator[cst.CSTNode]:
    """A node and what is evaluated for it, last first; nodes of the types in `whole` are not looked into."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        kind = type(node)
        if kind in whole:
            continue
        if kind not in _ORDER:
            stack += children(node)
            continue
        for name in _ORDER[kind]:
            part = getattr(node, name)
            stack += part if isinstance(part, (list, tuple)) else [part] if isinstance(part, cst.CSTNode) else []
