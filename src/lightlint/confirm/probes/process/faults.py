"""What a program does with an error that was injected into a `try`."""

from __future__ import annotations

from itertools import pairwise
from textwrap import shorten

from lightlint.confirm.probes.probe import Probe, confirmed, not_observable, refuted
from lightlint.confirm.records import Event, Process, Run
from lightlint.confirm.verdict import Claim, Number, Verdict

_LONGEST = 90  # characters of an error's message
_MESSAGE = "injected by lightlint"


def injected_failure(claim: Claim, run: Run) -> Verdict:
    """Whether the error came out of its handler, and if not, what became of each rank."""
    where = next(((rank, event) for rank, event in run.each("injected") if event["finding"] == claim.index), None)
    if where is None:
        return not_observable(run, "no error could be injected: its `try` was not entered")
    rank, _ = where
    errors = run.ranks[rank].of("exception")
    came_out = next((error for error in errors if _is_the_fault(error)), None)
    numbers = [Number("steps", process.steps, rank=each) for each, process in run.ranks.items()]
    if came_out is not None:
        return refuted(run, f"the injected error came out as {came_out['type']}: its handler hides nothing", numbers)
    what = [f"rank {each} {_became(process, run)}" for each, process in run.ranks.items()]
    return confirmed(run, f"the error injected on rank {rank} did not come out: {', '.join(what)}", numbers)


def _is_the_fault(error: Event) -> bool:
    """The injected error itself, or one that was raised for it."""
    return any(_MESSAGE in text for text in (error["message"], *error.get("causes", ())))


def _became(process: Process, run: Run) -> str:
    errors = process.of("exception")
    if errors:
        first = str(errors[0]["message"]).strip().partition("\n")[0]
        return f"raised {errors[0]['type']}: {shorten(first, _LONGEST, placeholder=' ...')}"
    if run.ended == "stalled":
        return f"hung after {process.steps} steps"
    idle = _idle(process)
    without = f", {idle} of them without a backward pass" if idle else ""
    return f"took {process.steps} steps{without}" + ("" if process.of("end") else " and was ended")


def _idle(process: Process) -> int:
    """Steps with no backward pass since the one before: Lightning steps for a batch that is skipped, too."""
    passes = [0, *(event["backwards"] for event in process.of("step") if "backwards" in event)]
    return sum(before == after for before, after in pairwise(passes))


PROBES = {"injected-failure": Probe(injected_failure, needs_lines=False, inject=True)}
