"""The one walk over a tree: each node to the checks that want its type."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.clock import Clock, stage
from lightlint.finding import Finding, Tier
from lightlint.memo.compiled import kept_code
from lightlint.pages import Page

if TYPE_CHECKING:
    from lightlint.check import Check, Fault
    from lightlint.explore.rehearsals import Entry
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
) -> dict[Page, list[Fault]]:
    """Let checks visit the nodes of a file; returns what its rehearsals show in other files, by rule.

    Args:
        facts: those of the file.
        pages: the rules.
        add: called with each finding.
        failed: called from the `except` with what a check raised; the check is out for this file then.
        clock: told what takes how long.
    """
    handlers: dict[type, list[tuple[Page, Handler]]] = defaultdict(list)
    rehearsing: list[tuple[Page, Check]] = []
    out: set[str] = set()
    found: dict[str, list[Finding]] = defaultdict(list)
    elsewhere: dict[Page, list[Fault]] = {}

    def noted(finding: Finding) -> None:
        found[finding.name].append(finding)

    for page in pages:
        try:
            with stage(clock, "imports"):
                checker = check_class(page)
            rehearses = does_rehearse(page)
            check = checker(page, facts, noted if rehearses else add)
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
                    if faults := _rehearse(check, facts, tuple(found[page.name])):
                        elsewhere[page] = faults
                    found[page.name] = _standing_for_users(check, facts, found[page.name])
            except Exception as error:
                out.add(page.name)
                failed(page, error)
    for findings in found.values():
        for finding in findings:
            add(finding)
    return elsewhere


def _standing(check: Check, facts: FileFacts, findings: list[Finding]) -> list[Finding]:
    """The findings that no rehearsal of the file clears."""
    if not findings:
        return findings
    entries = (*facts.rehearsed.entries, *facts.rehearsed.rest(check.wants_rest()))
    return _not_cleared(check, facts, findings, entries)


def _standing_for_users(check: Check, facts: FileFacts, findings: list[Finding]) -> list[Finding]:
    """The findings that no file clears which trains with what this one holds: it knows what the loader gives, for one."""
    from lightlint.check import Check

    if not findings or type(check).clears is Check.clears or check.wants_users():
        return findings
    return _not_cleared(check, facts, findings, facts.rehearsed.of_users(_TRAINING))


_TRAINING = ("DataLoader", "Trainer")


def _not_cleared(check: Check, facts: FileFacts, findings: list[Finding], entries: Iterable[Entry]) -> list[Finding]:
    sites = [site for entry in entries for site in check.clears(entry)]
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
    elsewhere: list[Fault] = []
    for number, entry in enumerate([*rehearsed.entries, *passes, *rest, *users]):
        for fault in check.rehearse(entry):
            span = rehearsed.span(fault.site)
            if span is None and number < len(rehearsed.entries):
                elsewhere.append(fault)
            elif span is not None:
                key = (span, fault.message if fault.of_call else fault.argument)
                _, before = found.setdefault(key, (span, fault))
                if before.tier is Tier.NOTE and fault.tier is not Tier.NOTE:
                    found[key] = span, fault
    rows = [(facts.source.row_of(each.start), each.message) for each in told]
    around = {id(fault): _around(facts, fault) for _, fault in found.values()} if rows else {}
    calls = [around[id(fault)] for _, fault in found.values() if fault.of_call and rows]
    said = {message for row, message in rows if not any(_is_within(row, each) for each in calls)}
    for span, fault in found.values():
        in_given = fault.argument and fault.message in said  # in the dict that the call is given
        if not in_given and not any(_is_within(row, around[id(fault)]) for row, _ in rows):
            check.report_fault(fault, *span)
    return elsewhere


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
def check_class(page: Page) -> type[Check]:
    """The check of a rule."""
    with kept_code("lint"):
        module = import_module(page.check_module)
    wanted = page.name.replace("-", "").lower()
    classes = [each for name, each in vars(module).items() if name.lower() == wanted and isinstance(each, type)]
    return classes[0]


@cache
def does_rehearse(page: Page) -> bool:
    """Whether the check of a rule asks rehearsals."""
    from lightlint.check import Check

    checker = check_class(page)
    return checker.rehearse is not Check.rehearse or checker.clears is not Check.clears


@cache
def _visits(page: Page) -> tuple[tuple[type, str], ...]:
    names = [name for name in dir(check_class(page)) if name.startswith("visit_")]
    return tuple((getattr(cst, name.removeprefix("visit_")), name) for name in names)
