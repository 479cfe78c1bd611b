"""Claims and a run to verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from textwrap import shorten

from lightlint.confirm.observed.observation import Observation
from lightlint.confirm.probes import all_probes
from lightlint.confirm.probes.probe import Probe, confirmed, hits, through
from lightlint.confirm.records import Run
from lightlint.confirm.verdict import Claim, Outcome, Verdict

_LONGEST = 160  # characters of an error's message
_EARLY = {"interrupted", "killed", "timed out"}  # ends that leave what was not seen unproven


def judge(
    claims: Iterable[Claim],
    run: Run,
    *,
    timed: Run | None = None,
    injected: Mapping[int, Run] | None = None,
    observed: Sequence[Observation] = (),
) -> tuple[Verdict, ...]:
    """The verdict for each claim, in order.

    Args:
        timed: the same command without line tracing, for probes that measure time.
        injected: by claim, the runs in which its `try` was made to fail.
        observed: what the run itself showed.
    """
    return tuple(
        _with_observed(
            claim, run, verdict(claim, run, timed=timed, injected=(injected or {}).get(claim.index)), observed
        )
        for claim in claims
    )


def unnamed(
    observed: Iterable[Observation], claims: Iterable[Claim], verdicts: Iterable[Verdict]
) -> tuple[Observation, ...]:
    """What the run showed, without what a confirmed finding says already; what ended the run is told in any case."""
    named = [claim for claim, each in zip(claims, verdicts, strict=True) if each.outcome is Outcome.CONFIRMED]
    return tuple(each for each in observed if each.is_first or not any(_names(claim, each) for claim in named))


def _names(claim: Claim, observation: Observation) -> bool:
    """Whether a finding is about what the run showed: at one of its lines, and of a kind with it."""
    return claim.probe in observation.probes and through(observation.places, claim)


def _came_last(claim: Claim, run: Run, observation: Observation) -> bool:
    """Whether the ranks that left, and only they, came to a finding's lines, and took no step behind them."""
    if observation.kind != "left" or claim.probe not in observation.probes or len(observation.ranks) == len(run.ranks):
        return False
    came = {rank: event.time for rank, event in hits(claim, run)}
    return set(came) == set(observation.ranks) and all(
        event.time <= time for rank, time in came.items() for event in run.ranks[rank].of("step", "batch")
    )


def _with_observed(claim: Claim, run: Run, found: Verdict, observed: Sequence[Observation]) -> Verdict:
    """What the run itself showed on a finding's line confirms it."""
    faults = [each for each in observed if each.is_fault]
    shown = next((each for each in faults if _names(claim, each) or _came_last(claim, run, each)), None)
    if shown is None or found.outcome is Outcome.CONFIRMED:
        return found
    return confirmed(run, "; ".join((shown.message, *shown.details)), found.numbers)


def verdict(claim: Claim, run: Run, *, timed: Run | None = None, injected: Run | None = None) -> Verdict:
    """The verdict for one claim; a probe that fails says so instead of guessing."""
    probe = all_probes().get(claim.probe)
    if probe is None:
        return _not_checked(
            run, "its fault is known from the text" if claim.probe == "none" else f"no probe `{claim.probe}`"
        )
    if not run.started:
        return _not_checked(run, _unstarted(run))
    if probe.inject and injected is None:
        return _proven(_advised(run, "shows only when its `try` fails: add `--inject`"), run)
    if injected is not None:
        found = _proven(_judged(claim, injected, injected, probe), injected)
        return replace(found, scope=f"{found.scope}, injected")
    found = _proven(_judged(claim, run, timed, probe), run)
    return _proven(found, timed) if probe.timed and timed is not None else found


def _proven(found: Verdict, run: Run) -> Verdict:
    """What a run that ended early or lost records shows is proven; what it does not show is not."""
    if found.outcome in {Outcome.CONFIRMED, Outcome.NOT_CHECKED}:
        return found
    if run.incomplete:
        return _not_checked(run, run.incomplete)
    return _not_checked(run, f"the run {_how(run)}") if run.ended in _EARLY else found


