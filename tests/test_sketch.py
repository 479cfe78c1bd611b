"""Sketches against real trees: the same nodes with the same meaning, and nothing made up."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import libcst as cst
import pytest
from file_facts import parses_here, real_programs
from hypothesis import assume, given
from programs import programs

from lightlint.facts.tree import Tree, semantic_fields
from lightlint.sketch import UnsketchableError
from lightlint.sketch.statements import sketch

_RARE = {"Match", "TryStar", "TypeVar", "ParamSpec", "TypeVarTuple", "TypeAlias", "TemplateStr"}
_STRINGS = (cst.FormattedString, cst.ConcatenatedString)
_HIDDEN = ("operator", "asynchronous", "relative")  # no nodes of the tree, and yet with a meaning

EVERY_FORM = '''\
"""A docstring, with "quotes"."""
from __future__ import annotations
import a.b.c, d as e
from . import f
from ..g.h import (i as j, k)
from m import *
global_name: "int" = 1; other = 2
x: int
a = b = c, *d = [1, *e], {2, *f}, {"k": v, **rest}, (), (g,)
a[1] = a[1:2, ::3, ...] = b[*c]
a += 1; b -= 2; c *= 3; d /= 4; e //= 5; f %= 6; g **= 7; h @= 8; i &= 9; j |= 10; k ^= 11; l <<= 12; m >>= 13
n = 1 + 2 - 3 * 4 / 5 // 6 % 7 ** 8 @ 9 & 10 | 11 ^ 12 << 13 >> 14
o = not a and b or c and d and e
p = a < b <= c > d >= e == f != g is h is not i in j not in k
q = -a, +b, ~c
r = 0x1F, 1_000, 1.5e3, 2j, True, None, ...
s = 'it\\'s', r"raw", b"bytes", "two" ' strings', ("in"  # a comment
     "brackets"), """three
lines""", u'é', f"{a!r:>{width}} {{b}} {c[0].d}"
t = "ünï", codé
u = lambda: 0
v = lambda a, /, b=1, *c, d, e=2, **f: (yield)
w = [x for y in z if a if b for c in d], {x: y for x, y in z}, {x for x in y}, (x for x in y)
f(a, *b, c=d, **e); f(c=d, *b); f(x for x in y); f(*a, **b)
a if b else c
(y := x)
del a
del a, b.c, d[0]
assert a, "message"
assert b
if a: pass
elif b:
    pass
elif c: pass; pass
else:
    if d:
        pass
if a:
    pass
else: pass
for a, b in c:
    continue
else:
    pass
while a:
    break
else:
    pass
with a, b as c, d as (e, f): pass
with (a as b, c):
    pass
try:
    raise
except A:
    raise B
except (C, D) as error:
    raise E from error
except:
    pass
else:
    pass
finally:
    pass
try:
    pass
finally:
    pass
@decorator
@other.decorator(1)
class A(B, *C, metaclass=D, **E):
    """Doc."""
    a: int = 0
class F: a = 1
class G():
    def f(self): return
    @property
    async def g(self, a: int, /, b: "str" = "", *args: int, c, d=1, **kwargs: float) -> None:
        global x, y
        nonlocal z
        async with a as b:
            await c
        async for d in e:
            return [f async for f in g]
        yield
        yield a, b
        x = yield from c
        return d
    def h(self, *, a): ...
'''


def meaning(node: cst.CSTNode) -> Iterator[Any]:
    """The types of a node and of all below that mean something, and what they say; strings as far as sketches keep them."""
    pending: list[Any] = [node]
    while pending:
        value = pending.pop()
        if isinstance(value, _STRINGS) and any(map(_is_formatted, _leaves(value))):
            yield cst.FormattedString
            pending += [part.expression for part in _parts(value)]
        elif isinstance(value, cst.CSTNode):
            yield type(value)
            pending += [getattr(value, name) for name in semantic_fields(type(value))]
            for name in _HIDDEN:
                hidden = getattr(value, name, None)
                yield len(hidden) if isinstance(hidden, (list, tuple)) else type(hidden)
        elif isinstance(value, (list, tuple)):
            yield len(value)
            pending += value
        else:
            yield value


def _leaves(string: cst.CSTNode) -> list[cst.CSTNode]:
    if isinstance(string, cst.ConcatenatedString):
        return [*_leaves(string.left), *_leaves(string.right)]
    return [string]


def _is_formatted(string: cst.CSTNode) -> bool:
    return isinstance(string, cst.FormattedString)


def _parts(string: cst.CSTNode) -> list[cst.FormattedStringExpression]:
    parts = [part for leaf in _leaves(string) if isinstance(leaf, cst.FormattedString) for part in leaf.parts]
    return [part for part in parts if isinstance(part, cst.FormattedStringExpression)]


def compare(text: str) -> None:
    made, parsed = list(meaning(sketch(text))), list(meaning(cst.parse_module(text)))
    assert made == parsed
    assert len(Tree(sketch(text)).nodes) > 0


def compare_or_refuse(text: str) -> None:
    if _RARE.isdisjoint(type(node).__name__ for node in ast.walk(ast.parse(text))):
        compare(text)
        return
    with pytest.raises(UnsketchableError):
        sketch(text)


def test_every_form() -> None:
    compare(EVERY_FORM)


@pytest.mark.parametrize("path", real_programs(), ids=lambda path: path.name)
def test_real_programs(path: Path) -> None:
    compare_or_refuse(path.read_text(encoding="utf-8"))


@given(programs())
def test_random_programs(text: str) -> None:
    assume(parses_here(text))
    compare_or_refuse(text)


@pytest.mark.parametrize("newline", ["\r\n", "\r"])
def test_other_newlines(newline: str) -> None:
    compare(EVERY_FORM.replace("\n", newline))


@pytest.mark.parametrize(
    "text",
    [
        "x = (\n",
        "match a:\n    case 1:\n        pass\n",
        "try:\n    pass\nexcept* A:\n    pass\n",
        "x = " + "(" * 300 + ")" * 300,
        "a\0b",
        *(["def f[T](a: T): pass\n", "type A = int\n"] if sys.version_info >= (3, 12) else []),
    ],
)
def test_what_has_no_sketch(text: str) -> None:
    with pytest.raises(UnsketchableError):
        sketch(text)


def test_what_is_not_known_is_not_there() -> None:
    call = cst.ensure_type(sketch("f( a )").body[0], cst.SimpleStatementLine).body[0]
    value = cst.ensure_type(cst.ensure_type(call, cst.Expr).value, cst.Call)
    with pytest.raises(AttributeError):
        value.whitespace_before_args  # noqa: B018
