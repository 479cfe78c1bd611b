"""What a file comes to in other files of its project, told at its own calls: code that only its callers make wrong, such as a
meter that is given losses, shows nothing by itself."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence, Set
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from lightlint.clock import Clock
from lightlint.finding import Finding
from lightlint.linting.asked import asking_for
from lightlint.linting.gate import met_by
from lightlint.linting.shown import shown
from lightlint.linting.walk import Failed, check_class, does_rehearse, walk
from lightlint.pages import Page
from lightlint.text import Text, Together

if TYPE_CHECKING:
    from lightlint.check import Check, Fault
    from lightlint.facts.file import FileFacts


def walk_with_others(
    facts: FileFacts,
    text: Text,
    pages: Sequence[Page],
    active: Set[str],
    add: Callable[[Finding], None],
    failed: Failed,
    clock: Clock | None,
) -> None:
    """Let checks visit the nodes of a file, and look at what its code does in other files.

    Args:
        facts: those of the file.
        text: its own, as `needs` ask it.
        pages: the rules whose `needs` it meets; those whose needs are events are found here.
        active: the names of all rules that are on: others of them may concern what it does in other files.
        add, failed, clock: as `walk` takes them.
    """
    left = active - {page.name for page in pages}
    happening = asking_for(facts.rehearsed.kinds, left) if left else []
    asked = [page for page in happening if page.needs.are_events]
    elsewhere = walk(facts, [*pages, *asked], add, failed, clock)
    others = [page for page in happening if not page.needs.are_events]
    for page in [*elsewhere, *_besides(facts, text, others, left)]:
        try:
            check = check_class(page)(page, facts, add)
            _tell(check, facts, elsewhere[page] if page in elsewhere else _faults_elsewhere(check, facts))
        except Exception as error:
            failed(page, error)


def _besides(facts: FileFacts, text: Text, happening: Sequence[Page], left: Set[str]) -> list[Page]:
    """The rules that ask for what is happening in a file, and of some that are left those whose `needs` it and the others in
    which its code, or what it asks for, lies meet together."""
    others = facts.rehearsed.imported if left else []
    together = met_by(Together(text, map(facts.project.text, others)), left) if others else []
    return [*filter(does_rehearse, dict.fromkeys([*happening, *together]))]


def _faults_elsewhere(check: Check, facts: FileFacts) -> list[Fault]:
    """The faults that lie in other files; reports those in this one, which has not all the words of the rule by itself."""
    elsewhere: list[Fault] = []
    for fault in (fault for entry in facts.rehearsed.entries for fault in check.rehearse(entry)):
        span = facts.rehearsed.span(fault.site)
        if span is None:
            elsewhere.append(fault)
        else:
            check.report_fault(fault, *span)
    return elsewhere


def _tell(check: Check, facts: FileFacts, faults: Sequence[Fault]) -> None:
    """Report faults in other files at the calls that lead there, unless they are told there."""
    looked_at: dict[str, _Other | None] = {}
    seen: set[Hashable] = set()
    for fault in faults:
        led_from = fault.led_from
        for site in (fault.site, *fault.also):
            if not any(map(facts.rehearsed.span, led_from)):
                led_from += facts.rehearsed.leading_to(site)
        span = next(filter(None, map(facts.rehearsed.span, led_from)), None)
        file, row = fault.site[:2]
        if span is None or not row or (span, fault.message) in seen:
            continue
        seen.add((span, fault.message))
        before = takewhile(lambda site: facts.rehearsed.span(site) is None, led_from)
        files = dict.fromkeys([file, *(site[0] for site in before)])
        for each in files:
            if each not in looked_at:
                looked_at[each] = _Other.of(check, facts, Path(each))
        others = [other for each in files if (other := looked_at[each]) is not None]
        home = looked_at[file]
        if home is not None and not any(other.tells(fault) for other in others):
            check.report_away(fault, f"{Path(file).name}:{row}", *span, home.finding_of(check, fault))


class _Other:
    """Another file of the project, and what the rule finds in it by itself."""

    def __init__(self, facts: FileFacts, findings: Sequence[Finding], away: Sequence[Fault]) -> None:
        self._facts, self._findings = facts, findings
        self._away = {(fault.site, fault.message) for fault in away}

    @classmethod
    def of(cls, check: Check, facts: FileFacts, file: Path) -> _Other | None:
        """One by its path; None where it cannot be looked at."""
        other = facts.other(file)
        if other is None:
            return None
        found: list[Finding] = []
        failures: list[Page] = []
        page, source = check.page, other.source
        if not (page.needs.are_events or page.needs.met(Text(source.text, source.shown))):  # `_besides` decides there
            return cls(other, found, _faults_elsewhere(type(check)(page, other, found.append), other))
        away = walk(other, [page], found.append, lambda page, _: failures.append(page), None)
        return None if failures else cls(other, found, away.get(page, ()))

    def finding_of(self, check: Check, fault: Fault) -> Finding | None:
        """A fault that lies in it as a finding of its own, None where its place is unknown or findings there do not stand."""
        span = self._facts.rehearsed.span(fault.site)
        found: list[Finding] = []
        if span is not None:
            type(check)(check.page, self._facts, found.append).report_fault(fault, *span)
        return shown(self._facts.source, replace(found[0], fix=None)) if found else None

    def tells(self, fault: Fault) -> bool:
        """Whether a fault is told in it: in the function where it lies, in the same words, or at a call that leads there."""
        if (fault.site, fault.message) in self._away:
            return True
        first, last = self._facts.rehearsed.around(fault.site[1])
        rows = (self._facts.source.row_of(each.start) for each in self._findings)
        here = self._facts.rehearsed.span(fault.site) is not None
        return (here and any(first <= row <= last for row in rows)) or any(
            each.message == fault.message for each in self._findings
        )
