"""What happens to gradients between a backward pass and the step that is to use them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from lightlint.confirm.probes.probe import Probe, confirmed, hits, not_observable, refuted, still_open
from lightlint.confirm.records import Event, Process, Run
from lightlint.confirm.verdict import Claim, Number, Verdict

_SAME = 1e-3  # relative difference of norms that counts as none


def at(claim: Claim, run: Run, kind: str) -> list[tuple[int, Event]]:
    """The events of a kind that happened on the claim's lines, with their rank."""
    return [(rank, event) for rank, event in run.each(kind) if claim.index in event["findings"]]


def raised_at(claim: Claim, run: Run) -> str:
    """The error that came through the claim's lines, empty where none did."""
    return next((event["raised"] for _, event in hits(claim, run) if event.get("raised")), "")


def gradients_carried_over(claim: Claim, run: Run) -> Verdict:
    """Whether an optimizer's gradients are ever gone between two of its steps."""
    optimizers = {event["optimizer"] for _, event in at(claim, run, "update")}
    carried = cleared = 0
    held = ""
    for process in run.ranks.values():
        for number in optimizers:
            for before, passes in _between_updates(process, number):
                most = max((each["before"].get(str(number), [0])[0] for each in passes), default=0)
                least = min((each["before"].get(str(number), [0])[0] for each in passes), default=0)
                if not passes or not before["held"]:
                    continue
                if least == 0:
                    cleared += 1
                else:
                    carried += 1
                    held = f"{most} of {before['total']} parameters"
    numbers = [Number("steps with gradients of earlier ones", carried), Number("steps with fresh gradients", cleared)]
    if carried and not cleared:
        return confirmed(
            run, f"at every backward pass behind a step the gradients of that step are still there: {held}", numbers
        )
    if cleared and not carried:
        return refuted(run, f"the gradients were gone before each of {cleared} steps gathered its own", numbers)
    if carried:
        return still_open(
            run, f"{carried} of {carried + cleared} steps still hold the gradients of earlier ones", numbers
        )
    return not_observable(run, "no optimizer stepped twice on this line with a backward pass in between", numbers)


def _between_updates(process: Process, optimizer: int) -> Iterator[tuple[Event, list[Event]]]:
    """Each update of an optimizer but the last, with the backward passes until the next one."""
    before: Event | None = None
    passes: list[Event] = []
    for event in process.of("update", "backward"):
        if event.kind == "backward":
            passes.append(event)
        elif event["optimizer"] == optimizer:
            if before is not None:
                yield before, passes
            before, passes = event, []


def gradients_clipped(claim: Claim, run: Run) -> Verdict:
    """Whether what is clipped on the line is there, whole, and used by a step."""
    if claim.name == "exhausted-parameters":
        return _parameters_left(claim, run)
    clips = [event for _, event in at(claim, run, "clip")]
    if not clips:
        return not_observable(run, "the line called no clipping function that could be watched")
    if claim.name == "clip-before-unscale":
        return _clipped_scaled(run, clips)
    empty = sum(event["held"] == 0 for event in clips)
    if empty == len(clips):
        return confirmed(run, f"none of {len(clips)} calls found a gradient to clip", [Number("calls", len(clips))])
    used = dropped = 0
    for process in run.ranks.values():
        waiting: Event | None = None
        for event in process.of("clip", "update", "zero-grad"):
            if event.kind == "clip" and claim.index in event["findings"] and event["held"]:
                waiting = event
            elif waiting and event.kind == "update" and event["optimizer"] in waiting["optimizers"]:
                used, waiting = used + 1, None
            elif waiting and event.kind == "zero-grad" and set(event["optimizers"]) & set(waiting["optimizers"]):
                dropped, waiting = dropped + 1, None
    numbers = [Number("clipped and used by a step", used), Number("clipped and cleared", dropped + empty)]
    if dropped and not used:
        return confirmed(run, f"{dropped} times the clipped gradients were cleared before any step", numbers)
    if used and not dropped and not empty:
        return refuted(run, f"all {used} times a step used the clipped gradients", numbers)
    return still_open(run, "some clipped gradients were used by a step, some were not", numbers)


