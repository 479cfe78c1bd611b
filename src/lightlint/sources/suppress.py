"""Comments that silence findings: `# noqa`, `# lightlint: ignore[...]`; of a whole file `# lightlint: skip-file`,
`# flake8: noqa` and `# ruff: noqa`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache

from lightlint.finding import Edit, Finding
from lightlint.pages import Page, all_pages
from lightlint.sources.source import Source

Resolve = Callable[[str], frozenset[str] | None]

_HINTS = ("noqa", "lightlint")  # in small letters; one of them is in every directive
_MAY_SILENCE = re.compile(r"#\s*(?:noqa|(?:lightlint|flake8|ruff)\s*:)")
# As flake8 reads it: codes only where they directly follow the colon, else everything is meant.
_CODES = r"(?::\s?(?P<codes>(?:[A-Z]+[0-9]+(?:[,\s]+|(?![A-Z0-9_])))+))?"
_NOQA = re.compile(rf"#\s*noqa\b{_CODES}", re.IGNORECASE)
_NOQA_FILE = re.compile(rf"#\s*(?:flake8|ruff)\s*:\s*noqa\b{_CODES}", re.IGNORECASE)  # in a row of its own
_IGNORE = re.compile(r"#\s*lightlint\s*:\s*ignore\b(?:\s*\[(?P<codes>[^\]#]*)\])?", re.IGNORECASE)
_SKIP = re.compile(r"#\s*lightlint\s*:\s*skip-file\b", re.IGNORECASE)
_CODE = re.compile(r"[^\s,]+")


@dataclass(frozen=True, slots=True)
class Code:
    """A code, alias or rule name as a directive spells it, with its range."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Directive:
    """One suppression, from its `#` to the next or the comment's end, and the rows of the joined text it covers.

    `codes` is None where it names none and so means all.
    """

    start: int
    end: int
    codes: tuple[Code, ...] | None
    first_row: int
    last_row: int


@dataclass(frozen=True, slots=True)
class Unused:
    """A directive, or codes of one, that silenced nothing; `edit` takes them out."""

    start: int
    end: int
    text: str
    edit: Edit


@dataclass(frozen=True, slots=True)
class Suppressions:
    """The suppressions of one source."""

    source: Source
    directives: tuple[Directive, ...]
    skips_file: bool

    @classmethod
    def read(cls, source: Source) -> Suppressions:
        """Find the directives in a source's comments, not in its strings."""
        lowered = source.text.lower()  # much quicker than a search that ignores case
        if not any(word in lowered for word in _HINTS) or not _MAY_SILENCE.search(lowered):
            return cls(source, (), False)
        comments = [comment for line in source.logical_lines for comment in line.comments]
        of_file = tuple(_of_file(source))
        skips = any(_SKIP.search(source.text, *comment) for comment in comments)
        skips |= any(each.codes is None for each in of_file)
        return cls(source, (*_directives(source), *of_file), skips)

    def split(self, findings: Iterable[Finding], resolve: Resolve) -> tuple[list[Finding], list[Finding]]:
        """Part findings in those kept and those suppressed.

        Args:
            findings: findings of this source.
            resolve: gives the rule codes that a code, prefix, alias or name stands for; None if it is not lightlint's.
        """
        kept: list[Finding] = []
        suppressed: list[Finding] = []
        for finding in findings:
            silent = self.skips_file or any(
                _silences(directive, resolve, finding.code) for directive in self._at(finding)
            )
            (suppressed if silent else kept).append(finding)
        return kept, suppressed

    def unused(self, suppressed: Sequence[Finding], resolve: Resolve, active: AbstractSet[str]) -> list[Unused]:
        """The codes that silenced nothing, in order: lightlint's own only, and only of rules that ran.

        Args:
            suppressed: the findings `split` took out.
            resolve: as for `split`; an empty set for a code that looks like lightlint's but names no rule.
            active: the codes of the rules that ran.
        """
        if self.skips_file:
            return []
        used: dict[Directive, set[str]] = {directive: set() for directive in self.directives}
        for finding in suppressed:
            for directive in self._at(finding):
                used[directive].add(finding.code)
        found: list[Unused] = []
        for directive in self.directives:
            idle = [
                code
                for code in directive.codes or ()
                if (meant := resolve(code.text)) is not None and meant <= active and not meant & used[directive]
            ]
            if idle:
                found.append(self._unused(directive, idle))
        return found

    def _at(self, finding: Finding) -> Iterator[Directive]:
        row = self.source.row_of(finding.start)
        return (directive for directive in self.directives if directive.first_row <= row <= directive.last_row)

    def _unused(self, directive: Directive, idle: list[Code]) -> Unused:
        text = ", ".join(code.text for code in idle)
        codes = directive.codes or ()
        left = [code.text for code in codes if code not in idle]
        if left:
            edit = self.source.edit(codes[0].start, codes[-1].end, ", ".join(left))
            return Unused(idle[0].start, idle[-1].end, text, edit)
        return Unused(directive.start, directive.end, text, self._removal(directive))

    def _removal(self, directive: Directive) -> Edit:
        """Take a directive out with the blanks before it; with its row if nothing else stands there."""
        text = self.source.text
        row = self.source.row_of(directive.start)
        row_start = self.source.row_starts[row - 1]
        next_row = self.source.row_starts[row] if row < len(self.source.row_starts) else len(text)
        if not (text[row_start : directive.start] + text[directive.end : next_row]).strip():
            return self.source.edit(row_start, next_row, "")
        start = row_start + len(text[row_start : directive.start].rstrip(" \t"))
        if text[directive.end : directive.end + 1] == "#":  # another comment stays, with the blanks that stood before
            return self.source.edit(directive.start, directive.end, "")
        return self.source.edit(start, directive.end, "")


