"""What the end of a run leaves of its verdicts: what was seen is proven, what was not seen is not."""

from __future__ import annotations

import pytest

from lightlint.confirm import judge as judging
from lightlint.confirm.judge import verdict
from lightlint.confirm.probes.probe import Probe, confirmed, refuted, still_open
from lightlint.confirm.records import Event, Process, Run
from lightlint.confirm.verdict import Claim, Outcome

CLAIM = Claim(0, "LL100", "name", "error", "", "/p/train.py", 3, 3, "seen")
START = Event(kind="start", pid=1)


def run_of(ended: str = "finished", incomplete: str = "", *events: Event) -> Run:
    return Run((Process((START, *events)),), ended, incomplete=incomplete)


@pytest.fixture
def probes(monkeypatch: pytest.MonkeyPatch) -> dict[str, Probe]:
    """The probes there are, to be replaced by a test."""
    own: dict[str, Probe] = {}
    monkeypatch.setattr(judging, "all_probes", lambda: own)
    return own


@pytest.mark.parametrize(
    ("ended", "incomplete", "reason"),
    [
        ("interrupted", "", "the run was interrupted"),
        ("killed", "", "the run was killed"),
        ("timed out", "", "the run timed out"),
        ("finished", "records could not be written", "records could not be written"),
    ],
)
@pytest.mark.parametrize("say", [refuted, still_open, confirmed])
def test_only_what_was_seen_outlives_an_early_end(
    probes: dict[str, Probe], ended: str, incomplete: str, reason: str, say: object
) -> None:
    probes["seen"] = Probe(lambda _claim, run: say(run, "it was looked at"), needs_lines=False)  # type: ignore[operator]
    found = verdict(CLAIM, run_of(ended, incomplete))
    expected = (Outcome.CONFIRMED, "it was looked at") if say is confirmed else (Outcome.NOT_CHECKED, reason)
    assert (found.outcome, found.reason) == expected


@pytest.mark.parametrize("ended", ["finished", "cut", "raised", "stalled"])
def test_other_ends_are_the_probes_business(probes: dict[str, Probe], ended: str) -> None:
    probes["seen"] = Probe(lambda _claim, run: refuted(run, "it was not there"), needs_lines=False)
    assert verdict(CLAIM, run_of(ended)).outcome is Outcome.REFUTED


def test_time_is_judged_by_the_run_without_line_tracing(probes: dict[str, Probe]) -> None:
    probes["seen"] = Probe(lambda _claim, run: refuted(run, str(run.steps)), needs_lines=False, timed=True)
    first, second = run_of(), run_of("finished", "", Event(kind="step", n=5))
    assert verdict(CLAIM, first).outcome is Outcome.NOT_OBSERVABLE
    assert verdict(CLAIM, first, timed=second).reason == "5"
    assert verdict(CLAIM, first, timed=run_of("interrupted")).outcome is Outcome.NOT_CHECKED
    failed = run_of("finished", "", Event(kind="meter-error", meter="steps", message="no room"))
    assert verdict(CLAIM, first, timed=failed).reason == "meter `steps` failed: no room"


def test_ranks_that_trained_alone_are_no_ranks(probes: dict[str, Probe]) -> None:
    probes["seen"] = Probe(lambda _claim, run: refuted(run, ""), needs_lines=False, ranks=2)
    alone = tuple(Process((Event(kind="start", pid=rank, rank=rank),)) for rank in (0, 1))
    assert "--devices 2" in verdict(CLAIM, run_of()).reason
    assert verdict(CLAIM, Run(alone)).reason == "its 2 ranks trained alone: the script makes no process group"
    assert verdict(CLAIM, Run(alone, "raised")).outcome is Outcome.NOT_CHECKED
