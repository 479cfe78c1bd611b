"""A parsed text for the tests of the edit helpers, with spans and parents as libcst's own providers see them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst
from libcst.metadata import (
    MetadataWrapper,
    ParentNodeProvider,
    PositionProvider,
    WhitespaceInclusivePositionProvider,
)

from lightlint.finding import Applicability
from lightlint.fixes.edits import Code, Draft, as_fix
from lightlint.sources.source import Source


class Utf8:
    def render(self, source: Source) -> bytes:
        return source.text.encode()


class Program:
    """Implements `Spans`. Form feeds before a statement, which libcst does not keep, are taken out before parsing."""

    def __init__(self, source: str | Source) -> None:
        self.source = Source("program.py", source, Utf8()) if isinstance(source, str) else source
        text = self.source.text
        feeds = {i for match in re.finditer(r"^[ \t]*\f+(?=[^\r\n\f])", text, re.M) for i in range(*match.span())}
        self._kept = [index for index in range(len(text)) if index not in feeds or text[index] != "\f"] + [len(text)]
        plain = "".join(text[index] for index in self._kept[:-1])
        self._rows = Source("plain.py", plain, Utf8()).row_starts
        wrapper = MetadataWrapper(cst.parse_module(plain), unsafe_skip_copy=True)
        self.module = wrapper.module
        self._tight = wrapper.resolve(PositionProvider)
        self._loose = wrapper.resolve(WhitespaceInclusivePositionProvider)
        self._parents = wrapper.resolve(ParentNodeProvider)
        self.code = Code(self.source, self)

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        own_brackets = isinstance(node, cst.BaseExpression)
        place = (self._loose if own_brackets else self._tight)[node]
        ends = [self._rows[each.line - 1] + each.column for each in (place.start, place.end)]
        return self._kept[ends[0]], self._kept[ends[1]]

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        return self._parents.get(node)

    def nodes(self, kind: type[cst.CSTNode] | tuple[type[cst.CSTNode], ...]) -> Iterator[cst.CSTNode]:
        """The nodes of a type in the order of the text."""
        found = [node for node in self._parents if isinstance(node, kind) and node in self._tight]
        return iter(sorted(found, key=lambda node: (self.span(node)[0], -self.span(node)[1])))

    def node(self, snippet: str, kind: type[cst.CSTNode] = cst.CSTNode) -> cst.CSTNode:
        """The first node of a type with this text."""
        return next(node for node in self.nodes(kind) if self.code.text_of(node) == snippet)

    def apply(self, draft: Draft) -> str:
        """The text with a draft applied, made a fix as checks make it."""
        fix = as_fix(self.source, "repair it", draft, Applicability.SAFE)
        return self.source.text if fix is None else self.source.rewritten(fix.edits).text
