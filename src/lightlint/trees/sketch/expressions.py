"""Expressions of `ast` as libcst's."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import libcst as cst

from lightlint.syntax import rows_of
from lightlint.trees.sketch import UnsketchableError, nodes
from lightlint.trees.sketch.strings import string


class Expressions:
    """Turns the expressions of one text into libcst's."""

    def __init__(self, text: str) -> None:
        self.rows = rows_of(text)
        self.marks: dict[int, ast.AST] = {}  # what nodes were made of, by their `id`
        self._in_string = 0  # within f-strings Python before 3.12 gives wrong places

    def value(self, node: ast.expr) -> Any:
        make = _VALUES.get(type(node))
        if make is None:
            raise UnsketchableError(type(node).__name__)
        made = make(self, node)
        self.marks[id(made)] = node
        return made

    def optional(self, node: ast.expr | None) -> Any:
        return None if node is None else self.value(node)

    def _constant(self, node: ast.Constant) -> Any:
        value = node.value
        if value is None or value is True or value is False:
            return nodes.NAME(str(value))
        if value is ...:
            return nodes.bare(cst.Ellipsis)
        raw = repr(value) if self._in_string else self._raw(node)
        if isinstance(value, (str, bytes)):
            return string(raw)
        return nodes.NUMBERS[type(value)](raw)

    def _formatted(self, node: ast.JoinedStr) -> Any:
        marks, self.marks = self.marks, {}
        self._in_string += 1
        parts = self._parts(node.values)
        self._in_string -= 1
        self.marks = marks
        return nodes.FORMATTED(parts)

    def _parts(self, values: Iterable[ast.expr]) -> list[Any]:
        found: list[Any] = []
        for each in values:
            if isinstance(each, ast.FormattedValue):
                given = each.format_spec
                spec = self._parts(given.values) if isinstance(given, ast.JoinedStr) else None
                conversion = chr(each.conversion) if each.conversion > 0 else None
                found.append(nodes.FIELD(self.value(each.value), conversion, spec))
            elif isinstance(each, ast.Constant):
                found.append(nodes.TEXT(str(each.value)))
            else:
                raise UnsketchableError(type(each).__name__)
        return found

    def _call(self, node: ast.Call) -> Any:
        args = [self.positional(each) for each in node.args]
        func = self.value(node.func)
        if not node.keywords:
            return nodes.CALL(func, args)
        keywords = [self.keyword(each) for each in node.keywords]
        mixed = any(type(each) is ast.Starred for each in node.args)  # may stand behind keywords
        if not mixed:
            return nodes.CALL(func, args + keywords)
        placed: list[tuple[Any, Any]] = [*zip(node.args, args, strict=True), *zip(node.keywords, keywords, strict=True)]
        placed.sort(key=lambda pair: (pair[0].lineno, pair[0].col_offset))
        return nodes.CALL(func, [each for _, each in placed])

    def positional(self, node: ast.expr) -> Any:
        if type(node) is ast.Starred:
            return nodes.ARG(self.value(node.value), None, "*")
        return nodes.ARG(self.value(node), None, "")

    def keyword(self, node: ast.keyword) -> Any:
        if node.arg is None:
            made = nodes.ARG(self.value(node.value), None, "**")
        else:
            made = nodes.ARG(self.value(node.value), nodes.NAME(node.arg), "")
        self.marks[id(made)] = node
        return made

    def _attribute(self, node: ast.Attribute) -> Any:
        return nodes.ATTRIBUTE(self.value(node.value), nodes.NAME(node.attr))

    def _subscript(self, node: ast.Subscript) -> Any:
        where = node.slice
        parts = where.elts if isinstance(where, ast.Tuple) and where.elts else [where]
        return nodes.SUBSCRIPT(self.value(node.value), [nodes.SUBSCRIPTED(self._slice(each)) for each in parts])

    def _slice(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Slice):
            return nodes.SLICE(self.optional(node.lower), self.optional(node.upper), self.optional(node.step))
        if isinstance(node, ast.Starred):
            return nodes.INDEX(self.value(node.value), "*")
        return nodes.INDEX(self.value(node), None)

    def _elements(self, values: Iterable[ast.expr]) -> list[Any]:
        return [
            nodes.STARRED(self.value(each.value)) if isinstance(each, ast.Starred) else nodes.ELEMENT(self.value(each))
            for each in values
        ]

    def _dict(self, node: ast.Dict) -> Any:
        return nodes.DICT(
            [
                nodes.STARRED_ENTRY(self.value(value))
                if key is None
                else nodes.ENTRY(self.value(key), self.value(value))
                for key, value in zip(node.keys, node.values, strict=True)
            ]
        )

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Any:
        return nodes.COMPREHENSIONS[type(node)](self.value(node.elt), self._for_in(node.generators))

    def _for_in(self, parts: Sequence[ast.comprehension]) -> Any:
        inner: Any = None
        for each in reversed(parts):
            tests = [nodes.TEST(self.value(test)) for test in each.ifs]
            own = nodes.ASYNC if each.is_async else None
            inner = nodes.FOR_IN(self.value(each.target), self.value(each.iter), tests, inner, own)
        return inner

    def _boolean(self, node: ast.BoolOp) -> Any:
        operator = nodes.OPERATORS[type(node.op)]
        made = self.value(node.values[0])
        for each in node.values[1:]:
            made = nodes.BOOLEAN(made, operator, self.value(each))
        return made

    def _comparison(self, node: ast.Compare) -> Any:
        targets = [
            nodes.COMPARED(nodes.OPERATORS[type(operator)], self.value(each))
            for operator, each in zip(node.ops, node.comparators, strict=True)
        ]
        return nodes.COMPARISON(self.value(node.left), targets)

    def parameters(self, node: ast.arguments) -> Any:
        positional = [*node.posonlyargs, *node.args]
        defaults: list[ast.expr | None] = [None] * (len(positional) - len(node.defaults))
        defaults += node.defaults
        made = [self._parameter(each, default) for each, default in zip(positional, defaults, strict=True)]
        only = len(node.posonlyargs)
        star: Any = (
            self._parameter(node.vararg, None, "*")
            if node.vararg
            else nodes.bare(cst.ParamStar)
            if node.kwonlyargs
            else nodes.UNSET
        )
        named = [self._parameter(each, value) for each, value in zip(node.kwonlyargs, node.kw_defaults, strict=True)]
        rest = self._parameter(node.kwarg, None, "**") if node.kwarg else None
        return nodes.PARAMETERS(made[only:], star, named, rest, made[:only])

    def _parameter(self, node: ast.arg, default: ast.expr | None, star: str = "") -> Any:
        annotation = nodes.ANNOTATION(self.value(node.annotation)) if node.annotation is not None else None
        return nodes.PARAM(nodes.NAME(node.arg), annotation, self.optional(default), star)

    def _yield(self, node: ast.Yield | ast.YieldFrom) -> Any:
        return nodes.YIELD(
            nodes.FROM(self.value(node.value)) if isinstance(node, ast.YieldFrom) else self.optional(node.value)
        )

    def _raw(self, node: ast.expr) -> str:
        """The text of a node, which `ast` places by bytes."""
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        start, end = node.col_offset, node.end_col_offset or 0
        if first == last:
            row = self.rows[first]
            return row[start:end] if row.isascii() else row.encode()[start:end].decode()
        rows = [row.encode() for row in self.rows[first : last + 1]]
        return b"".join([rows[0][start:], *rows[1:-1], rows[-1][:end]]).decode()


