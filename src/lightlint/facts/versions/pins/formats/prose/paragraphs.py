"""A Markdown or reStructuredText page in paragraphs, items of lists and rows of tables, with the headings above each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

_HEADING = re.compile(r"\s{0,3}(#{1,6})(?:\s+|(?=[^\W\d_]))(.*)|\s*<h([1-6])\b[^>]*>(.*)", re.IGNORECASE)
_UNDERLINE = re.compile(r"([=\-~^\"'])\1{2,}\s*$")
_STARTS = re.compile(r"\s*(?:[-*+•]\s|\d+[.)]\s|\||>|<(?:li|tr|td|p|br)\b)", re.IGNORECASE)
_FENCE = re.compile(r"\s*(?:```[^`]*|~~~.*)$")
_LOGS = r"news|what.?s new|change-?\s*log|updates?\b|releases?\b|history|roadmap|to-?do|faq|trouble|issues"
_IS_LOG = re.compile(_LOGS, re.IGNORECASE)
_NEWS = re.compile(rf"{_LOGS}|benchmark|results|acknowledg|citation|references", re.IGNORECASE)
_SETS_UP = re.compile(
    r"requirement|prerequisite|dependenc|install|enviro\w*|set-?\s?up|getting started|quick\s?-?start|usage|preparation|环境|安装|依赖",
    re.IGNORECASE,
)
_LONGEST_TITLE = 9  # words
_ASIDE = re.compile(  # news, plans, conditions, failures, and the versions of others
    r"\b(?:new|news|features?|introduc\w+|deprecat\w+|removed?|coming|will(?!\s+(?:also\s+|currently\s+)?(?:need|require|have\s+to|use|be\s+(?:us|work)ing|download|install)\b)|planned|todo|fix(?:e[sd])?|bugs?|updat\w+|upgrad\w+|bump\w*"
    r"|migrat\w+|announc\w+|releas\w+|if|unless|like|since|older|previous\w*|instead|papers?|original\w*|faster|speed\w*|compile\w*|benchmark\w*"
    r"|fail\w*|breaks?|broken|issues?|errors?|unable|cannot|not|no longer|\w+n['\u2019]t|add(?:s|ed)?|support|compatibility|available|supported\s+(?:from|by|in))\b"
    r"|[\[(*]?\b(?:19|20)\d\d[-/.]\d|\[[ xX]\]|[?]|^\W*\w{3,9}\.?\s+\d{1,2}(?:st|nd|rd|th)?,?\s+20\d\d",
    re.IGNORECASE,
)
# "and was not tested with other versions": what stands before it is what the project needs
_OF_OTHERS = re.compile(
    r"\b(?:not|\w+n['\u2019]t)\s+(?:\w+\s+){0,4}(?:other|newer|later|different)\b[^,.;!?]*", re.IGNORECASE
)


@dataclass(frozen=True)
class Paragraph:
    """A paragraph, an item of a list, a row of a table or a line of code: its text and the row (from 1) that it starts in.

    `is_titled` tells whether the first of its headings is the page's title.
    """

    text: str
    row: int
    headings: tuple[str, ...] = ()
    is_code: bool = field(default=False, kw_only=True)
    is_titled: bool = field(default=False, kw_only=True)

    @cached_property
    def is_news(self) -> bool:
        """Whether it stands in a part that tells of releases, results or trouble.

        A part of it on what is needed is none. A whole sentence is no title of one, and what measures may be a project's name.
        """
        own = self.headings[-1] if self.headings else ""
        if _SETS_UP.search(own) and not _NEWS.search(own):
            return False
        parts = self.headings[1:] if self.is_titled and not _IS_LOG.search(self.headings[0]) else self.headings
        return any(_NEWS.search(heading) for heading in parts if len(heading.split()) <= _LONGEST_TITLE)

    @cached_property
    def sets_up(self) -> bool:
        """Whether it stands in a part on what is needed and how to start."""
        return any(_SETS_UP.search(heading) for heading in self.headings)


def is_aside(text: str) -> bool:
    """Whether a text speaks of news, plans or other versions than those that the project needs."""
    return bool(_ASIDE.search(_OF_OTHERS.sub("", text)))


def paragraphs(text: str) -> Iterator[Paragraph]:
    """The paragraphs and headings of a page, in order; the lines of a block of code one by one."""
    lines = text.splitlines()
    headings: dict[int, str] = {}
    title = ""
    open_lines: list[str] = []
    in_code = False

    def made(text: str, row: int, *, is_code: bool = False) -> Paragraph:
        above = tuple(headings.values())
        return Paragraph(text, row, above, is_code=is_code, is_titled=bool(title) and above[:1] == (title,))

    for row, line in enumerate(lines, 1):
        heading = None if in_code else _heading(line, lines[row] if row < len(lines) else "")
        ends = in_code or heading is not None or not line.strip() or _FENCE.match(line) or _STARTS.match(line)
        if open_lines and ends:
            yield made("\n".join(open_lines), row - len(open_lines))
            open_lines = []
        if _FENCE.match(line):
            in_code = not in_code
        elif in_code:
            yield made(line, row, is_code=True)
        elif heading is not None:
            level, words = heading
            title = words if not headings and level == 1 else title
            headings = {each: text for each, text in headings.items() if each < level} | {level: words}
            yield made(words, row)
        elif line.strip() and not _UNDERLINE.match(line):
            open_lines.append(line)
    if open_lines:
        yield made("\n".join(open_lines), len(lines) + 1 - len(open_lines))


def _heading(line: str, following: str) -> tuple[int, str] | None:
    """The level and the text of a heading."""
    if found := _HEADING.match(line):
        return len(found[1] or "#" * int(found[3] or 1)), found[2] or found[4] or ""
    if line.strip() and not _STARTS.match(line) and _UNDERLINE.match(following):
        return ("=-~^\"'".index(following.strip()[0]) + 1), line
    return None
