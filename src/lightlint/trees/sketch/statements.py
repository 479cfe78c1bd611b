"""Statements of `ast` as libcst's, and the sketch of a whole text."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import libcst as cst

from lightlint.syntax import syntax_of
from lightlint.trees.sketch import UnsketchableError, nodes
from lightlint.trees.sketch.patterns import Patterns

_COMPOUND = {
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith,
    ast.Try, ast.Match,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sketch:
    """A sketched module, and what its nodes were made of, by their `id`."""

    module: cst.Module
    marks: Mapping[int, Any]


def sketch(text: str, tree: ast.Module | None = None) -> Sketch:
    """The sketch of a text; `tree` is what `ast` makes of it, if that is known.

    Raises:
        UnsketchableError: there is none; parse the text.
    """
    try:
        statements = _Statements(text)
        return Sketch(statements.module(tree or syntax_of(text)), statements.marks)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UnsketchableError(str(error)) from None


class _Statements(Patterns):
    """Turns the statements of one text into libcst's."""

    def module(self, tree: ast.Module) -> cst.Module:
        made: cst.Module = nodes.MODULE(self._lines(tree.body))
        return made

    def _lines(self, body: Sequence[ast.stmt]) -> list[Any]:
        """Statements as libcst has them: simple ones of one row in a line together."""
        lines: list[Any] = []
        group: list[Any] = []
        row = -1
        for statement in body:
            if type(statement) in _COMPOUND:
                group, row = [], -1
                lines.append(self._statement(statement))
                continue
            if statement.lineno != row:
                group = []
                lines.append(nodes.LINE(group))
            group.append(self._statement(statement))
            row = statement.end_lineno or statement.lineno
        return lines

    def _body(self, body: Sequence[ast.stmt]) -> Any:
        """A block, or the statements that stand on the row of the colon."""
        first = body[0]
        if type(first) not in _COMPOUND:
            row = self.rows[first.lineno - 1]
            before = row[: first.col_offset] if row.isascii() else row.encode()[: first.col_offset].decode()
            if before.strip():
                return nodes.SUITE([self._statement(each) for each in body])
        return nodes.BLOCK(self._lines(body))

    def _statement(self, node: ast.stmt) -> Any:
        make = _STATEMENTS.get(type(node))
        if make is None:
            raise UnsketchableError(type(node).__name__)
        made = make(self, node)
        self.marks[id(made)] = node
        return made

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Any:
        self._plain(node)
        return nodes.FUNCTION(
            [nodes.DECORATOR(self.value(each)) for each in node.decorator_list],
            nodes.NAME(node.name),
            None,
            self.parameters(node.args),
            nodes.ANNOTATION(self.value(node.returns)) if node.returns is not None else None,
            self._body(node.body),
            nodes.ASYNC if isinstance(node, ast.AsyncFunctionDef) else None,
        )

    def _class(self, node: ast.ClassDef) -> Any:
        self._plain(node)
        return nodes.CLASS(
            [nodes.DECORATOR(self.value(each)) for each in node.decorator_list],
            nodes.NAME(node.name),
            None,
            [self.positional(each) for each in node.bases],
            [self.keyword(each) for each in node.keywords],
            self._body(node.body),
        )

    def _plain(self, node: Any) -> None:
        if getattr(node, "type_params", None):
            raise UnsketchableError("type parameters")

    def _if(self, node: ast.If) -> Any:
        rest: Any = None
        if node.orelse:
            first = node.orelse[0]
            if isinstance(first, ast.If) and len(node.orelse) == 1 and self._is_elif(first):
                rest = self._if(first)
            else:
                rest = nodes.ELSE(self._body(node.orelse))
        return nodes.IF(self.value(node.test), self._body(node.body), rest)

    def _is_elif(self, node: ast.If) -> bool:
        row = self.rows[node.lineno - 1]
        return row.encode()[node.col_offset : node.col_offset + 4] == b"elif"

    def _else(self, body: Sequence[ast.stmt]) -> Any:
        return nodes.ELSE(self._body(body)) if body else None

    def _for(self, node: ast.For | ast.AsyncFor) -> Any:
        own = nodes.ASYNC if isinstance(node, ast.AsyncFor) else None
        target, drawn = self.value(node.target), self.value(node.iter)
        return nodes.FOR(target, drawn, self._body(node.body), self._else(node.orelse), own)

    def _while(self, node: ast.While) -> Any:
        return nodes.WHILE(self.value(node.test), self._body(node.body), self._else(node.orelse))

    def _with(self, node: ast.With | ast.AsyncWith) -> Any:
        own = nodes.ASYNC if isinstance(node, ast.AsyncWith) else None
        items = [
            nodes.ITEM(
                self.value(each.context_expr),
                None if each.optional_vars is None else nodes.AS(self.value(each.optional_vars)),
            )
            for each in node.items
        ]
        return nodes.WITH(items, self._body(node.body), own)

    def _try(self, node: ast.Try) -> Any:
        handlers = [
            nodes.HANDLER(
                self.optional(each.type),
                nodes.AS(nodes.NAME(each.name)) if each.name is not None else None,
                self._body(each.body),
            )
            for each in node.handlers
        ]
        final = nodes.FINALLY(self._body(node.finalbody)) if node.finalbody else None
        return nodes.TRY(self._body(node.body), handlers, self._else(node.orelse), final)

    def _match(self, node: ast.Match) -> Any:
        cases = [
            nodes.CASE(self.pattern(each.pattern), self.optional(each.guard), self._body(each.body))
            for each in node.cases
        ]
        return nodes.MATCH(self.value(node.subject), cases)

    def _import(self, node: ast.Import) -> Any:
        return nodes.IMPORT(self._aliases(node.names))

    def _import_from(self, node: ast.ImportFrom) -> Any:
        names = nodes.bare(cst.ImportStar) if node.names[0].name == "*" else self._aliases(node.names)
        return nodes.IMPORT_FROM(dotted(node.module) if node.module else None, names, [nodes.DOT] * node.level)

    def _aliases(self, names: Iterable[ast.alias]) -> list[Any]:
        made: list[Any] = []
        for each in names:
            alias = nodes.ALIAS(dotted(each.name), nodes.AS(nodes.NAME(each.asname)) if each.asname else None)
            self.marks[id(alias)] = each
            made.append(alias)
        return made

    def _delete(self, node: ast.Delete) -> Any:
        targets = [self.value(each) for each in node.targets]
        return nodes.DEL(targets[0] if len(targets) == 1 else nodes.TUPLE([nodes.ELEMENT(each) for each in targets]))

    def _assign(self, node: ast.Assign) -> Any:
        return nodes.ASSIGN([nodes.TARGET(self.value(each)) for each in node.targets], self.value(node.value))

    def _annotated(self, node: ast.AnnAssign) -> Any:
        annotation = nodes.ANNOTATION(self.value(node.annotation))
        return nodes.ANN_ASSIGN(self.value(node.target), annotation, self.optional(node.value))

    def _raise(self, node: ast.Raise) -> Any:
        cause = nodes.FROM(self.value(node.cause)) if node.cause is not None else None
        return nodes.RAISE(self.optional(node.exc), cause)


