"""The rule book: loads `rules/<family>/<name>.md`, the only home of a rule's code, tier and promises."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lightlint.finding import Applicability, Tier
from lightlint.memo.kept import derived
from lightlint.needs import Needs

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
    "huggingface": "LL9 · Hugging Face: Trainer, Accelerate, TRL, PEFT, DeepSpeed",
}
URL = "https://github.com/lightlint/lightlint/blob/main/rules/"

_PACKAGES = "(?:torch|lightning|transformers|trl|peft|accelerate)"
_APPLIES = re.compile(rf"{_PACKAGES}>=\d+(?:\.\d+)*(?:, {_PACKAGES}>=\d+(?:\.\d+)*)*")
_KEYS = {"code", "name", "tier", "fix", "confirm", "needs", "applies", "aliases", "since"}
_REQUIRED = {"code", "name", "tier", "fix", "confirm", "needs", "since"}


class PageError(ValueError):
    """A page's front matter is not of the form the rule book asks for."""


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
        return _check_modules().get((self.family, self.name), "")


def parse_page(path: Path, text: str) -> Page:
    """Read a page's front matter and claim.

    Raises:
        PageError: a key is missing, unknown or has a value the rule book does not know.
    """
    return _page(path, *_front(path, text))


def _front(path: Path, text: str) -> tuple[dict[str, str], str]:
    """The front matter's values, and the claim."""
    head, front, body = text.partition("---\n")[2].partition("---\n")
    if not front or not text.startswith("---\n"):
        raise PageError(f"{path}: no front matter between `---` lines")
    return dict(line.split(": ", 1) for line in head.splitlines() if ": " in line), _claim(body)


def _page(path: Path, values: Mapping[str, str], title: str) -> Page:
    wrong = (values.keys() - _KEYS) or (_REQUIRED - values.keys())
    if wrong:
        raise PageError(f"{path}: unknown or missing front matter key(s): {', '.join(sorted(wrong))}")
    try:
        fix = None if values["fix"] == "none" else Applicability(values["fix"])
        tier = Tier(values["tier"])
    except ValueError as error:
        raise PageError(f"{path}: {error}") from error
    applies = values.get("applies", "")
    if applies and not _APPLIES.fullmatch(applies):
        raise PageError(f"{path}: applies: {applies!r} is not like `torch>=1.0, lightning>=2.0`")
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
        title=title,
        applies=applies,
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
def _check_modules() -> dict[tuple[str, str], str]:
    """The module of each rule's check by family and name: it stands in the family's folder, or in one of its groups."""
    checks = Path(__file__).parent / "checks"
    found: dict[tuple[str, str], str] = {}
    for folder_ in (*checks.glob("*/"), *checks.glob("*/*/")):
        where = folder_.relative_to(checks).parts
        dotted = ".".join(("lightlint.checks", *where))
        for each in folder_.iterdir():
            if not each.stem.startswith("_"):
                found.setdefault((where[0], each.stem.replace("_", "-")), f"{dotted}.{each.stem}")
    return found


@cache
def all_pages() -> dict[str, Page]:
    """Every page by rule name, in the order of the codes.

    Raises:
        PageError: a page is malformed, or there is none.
    """
    paths = sorted(folder().glob("*/*.md"))
    if not paths:
        raise PageError(
            f"{folder()}: the rule book is missing, without which nothing is found: install lightlint again"
        )
    fronts = derived(
        "pages", (*paths, Path(__file__)), lambda: [_front(path, path.read_text("utf-8")) for path in paths]
    )
    pages = [_page(path, *front) for path, front in zip(paths, fronts, strict=True)]
    return {page.name: page for page in sorted(pages, key=lambda page: page.code)}


def find(wanted: str) -> Page | None:
    """The page of a rule by code, name or alias, in any case."""
    key = wanted.lower()
    for page in all_pages().values():
        if key in {page.code.lower(), page.name, *(alias.lower() for alias in page.aliases)}:
            return page
    return None
