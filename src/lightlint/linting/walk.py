"""The one walk over a tree: each node to the checks that want its type."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.clock import Clock, stage
from lightlint.finding import Finding
from lightlint.memo.compiled import kept_code
from lightlint.pages import Page

if TYPE_CHECKING:
    from lightlint.check import Check, Fault
    from lightlint.facts.file import FileFacts

Handler = Callable[[cst.CSTNode], None]
Rows = tuple[int, int]
Failed = Callable[[Page, Exception], None]


def walk(
    facts: FileFacts,
    pages: Sequence[Page],
    add: Callable[[Finding], None],
    failed: Failed,
    clock: Clock | None,
    *,
    looks_away: bool = True,
    more: Callable[[FileFacts], Sequence[Page]] | None = None,
) -> None:
    """Let checks visit the nodes of a file.

    Args:
        facts: those of the file.
        pages: the rules.
        add: called with each finding.
        failed: called from the `except` with what a check raised; the check is out for this file then.
        clock: told what takes how long.
        looks_away: what the file does in other files of the project counts, too.
        more: the rules that only what it does in other files can concern.
    """
    handlers: dict[type, list[tuple[Page, Handler]]] = defaultdict(list)
    rehearsing: list[tuple[Page, Check]] = []
    out: set[str] = set()
    found: dict[str, list[Finding]] = defaultdict(list)

    def noted(finding: Finding) -> None:
        found[finding.name].append(finding)

    for page in pages:
        try:
            with stage(clock, "imports"):
                check_class = _check_class(page)
            rehearses = _rehearses(page)
            check = check_class(page, facts, noted if rehearses else add)
            if rehearses:
                rehearsing.append((page, check))
            for kind, name in _visits(page):
                handler: Handler = getattr(check, name)
                handlers[kind].append((page, clock.timed(page.name, handler) if clock else handler))
        except Exception as error:
            out.add(page.name)
            failed(page, error)
    for node in facts.tree.of_types(*handlers):
        for page, handler in handlers[type(node)]:
            if out and page.name in out:
                continue
            try:
                handler(node)
            except Exception as error:
                out.add(page.name)
                failed(page, error)
    for page, check in rehearsing:
        if page.name not in out:
            try:
                with stage(clock, "rehearsal"):
                    found[page.name] = _standing(check, facts, found[page.name])
                    away = _rehearse(check, facts, tuple(found[page.name]))
                    if looks_away:
                        _tell_away(check, facts, away)
            except Exception as error:
                out.add(page.name)
                failed(page, error)
    for page in more(facts) if more is not None else ():
        try:
            check = _check_class(page)(page, facts, noted)
            if _rehearses(page):
                faults = [fault for entry in facts.rehearsed.entries for fault in check.rehearse(entry)]
                _tell_away(check, facts, [fault for fault in faults if facts.rehearsed.span(fault.site) is None])
        except Exception as error:
            failed(page, error)
    for findings in found.values():
        for finding in findings:
            add(finding)


def _standing(check: Check, facts: FileFacts, findings: list[Finding]) -> list[Finding]:
    """The findings that no rehearsal clears."""
    sites = [site for entry in facts.rehearsed.entries for site in check.clears(entry)] if findings else []
    spans = [span for site in sites if (span := facts.rehearsed.span(site)) is not None and not _is_whole(facts, span)]
    return [each for each in findings if not any(start < each.end and each.start < end for start, end in spans)]


_FUNCTION = ("def ", "async def ", "@")


def _is_whole(facts: FileFacts, span: tuple[int, int]) -> bool:
    """Whether a place is a whole function or class, which a framework or nobody calls."""
    return facts.source.text.startswith((*_FUNCTION, "class "), span[0])


def _rehearse(check: Check, facts: FileFacts, told: Sequence[Finding]) -> list[Fault]:
    """Report what the rehearsals show, but for what the rule has told from the text; returns what lies in other files."""
    rehearsed = facts.rehearsed
    found: dict[Hashable, tuple[tuple[int, int], Fault]] = {}
    words = check.wants_users()
    users = rehearsed.of_users(words) if words else []
    passes = rehearsed.passes if check.wants_passes() else []
    rest = rehearsed.rest(check.wants_rest())
    away: list[Fault] = []
    for number, entry in enumerate([*rehearsed.entries, *passes, *rest, *users]):
        for fault in check.rehearse(entry):
            span = rehearsed.span(fault.site)
            if span is None and number < len(rehearsed.entries):
                away.append(fault)
            elif span is not None:
                found.setdefault((span, fault.message if fault.of_call else fault.argument), (span, fault))
    rows = [(facts.source.row_of(each.start), each.message) for each in told]
    around = {id(fault): _around(facts, fault) for _, fault in found.values()} if rows else {}
    calls = [around[id(fault)] for _, fault in found.values() if fault.of_call and rows]
    elsewhere = {message for row, message in rows if not any(_is_within(row, each) for each in calls)}
    for span, fault in found.values():
        in_given = fault.argument and fault.message in elsewhere  # in the dict that the call is given
        if not in_given and not any(_is_within(row, around[id(fault)]) for row, _ in rows):
            check.report_fault(fault, *span)
    return away


def _tell_away(check: Check, facts: FileFacts, faults: Sequence[Fault]) -> None:
    """Report at the file's own calls what they come to in other files, unless it is told there: code that only its callers
    make wrong, such as a meter that is given losses, shows nothing by itself."""
    rehearsed = facts.rehearsed
    told: dict[str, list[Finding] | None] = {}
    seen: set[tuple[Hashable, ...]] = set()
    for fault in faults:
        span = next(
            filter(None, map(rehearsed.span, (*reversed(fault.calls), *fault.also[:1], *reversed(fault.also[1:])))),
            None,
        )
        file, row = fault.site[:2]
        if span is None or not row or (span, fault.message) in seen:
            continue
        seen.add((span, fault.message))
        if file not in told:
            told[file] = _findings_in(check, facts, Path(file))
        findings, other = told[file], facts.other(Path(file))
        if findings is None or other is None:
            continue
        first, last = other.rehearsed.around(row)
        if not any(
            first <= other.source.row_of(each.start) <= last or each.message == fault.message for each in findings
        ):
            check.report_away(fault, f"{Path(file).name}:{row}", *span)


def _findings_in(check: Check, facts: FileFacts, file: Path) -> list[Finding] | None:
    """What the rule finds in another file of the project, looked at by itself; None for one that cannot be looked at."""
    other = facts.other(file)
    found: list[Finding] = []
    failures: list[Page] = []
    if other is not None:
        walk(other, [check.page], found.append, lambda page, _: failures.append(page), None, looks_away=False)
    return None if other is None or failures else found


def _is_within(row: int, places: Iterable[Rows]) -> bool:
    return any(first <= row <= last for first, last in places)


def _around(facts: FileFacts, fault: Fault) -> list[Rows]:
    """The rows of the functions in which a fault lies, of the calls that led to it, and of a class whose hooks were called;
    of the call alone for a fault in its arguments."""
    if fault.of_call:
        return [(fault.site[1], fault.site[3])]
    rehearsed = facts.rehearsed
    functions = [rehearsed.around(site[1]) for site in (fault.site, *fault.also) if rehearsed.span(site) is not None]
    spans = ((site, rehearsed.span(site)) for site in fault.calls)
    called = [site for site, span in spans if span and not facts.source.text.startswith(_FUNCTION, span[0])]
    return functions + [(site[1], site[3]) for site in called]


@cache
def _check_class(page: Page) -> type[Check]:
    with kept_code("lint"):
        module = import_module(page.check_module)
    wanted = page.name.replace("-", "").lower()
    classes = [each for name, each in vars(module).items() if name.lower() == wanted and isinstance(each, type)]
    return classes[0]


@cache
def _rehearses(page: Page) -> bool:
    from lightlint.check import Check

    return _check_class(page).rehearse is not Check.rehearse


@cache
def _visits(page: Page) -> tuple[tuple[type, str], ...]:
    names = [name for name in dir(_check_class(page)) if name.startswith("visit_")]
    return tuple((getattr(cst, name.removeprefix("visit_")), name) for name in names)
