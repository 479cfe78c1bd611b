"""Who starts backward passes and optimizer steps, how many there are in a batch, and what Lightning knows of them."""

from __future__ import annotations

from collections.abc import Sequence

from lightlint.confirm.probes.probe import Probe, confirmed, hits, not_observable, refuted, still_open
from lightlint.confirm.probes.training.gradients import at, raised_at
from lightlint.confirm.records import Event, Process, Run
from lightlint.confirm.verdict import Claim, Number, Verdict

_SEVERAL = ("ddp", "DDP", "devices", "gpus", "num_nodes")


def steps_per_batch(claim: Claim, run: Run) -> Verdict:
    """Batches seen and steps taken, read by what the rule says of them."""
    if claim.name == "optimizer-step-in-automatic":
        return _stepped_twice(claim, run)
    if claim.name == "accumulation-tail-dropped":
        return _tail(claim, run)
    error = raised_at(claim, run)
    numbers = [number for rank, process in run.ranks.items() for number in _counts(rank, process)]
    if error.startswith(("NameError", "UnboundLocalError")):
        return confirmed(run, f"{error} at the first batch that comes to the test", numbers)
    name = claim.details.get("0", "")
    values = [event["changes"].get("variables", {}).get(name) for _, event in hits(claim, run)]
    batches = {rank: len(process.of("batch")) for rank, process in run.ranks.items()}
    known = [value[0] for value in values if value]
    if len(known) > 1 and len(set(known)) == 1 and min(batches.values(), default=0) > 1:
        return confirmed(run, f"`{name}` was {known[0]} at each of {len(known)} tests: {_in_words(run)}", numbers)
    if len(set(known)) > 1:
        return refuted(run, f"`{name}` moved: {', '.join(map(str, known[:6]))}", numbers)
    return still_open(run, f"the test ran {len(values)} times; {_in_words(run)}", numbers)


def _in_words(run: Run) -> str:
    process = next(iter(run.ranks.values()))
    return f"{len(process.of('batch'))} batches, {process.steps} steps"


def _counts(rank: int, process: Process) -> list[Number]:
    return [
        Number("batches seen", len(process.of("batch")), rank=rank),
        Number("steps taken", process.steps, rank=rank),
    ]


def _tail(claim: Claim, run: Run) -> Verdict:
    """Batches whose gradients no step uses before the pass ends."""
    for rank, process in run.ranks.items():
        lengths = {event["loader"]: event["length"] for event in process.of("loader")}
        for events in _passes(process):
            batches = sum(event.kind == "batch" for event in events)
            last = max((index for index, event in enumerate(events) if event.kind == "step"), default=None)
            if last is None or not batches:
                continue
            left = sum(event.kind == "backward" for event in events[last:])
            ended = next((event for event in events if event.kind == "pass-end"), None)
            steps = sum(event.kind == "step" for event in events)
            numbers = [
                Number("batches seen", batches, rank=rank),
                Number("steps taken", steps, rank=rank),
                Number("backward passes behind the last step", left, rank=rank),
            ]
            length = lengths.get(events[0]["loader"])
            whole = ended is not None and (not ended["cut"] or batches == length)
            if left and whole:
                return confirmed(
                    run, f"{batches} batches, {steps} steps: the last {left} wait for a step that never comes", numbers
                )
            if not left and whole:
                return refuted(run, f"{batches} batches, {steps} steps: none is left behind the last step", numbers)
            window = batches // steps if steps and batches % steps == 0 else 0
            if length and window and length % window == 0:
                return refuted(
                    run, f"a step every {window} batches, and the loader's {length} batches divide by it", numbers
                )
            if length and window:
                return still_open(
                    run,
                    f"the pass was cut; {length % window} of the loader's {length} batches would be left at a step every {window}",
                    numbers,
                )
    return not_observable(run, "no pass over a loader in which the optimizer stepped was seen")


