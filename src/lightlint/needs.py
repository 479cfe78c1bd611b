"""What a text must hold for a rule's fault to be in it: the `needs` of a page, asked before anything is parsed.

A word stands for an identifier anywhere in the text, comments and strings included; `/.../` for a regular expression that
matches somewhere (line by line anchors); `def(...)`, `class(...)` and `loop(...)` for one function, class or loop whose own
text, decorators included, holds what stands in the brackets. `&` binds tighter than `|`; `*` needs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ast

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TOKEN = re.compile(r"/(?:[^/\\\n]|\\.)+/|\w+|[&|()*]|\S")
_ROW = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")  # Python's own lines: `str.splitlines` knows more line ends
_BLOCKS = {
    "def": {"FunctionDef", "AsyncFunctionDef"},
    "class": {"ClassDef"},
    "loop": {"For", "AsyncFor", "While"},
}  # the types of statements in `ast`, which is imported when a block is asked for


class NeedsError(ValueError):
    """An expression that does not parse."""


class Text:
    """A text that `needs` are asked of; `also` are other forms of it, such as a notebook's cells with their magics."""

    def __init__(self, text: str, *also: str) -> None:
        self._texts = tuple(dict.fromkeys((text, *also)))

    @cached_property
    def words(self) -> frozenset[str]:
        """Every identifier."""
        return frozenset(word for text in self._texts for word in _WORD.findall(text))

    def matches(self, pattern: re.Pattern[str]) -> bool:
        """Whether a regular expression matches somewhere."""
        return any(pattern.search(text) for text in self._texts)

    def blocks(self, kind: str) -> Sequence[Text]:
        """The functions, classes or loops of the text; the text itself where Python cannot parse it."""
        return self._by_kind[kind] if self._by_kind is not None else [self]

    @cached_property
    def _by_kind(self) -> dict[str, list[Text]] | None:
        import ast
        import warnings

        text = self._texts[0]
        if text[:1] in {" ", "\t"}:  # a block's text is indented as in its file
            text = f"if 1:\n{text}"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        rows = _ROW.findall(text)
        found: dict[str, list[Text]] = {kind: [] for kind in _BLOCKS}
        for statement in _statements(tree.body):
            for kind, types in _BLOCKS.items():
                if type(statement).__name__ in types:
                    first = min([statement.lineno, *(each.lineno for each in getattr(statement, "decorator_list", ()))])
                    found[kind].append(Text("".join(rows[first - 1 : statement.end_lineno])))
        return found


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements with all inside them; what stands in expressions holds none."""
    stack = [*body]
    while stack:
        statement = stack.pop()
        yield statement
        for name in ("body", "orelse", "finalbody"):
            stack += getattr(statement, name, ())
        for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
            stack += part.body


@dataclass(frozen=True, slots=True)
class Needs:
    """Without these a rule's fault cannot occur: `backward & (step | closure)`. Parsed when first asked."""

    text: str = "*"

    def met(self, text: Text) -> bool:
        """Whether a text can hold the fault."""
        return _expression(self.text).met(text)

    def words(self) -> frozenset[str]:
        """Every identifier the expression names, in regular expressions, too."""
        return _expression(self.text).words()


@dataclass(frozen=True, slots=True)
class _Expression:
    """A word, a regular expression, a block or several of these; `weight` puts the quick ones first."""

    operator: str = ""
    word: str = ""
    parts: tuple[_Expression, ...] = ()
    weight: int = 0

    def met(self, text: Text) -> bool:
        if self.operator == "&":
            return all(part.met(text) for part in self.parts)
        if self.operator == "|":
            return any(part.met(text) for part in self.parts)
        if self.operator == "/":
            return text.matches(re.compile(self.word, re.MULTILINE))
        if self.operator:
            (inside,) = self.parts
            return inside.met(text) and any(inside.met(block) for block in text.blocks(self.operator))
        return not self.word or self.word in text.words

    def words(self) -> frozenset[str]:
        own = frozenset(_WORD.findall(re.sub(r"\\.", " ", self.word)))
        return own.union(*(part.words() for part in self.parts))


def parse_needs(text: str) -> Needs:
    """Parse a `needs:` expression.

    Raises:
        NeedsError: it does not parse.
    """
    _expression(text)
    return Needs(text)


@cache
def _expression(text: str) -> _Expression:
    tokens: list[str] = _TOKEN.findall(text)
    position = 0

    def peek() -> str:
        return tokens[position] if position < len(tokens) else ""

    def take() -> str:
        nonlocal position
        position += 1
        return tokens[position - 1]

    def chain(operator: str) -> _Expression:
        parts = [chain("&") if operator == "|" else atom()]
        while peek() == operator:
            take()
            parts.append(chain("&") if operator == "|" else atom())
        if len(parts) == 1:
            return parts[0]
        parts.sort(key=lambda part: part.weight)
        return _Expression(operator, parts=tuple(parts), weight=max(part.weight for part in parts))

    def bracketed() -> _Expression:
        inner = chain("|")
        if peek() != ")":
            raise NeedsError(f"needs: missing `)` in {text!r}")
        take()
        return inner

    def atom() -> _Expression:
        token = take() if peek() else ""
        if token == "(":
            return bracketed()
        if token == "*":
            return _Expression()
        if token in _BLOCKS and peek() == "(":
            take()
            return _Expression(token, parts=(bracketed(),), weight=2)
        if len(token) > 2 and token[0] == token[-1] == "/":
            try:
                re.compile(token[1:-1], re.MULTILINE)
            except re.error as error:
                raise NeedsError(f"needs: {token} in {text!r}: {error}") from None
            return _Expression("/", token[1:-1], weight=1)
        if not re.fullmatch(r"\w+", token):
            raise NeedsError(f"needs: unexpected {token or 'end'!r} in {text!r}")
        return _Expression(word=token)

    needs = chain("|")
    if position != len(tokens):
        raise NeedsError(f"needs: unexpected {tokens[position]!r} in {text!r}")
    return needs
