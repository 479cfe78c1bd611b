"""Apply fixes to one source in rounds, until nothing is left to do; what goes wrong is taken back and reported (LL003)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from lightlint.finding import Edit, Finding
from lightlint.pages import find
from lightlint.sources.source import Source

ROUNDS = 10
CODE = "LL003"

Lint = Callable[[Source], Sequence[Finding]]
Parses = Callable[[str], bool]
Tidy = Callable[[Source, Source], Sequence[Edit]]


@dataclass(frozen=True, slots=True)
class Fixed:
    """What became of a source.

    `applied` are the findings that were repaired, each where it stood in its round; `left` is what linting finds in
    the source now; `problems` are LL003 findings about fixes that did not work.
    """

    source: Source
    applied: tuple[Finding, ...]
    left: tuple[Finding, ...]
    problems: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class _Failure:
    """A fix that was taken back, at the place where its finding stands now. It is not tried again."""

    finding: Finding
    message: str
    low: int
    high: int

    def concerns(self, finding: Finding) -> bool:
        return _kind(finding) == _kind(self.finding) and self.low <= finding.start <= self.high


@dataclass(frozen=True, slots=True)
class _State:
    """The source after a round, what linting finds in it, and what was done so far."""

    source: Source
    findings: tuple[Finding, ...]
    applied: tuple[Finding, ...] = ()
    failures: tuple[_Failure, ...] = ()

    def failing(self, culprits: Iterable[Finding], what: str) -> _State:
        failures = (
            _Failure(each, f"the fix of `{each.name}` ({each.code}) {what}", each.start, each.start)
            for each in culprits
        )
        return replace(self, failures=(*self.failures, *failures))

    def after(self, source: Source, findings: tuple[Finding, ...], applied: Sequence[Finding]) -> _State:
        edits = _edits(applied)
        failures = tuple(
            replace(each, low=_moved(each.low, edits)[0], high=_moved(each.high, edits)[1]) for each in self.failures
        )
        return _State(source, findings, (*self.applied, *applied), failures)


def fix_source(
    source: Source,
    lint: Lint,
    *,
    unsafe: bool,
    parses: Parses,
    found: Sequence[Finding] | None = None,
    tidy: Tidy | None = None,
) -> Fixed:
    """Repair a source round by round, at most ten.

    Args:
        source: what to repair.
        lint: finds what is wrong in a source; called again after each round.
        unsafe: also apply fixes that may change what the program means.
        parses: whether a text is valid; no round that makes it invalid is kept.
        found: what linting finds in the source as it is, where that is known.
        tidy: what is to be cleared away after the fixes, told the text before and after them, until it says nothing.
    """
    state = _State(source, tuple(lint(source) if found is None else found))
    seen = {source.text: state}
    for _ in range(ROUNDS):
        state, following = _round(state, lint, unsafe=unsafe, parses=parses)
        if following is None:
            return _fixed(_tidied(source, state, lint, tidy) if tidy else state)
        earlier = seen.get(following.source.text)
        if earlier is not None:
            fighting = following.applied[len(earlier.applied) :]
            return _fixed(earlier, fighting, "undo each other")
        state = seen[following.source.text] = following
    return _fixed(state, _chosen(state, unsafe=unsafe), f"were still due after {ROUNDS} rounds")


def _tidied(source: Source, state: _State, lint: Lint, tidy: Tidy) -> _State:
    """The state without what fixes left behind; a step that would bring a finding is not taken."""
    while state.applied and (edits := tidy(source, state.source)) and state.source.editable(edits):
        text = state.source.rewritten(edits)
        findings = tuple(lint(text))
        if Counter(map(_kind, findings)) - Counter(map(_kind, state.findings)):
            break
        state = replace(state, source=text, findings=findings)
    return state


def _round(state: _State, lint: Lint, *, unsafe: bool, parses: Parses) -> tuple[_State, _State | None]:
    """The state with the failures that turned up, and the one after a round that worked, None if nothing is left to do."""
    while chosen := _chosen(state, unsafe=unsafe):
        kept, culprits = _parsing(state.source, chosen, parses)
        state = state.failing(culprits, "would leave text that does not parse")
        if not kept:
            continue
        source = state.source.rewritten(_edits(kept))
        findings = tuple(lint(source))
        stubborn = _still_there(state.findings, kept, findings)
        if not stubborn:
            return state, state.after(source, findings, kept)
        state = state.failing(stubborn, "does not remove what was found")
    return state, None


def _chosen(state: _State, *, unsafe: bool) -> list[Finding]:
    """Findings whose fixes can be applied together; one fix of several findings is taken once for all."""
    chosen: list[Finding] = []
    for finding in sorted(state.findings, key=lambda each: (each.start, each.code, each.message)):
        fix = finding.fix
        if fix is None or not fix.is_wanted(unsafe=unsafe):
            continue
        if any(failure.concerns(finding) for failure in state.failures) or not state.source.editable(fix.edits):
            continue
        taken = _edits(chosen)
        same = any(other.fix is not None and other.fix.edits == fix.edits for other in chosen)
        if same or not any(_collide(edit, other) for edit in fix.edits for other in taken):
            chosen.append(finding)
    return chosen


def _parsing(source: Source, chosen: list[Finding], parses: Parses) -> tuple[list[Finding], list[Finding]]:
    """The fixes that leave valid text together, and those that do not even alone.

    One that fails only together with others (both statements of a block dropped) waits for the next round.
    """
    if parses(source.rewritten(_edits(chosen)).text):
        return chosen, []
    kept: list[Finding] = []
    culprits: list[Finding] = []
    for finding in chosen:
        if parses(source.rewritten(_edits([*kept, finding])).text):
            kept.append(finding)
        elif not kept or not parses(source.rewritten(_edits([finding])).text):
            culprits.append(finding)
    return kept, culprits


def _still_there(before: Sequence[Finding], applied: Sequence[Finding], after: Sequence[Finding]) -> list[Finding]:
    """The findings that are found again at their place, though their fixes were applied.

    Another finding of the same message may have moved there; then there are as many fewer as fixes were applied.
    """
    edits = _edits(applied)
    surplus = Counter(map(_kind, after))
    surplus.subtract(map(_kind, before))
    surplus.update(map(_kind, applied))
    stubborn = []
    for finding in applied:
        low, high = _moved(finding.start, edits)
        again = any(_kind(other) == _kind(finding) and low <= other.start <= high for other in after)
        if again and surplus[_kind(finding)] > 0:
            stubborn.append(finding)
    return stubborn


def _kind(finding: Finding) -> tuple[str, str]:
    return finding.code, finding.message


def _edits(findings: Iterable[Finding]) -> list[Edit]:
    """The edits of the findings' fixes, in order, each once."""
    edits = dict.fromkeys(edit for finding in findings if finding.fix for edit in finding.fix.edits)
    return sorted(edits, key=lambda edit: (edit.start, edit.end))