def _clipped_scaled(run: Run, clips: list[Event]) -> Verdict:
    scaled = [event for event in clips if event["scaler"] and event["scaler"]["scale"] != 1]
    if not scaled:
        return not_observable(run, "no gradient scaler was at work: it is off where the GPU it scales for is missing")
    early = [event for event in scaled if event["scaler"]["stage"] == "READY"]
    scale = scaled[0]["scaler"]["scale"]
    if early:
        norm, limit = early[0]["before"], early[0]["limit"]
        return confirmed(
            run,
            f"{len(early)} of {len(clips)} calls clipped gradients multiplied by {scale:g}: a norm of {norm:.4g} to {limit:g}",
            [Number("scale", scale), Number("norm as clipped", norm), Number("norm unscaled", norm / scale)],
        )
    return refuted(run, f"the scaler had divided by {scale:g} before each of {len(clips)} calls")


def _parameters_left(claim: Claim, run: Run) -> Verdict:
    error = raised_at(claim, run)
    if "empty parameter list" in error:
        return confirmed(run, f"nothing was left for it: {error}")
    counts = [event["parameters"] for _, event in at(claim, run, "clip")]
    counts += [least for _, event in at(claim, run, "optimizer") for least in [min(event["groups"], default=0)]]
    if not counts:
        return not_observable(run, "what uses the parameters on this line is not watched")
    numbers = [Number("parameters given", count) for count in counts[:3]]
    if not any(counts):
        return confirmed(run, f"the line got 0 parameters, {len(counts)} of {len(counts)} times", numbers)
    if all(counts):
        return refuted(run, f"the line got {min(counts)} parameters", numbers)
    return confirmed(run, f"the line got 0 parameters {counts.count(0)} of {len(counts)} times", numbers)


def clipped_norm(claim: Claim, run: Run) -> Verdict:
    """Whether gradients at the steps exceed the limit that the line clips to."""
    clips = [event for _, event in at(claim, run, "clip") if event["function"] == "clip_grad_norm_"]
    if not clips:
        return not_observable(run, "the line did not clip by norm in this run")
    limit = clips[0]["limit"]
    touched = {number for event in clips for number in event["optimizers"]}
    norms = [event["norm"] for _, event in run.each("update") if event["optimizer"] in touched]
    over = [norm for norm in norms if norm > limit * (1 + _SAME)]
    numbers = [Number("limit", limit), Number("largest norm at a step", max(norms, default=0.0))]
    if over:
        return confirmed(
            run,
            f"{len(over)} of {len(norms)} steps use gradients of a norm above {limit:g}: up to {max(over):.4g}",
            numbers,
        )
    return still_open(run, f"the norms at {len(norms)} steps stayed below {limit:g} by themselves", numbers)


def gradients_survive(claim: Claim, run: Run) -> Verdict:
    """Whether the line clears gradients that no step has used yet."""
    lost = harmless = 0
    for process in run.ranks.values():
        fresh = False  # gradients of a backward pass that no step has used
        for event in process.of("backward", "update", "zero-grad"):
            if event.kind == "backward":
                fresh = True
            elif event.kind == "update":
                fresh = False
            elif claim.index in event["findings"]:
                lost += fresh and event["held"] > 0
                harmless += not (fresh and event["held"] > 0)
                fresh = fresh and not event["held"]
    numbers = [Number("clearings that lost gradients", lost), Number("clearings without effect", harmless)]
    if lost:
        return confirmed(
            run, f"{lost} of {lost + harmless} times the line cleared gradients that no step had used", numbers
        )
    if harmless:
        return refuted(run, f"{harmless} times the line found no gradients that a step was still to use", numbers)
    return not_observable(run, "the line cleared no gradients that could be watched")