def _passes(process: Process) -> list[list[Event]]:
    """For each pass over the loader that most batches come from: its events up to the first of the next pass."""
    passes: list[list[Event]] = []
    for event in process.of("pass", "batch", "step", "backward", "pass-end"):
        if event.kind in {"pass", "batch", "pass-end"} and event["loader"] != process.busiest_loader:
            continue
        if event.kind == "pass":
            passes.append([])
        if passes:
            passes[-1].append(event)
    return passes


def _stepped_twice(claim: Claim, run: Run) -> Verdict:
    here = [event["optimizer"] for _, event in at(claim, run, "update")]
    theirs = [event["optimizer"] for _, event in run.each("update") if claim.index not in event["findings"]]
    numbers = [Number("steps on the line", len(here)), Number("steps by Lightning", len(theirs))]
    if set(here) & set(theirs):
        return confirmed(run, f"one optimizer: {len(here)} steps on the line and {len(theirs)} by Lightning", numbers)
    if here:
        return refuted(run, f"Lightning steps none of the optimizers of the line: {len(here)} steps there", numbers)
    return not_observable(run, "the line took no step in this run", numbers)


def optimizer_steps_per_batch(claim: Claim, run: Run) -> Verdict:
    """Whether the line steps on gradients that a scaler still has multiplied, or that were stepped on already."""
    error = raised_at(claim, run)
    if error and "update()" in claim.message:
        return confirmed(run, f"the second step raises {error}")
    again = 0
    scaled: list[Event] = []
    updates = 0
    for process in run.ranks.values():
        last: dict[int, int] = {}
        for event in process.of("update"):
            if claim.index in event["findings"]:
                updates += 1
                again += last.get(event["optimizer"]) == event["backwards"] and event["held"] > 0
                if event["scaler"] and event["scaler"]["scale"] != 1 and event["scaler"]["stage"] == "READY":
                    scaled.append(event)
            last[event["optimizer"]] = event["backwards"]
    if scaled:
        scale = scaled[0]["scaler"]["scale"]
        return confirmed(
            run,
            f"{len(scaled)} of {updates} steps use gradients multiplied by {scale:g}",
            [Number("scale", scale), Number("norm at the step", scaled[0]["norm"])],
        )
    if again:
        return confirmed(run, f"{again} of {updates} steps use gradients that a step had used before")
    return still_open(run, "no scaler was at work: it is off where the GPU it scales for is missing")


def backwards_per_step(claim: Claim, run: Run) -> Verdict:
    """Whether the line runs backward passes beside Lightning's own."""
    error = raised_at(claim, run)
    if error:
        return confirmed(run, f"the line raises {error.splitlines()[0]}")
    here = len(at(claim, run, "backward"))
    theirs = [event for _, event in run.each("backward") if claim.index not in event["findings"] and event["through"]]
    errors = [
        event["message"] for _, event in run.each("exception") if "backward through the graph" in event["message"]
    ]
    numbers = [Number("backward passes on the line", here), Number("by Lightning", len(theirs))]
    if here and errors:
        return confirmed(
            run, f"{here} passes on the line, and Lightning's own then raises: {errors[0].splitlines()[0]}", numbers
        )
    if here and theirs:
        return confirmed(run, f"{here} backward passes on the line and {len(theirs)} by Lightning", numbers)
    if here:
        return still_open(run, f"{here} backward passes on the line, and Lightning ran none of its own", numbers)
    return not_observable(run, "the line ran no backward pass in this run", numbers)


def backwards_past(claim: Claim, run: Run) -> Verdict:
    """Whether a pass that goes past Lightning or Fabric lacks something they would have done."""
    error = raised_at(claim, run)
    if error:
        return confirmed(run, f"the line raises {error.splitlines()[0]}")
    past = [event for _, event in at(claim, run, "backward") if not event["through"]]
    if not past:
        return not_observable(run, "the line ran no backward pass of its own")
    settings = [event for _, event in run.each("precision")]
    if not settings:
        return not_observable(run, "neither a Trainer nor a Fabric was seen")
    needed = _needed(settings)
    used = ", ".join(sorted({f"{event['precision']} on {event['strategy']}" for event in settings}))
    numbers = [Number("passes past it", len(past)), Number("precision", used)]
    if needed:
        return confirmed(run, f"{len(past)} passes go past {needed}", numbers)
    if "16" in claim.message and not any(event["precision"] in claim.message for event in settings):
        return not_observable(run, f"this machine runs {used} instead of what the finding names", numbers)
    if claim.name == "manual-loss-backward":  # Fabric leaves DDP as it is, Lightning starts its averaging by hand
        several, names_ranks = len(run.ranks) > 1, any(word in claim.message for word in _SEVERAL)
        if several and any("DDP" in event["strategy"] for event in settings):
            return _averaged(run, len(past), numbers)
        if names_ranks and not several:
            return not_observable(run, "one rank ran, and the finding is about several", numbers)
    return refuted(run, f"{used} needs nothing of its own for a backward pass", numbers)


