"""One source through every check that applies: gate, tree, facts, checks, suppression."""

from __future__ import annotations

import ast
import gc
import sys
import traceback
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from lightlint.compiled import kept_code
from lightlint.finding import Applicability, Finding, Fix
from lightlint.needs import Text
from lightlint.pages import Page, all_pages, find
from lightlint.settings import Settings
from lightlint.sources.depth import too_deep
from lightlint.sources.source import Source
from lightlint.sources.suppress import Resolve, Suppressions, Unused, noqa_row, resolver

if TYPE_CHECKING:
    import libcst as cst

    from lightlint.check import Check
    from lightlint.clock import Clock
    from lightlint.facts.file import FileFacts
    from lightlint.facts.project import Projects

SYNTAX, CRASH, UNUSED, UNFIXED = "LL000", "LL001", "LL002", "LL003"
_RECURSION = 5_000  # Python frames, for trees as deep as `too_deep` lets through; libcst writes code with three a level
Handler = Callable[["cst.CSTNode"], None]


@dataclass(frozen=True, slots=True)
class Crash:
    """A check that failed on a file: lightlint's own fault, told with the traceback."""

    filename: str
    rule: str
    traceback: str


@dataclass(frozen=True, slots=True)
class Linted:
    """What linting one source gave."""

    findings: tuple[Finding, ...]
    crashes: tuple[Crash, ...] = ()


def lint(
    source: Source, settings: Settings, projects: Projects, *, gate: bool = True, clock: Clock | None = None
) -> Linted:
    """Run the rules that the settings turn on for a source and whose `needs` its text meets.

    Args:
        source: what to lint.
        settings: those of the file.
        projects: where other files' facts come from.
        gate: False runs every rule whatever its `needs` say; the findings are the same, only slower.
        clock: told what takes how long.
    """
    active = settings.rules_for(source.filename)
    suppressions = Suppressions.read(source)
    if suppressions.skips_file:
        return Linted(())
    pages = [page for page in all_pages().values() if page.name in active and page.family != "lightlint"]
    if gate:
        with _stage(clock, "gate"):
            text = Text(source.text, source.shown)
            pages = [page for page in pages if page.needs.met(text)]
    found, crashes = _run(source, pages, settings, projects, clock) if pages else ([], [])
    found += [_own(SYNTAX, source, offset, offset, message) for offset, message in source.broken]
    on = {page.code for page in all_pages().values() if page.name in active}
    kept, silenced = suppressions.split((each for each in found if each.code in on), codes_of())
    if UNUSED in on:
        kept += [_idle(source, unused) for unused in suppressions.unused(silenced, codes_of(), on)]
    return Linted(
        tuple(sorted((_shown(source, each) for each in kept), key=lambda each: each.sort_key)), tuple(crashes)
    )


@cache
def codes_of() -> Resolve:
    """Which rule codes a word in a suppression comment stands for."""
    return resolver(all_pages().values())


def _run(
    source: Source, pages: Sequence[Page], settings: Settings, projects: Projects, clock: Clock | None
) -> tuple[list[Finding], list[Crash]]:
    deep = too_deep(source.text)
    if deep is not None:
        return [_own(SYNTAX, source, deep, deep, "expressions nested too deeply to be parsed")], []
    with _recursion(_RECURSION):
        return _checked(source, pages, settings, projects, clock)


def _checked(
    source: Source, pages: Sequence[Page], settings: Settings, projects: Projects, clock: Clock | None
) -> tuple[list[Finding], list[Crash]]:
    try:
        with kept_code("lint"), _stage(clock, "imports"):
            import_module("lightlint.facts.file")
        with _stage(clock, "parse"):
            module = parse(source)
        with _stage(clock, "tree"):
            facts = _facts(source, module, settings, projects)
    except UnparsableError as error:
        return [_own(SYNTAX, source, error.offset, error.offset, error.message)], []
    found: list[Finding] = []
    crashes: list[Crash] = []
    with no_collection():
        _visit(facts, pages, found.append, crashes.append, clock)
        facts.release()
    return list(dict.fromkeys(found)), crashes


def _visit(
    facts: FileFacts,
    pages: Sequence[Page],
    add: Callable[[Finding], None],
    crashed: Callable[[Crash], None],
    clock: Clock | None,
) -> None:
    """The one walk: each node to the checks that want its type. A check that fails is out for this file."""
    handlers: dict[type, list[tuple[Page, Handler]]] = defaultdict(list)
    out: set[str] = set()

    def failed(page: Page) -> None:
        out.add(page.name)
        crashed(Crash(facts.source.filename, page.name, traceback.format_exc()))
        add(_own(CRASH, facts.source, 0, 0, f"the check of `{page.name}` failed on this file"))

    for page in pages:
        try:
            with _stage(clock, "imports"):
                check_class = _check_class(page)
            check = check_class(page, facts, add)
            for kind, name in _visits(page):
                handler: Handler = getattr(check, name)
                handlers[kind].append((page, clock.timed(page.name, handler) if clock else handler))
        except Exception:
            failed(page)
    for node in facts.tree.of_types(*handlers):
        for page, handler in handlers[type(node)]:
            if page.name not in out:
                try:
                    handler(node)
                except Exception:
                    failed(page)