def _unstarted(run: Run) -> str:
    if run.incomplete:
        return run.incomplete
    if run.ended in _EARLY:
        return f"the run {_how(run)} before it began"
    return "the command wrote no record: another interpreter, or `python -I`, `-E` or `-S`"


def _judged(claim: Claim, run: Run, timed: Run | None, probe: Probe) -> Verdict:
    """The probe's verdict, where it can have one; a probe that measures time has it of the run without line tracing."""
    seen = timed if probe.timed and timed is not None else run
    failed = _failed_meter(probe, run) or _failed_meter(probe, seen)
    if failed:
        return _not_checked(run, failed)
    if run.world < probe.ranks:
        return _too_few(run, probe)
    if probe.timed and timed is None:
        return _advised(run, "shows only in a run without line tracing: leave out `--no-timing`")
    try:
        if probe.needs_lines and not hits(claim, run):
            return _unreached(claim, run, probe)
        return probe.judge(claim, seen)
    except Exception as error:
        return _not_checked(run, f"probe `{claim.probe}` failed: {type(error).__name__}: {error}")


def _too_few(run: Run, probe: Probe) -> Verdict:
    """Why there were not as many ranks as the fault needs."""
    if len(run.ranks) < probe.ranks:
        return _advised(run, f"shows on {probe.ranks} ranks only: add `--devices {probe.ranks}`")
    if run.ended not in {"finished", "cut"}:
        return _not_checked(run, f"the run {_how(run)} before its ranks made a process group")
    reason = f"its {len(run.ranks)} ranks trained alone: the script makes no process group"
    return Verdict(Outcome.NOT_OBSERVABLE, reason, run.scope)


def _advised(run: Run, advice: str) -> Verdict:
    """What another run would show; no advice for one that failed, which the next would do, too."""
    if not run.is_whole:
        return _not_checked(run, f"the run {_how(run)}")
    return Verdict(Outcome.NOT_OBSERVABLE, advice, run.scope)


def _unreached(claim: Claim, run: Run, probe: Probe) -> Verdict:
    """Why lines did not run; the run's own error may be the finding's."""
    raised = [event for _, event in run.each("exception") if _came_through(event["frames"], claim)]
    if raised:
        return probe.judge(claim, run)
    if run.ended not in {"finished", "cut"}:
        return _not_checked(run, f"the run {_how(run)} before the line was reached")
    if any(event["reason"] == "cut" for _, event in run.each("end")) or any(
        event["cut"] for _, event in run.each("pass-end")
    ):
        return Verdict(Outcome.BEYOND_CUT, "the run was cut before the line was reached", run.scope)
    return Verdict(Outcome.NOT_REACHED, "the line was never executed", run.scope)


def _came_through(frames: Iterable[tuple[str, int, str]], claim: Claim) -> bool:
    return any(file == claim.file and claim.first <= row <= claim.last for file, row, _ in frames)


def _failed_meter(probe: Probe, run: Run) -> str:
    for _, event in run.each("meter-error"):
        if event["meter"] in (*probe.meters, "lines" if probe.needs_lines else "steps"):
            return f"meter `{event['meter']}` failed: {event['message']}"
    return ""


def _how(run: Run) -> str:
    first = min((event for _, event in run.each("exception")), key=lambda event: event.time, default=None)
    if run.ended == "raised" and first is not None:
        message = shorten(next(iter(first["message"].strip().splitlines()), ""), _LONGEST, placeholder=" ...")
        return f"raised {first['type']}: {message}".removesuffix(": ")
    return f"was {run.ended}" if run.ended in {"interrupted", "killed"} else run.ended


def _not_checked(run: Run, reason: str) -> Verdict:
    return Verdict(Outcome.NOT_CHECKED, reason, run.scope)
