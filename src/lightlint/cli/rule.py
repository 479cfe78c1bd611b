"""`lightlint rule`: the page of a rule as its reader wants it, or the list of all rules."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence

from lightlint.config.select import UnknownRuleError, match
from lightlint.pages import FAMILIES, Page, all_pages, find
from lightlint.reports.paint import TIER_STYLES, Span, draw, wants_colour

_BLOCK = re.compile(r"^```python (\w+)$", re.MULTILINE)


def main(arguments: Sequence[str]) -> int:
    """Run `lightlint rule` and return its exit status."""
    from lightlint.arguments import Parser

    parser = Parser(prog="lightlint rule", description="Explain rules.", allow_abbrev=False)
    parser.add_argument(
        "rules", nargs="*", metavar="RULE", help="a code or name to explain, a prefix or family to list"
    )
    parser.add_argument("--all", action="store_true", help="list all rules")
    parser.add_argument(
        "--output-format", choices=("text", "json"), default="text", help="text or json (default: text)"
    )
    options = parser.parse_intermixed_args(arguments)
    if bool(options.rules) == options.all:
        parser.error("name a rule, or give --all (a file or directory called rule is ./rule)")
    try:
        wanted = frozenset[str]().union(*(match(rule)[1] for rule in options.rules or ["ALL"]))
    except UnknownRuleError as error:
        parser.exit(2, f"lightlint: {error}; `lightlint rule --all` lists all\n")
    pages = [page for page in all_pages().values() if page.name in wanted]
    to_list = options.all or not all(find(rule) for rule in options.rules)
    if options.output_format == "json":
        rows = [as_dict(page) for page in pages]
        sys.stdout.write(json.dumps(rows if to_list or len(rows) > 1 else rows[0], indent=2) + "\n")
    elif to_list:
        sys.stdout.write(draw(_overview(pages), wants_colour(sys.stdout)))
    else:
        _show("\n".join(as_markdown(page) for page in pages))
    return 0


def as_dict(page: Page) -> dict[str, object]:
    """All a page states, for programs."""
    return {
        "code": page.code,
        "name": page.name,
        "severity": page.tier.value,
        "family": page.family,
        "fix": page.fix.value if page.fix else None,
        "confirm": page.confirm,
        "applies": page.applies or None,
        "aliases": list(page.aliases),
        "since": page.since,
        "summary": page.title,
        "url": page.url,
        "explanation": body(page),
    }


def as_markdown(page: Page) -> str:
    """The page without its front matter, what that states in a line below the heading."""
    heading, _, rest = body(page).partition("\n")
    return f"{heading}\n\n{'; '.join(_stated(page))}.\n{rest}"


def body(page: Page) -> str:
    """The Markdown of a page below its front matter."""
    return page.path.read_text("utf-8").split("---\n", 2)[2].lstrip()


def _stated(page: Page) -> Iterator[str]:
    yield f"{page.tier.value.capitalize()} of the family `{page.family}`"
    if page.fix:
        yield f"{page.fix.value} fix"
    if page.applies:
        yield f"applies to {page.applies}"
    if page.aliases:
        yield f"also known as {', '.join(page.aliases)}"
    yield f"since {page.since}"


def _overview(pages: Sequence[Page]) -> Iterator[Span]:
    width = max((len(page.name) for page in pages), default=0)
    gap = ""
    for family, title in FAMILIES.items():
        members = [page for page in pages if page.family == family]
        if members:
            yield f"{gap}{title} ({family})\n", "bold"
            gap = "\n"
        for page in members:
            yield f"  {page.code}  ", ""
            yield f"{page.name:{width}}", "bold"
            yield "  ", ""
            yield f"{page.tier.value:7}", TIER_STYLES[page.tier]
            yield f"  {f'{page.fix.value} fix' if page.fix else '':10}  {page.title}\n", ""


def _show(markdown: str) -> None:
    if not wants_colour(sys.stdout):
        sys.stdout.write(markdown)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    labelled = _BLOCK.sub(r"*\1:*\n\n```python", markdown)
    Console(force_terminal=True).print(Markdown(labelled))
