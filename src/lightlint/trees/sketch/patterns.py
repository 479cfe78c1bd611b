"""Patterns of `match` statements as libcst's."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from lightlint.trees.sketch import nodes
from lightlint.trees.sketch.expressions import Expressions


class Patterns(Expressions):
    """Turns the patterns of one text into libcst's; where they stand is not told."""

    def pattern(self, node: ast.pattern) -> Any:
        return _PATTERNS[type(node)](self, node)

    def _sequence_pattern(self, node: ast.MatchSequence) -> Any:
        """A list, also without brackets, or a tuple: what stands in brackets begins behind them."""
        raw = self.rows[node.lineno - 1].encode()[node.col_offset :]
        first = node.patterns[0] if node.patterns else None
        is_bare = first is not None and (first.lineno, first.col_offset) == (node.lineno, node.col_offset)
        make = nodes.MATCH_TUPLE if raw.startswith(b"(") and not is_bare else nodes.MATCH_LIST
        return make([self._element(each) for each in node.patterns])

    def _element(self, node: ast.pattern) -> Any:
        if isinstance(node, ast.MatchStar):
            return nodes.MATCH_STAR(_name(node.name))
        return nodes.MATCH_ELEMENT(self.pattern(node))

    def _mapping_pattern(self, node: ast.MatchMapping) -> Any:
        pairs = zip(node.keys, node.patterns, strict=True)
        return nodes.MATCH_MAPPING(
            [nodes.MATCH_ENTRY(self.value(key), self.pattern(pattern)) for key, pattern in pairs], _name(node.rest)
        )

    def _class_pattern(self, node: ast.MatchClass) -> Any:
        keywords = zip(node.kwd_attrs, node.kwd_patterns, strict=True)
        return nodes.MATCH_CLASS(
            self.value(node.cls),
            [self._element(each) for each in node.patterns],
            [nodes.MATCH_KEYWORD(nodes.NAME(key), self.pattern(pattern)) for key, pattern in keywords],
        )

    def _as_pattern(self, node: ast.MatchAs) -> Any:
        return nodes.MATCH_AS(None if node.pattern is None else self.pattern(node.pattern), _name(node.name))


def _name(name: str | None) -> Any:
    return None if name is None else nodes.NAME(name)


_Sketch = Callable[[Patterns, Any], Any]
_PATTERNS: dict[type, _Sketch] = {
    ast.MatchValue: lambda self, node: nodes.MATCH_VALUE(self.value(node.value)),
    ast.MatchSingleton: lambda _self, node: nodes.MATCH_SINGLETON(nodes.NAME(str(node.value))),
    ast.MatchSequence: Patterns._sequence_pattern,
    ast.MatchMapping: Patterns._mapping_pattern,
    ast.MatchClass: Patterns._class_pattern,
    ast.MatchAs: Patterns._as_pattern,
    ast.MatchOr: lambda self, node: nodes.MATCH_OR([nodes.MATCH_CHOICE(self.pattern(each)) for each in node.patterns]),
}