@cache
def codes_of() -> Resolve:
    """Which rule codes a word in a suppression comment stands for."""
    return resolver(all_pages().values())


def resolver(pages: Iterable[Page]) -> Resolve:
    """A `resolve` over the rule book: codes and their prefixes, aliases and names, in any case."""
    exact: dict[str, set[str]] = {}
    codes: list[str] = []
    for page in pages:
        codes.append(page.code)
        for key in (page.code, page.name, *page.aliases):
            exact.setdefault(key.upper(), set()).add(page.code)

    def resolve(text: str) -> frozenset[str] | None:
        key = text.upper()
        if key in exact:
            return frozenset(exact[key])
        return frozenset(code for code in codes if code.startswith(key)) if re.fullmatch(r"LL\d*", key) else None

    return resolve


def noqa_row(source: Source, offset: int) -> int:
    """The row, counted in its cell for a notebook, where a suppression comment for a finding at `offset` goes."""
    return source.locate(source.logical_line_at(offset).end).row


def _silences(directive: Directive, resolve: Resolve, code: str) -> bool:
    return directive.codes is None or any(code in (resolve(named.text) or ()) for named in directive.codes)


def _directives(source: Source) -> Iterator[Directive]:
    lines = source.logical_lines
    for index, line in enumerate(lines):
        rows = source.row_of(line.start), source.row_of(line.end)
        for start, end in line.comments:
            for match in _NOQA.finditer(source.text, start, end):
                yield _directive(match, end, rows)
            for match in _IGNORE.finditer(source.text, start, end):
                yield _directive(match, end, rows if line.is_code else _rows_below(source, index))


def _of_file(source: Source) -> Iterator[Directive]:
    """Those of flake8 and ruff for all rows."""
    alone = [comment for line in source.logical_lines if not line.is_code for comment in line.comments]
    for start, end in alone:
        match = _NOQA_FILE.fullmatch(source.text, start, start + len(source.text[start:end].rstrip()))
        if match is not None:
            yield _directive(match, end, (1, len(source.row_starts)))


def _rows_below(source: Source, index: int) -> tuple[int, int]:
    """The rows from a standalone comment to the statement below it, if only comments stand between, in its cell."""
    lines = source.logical_lines
    first = source.row_of(lines[index].start)
    cell = source.cell_at(lines[index].start)
    for line in lines[index + 1 :]:
        if source.cell_at(line.start) != cell or not (line.is_code or line.comments):
            break
        if line.is_code:
            return first, source.row_of(line.end)
    return first, first


def _directive(match: re.Match[str], comment_end: int, rows: tuple[int, int]) -> Directive:
    following = match.string.find("#", match.end(), comment_end)
    named = match["codes"]
    codes = None
    if named is not None:
        codes = tuple(
            Code(code[0], code.start(), code.end()) for code in _CODE.finditer(match.string, *match.span("codes"))
        )
    return Directive(match.start(), comment_end if following < 0 else following, codes, *rows)