def accumulated_gradient_norm(claim: Claim, run: Run) -> Verdict:
    """Whether several backward passes over undivided means add up in one step."""
    found: list[tuple[int, float, float]] = []
    for process in run.ranks.values():
        passes: list[Event] = []
        for event in process.of("backward", "update"):
            if event.kind == "backward":
                passes.append(event)
                continue
            key = str(event["optimizer"])
            whole = passes[-1]["after"].get(key, [0, 0.0])[1] if passes else 0.0
            same = whole > 0 and abs(whole - event["norm"]) <= _SAME * whole
            gathered = len(passes) > 1 and passes[0]["before"].get(key, [1])[0] == 0 and passes[1]["before"][key][0] > 0
            if gathered and same and all(each["mean"] and claim.index in each["findings"] for each in passes):
                found.append((len(passes), event["norm"], passes[0]["after"][key][1]))
            passes = []
    if found:
        count, whole, first = found[0]
        return confirmed(
            run,
            f"each step uses the sum of {count} mean losses, which nothing divides: norm {whole:.4g}, "
            f"that of the first batch alone {first:.4g}",
            [Number("backward passes a step", count), Number("norm at the step", whole)],
        )
    return still_open(run, "no step was seen that sums plain mean losses of several batches")


def parameters_without_gradient(claim: Claim, run: Run) -> Verdict:
    """Whether backward passes reach any parameter of an optimizer."""
    passes = [(rank, event) for rank, event in run.each("backward") if event["after"]]
    reached = [max(count for count, _ in event["after"].values()) for _, event in passes]
    leaves = [event for _, event in passes if event["leaf"]]
    numbers = [Number("backward passes", len(passes)), Number("that reach a parameter", sum(map(bool, reached)))]
    if not passes:
        return not_observable(run, "no backward pass ran while an optimizer was there")
    if not any(reached):
        return confirmed(run, f"none of {len(passes)} backward passes gives any parameter a gradient", numbers)
    if leaves:
        return confirmed(
            run, f"{len(leaves)} of {len(passes)} backward passes start from a tensor without history", numbers
        )
    return refuted(run, f"{sum(map(bool, reached))} of {len(passes)} backward passes reach parameters", numbers)


def penalty_gradient(claim: Claim, run: Run) -> Verdict:
    """Whether the gradients computed on the line have a graph of their own."""
    grads = [event for _, event in at(claim, run, "grad") if event["count"]]
    without = sum(event["with_graph"] == 0 for event in grads)
    if not grads:
        return not_observable(run, "the line computed no gradients through torch.autograd.grad")
    if without == len(grads):
        return confirmed(
            run, f"the gradients of all {len(grads)} calls are constants: nothing can be differentiated through"
        )
    if not without:
        return refuted(run, f"the gradients of all {len(grads)} calls have a graph")
    return still_open(run, f"the gradients of {without} of {len(grads)} calls are constants")


def optimizer_state_kept(claim: Claim, run: Run) -> Verdict:
    """Whether an optimizer made anew on the line takes over parameters whose averages the last one had."""
    for process in run.ranks.values():
        made = [event for event in process.of("optimizer") if claim.index in event["findings"]]
        kept = {event["optimizer"]: event["state"] for event in process.of("updated")}
        for old, new in pairwise(made):
            if not set(old["parameters"]) & set(new["parameters"]) or old["optimizer"] not in kept:
                continue
            used = any(event["held"] for event in process.of("update") if event["optimizer"] == old["optimizer"])
            if not used:
                return still_open(run, f"the {old['type']} got no gradients to average")
            state = kept[old["optimizer"]]
            numbers = [Number("optimizers made", len(made)), Number("parameters whose state was lost", state)]
            if state:
                return confirmed(
                    run,
                    f"the line made {len(made)} {new['type']}s; each new one starts without the state of {state} parameters",
                    numbers,
                )
            return refuted(run, f"the {old['type']} kept no state that could be lost", numbers)
    return not_observable(run, "the line made no second optimizer for the same parameters in this run")


PROBES = {
    "gradients-carried-over": Probe(gradients_carried_over, meters=("gradients",)),
    "gradients-clipped": Probe(gradients_clipped, meters=("gradients",)),
    "clipped-norm": Probe(clipped_norm, meters=("gradients",)),
    "gradients-survive": Probe(gradients_survive, meters=("gradients",)),
    "accumulated-gradient-norm": Probe(accumulated_gradient_norm, meters=("gradients",)),
    "parameters-without-gradient": Probe(parameters_without_gradient, meters=("gradients",)),
    "penalty-gradient": Probe(penalty_gradient, meters=("gradients",)),
    "optimizer-state-kept": Probe(optimizer_state_kept, meters=("gradients",)),
}
