"""The rule book: loads `rules/<family>/<name>.md`, the only home of a rule's code, tier and promises."""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lightlint.finding import Applicability, Tier

FAMILIES = {
    "lightlint": "LL0 · lightlint itself",
    "steps": "LL1 · steps, gradients, losses",
    "modules": "LL2 · modules, modes, state, checkpoints",
    "data": "LL3 · data",
    "ranks": "LL4 · ranks and collectives",
    "devices": "LL5 · devices, memory, speed",
    "wiring": "LL6 · Lightning wiring: hooks, Trainer, logging, callbacks",
    "api": "LL7 · API removed or deprecated",
    "environment": "LL8 · reproducibility, environment, notebooks",
}
URL = "https://github.com/lightlint/lightlint/blob/main/rules/"

_KEYS = {"code", "name", "tier", "fix", "confirm", "needs", "applies", "aliases", "since"}
_REQUIRED = {"code", "name", "tier", "fix", "confirm", "needs", "since"}


class PageError(ValueError):
    """A page's front matter is not of the form the rule book asks for."""


@dataclass(frozen=True, slots=True)
class Needs:
    """Identifiers without which a rule's fault cannot occur: `backward & (step | closure)`. Parsed when first asked."""

    text: str = "*"

    def met(self, words: Set[str]) -> bool:
        """Whether a text that holds `words` can hold the fault."""
        return _expression(self.text).met(words)

    def words(self) -> frozenset[str]:
        """Every identifier the expression names."""
        return _expression(self.text).words()


@dataclass(frozen=True, slots=True)
class _Expression:
    word: str = ""
    operator: str = ""
    parts: tuple[_Expression, ...] = ()

    def met(self, words: Set[str]) -> bool:
        if not self.operator:
            return not self.word or self.word in words
        test = all if self.operator == "&" else any
        return test(part.met(words) for part in self.parts)

    def words(self) -> frozenset[str]:
        if not self.operator:
            return frozenset([self.word] if self.word else [])
        return frozenset[str]().union(*(part.words() for part in self.parts))


@dataclass(frozen=True, slots=True)
class Page:
    """A rule as its page states it. `fix` is None where the rule offers none; `confirm` names a probe or is None."""

    code: str
    name: str
    tier: Tier
    fix: Applicability | None
    confirm: str | None
    needs: Needs
    since: str
    family: str
    path: Path
    title: str
    applies: str = ""
    aliases: tuple[str, ...] = ()

    @property
    def url(self) -> str:
        return f"{URL}{self.family}/{self.name}.md"

    @property
    def check_module(self) -> str:
        return f"lightlint.checks.{self.family}.{self.name.replace('-', '_')}"


def parse_needs(text: str) -> Needs:
    """Parse a `needs:` expression of identifiers, `&`, `|` and brackets (`&` binds tighter); `*` needs nothing.

    Raises:
        PageError: the expression does not parse.
    """
    _expression(text)
    return Needs(text)


@cache
def _expression(text: str) -> _Expression:
    tokens: list[str] = re.findall(r"\w+|[&|()*]|\S", text)
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
        return parts[0] if len(parts) == 1 else _Expression(operator=operator, parts=tuple(parts))

    def atom() -> _Expression:
        token = take() if peek() else ""
        if token == "(":
            inner = chain("|")
            if peek() != ")":
                raise PageError(f"needs: missing `)` in {text!r}")
            take()
            return inner
        if token == "*":
            return _Expression()
        if not re.fullmatch(r"\w+", token):
            raise PageError(f"needs: unexpected {token or 'end'!r} in {text!r}")
        return _Expression(word=token)

    needs = chain("|")
    if position != len(tokens):
        raise PageError(f"needs: unexpected {tokens[position]!r} in {text!r}")
    return needs


def parse_page(path: Path, text: str) -> Page:
    """Read a page's front matter and claim.

    Raises:
        PageError: a key is missing, unknown or has a value the rule book does not know.
    """
    head, front, body = text.partition("---\n")[2].partition("---\n")
    if not front or not text.startswith("---\n"):
        raise PageError(f"{path}: no front matter between `---` lines")
    values = dict(line.split(": ", 1) for line in head.splitlines() if ": " in line)
    wrong = (values.keys() - _KEYS) or (_REQUIRED - values.keys())
    if wrong:
        raise PageError(f"{path}: unknown or missing front matter key(s): {', '.join(sorted(wrong))}")
    try:
        fix = None if values["fix"] == "none" else Applicability(values["fix"])
        tier = Tier(values["tier"])
    except ValueError as error:
        raise PageError(f"{path}: {error}") from error
    return Page(
        code=values["code"],
        name=values["name"],
        tier=tier,
        fix=fix,
        confirm=None if values["confirm"] == "none" else values["confirm"],
        needs=Needs(values["needs"]),
        since=values["since"],
        family=path.parent.name,
        path=path,
        title=_claim(body),
        applies=values.get("applies", ""),
        aliases=tuple(re.findall(r"[\w-]+", values["aliases"])) if "aliases" in values else (),
    )


def _claim(body: str) -> str:
    """The one-sentence claim: the first paragraph behind the heading."""
    paragraph, rest = "", body
    while rest and (not paragraph or paragraph.startswith("#")):
        paragraph, _, rest = rest.partition("\n\n")
        paragraph = paragraph.strip()
    return " ".join(paragraph.split()) if not paragraph.startswith("#") else ""


def folder() -> Path:
    """Where the rule book lies: packed beside the code, or at the top of a checkout."""
    packed = Path(__file__).parent / "rules"
    return packed if packed.is_dir() else Path(__file__).parents[2] / "rules"


@cache
def all_pages() -> dict[str, Page]:
    """Every page by rule name, in the order of the codes.

    Raises:
        PageError: a page is malformed.
    """
    pages = [parse_page(path, path.read_text("utf-8")) for path in folder().glob("*/*.md")]
    return {page.name: page for page in sorted(pages, key=lambda page: page.code)}


def find(wanted: str) -> Page | None:
    """The page of a rule by code, name or alias, in any case."""
    key = wanted.lower()
    for page in all_pages().values():
        if key in {page.code.lower(), page.name, *(alias.lower() for alias in page.aliases)}:
            return page
    return None
