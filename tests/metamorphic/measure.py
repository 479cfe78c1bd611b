"""Rewrites a case, lints what came out, and says which of its findings are still there."""

from __future__ import annotations

import ast
import shutil
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from lightlint.config.settings import Settings, load
from lightlint.facts.project.project import Projects
from lightlint.finding import Finding
from lightlint.linting.lint import lint
from lightlint.pipeline.homes import at_home
from lightlint.sources.load import load as load_source

from .cases import Case
from .program import ADDED, NotAlikeError, in_order, origin, parse
from .rewrites import Rewrite

REFORMATTED = "reformatted"
AT_FINDING, EVERYWHERE, GOOD = "at the finding", "everywhere", "good"


@dataclass(frozen=True)
class Outcome:
    """What a rewrite of a case did to the findings that were there before (`kept` and `lost`: their rows).

    Of a good example `fired` are the findings that came.
    """

    case: Case
    rewrite: str
    where: str
    kept: tuple[int, ...]
    lost: tuple[int, ...]
    fired: tuple[Finding, ...]
    text: str


@dataclass(frozen=True)
class Known:
    """A case with what is found in it as it stands."""

    case: Case
    rows: tuple[int, ...]
    statements: tuple[tuple[int, int], ...]
    """The rows of each statement, from the first to the last of its head."""
    origins: dict[int, int]
    """Which statement each found row belongs to."""
    regions: dict[int, int]
    """Which statement of the module holds each statement."""
    rules: frozenset[str]


@cache
def _settings(rules: tuple[str, ...], given: str) -> Settings:
    chosen = {"select": list(rules)} if rules else {}
    return load({**ast.literal_eval(given), **chosen}, isolated=True)


def look(case: Case, files: dict[str, str]) -> list[tuple[str, Finding]]:
    """What the rules of a case find in files, each with the name of its file."""
    settings = _settings(case.rules, repr(case.settings))
    folder = Path(tempfile.mkdtemp(prefix="rewritten-"))
    try:
        for name, text in files.items():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        projects = Projects()
        found: list[Finding] = []
        for name in files:
            linted = lint(load_source(folder / name), settings, projects)
            assert not linted.crashes, f"{case.where}: {linted.crashes[0].traceback}"
            found += linted.findings
        told = at_home(found, [folder / name for name in files], settings)
        named = ((str(Path(each.filename).relative_to(folder)), each) for each in told)
        return [(name, each) for name, each in named if case.rules or each.counts]
    finally:
        shutil.rmtree(folder)


def known(case: Case) -> Known | None:
    """The case with its findings, None where there are none to lose."""
    tree = ast.parse(case.files[case.target])
    heads = tuple(_head(each) for each in in_order(tree))
    found = [each for name, each in look(case, case.files) if name == case.target]
    origins: dict[int, int] = {}
    codes: set[str] = set()
    for finding in found:
        row = finding.location.row
        hits = {row} & set(case.rows) if case.rules else {r for r in case.rows if abs(r - row) <= 1}
        statement = _innermost(heads, row)
        if statement is not None and (hits or case.good) and statement not in origins.values():
            origins[row] = statement
            codes.add(finding.code)
    if not origins and not case.good:
        return None
    regions = {number: top for top, numbers in enumerate(_tops(tree)) for number in numbers}
    rules = frozenset(case.rules) or frozenset(codes)
    return Known(case, tuple(origins), heads, origins, regions, rules)


def _tops(tree: ast.Module) -> Iterator[range]:
    start = 0
    for each in tree.body:
        size = 1 + sum(1 for _ in in_order(each))
        yield range(start, start + size)
        start += size


def _head(statement: ast.stmt) -> tuple[int, int]:
    first = min([statement.lineno, *(each.lineno for each in getattr(statement, "decorator_list", ()))])
    inner = [each.lineno for each in in_order(statement)]
    return first, max(first, min(inner) - 1) if inner else statement.end_lineno or first


def _innermost(heads: Iterable[tuple[int, int]], row: int) -> int | None:
    holding = [number for number, (first, last) in enumerate(heads) if first <= row <= last]
    return holding[-1] if holding else None


