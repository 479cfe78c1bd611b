"""What a text must hold for a rule's fault to be in it: the `needs` of a page, asked before anything is parsed.

`word` is an identifier anywhere in the text, comments and strings included; `.word` an attribute, `torch.word` one of that
name, `word()` something that is called and `.word()` a method that is; `word=` and `.word=` what stands right before the
`=` of a keyword or an assignment. `def(...)`, `class(...)` and `loop(...)` ask for one function, class or loop whose own
text, decorators included, holds what stands in the brackets, `subclass(...)` for a class with a base that is neither
`object` nor of `torch.nn`. `/.../` is a regular expression, tried line by line; it begins with a literal character to be
quick. `&` binds tighter than `|`, `!` denies what follows it, and `*` needs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING

from lightlint.syntax import syntax_of

if TYPE_CHECKING:
    import ast

_GAP = r"(?:\s|\\\r?\n)*"  # what may stand between a name and the dot or bracket beside it
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BEHIND = {
    "": r"\b",
    "()": rf"{_GAP}\(",
    "=": rf"{_GAP}(?::[^=\n]*)?[-+*/%&|^@<>]{{0,2}}=(?!=)",
}  # what follows a word in a form
_TOKEN = re.compile(r"/(?:[^/\\\n]|\\.)+/|(?:def|class|subclass|loop)\(|(?:\w*\.)?\w+(?:\(\)|=)?|[&|()*!]|\S")
_TERM = re.compile(r"(?:(\w+)?(\.))?(\w+)(\(\)|=)?")
_ROW = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")  # Python's own lines: `str.splitlines` knows more line ends
_ODD_ROW = re.compile(r"[\v\f\x1c-\x1e]")  # what `str.splitlines` takes for line ends, too, among ASCII
_BLOCKS = {
    "def": {"FunctionDef", "AsyncFunctionDef"},
    "class": {"ClassDef"},
    "subclass": {"ClassDef"},
    "loop": {"For", "AsyncFor", "While"},
}  # the types of statements in `ast`, which is imported when a block is asked for
_PLAIN_BASE = re.compile(r"object|(?:torch\.)?nn\.\w+")


_Ranges = dict[str, list[tuple[int, int]]]


class NeedsError(ValueError):
    """An expression that does not parse."""


class Text:
    """A text that `needs` are asked of; `also` are other forms of it, such as a notebook's cells with their magics."""

    def __init__(self, text: str, *also: str, within: tuple[_Ranges, int, int] | None = None) -> None:
        self._texts = tuple(dict.fromkeys((text, *also)))
        self._within = within
        self._blocks: dict[str, list[Text]] = {}

    def holds(self, word: str) -> bool:
        """Whether an identifier occurs; most blocks do not have it even as a part of another one."""
        if "words" not in self.__dict__ and not any(word in text for text in self._texts):
            return False
        return word in self.words

    @cached_property
    def words(self) -> frozenset[str]:
        """Every identifier."""
        return frozenset(word for text in self._texts for word in _WORD.findall(text))

    def matches(self, pattern: re.Pattern[str]) -> bool:
        """Whether a regular expression matches somewhere."""
        return any(pattern.search(text) for text in self._texts)

    def blocks(self, kind: str) -> Sequence[Text]:
        """The functions, classes or loops of the text; none where Python cannot parse it."""
        if kind not in self._blocks:
            self._blocks[kind] = [self._block(first, last) for first, last in self._ranges(kind)]
        return self._blocks[kind]

    @property
    def is_parsed(self) -> bool:
        """Whether its blocks are known."""
        return self._within is not None or self._by_kind is not None

    def _ranges(self, kind: str) -> list[tuple[int, int]]:
        """The first row of each block of a kind and the one behind its last, counted from 0 over the whole text."""
        ranges, first, last = self._place
        return [(start, end) for start, end in ranges.get(kind, ()) if first <= start and end <= last]

    @property
    def _place(self) -> tuple[_Ranges, int, int]:
        return self._within or (self._by_kind or {}, 0, len(self._rows))

    def _block(self, start: int, end: int) -> Text:
        """The text of some rows; it does not know this one, or both would have to wait for the collector."""
        ranges, first, _ = self._place
        return Text("".join(self._rows[start - first : end - first]), within=(ranges, start, end))

    @cached_property
    def tree(self) -> ast.Module | None:
        """What Python's parser makes of the text, None where it refuses it."""
        try:
            return syntax_of(self._texts[0])
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None

    @cached_property
    def _rows(self) -> list[str]:
        text = self._texts[0]
        return text.splitlines(keepends=True) if text.isascii() and not _ODD_ROW.search(text) else _ROW.findall(text)

    @cached_property
    def _by_kind(self) -> _Ranges | None:
        """The rows of its blocks, None where Python refuses the text."""
        if self.tree is None:
            return None
        import ast

        found: _Ranges = {kind: [] for kind in _BLOCKS}
        for statement in _statements(self.tree.body):
            kinds = [kind for kind, types in _BLOCKS.items() if type(statement).__name__ in types]
            if not kinds:
                continue
            first = min([statement.lineno, *(each.lineno for each in getattr(statement, "decorator_list", ()))])
            block = (first - 1, statement.end_lineno or first)
            for kind in kinds:
                if kind != "subclass" or any(not _PLAIN_BASE.fullmatch(ast.unparse(base)) for base in statement.bases):  # type: ignore[attr-defined]
                    found[kind].append(block)
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
    """A word in some form, a regular expression, a block or several of these; `weight` puts the quick ones first."""

    operator: str = ""
    word: str = ""
    parts: tuple[_Expression, ...] = ()
    weight: int = 0

    def met(self, text: Text) -> bool:
        if self.operator == "&":
            return all(part.met(text) for part in self.parts)
        if self.operator == "|":
            return any(part.met(text) for part in self.parts)
        if self.operator == "!":
            return not self.parts[0].met(text)
        if self.operator == "/":
            return text.matches(_compiled(self.word))
        if self.operator:
            (inside,) = self.parts
            return inside.possible(text) and (
                not text.is_parsed or any(inside.met(block) for block in text.blocks(self.operator))
            )
        return not self.word or text.holds(self.word)

    def possible(self, text: Text) -> bool:
        """Whether a block of a text may meet it, as far as the whole text shows."""
        if self.operator == "&":
            return all(part.possible(text) for part in self.parts)
        if self.operator == "|":
            return any(part.possible(text) for part in self.parts)
        if self.operator == "!":
            return True
        return self.parts[0].possible(text) if self.parts else self.met(text)

    def words(self) -> frozenset[str]:
        own = frozenset(_WORD.findall(re.sub(r"\\.", " ", self.word)))
        return own.union(*(part.words() for part in self.parts))


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.MULTILINE)


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
        if token == "!":
            return _Expression("!", parts=(atom(),), weight=1)
        if token.endswith("(") and token[:-1] in _BLOCKS:
            return _Expression(token[:-1], parts=(bracketed(),), weight=3)
        if len(token) > 2 and token[0] == token[-1] == "/":
            return _regular(token, text)
        found = _TERM.fullmatch(token)
        if not found:
            raise NeedsError(f"needs: unexpected {token or 'end'!r} in {text!r}")
        return _term(*found.groups(""))

    needs = chain("|")
    if position != len(tokens):
        raise NeedsError(f"needs: unexpected {tokens[position]!r} in {text!r}")
    return needs


def _term(before: str, dot: str, word: str, form: str) -> _Expression:
    """A word in a form, behind a dot or another word and a dot; the words are asked for before the pattern is."""
    if not dot and not form:
        return _Expression(word=word)
    start = rf"{before}(?<!\w{before}){_GAP}\.{_GAP}{word}" if before else rf"\.{_GAP}{word}"
    pattern = (start if dot else rf"{word}(?<!\w{word})") + _BEHIND[form]
    words = tuple(_Expression(word=each) for each in (before, word) if each)
    return _Expression("&", parts=(*words, _Expression("/", pattern, weight=2)), weight=1)


def _regular(token: str, text: str) -> _Expression:
    try:
        _compiled(token[1:-1])
    except re.error as error:
        raise NeedsError(f"needs: {token} in {text!r}: {error}") from None
    return _Expression("/", token[1:-1], weight=2)
