"""What files are called that are saved and loaded: text with holes where it is not known."""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from lightlint.facts.linked import Linked

_HOLE = "\0"
_FIELD = re.compile(r"\{[^{}]*\}|%[-+ #0-9.]*[a-zA-Z]")
_PUBLISHED = re.compile(r"-[0-9a-f]{8,}\.(?:pth|pth\.tar|pt|bin)$|\.cache/torch/|torch/hub/")
_DEPTH = 4


def may_be_one(saved: str, loaded: str) -> bool:
    """Whether two names may be those of one file: neither their beginnings nor their ends tell them apart."""
    mine, theirs = (name.rpartition("/")[2].split(_HOLE) for name in (saved, loaded))
    if len(mine) == len(theirs) == 1:
        return mine == theirs
    start, other = mine[0], theirs[0]
    end, last = mine[-1], theirs[-1]
    begins = "/" in saved and "/" in loaded  # what is before the first hole begins the name
    return (not begins or start.startswith(other) or other.startswith(start)) and (
        end.endswith(last) or last.endswith(end)
    )


def is_unknown(name: str) -> bool:
    """Whether nothing is known of a name."""
    return not name.replace(_HOLE, "").strip("/")


def is_published(name: str) -> bool:
    """Whether a name is that of weights as they are published, which lie on the CPU: with the digest that `torch.hub` asks
    for, or in its cache."""
    return _PUBLISHED.search(name) is not None


def name_of_key(key: Hashable | None) -> str:
    """The name of a file by what a value is known by: `os.path.join(folder, "last.pt")`, `f"{folder}/last.pt"`."""
    match key:
        case ("constant", "str", str(text)):
            return text
        case ("path", *parts):
            return "/".join(["", *map(name_of_key, parts)])
        case ("text", str(template), "format" | "%", *_):
            return _FIELD.sub(_HOLE, template)
        case ("text" | "+", *parts):
            return "".join(map(name_of_key, parts))
    return _HOLE


def name_written(facts: Linked, expression: cst.BaseExpression, depth: int = 0) -> str:
    """As `name_of_key`, by what a program says."""
    constant = facts.names.constant(expression)
    if isinstance(constant, str):
        return constant
    match expression:
        case cst.FormattedString(parts=parts):
            return "".join(each.value if isinstance(each, cst.FormattedStringText) else _HOLE for each in parts)
        case cst.BinaryOperation(left=left, operator=cst.Add() | cst.Divide() as operator, right=right):
            joint = "/" if isinstance(operator, cst.Divide) else ""
            return joint.join((name_written(facts, left, depth), name_written(facts, right, depth)))
        case cst.BinaryOperation(left=template, operator=cst.Modulo()):
            return _FIELD.sub(_HOLE, name_written(facts, template, depth))
        case cst.Call(func=cst.Attribute(value=template, attr=cst.Name(value="format"))):
            return _FIELD.sub(_HOLE, name_written(facts, template, depth))
        case cst.Call(args=args) if facts.names.call(expression) in ("os.path.join", "pathlib.Path", "builtins.str"):
            return "/".join(["", *(_HOLE if each.star else name_written(facts, each.value, depth) for each in args)])
        case cst.Name() if depth < _DEPTH:
            sources = facts.reaching.sources(expression)
            if len(sources) == 1 and sources[0] is not expression:
                return name_written(facts, sources[0], depth + 1)
    return _HOLE