def _averaged(run: Run, past: int, numbers: Sequence[Number]) -> Verdict:
    """A pass through Lightning averages over the ranks what is in the gradients by then."""
    if any(event["through"] for _, event in run.each("backward")):
        return still_open(run, f"{past} passes go past Lightning, others go through it and average gradients", numbers)
    return confirmed(run, f"{past} passes, and none that averages the gradients of {len(run.ranks)} ranks", numbers)


def _needed(settings: Sequence[Event]) -> str:
    if any(event["scaler"] for event in settings):
        return "a gradient scaler"
    return next((event["strategy"] for event in settings if "DeepSpeed" in event["strategy"]), "")


def closure_runs(claim: Claim, run: Run) -> Verdict:
    """Whether a step ends without having run the closure it was given."""
    for _, event in run.each("exception"):
        if "closure hasn't been executed" in event["message"]:
            return confirmed(run, f"Lightning raises: {event['message'].splitlines()[0]}")
    given = [event for _, event in run.each("step") if event.get("closure") is not None]
    dropped = [event for event in given if event["closure"] == 0]
    numbers = [Number("steps with a closure", len(given)), Number("that did not run it", len(dropped))]
    if dropped:
        return confirmed(run, f"{len(dropped)} of {len(given)} steps did not run the closure they were given", numbers)
    passes = sum(1 for _ in run.each("backward"))
    if given and passes >= len(given):
        return refuted(run, f"each of {len(given)} steps ran its closure, and {passes} backward passes ran", numbers)
    return not_observable(run, "no step was given a closure in this run", numbers)


def global_step(claim: Claim, run: Run) -> Verdict:
    """What Lightning's count of steps is beside the steps and batches there were."""
    for rank, process in run.ranks.items():
        loop = next(iter(process.of("loop")), None)
        if loop is None:
            continue
        steps, counted, batches = len(process.of("step")), loop["global_step"], loop["batches"]
        numbers = [
            Number("trainer.global_step", counted, rank=rank),
            Number("optimizer steps", steps, rank=rank),
            Number("batches", batches, rank=rank),
        ]
        if claim.name == "manual-raw-optimizer":
            if steps and counted == 0:
                return confirmed(run, f"{steps} optimizer steps, and `trainer.global_step` is 0", numbers)
            if steps and counted >= steps:
                return refuted(run, f"`trainer.global_step` is {counted} after {steps} optimizer steps", numbers)
            return still_open(run, f"`trainer.global_step` is {counted} after {steps} optimizer steps", numbers)
        if counted > batches:
            return confirmed(run, f"`trainer.global_step` is {counted} after {batches} batches", numbers)
        return refuted(run, f"`trainer.global_step` is {counted} after {batches} batches", numbers)
    return not_observable(run, "no fit came to its end")


PROBES = {
    "steps-per-batch": Probe(steps_per_batch, meters=("gradients", "variables")),
    "optimizer-steps-per-batch": Probe(optimizer_steps_per_batch, meters=("gradients",)),
    "backwards-per-step": Probe(backwards_per_step, meters=("gradients",)),
    "manual-backwards": Probe(backwards_past, meters=("gradients",)),
    "fabric-backwards": Probe(backwards_past, meters=("gradients",)),
    "closure-runs": Probe(closure_runs, meters=("gradients",), needs_lines=False),
    "global-step": Probe(global_step, meters=("trainer",), needs_lines=False),
}