def _collide(one: Edit, other: Edit) -> bool:
    """Whether two edits overlap, or one inserts where the other begins or ends."""
    if one.start == one.end or other.start == other.end:
        return one.start <= other.end and other.start <= one.end
    return one.start < other.end and other.start < one.end


def _moved(offset: int, edits: Sequence[Edit]) -> tuple[int, int]:
    """Where what stood at an offset can stand after ordered edits: before or behind text inserted there."""
    low = high = offset
    for edit in edits:
        growth = len(edit.content) - (edit.end - edit.start)
        if edit.start < offset < edit.end:
            start = low + edit.start - offset
            return start, start + len(edit.content)
        if edit.start == edit.end == offset:
            high += growth
        elif edit.end <= offset:
            low, high = low + growth, high + growth
    return low, high


def _fixed(state: _State, stopped: Sequence[Finding] = (), what: str = "") -> Fixed:
    """The outcome; `stopped` are the findings whose fixes made the rounds end, and `what` says what these do."""
    problems = [_problem(state.source, failure.low, failure.message) for failure in state.failures]
    if stopped:
        names = sorted({f"`{finding.name}` ({finding.code})" for finding in stopped})
        problems.append(_problem(state.source, stopped[0].start, f"the fixes of {' and '.join(names)} {what}"))
    return Fixed(state.source, state.applied, state.findings, tuple(problems))


def _problem(source: Source, start: int, message: str) -> Finding:
    page = find(CODE)
    assert page is not None, "the rule book has a page for fixes that fail"
    start = min(start, len(source.text))
    location, cell = source.locate(start), source.cell_at(start)
    number = cell.number if cell else None
    return Finding(CODE, page.name, page.tier, message, source.filename, start, start, location, location, number)
