"""Random programs that nest every kind of scope and bind a few names in every way Python has."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from itertools import count

from hypothesis import strategies as st

NAMES = ("a", "b", "c")
name = st.sampled_from(NAMES)


@st.composite
def expressions(draw: st.DrawFn, depth: int = 2) -> str:
    if depth == 0:
        return draw(name)
    inner = expressions(depth - 1)
    form = draw(
        st.sampled_from(
            [
                "{x}",
                "f({x}, {n}={y})",
                "{x}.{n}",
                "({n} := {x})",
                "lambda {n}={x}, *{m}: ({y})",
                "[({x}) for {n} in ({y}) if {m}]",
                "{{({x}): {m} for {n} in ({y}) for {m} in ({x})}}",
                "[({x}) for _ in {m} if ({n} := {y})]",
            ]
        )
    )
    return form.format(x=draw(inner), y=draw(inner), n=draw(name), m=draw(name))


_SIMPLE = (
    "{n} = {x}",
    "{n}, *{m} = {x}",
    "{n}: {m} = {x}",
    "{n} += {x}",
    "import {n}.{m}",
    "from {n} import {m} as {n}",
    "{x}",
    "global {n}",
    "nonlocal {n}",
    "for {n} in ({x}): {m}",
    "with ({x}) as ({n}, {m}): {n}",
    "try: {x}\nexcept {m} as {n}: {n}",
    "match {x}:\n    case [{n}, *{m}]: {n}\n    case {{'k': {m}, **{n}}}: {m}",
    "if ({n} := ({x})): {m}",
)
_BLOCKS = (
    "def {s}({n}, {m}={x}):",
    "def {s}(*, {n}: {m} = ({x}), **rest):",
    "@{m}\nasync def {s}({n}: ({x})) -> {m}:",
    "class {s}({n}, key=({x})):",
    "if {n}:",
    "while ({x}):",
)


@st.composite
def _blocks(draw: st.DrawFn, numbers: Iterator[int], depth: int) -> str:
    parts = []
    for _ in range(draw(st.integers(1, 4))):
        words = {"n": draw(name), "m": draw(name), "x": draw(expressions()), "s": f"scope{next(numbers)}"}
        if depth and draw(st.booleans()):
            head = draw(st.sampled_from(_BLOCKS)).format(**words)
            body = draw(_blocks(numbers, depth - 1))
            parts.append(head + "\n" + textwrap.indent(body, "    "))
        else:
            parts.append(draw(st.sampled_from(_SIMPLE)).format(**words))
    return "\n".join(parts)


@st.composite
def programs(draw: st.DrawFn) -> str:
    return draw(_blocks(count(), 3)) + "\n"
