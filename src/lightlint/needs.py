"""What a text must hold for a rule's fault to be in it: the `needs` of a page, asked before anything is parsed.

`word` is an identifier anywhere in the text, comments and strings included; `.word` an attribute, `torch.word` one of that
name, `word()` something that is called and `.word()` a method that is, or one that is handed on without a call, as in
`partial(optimizer.step)`, `{"step": optimizer.step}` or `getattr(optimizer, "step")`; `word=` and `.word=` what stands right before the
`=` of a keyword or an assignment. `def(...)`, `class(...)` and `loop(...)` ask for one function, class or loop whose own
text, decorators included, holds what stands in the brackets, `subclass(...)` for a class with a base that may come from
Lightning: not `object`, `nn.Module`, `Dataset` and other well-known ones. `/.../` is a regular expression, tried line by line; it begins with a literal character to be
quick. Every notebook holds the word `get_ipython`. `&` binds tighter than `|`, `!` denies what follows it, and `*` needs nothing.

`events` alone stands for no text: the check asks nothing but the rehearsal, and is asked wherever one of its events happens
(`linting.asked`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from lightlint.memo.compiled import kept_code
from lightlint.text import BLOCKS, WORD, Text

_GAP = r"(?:\s|\\\r?\n)*"  # what may stand between a name and the dot or bracket beside it
_BEHIND = {
    "": r"\b",
    "()": rf"{_GAP}[(,}}]",
    ".()": rf"{_GAP}(?:[(,)}}\]:;#]|$)",
    "=": rf"{_GAP}(?::[^=\n]*)?[-+*/%&|^@<>]{{0,2}}=(?!=)",
}  # what follows a word in a form
_TOKEN = re.compile(r"/(?:[^/\\\n]|\\.)+/|(?:def|class|subclass|loop)\(|(?:\w*\.)?\w+(?:\(\)|=)?|[&|()*!]|\S")
_TERM = re.compile(r"(?:(\w+)?(\.))?(\w+)(\(\)|=)?")
_COMMON = {
    "torch",
    "lightning",
    "nn",
    "class",
    "def",
    "import",
    "self",
    "__init__",
    "forward",
    "to",
    "size",
    "float",
    "int",
}


class NeedsError(ValueError):
    """An expression that does not parse."""


@dataclass(frozen=True, slots=True)
class Needs:
    """Without these a rule's fault cannot occur: `backward & (step | closure)`. Parsed when first asked."""

    text: str = "*"

    @property
    def are_events(self) -> bool:
        """Whether no text tells, but what happens in a rehearsal."""
        return self.text == "events"

    def met(self, text: Text) -> bool:
        """Whether a text can hold the fault, as far as a text tells."""
        return not self.are_events and _expression(self.text).met(text)

    def one_of(self) -> frozenset[str] | None:
        """Identifiers of which every text that meets it has one; None where it asks for none in particular."""
        return frozenset() if self.are_events else _expression(self.text).one_of()

    def words(self) -> frozenset[str]:
        """Every identifier the expression names, in regular expressions, too."""
        return frozenset() if self.are_events else _expression(self.text).words()