def dotted(name: str) -> Any:
    first, *rest = name.split(".")
    made = nodes.NAME(first)
    for each in rest:
        made = nodes.ATTRIBUTE(made, nodes.NAME(each))
    return made


_Sketch = Callable[[_Statements, Any], Any]
_STATEMENTS: dict[type, _Sketch] = {
    ast.FunctionDef: _Statements._function,
    ast.AsyncFunctionDef: _Statements._function,
    ast.ClassDef: _Statements._class,
    ast.If: _Statements._if,
    ast.For: _Statements._for,
    ast.AsyncFor: _Statements._for,
    ast.While: _Statements._while,
    ast.With: _Statements._with,
    ast.AsyncWith: _Statements._with,
    ast.Try: _Statements._try,
    ast.Match: _Statements._match,
    ast.Import: _Statements._import,
    ast.ImportFrom: _Statements._import_from,
    ast.Delete: _Statements._delete,
    ast.Assign: _Statements._assign,
    ast.AnnAssign: _Statements._annotated,
    ast.Raise: _Statements._raise,
    ast.Expr: lambda self, node: nodes.EXPR(self.value(node.value)),
    ast.Return: lambda self, node: nodes.RETURN(self.optional(node.value)),
    ast.AugAssign: lambda self, node: nodes.AUG_ASSIGN(
        self.value(node.target), nodes.IN_PLACE[type(node.op)], self.value(node.value)
    ),
    ast.Assert: lambda self, node: nodes.ASSERT(self.value(node.test), self.optional(node.msg)),
    ast.Pass: lambda _self, _node: nodes.bare(cst.Pass),
    ast.Break: lambda _self, _node: nodes.bare(cst.Break),
    ast.Continue: lambda _self, _node: nodes.bare(cst.Continue),
    ast.Global: lambda _self, node: nodes.GLOBAL([nodes.NAMED_ITEM(nodes.NAME(each)) for each in node.names]),
    ast.Nonlocal: lambda _self, node: nodes.NONLOCAL([nodes.NAMED_ITEM(nodes.NAME(each)) for each in node.names]),
}