def outcomes(case: Known, rewrites: Iterable[Rewrite]) -> Iterator[Outcome]:
    """What each rewrite does to a case, where it applies."""
    for rewrite in rewrites:
        seen: dict[str, Outcome] = {}
        for where in [GOOD] if case.case.good else [AT_FINDING, EVERYWHERE] if rewrite.local else [EVERYWHERE]:
            wanted = frozenset(case.origins.values()) if where == AT_FINDING else None
            files = rewritten(case.case, rewrite, wanted)
            if files is None:
                continue
            key = repr({name: text for name, (text, _) in files.items()})
            if key not in seen:
                seen[key] = _judged(case, rewrite.name, where, files)
            yield replace(seen[key], where=where)


def share(case: Case, rewrites: Iterable[Rewrite], parts: int) -> list[Rewrite]:
    """One part of the rewrites, another for each case, the same every time."""
    return [each for each in rewrites if zlib.crc32(f"{case.name} {case.digest} {each.name}".encode()) % parts == 0]


def measured(case: Case, rewrites: Iterable[Rewrite]) -> list[Outcome]:
    """All that rewrites do to a case. A right example is tried with a quarter of them: there are many."""
    start = known(case)
    chosen = share(case, rewrites, 4) if case.good else rewrites
    return list(outcomes(start, chosen)) if start else []


def rewritten(
    case: Case, rewrite: Rewrite, wanted: frozenset[int] | None
) -> dict[str, tuple[str, tuple[int, ...]]] | None:
    """The files of a rewritten case, those that changed with the origins of their statements.

    None where the rewrite has nothing to change.
    """
    program = parse(case.target, case.files[case.target], alone=len(case.files) == 1)
    program.wanted = wanted
    try:
        rewrite.apply(program)
    except NotAlikeError:
        return None
    trees = {case.target: program.tree, **program.added}
    texts = {name: ast.unparse(tree) for name, tree in trees.items()}
    is_same = not program.added and _own_text(program.tree, texts[case.target]) == _plain(case.files[case.target])
    if is_same and rewrite.name != REFORMATTED:
        return None
    files: dict[str, tuple[str, tuple[int, ...]]] = {name: (text, ()) for name, text in case.files.items()}
    for name, tree in trees.items():
        files[name] = (texts[name] + "\n", tuple(origin(each) for each in in_order(tree)))
    return files


@cache
def _plain(text: str) -> str:
    return ast.unparse(ast.parse(text))


def _own_text(tree: ast.Module, whole: str) -> str:
    """The program, of which this is the whole text, without what a rewrite did no more than put at the top."""
    own = [each for each in tree.body if origin(each) != ADDED]
    return whole if len(own) == len(tree.body) else ast.unparse(ast.Module(own, []))


def _judged(case: Known, rewrite: str, where: str, files: dict[str, tuple[str, tuple[int, ...]]]) -> Outcome:
    texts = {name: text for name, (text, _) in files.items()}
    found = [(name, each) for name, each in look(case.case, texts) if not case.rules or each.code in case.rules]
    shown = "\n".join(f"# {name}\n{text}" for name, (text, origins) in files.items() if origins)
    if case.case.good:
        was = len(case.origins)
        return Outcome(
            case.case, rewrite, where, (), (), tuple(each for _, each in found) if len(found) > was else (), shown
        )
    seen = [_origin_of(files[name], finding.location.row) for name, finding in found if files[name][1]]
    left = [row for row in case.rows if case.origins[row] not in seen]
    spare = [number for number in seen if number not in case.origins.values()]
    for number in spare:  # reported elsewhere in the function: that still tells of the fault
        region = case.regions.get(number)
        near = next((r for r in left if number == ADDED or case.regions[case.origins[r]] == region), None)
        if near is not None:
            left.remove(near)
    kept = tuple(row for row in case.rows if row not in left)
    return Outcome(case.case, rewrite, where, kept, tuple(left), (), shown)


def _origin_of(file: tuple[str, tuple[int, ...]], row: int) -> int:
    text, origins = file
    number = _innermost((_head(each) for each in in_order(ast.parse(text))), row)
    return ADDED if number is None else origins[number]
