"""Sketches against real trees: the same nodes with the same meaning, and nothing made up."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import libcst as cst
import pytest
from file_facts import Utf8, parses_here, real_programs
from hypothesis import HealthCheck, assume, given, settings
from programs import programs

from lightlint.facts.code.fields import children, semantic_fields
from lightlint.facts.code.positions import Positions
from lightlint.facts.code.tree import Tree
from lightlint.sources.source import Source
from lightlint.trees.sketch import UnsketchableError
from lightlint.trees.sketch.places import SketchPlaces, UnplacedError
from lightlint.trees.sketch.statements import Sketch, sketch

_RARE = {"TryStar", "TypeVar", "ParamSpec", "TypeVarTuple", "TypeAlias", "TemplateStr"}
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
match a, b:
    case [1, -2.5, "c", *rest] | (None, True) if d: pass
    case (x, _) as pair:
        pass
    case [x], [y]: pass
    case x, *_:
        pass
    case {"k": v, A.b: 1 + 2j, **others}: pass
    case {}: pass
    case A.B(1, [x, y], name=C()) | D(): pass
    case []: pass
    case (): pass
    case _: pass
'''


def meaning(node: cst.CSTNode, *, in_string: bool = False) -> Iterator[Any]:
    """The types of a node and of all below that mean something, and what they say; strings as far as sketches keep them."""
    pending: list[Any] = [node]
    while pending:
        value = pending.pop()
        if isinstance(value, _STRINGS) and any(map(_is_formatted, _leaves(value))):
            yield cst.FormattedString
            for part in _parts(value):
                yield from meaning(part.expression, in_string=True)
        elif in_string and isinstance(value, cst.SimpleString):
            yield value.evaluated_value
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
    made, parsed = sketch(text), cst.parse_module(text)
    assert list(meaning(made.module)) == list(meaning(parsed))
    compare_places(text, made, parsed)


def compare_places(text: str, made: Sketch, parsed: cst.Module) -> None:
    """Each place that a sketch tells is the one that libcst finds, and it tells those of all plain statements."""
    source = Source("train.py", text, Utf8())
    tree = Tree(made.module)
    places, positions = SketchPlaces(source, tree.parent, made.marks), Positions(parsed, source)
    for node, real in pairs(made.module, parsed):
        try:
            span = places.span(node)
        except UnplacedError:
            assert not isinstance(node, cst.SimpleStatementLine)
        else:
            assert span == positions.span(real), type(node)


def pairs(made: cst.CSTNode, parsed: cst.CSTNode) -> Iterator[tuple[cst.CSTNode, cst.CSTNode]]:
    """The nodes of two trees that are the same, but for what lies in strings that they keep in different ways."""
    if type(made) is type(parsed):
        yield made, parsed
        inside = children(made), children(parsed)
        if len(inside[0]) == len(inside[1]):
            for pair in zip(*inside, strict=True):
                yield from pairs(*pair)


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


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(programs())
def test_random_programs(text: str) -> None:
    assume(parses_here(text))
    compare_or_refuse(text)


@pytest.mark.parametrize("newline", ["\r\n", "\r"])
def test_other_newlines(newline: str) -> None:
    compare(EVERY_FORM.replace("\n", newline))


BRACKETS = """\
x = (a); y = (((a))); z = ( # comment
a)
f((a)); f(a); f((a), b); f(b, (a)); f(# comment
a); f(k=(a)); f(k=a); f(*(a)); f((a).b); f((a)(b)); f((a,)); f(x for x in y); f((x for x in y)); f((yield))
g((  # comment
    a  # another (
    # one more
)); g(\\
a)
class A((B)): pass
class   B ( C ): pass
async  def f(a=(1), *, b: (int)): return (a)
if (a): pass
(é) = f("ü", (é), é.ö)
"""


def test_brackets_around_values() -> None:
    compare(BRACKETS)


@pytest.mark.parametrize(("text", "told"), [("f(a)", "a"), ("f(é.a)", "é.a"), ("f(a,\n k=a)", "k=a"), ("f((a))", None)])
def test_the_place_of_a_last_argument(text: str, told: str | None) -> None:
    made = sketch(text)
    tree = Tree(made.module)
    places = SketchPlaces(Source("train.py", text, Utf8()), tree.parent, made.marks)
    last = tree.all(cst.Arg)[-1]
    if told is None:
        with pytest.raises(UnplacedError):
            places.span(last)
    else:
        start, end = places.span(last)
        assert text[start:end] == told


@pytest.mark.parametrize(
    "text",
    [
        "x = (\n",
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
    call = cst.ensure_type(sketch("f( a )").module.body[0], cst.SimpleStatementLine).body[0]
    value = cst.ensure_type(cst.ensure_type(call, cst.Expr).value, cst.Call)
    with pytest.raises(AttributeError):
        value.whitespace_before_args  # noqa: B018