@dataclass(frozen=True, slots=True)
class _Expression:
    """Words, a regular expression, a block or several of these; `weight` puts the quick ones first."""

    operator: str
    plain: frozenset[str] = frozenset()  # the words that stand in it by themselves
    pattern: str = ""
    parts: tuple[_Expression, ...] = ()
    weight: int = 0

    @property
    def is_word(self) -> bool:
        """Whether it is one word."""
        return len(self.plain) == 1 and not self.parts

    def met(self, text: Text) -> bool:
        if self.operator == "&":
            return text.holds_all(self.plain) and all(part.met(text) for part in self.parts)
        if self.operator == "|":
            return text.holds_one(self.plain) or any(part.met(text) for part in self.parts)
        if self.operator == "!":
            return not self.parts[0].met(text)
        if self.operator == "/":
            return text.matches(_compiled(self.pattern))
        (inside,) = self.parts
        return inside.possible(text) and (not text.is_parsed or text.holds_block(self.operator, inside))

    def possible(self, text: Text) -> bool:
        """Whether a block of a text may meet it, as far as the whole text shows."""
        if self.operator == "&":
            return text.holds_all(self.plain) and all(part.possible(text) for part in self.parts)
        if self.operator == "|":
            return text.holds_one(self.plain) or any(part.possible(text) for part in self.parts)
        if self.operator == "!" or "\\1" in self.pattern:  # what repeats takes long to find in a whole text
            return True
        return self.parts[0].possible(text) if self.parts else self.met(text)

    def one_of(self) -> frozenset[str] | None:
        """As `Needs.one_of`; of several parts that must all be met, the one with the rarest words tells."""
        if self.operator in {"!", "/"}:
            return None
        inner = [part.one_of() for part in self.parts]
        known = [each for each in inner if each is not None]
        if self.operator == "|":
            return self.plain.union(*known) if len(known) == len(inner) else None
        known += [frozenset([word]) for word in sorted(self.plain)]
        return min(known, key=lambda words: (not words.isdisjoint(_COMMON), len(words)), default=None)

    def patterns(self) -> list[str]:
        """Its regular expressions: compiled when first tried, since most runs try few of the rule book's."""
        own = [self.pattern] if self.pattern else []
        return own + [pattern for part in self.parts for pattern in part.patterns()]

    def words(self) -> frozenset[str]:
        own = self.plain.union(WORD.findall(re.sub(r"\\.", " ", self.pattern)))
        return own.union(*(part.words() for part in self.parts))


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    with kept_code("needs"):
        return re.compile(pattern, re.MULTILINE)


def parse_needs(text: str) -> Needs:
    """Parse a `needs:` expression.

    Raises:
        NeedsError: it, or a regular expression in it, does not parse.
    """
    for pattern in _expression(text).patterns():
        try:
            _compiled(pattern)
        except re.error as error:
            raise NeedsError(f"needs: /{pattern}/: {error}") from None
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
        return _joined(operator, parts)

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
            return _Expression("&")
        if token == "!":
            return _Expression("!", parts=(atom(),), weight=1)
        if token.endswith("(") and token[:-1] in BLOCKS:
            return _Expression(token[:-1], parts=(bracketed(),), weight=3)
        if len(token) > 2 and token[0] == token[-1] == "/":
            return _Expression("/", pattern=token[1:-1], weight=2)
        found = _TERM.fullmatch(token)
        if not found:
            raise NeedsError(f"needs: unexpected {token or 'end'!r} in {text!r}")
        return _term(*found.groups(""))

    needs = chain("|")
    if position != len(tokens):
        raise NeedsError(f"needs: unexpected {tokens[position]!r} in {text!r}")
    return needs


def _joined(operator: str, parts: Sequence[_Expression]) -> _Expression:
    """Several expressions as one; words by themselves are asked for together, and first."""
    plain = frozenset[str]().union(*(part.plain for part in parts if part.is_word))
    others = sorted((part for part in parts if not part.is_word), key=lambda part: part.weight)
    return _Expression(operator, plain, parts=tuple(others), weight=max(part.weight for part in parts))


def _term(before: str, dot: str, word: str, form: str) -> _Expression:
    """A word in a form, behind a dot or another word and a dot; the words are asked for before the pattern is."""
    if not dot and not form:
        return _Expression("&", frozenset([word]))
    start = rf"{before}(?<!\w{before}){_GAP}\.{_GAP}{word}" if before else rf"\.{_GAP}{word}"
    called = form == "()" and bool(dot)
    pattern = (start if dot else rf"{word}(?<!\w{word})") + _BEHIND[".()" if called else form]
    words = frozenset(each for each in (before, word) if each)
    part = _Expression("/", pattern=pattern, weight=2)
    if called:
        quoted = _Expression("/", pattern=rf"{word}(?<=['\"]{word})['\"]", weight=2)
        part = _Expression("|", parts=(part, quoted), weight=2)
    return _Expression("&", words, parts=(part,), weight=1)
