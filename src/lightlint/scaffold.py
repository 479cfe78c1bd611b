"""`python -m lightlint.scaffold`: a new rule's page and check, and the index of the rule book. Works in a checkout only."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from lightlint import __version__
from lightlint.finding import Tier
from lightlint.pages import FAMILIES, Page, PageError, all_pages, find, folder
from lightlint.sources.source import UnwritableError
from lightlint.sources.write import write

NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)+")
ADVICE = ("use-", "no-", "avoid-", "prefer-")
WITHOUT_CHECKS = "lightlint"  # the family of what lightlint says about itself

_PAGE = """\
---
code: {code}
name: {name}
tier: {tier}
fix: none
confirm: none
needs: Trainer
since: {since}
---

# {name} ({code})

TODO: what the fault does, in one sentence.

## Why it is bad

TODO: what really happens; figures with the machine and the versions they were measured on.

```python bad
import lightning as L

trainer = L.Trainer(max_epochs=10)  # {code}: TODO what is wrong here, with `names`
```

## When it is right

TODO: the cases that look the same and are not.

```python good
import lightning as L

trainer = L.Trainer()
```

## How `lightlint confirm` judges it

TODO: what is measured; or that there is nothing to measure.

## References

- <https://lightning.ai/docs/pytorch/stable/>
"""

_CHECK = """\
from __future__ import annotations

import libcst as cst

from lightlint.check import Check


class {camel}(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if self.names.of(call.func) != "lightning.Trainer":
            return
        # Ask the facts. What stays unknown is no finding; what is wrong is a `self.report(call, message)`.
"""


class ScaffoldError(Exception):
    """What cannot be made, and why, in one line."""


def main(arguments: Sequence[str]) -> int:
    """Run the scaffolder and return its exit status: 1 if `index --check` finds the index stale, 2 if it failed."""
    options = _parser().parse_args(arguments)
    try:
        root = _checkout()
        if options.command == "rule":
            return _rule(root, options.name, Path(options.family, options.group), Tier(options.tier))
        return _index(root, check=options.check)
    except (ScaffoldError, PageError, UnwritableError, OSError) as error:
        sys.stderr.write(f"lightlint.scaffold: {error}\n")
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lightlint.scaffold", description=__doc__, allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True)
    rule = commands.add_parser("rule", help="make the page and the check of a new rule")
    rule.add_argument("name", help="the fault in kebab-case; reads as `allow NAME`")
    rule.add_argument("--family", required=True, choices=[family for family in FAMILIES if family != WITHOUT_CHECKS])
    rule.add_argument("--group", default="", help="the folder of the family's checks that the new one belongs to")
    rule.add_argument("--tier", default=Tier.WARNING.value, choices=[tier.value for tier in Tier])
    index = commands.add_parser("index", help="write the rule table of README.md and rules/README.md anew")
    index.add_argument("--check", action="store_true", help="write nothing; exit with 1 if one of them is stale")
    return parser


def _checkout() -> Path:
    root = folder().parent
    if not (root / "pyproject.toml").is_file() or not (root / "src" / "lightlint").is_dir():
        raise ScaffoldError(
            f"works in a checkout of lightlint only, and {root} is none; clone it and `pip install -e .`"
        )
    return root


def _rule(root: Path, name: str, group: Path, tier: Tier) -> int:
    if not NAME.fullmatch(name) or name.startswith(ADVICE):
        raise ScaffoldError(f"`{name}` does not name a fault in kebab-case, as `model-moved-before-fit` does")
    taken = find(name)
    if taken is not None:
        raise ScaffoldError(f"`{name}` is {taken.code} already, see {taken.path.relative_to(root)}")
    snake = name.replace("-", "_")
    family = group.parts[0]
    page = root / "rules" / family / f"{name}.md"
    check = root / "src" / "lightlint" / "checks" / group / f"{snake}.py"
    if not check.parent.is_dir():
        raise ScaffoldError(f"there is no folder {check.parent.relative_to(root)}")
    there = next((path for path in (page, check) if path.exists()), None)
    if there is not None:
        raise ScaffoldError(f"{there.relative_to(root)} is there already")
    values = {"code": _next_code(family), "name": name, "tier": tier.value, "since": __version__}
    camel = "".join(part.capitalize() for part in name.split("-"))
    _write(check, _CHECK.format(camel=camel))
    _write(page, _PAGE.format(**values))
    for path in (page, check):
        print(path.relative_to(root))
    print(f"next: pytest tests/test_pages.py -k {name}; when it is green: python -m lightlint.scaffold index")
    return 0


def _next_code(family: str) -> str:
    """The code above the family's highest: one that was given up is never given again."""
    prefix = FAMILIES[family].split(" ", 1)[0]
    used = [int(page.code.removeprefix(prefix)) for page in all_pages().values() if page.code.startswith(prefix)]
    following = max(used, default=0) + 1
    if following > 99:
        raise ScaffoldError(f"the family {family} has no code left")
    return f"{prefix}{following:02}"


def _index(root: Path, *, check: bool) -> int:
    wanted = indexed(root)
    stale = [path for path in wanted if not path.is_file() or path.read_text("utf-8") != wanted[path]]
    for path in stale:
        name = path.relative_to(root)
        if check:
            print(f"{name}: the rule table is stale; run `python -m lightlint.scaffold index`")
        else:
            _write(path, wanted[path])
            print(f"{name}: written")
    return 1 if check and stale else 0


def indexed(root: Path) -> Mapping[Path, str]:
    """What the rule book's list must hold, by its path."""
    return {root / "rules" / "README.md": "\n".join(_book(list(all_pages().values())))}


def _book(pages: Sequence[Page]) -> Iterator[str]:
    yield "# The rule book"
    yield ""
    yield "One page a rule: what the fault does, examples that are the rule's tests, and when the code is right after all."
    yield "`lightlint rule CODE` shows a page in the terminal. `python -m lightlint.scaffold index` writes this list."
    for family, title in FAMILIES.items():
        members = [page for page in pages if page.family == family]
        if members:
            yield f"\n## {title}\n"
            yield _table(members)


def _table(pages: Sequence[Page]) -> str:
    rows = ["| Code | Rule | Tier | Fix | What is wrong |", "| --- | --- | --- | --- | --- |"]
    for page in pages:
        link = f"[{page.name}]({page.family}/{page.name}.md)"
        fix = page.fix.value if page.fix else ""
        rows.append(f"| {page.code} | {link} | {page.tier.value} | {fix} | {page.title.replace('|', chr(92) + '|')} |")
    return "\n".join(rows) + "\n"


def _write(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    write(path, text.encode())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