_Sketch = Callable[[Expressions, Any], Any]
_VALUES: dict[type, _Sketch] = {
    ast.Name: lambda _self, node: nodes.NAME(node.id),
    ast.Constant: Expressions._constant,
    ast.JoinedStr: Expressions._formatted,
    ast.Attribute: Expressions._attribute,
    ast.Call: Expressions._call,
    ast.Subscript: Expressions._subscript,
    ast.Tuple: lambda self, node: nodes.TUPLE(self._elements(node.elts)),
    ast.List: lambda self, node: nodes.LIST(self._elements(node.elts)),
    ast.Set: lambda self, node: nodes.SET(self._elements(node.elts)),
    ast.Dict: Expressions._dict,
    ast.ListComp: Expressions._comprehension,
    ast.SetComp: Expressions._comprehension,
    ast.GeneratorExp: Expressions._comprehension,
    ast.DictComp: lambda self, node: nodes.DICT_COMP(
        self.value(node.key), self.value(node.value), self._for_in(node.generators)
    ),
    ast.BoolOp: Expressions._boolean,
    ast.BinOp: lambda self, node: nodes.BINARY(
        self.value(node.left), nodes.OPERATORS[type(node.op)], self.value(node.right)
    ),
    ast.UnaryOp: lambda self, node: nodes.UNARY(nodes.OPERATORS[type(node.op)], self.value(node.operand)),
    ast.Compare: Expressions._comparison,
    ast.IfExp: lambda self, node: nodes.IF_EXP(self.value(node.body), self.value(node.test), self.value(node.orelse)),
    ast.Lambda: lambda self, node: nodes.LAMBDA(self.parameters(node.args), self.value(node.body)),
    ast.NamedExpr: lambda self, node: nodes.NAMED(self.value(node.target), self.value(node.value)),
    ast.Await: lambda self, node: nodes.AWAIT(self.value(node.value)),
    ast.Yield: Expressions._yield,
    ast.YieldFrom: Expressions._yield,
}
