"""Which strings an expression can be: constants, f-strings and formats over names whose values are in sight."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

import libcst as cst

from lightlint.facts.code.bindings import Kind
from lightlint.facts.code.names import Names
from lightlint.facts.lightning.hooks import Hooks
from lightlint.facts.values.dicts import Dicts
from lightlint.facts.values.values import Values

_DEPTH = 6
_MOST = 64  # more spellings than this are as good as unknown


class Strings:
    """Possible string values in one file."""

    def __init__(self, names: Names, hooks: Hooks, values: Values, dicts: Dicts) -> None:
        self._names = names
        self._hooks = hooks
        self._values = values
        self._dicts = dicts

    def possible(self, expression: cst.CSTNode | None, depth: int = 0) -> frozenset[str] | None:
        """Every string an expression can be, None if one of its parts is out of sight.

        A parameter is what the calls of its function in this file give it: `f"{stage}_loss"` in a helper that is
        called with "train" and "val" is `train_loss` or `val_loss`.
        """
        if depth > _DEPTH:
            return None
        match expression:
            case cst.SimpleString() | cst.ConcatenatedString() | cst.FormattedString():
                return self._of_literal(expression, depth)
            case cst.BinaryOperation(operator=cst.Add()):
                return self._joined([expression.left, expression.right], depth)
            case cst.IfExp():
                return _union([self.possible(expression.body, depth + 1), self.possible(expression.orelse, depth + 1)])
            case cst.Call(func=cst.Attribute(attr=cst.Name(value="format"))):
                return self._of_format(expression, depth)
            case cst.Name():
                return self._of_name(expression, depth)
            case cst.Subscript():
                item = self._dicts.item(expression)
                return self.possible(item, depth + 1) if item is not None else None
        value = self._names.constant(expression)
        return frozenset([value]) if isinstance(value, str) else None

    def _of_literal(self, literal: cst.CSTNode, depth: int) -> frozenset[str] | None:
        if isinstance(literal, cst.FormattedString):
            parts: list[frozenset[str] | None] = []
            for part in literal.parts:
                if isinstance(part, cst.FormattedStringText):
                    parts.append(frozenset([part.value]))
                elif isinstance(part, cst.FormattedStringExpression):
                    plain = part.conversion is None and part.format_spec is None
                    parts.append(self.possible(part.expression, depth + 1) if plain else None)
            return _product(parts)
        if isinstance(literal, cst.ConcatenatedString):
            return self._joined([literal.left, literal.right], depth)
        value = self._names.constant(literal)
        return frozenset([value]) if isinstance(value, str) else None

    def _joined(self, parts: Iterable[cst.CSTNode], depth: int) -> frozenset[str] | None:
        return _product([self.possible(part, depth + 1) for part in parts])

    def _of_format(self, call: cst.Call, depth: int) -> frozenset[str] | None:
        template = self.possible(call.func.value, depth + 1) if isinstance(call.func, cst.Attribute) else None
        given = [self.possible(arg.value, depth + 1) for arg in call.args]
        if template is None or None in given or any(arg.keyword or arg.star for arg in call.args):
            return None
        try:
            return frozenset(text.format(*values) for text in template for values in product(*filter(None, given)))
        except (IndexError, KeyError, ValueError):
            return None

    def _of_name(self, name: cst.Name, depth: int) -> frozenset[str] | None:
        found = self._names.bindings.lookup(name)
        results: list[frozenset[str] | None] = []
        for binding in found:
            if binding.kind is Kind.PARAMETER and isinstance(binding.scope, cst.FunctionDef):
                results.append(self._of_parameter(binding.scope, name.value, binding.value, depth))
            elif binding.kind is Kind.ASSIGN and not binding.path:
                results.append(self.possible(binding.value, depth + 1))
            elif binding.kind is Kind.LOOP and not binding.path and isinstance(binding.value, (cst.List, cst.Tuple)):
                results.append(_union([self.possible(each.value, depth + 1) for each in binding.value.elements]))
            else:
                return None
        return _union(results)

    def _of_parameter(
        self, function: cst.FunctionDef, name: str, default: cst.BaseExpression | None, depth: int
    ) -> frozenset[str] | None:
        calls = self._hooks.calls_of.get(function, ())
        results: list[frozenset[str] | None] = []
        for call in calls:
            if self._names.has_star(call):
                return None
            given = self._values.given(function, call, name) or default
            results.append(self.possible(given, depth + 1))
        return _union(results)


def _union(parts: Iterable[frozenset[str] | None]) -> frozenset[str] | None:
    whole: set[str] = set()
    for part in parts:
        if part is None:
            return None
        whole |= part
    return frozenset(whole) if whole and len(whole) <= _MOST else None


def _product(parts: Iterable[frozenset[str] | None]) -> frozenset[str] | None:
    known: list[frozenset[str]] = []
    for part in parts:
        if part is None:
            return None
        known.append(part)
    texts = frozenset("".join(each) for each in product(*known)) if len(known) < _MOST else frozenset[str]()
    return texts if texts and len(texts) <= _MOST else None
