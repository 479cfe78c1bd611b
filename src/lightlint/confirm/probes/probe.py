"""What all probes share: their shape and the verdicts that several of them give."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from lightlint.confirm.records import Event, Run
from lightlint.confirm.verdict import Claim, Number, Outcome, Verdict

Judge = Callable[[Claim, Run], Verdict]


@dataclass(frozen=True, slots=True)
class Probe:
    """How findings of some rules are judged.

    Attributes:
        judge: the verdict for a claim.
        meters: the meters whose events it reads.
        ranks: ranks that must be there to see anything.
        needs_lines: whether the finding's lines must have run; where not, the probe looks at the whole run.
        timed: whether it needs a run without line tracing.
        inject: whether it needs a run in which the finding's `try` is made to fail.
    """

    judge: Judge
    meters: tuple[str, ...] = ()
    ranks: int = 1
    needs_lines: bool = True
    timed: bool = False
    inject: bool = False


def hits(claim: Claim, run: Run) -> list[tuple[int, Event]]:
    """How often each rank went through the claim's lines: (rank, line event)."""
    return [(rank, event) for rank, event in run.each("line") if event["finding"] == claim.index]


def through(places: Iterable[Sequence[Any]], claim: Claim) -> bool:
    """Whether one of these (file, row, ...) lies in the claim's lines."""
    return any(place[0] == claim.file and claim.first <= place[1] <= claim.last for place in places)


def confirmed(run: Run, reason: str, numbers: Sequence[Number] = ()) -> Verdict:
    """The fault is real."""
    return Verdict(Outcome.CONFIRMED, reason, run.scope, tuple(numbers))


def refuted(run: Run, reason: str, numbers: Sequence[Number] = ()) -> Verdict:
    """The fault is not there in this configuration."""
    return Verdict(Outcome.REFUTED, reason, run.scope, tuple(numbers))


def still_open(run: Run, reason: str, numbers: Sequence[Number] = ()) -> Verdict:
    """Looked for and not seen; a longer or another run may show it."""
    return Verdict(Outcome.OPEN, reason, run.scope, tuple(numbers))


def not_observable(run: Run, reason: str, numbers: Sequence[Number] = ()) -> Verdict:
    """This run cannot show it."""
    return Verdict(Outcome.NOT_OBSERVABLE, reason, run.scope, tuple(numbers))


def not_reached(run: Run) -> Verdict:
    """The lines did not run: the run ended before, was cut before, or never came to them."""
    errors = [event for _, event in run.each("exception")]
    if run.ended not in {"finished", "cut"}:
        how = f"raised {errors[0]['type']}" if run.ended == "raised" and errors else f"was {run.ended}"
        return Verdict(Outcome.NOT_CHECKED, f"the run {how} before the line was reached", run.scope)
    if any(event["reason"] == "cut" for _, event in run.each("end")) or any(
        event["cut"] for _, event in run.each("pass-end")
    ):
        return Verdict(Outcome.BEYOND_CUT, "the run was cut before the line was reached", run.scope)
    return Verdict(Outcome.NOT_REACHED, "the line was never executed", run.scope)