def _stage(clock: Clock | None, name: str) -> AbstractContextManager[None]:
    return clock.of(name) if clock else nullcontext()


@cache
def _check_class(page: Page) -> type[Check]:
    with kept_code("lint"):
        module = import_module(page.check_module)
    wanted = page.name.replace("-", "").lower()
    classes = [each for name, each in vars(module).items() if name.lower() == wanted and isinstance(each, type)]
    return classes[0]


@cache
def _visits(page: Page) -> tuple[tuple[type, str], ...]:
    import libcst as cst

    names = [name for name in dir(_check_class(page)) if name.startswith("visit_")]
    return tuple((getattr(cst, name.removeprefix("visit_")), name) for name in names)


class UnparsableError(Exception):
    """Text that is no Python libcst knows; `offset` is where it stops being it."""

    def __init__(self, offset: int, message: str) -> None:
        self.offset, self.message = offset, message


def _facts(source: Source, module: cst.Module, settings: Settings, projects: Projects) -> FileFacts:
    from pathlib import Path

    from lightlint.facts.file import FileFacts

    target = {"torch": settings.target.torch, "lightning": settings.target.lightning}
    return FileFacts(
        source,
        module,
        projects.of(Path(source.filename).absolute()),
        distributed=settings.distributed,
        target={package: version for package, version in target.items() if version},
    )


def parse(source: Source) -> cst.Module:
    """The libcst tree of a source.

    Raises:
        UnparsableError: the text is no Python that libcst knows.
    """
    import libcst as cst

    with no_collection(), _unvalidated(cst.CSTNode):
        try:
            return cst.parse_module(source.text)
        except cst.ParserSyntaxError as error:
            raise _unparsable(source, error) from None
        except RecursionError:
            raise UnparsableError(0, "expressions nested too deeply to be parsed") from None


def _unparsable(source: Source, error: cst.ParserSyntaxError) -> UnparsableError:
    """The error in Python's own words and at its place, where it refuses the text, too: libcst lists grammar tokens."""
    row, column = error.raw_line, error.raw_column
    message = " ".join(error.message.split()).removeprefix("parser error: ")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(source.text)
    except SyntaxError as own:
        row, column, message = own.lineno or 1, (own.offset or 1) - 1, own.msg
    except (ValueError, RecursionError, MemoryError):
        pass
    start = source.row_starts[min(row, len(source.row_starts)) - 1]
    return UnparsableError(min(start + max(0, column), len(source.text)), f"syntax error: {message}")


def parses(text: str) -> bool:
    """Whether a text is Python that libcst knows: what a fix must leave behind."""
    import libcst as cst

    try:
        cst.parse_module(text)
    except (cst.ParserSyntaxError, RecursionError):
        return False
    return True


def _own(code: str, source: Source, start: int, end: int, message: str) -> Finding:
    """A finding of lightlint about itself or about a file it cannot read."""
    page = find(code)
    assert page is not None
    cell = source.cell_at(start)
    where, until = source.locate(start), source.locate(end)
    number = cell.number if cell else None
    return Finding(code, page.name, page.tier, message, source.filename, start, end, where, until, number)


def _idle(source: Source, unused: Unused) -> Finding:
    finding = _own(UNUSED, source, unused.start, unused.end, f"`{unused.text}` suppresses nothing here")
    editable = source.editable((unused.edit,))
    fix = Fix(f"remove `{unused.text}` from the comment", Applicability.SAFE, (unused.edit,)) if editable else None
    return replace(finding, fix=fix)


def _shown(source: Source, finding: Finding) -> Finding:
    """The finding with what reports show beside it."""
    row = noqa_row(source, finding.start)
    return replace(finding, noqa_row=row, excerpt=source.excerpt(finding.start, finding.end))


@contextmanager
def _recursion(frames: int) -> Iterator[None]:
    """At least so many Python frames; the limit is put back, since others run in this process, too."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, frames))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


@contextmanager
def _unvalidated(nodes: Any) -> Iterator[None]:
    """Nodes that libcst does not look through as they are made: what its parser makes is valid (a tenth of the time)."""
    validate = nodes.__post_init__
    nodes.__post_init__ = _nothing
    try:
        yield
    finally:
        nodes.__post_init__ = validate


def _nothing(_: object) -> None:
    return


@contextmanager
def no_collection() -> Iterator[None]:
    """Garbage collection off: libcst makes millions of objects and no cycles (a fifth of the parse time, measured)."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def unreadable(filename: str, message: str) -> Finding:
    """The finding for a file that cannot be linted at all."""

    class _Nothing:
        def render(self, *_: Any) -> bytes:
            raise NotImplementedError

    return _own(SYNTAX, Source(filename, "", _Nothing()), 0, 0, message)
