"""Learning rates over a run: who steps a scheduler, how often, and what comes of it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from lightlint.confirm.probes.probe import Probe, confirmed, not_observable, refuted, still_open
from lightlint.confirm.probes.training.gradients import at
from lightlint.confirm.records import Event, Process, Run
from lightlint.confirm.verdict import Claim, Number, Verdict

_MOST_SHOWN = 8


def learning_rate_history(claim: Claim, run: Run) -> Verdict:
    """The rates of a run, read by what the rule says of them."""
    return _BY_RULE[claim.name](claim, run)


def _shown(process: Process) -> str:
    rates = [event["rates"][0] for event in process.of("step") if event["rates"]]
    return ", ".join(f"{rate:.4g}" for rate in rates[:_MOST_SHOWN])


def _history(run: Run) -> list[Number]:
    return [Number("learning rate at the steps", _shown(process), rank=rank) for rank, process in run.ranks.items()]


def _never_stepped(claim: Claim, run: Run) -> Verdict:
    for process in run.ranks.values():
        held = [each["scheduler"] for event in process.of("schedulers") for each in event["held"]]
        stepped = [event for event in process.of("scheduler-step") if event["scheduler"] in held]
        epochs = sum(event["when"] == "on_train_epoch_end" for event in process.of("metrics"))
        if not held:
            continue
        if stepped:
            return refuted(run, f"the scheduler was stepped {len(stepped)} times", _history(run))
        if epochs:
            return confirmed(run, f"{epochs} epochs ended, and nothing stepped the scheduler", _history(run))
        return still_open(run, "no epoch came to its end")
    return not_observable(run, "no Trainer that holds a scheduler was seen")


def _rises_as_bad(claim: Claim, run: Run) -> Verdict:
    steps = [event for _, event in at(claim, run, "scheduler-step") if event["given"] is not None]
    for before, event in pairwise(steps):
        if before["scheduler"] != event["scheduler"] or event["bad"][1] is None:
            continue
        mode = next(made["mode"] for _, made in run.each("scheduler") if made["scheduler"] == event["scheduler"])
        better = event["given"] > before["given"] if mode == "min" else event["given"] < before["given"]
        lowered = event["rates"][1] < event["rates"][0]
        if better and (event["bad"][1] > event["bad"][0] or lowered):
            numbers = [Number("value before", before["given"]), Number("value", event["given"]), *_history(run)]
            done = "lowers the rate" if lowered else "counts a bad epoch"
            return confirmed(
                run,
                f"mode `{mode}` {done} as the value goes from {before['given']:.4g} to {event['given']:.4g}",
                numbers,
            )
    return still_open(run, "the value did not move in the direction that the scheduler takes for worse", _history(run))


def _ahead_of_optimizer(claim: Claim, run: Run) -> Verdict:
    for process in run.ranks.values():
        here = [event for event in process.of("scheduler-step") if claim.index in event["findings"]]
        if not here:
            continue
        made = next(event for event in process.of("scheduler") if event["scheduler"] == here[0]["scheduler"])
        first = next((event for event in process.of("step") if event["optimizer"] == made["optimizer"]), None)
        if first is None:
            return still_open(run, "the optimizer took no step in this run")
        if here[0].time < first.time and made["rates"] != first["rates"]:
            return confirmed(
                run,
                f"the schedule begins with {made['rates'][0]:.4g}, the first step uses {first['rates'][0]:.4g}",
                _history(run),
            )
        if here[0].time < first.time:
            return still_open(run, "the scheduler steps first, and its first two values are the same", _history(run))
        return refuted(
            run, f"the first step uses the first rate of the schedule, {first['rates'][0]:.4g}", _history(run)
        )
    return not_observable(run, "the line stepped no scheduler of torch's")


def _cadence(claim: Claim, run: Run) -> Verdict:
    for process in run.ranks.values():
        here = [event for event in process.of("scheduler-step") if claim.index in event["findings"]]
        made = {event["scheduler"]: event for event in process.of("scheduler")}
        batches = _epoch_length(process)
        if not here or not batches:
            continue
        number = here[0]["scheduler"]
        length, kind = made[number]["length"], made[number]["type"]
        steps = [event for event in here if event["scheduler"] == number]
        gaps = [later["batches"] - earlier["batches"] for earlier, later in pairwise(steps)]
        numbers = [Number("length", length or 0, "steps"), Number("batches in an epoch", batches), *_history(run)]
        if not gaps or length is None:
            return still_open(run, f"{kind} was stepped {len(steps)} times", numbers)
        once_a_batch = all(gap <= 1 for gap in gaps[: _MOST_SHOWN // 2])
        if "once a batch" in claim.message:
            if once_a_batch and length < batches:
                return confirmed(
                    run, f"{kind} is {length} steps long and stepped at each of {batches} batches of an epoch", numbers
                )
            return still_open(run, f"{kind} is {length} steps long, an epoch has {batches} batches", numbers)
        if once_a_batch:
            return refuted(run, f"{kind} is stepped at every batch", numbers)
        if length >= batches:
            return confirmed(
                run, f"{kind} is {length} steps long, takes one an epoch and an epoch has {batches} batches", numbers
            )
        return still_open(run, f"{kind} is {length} steps long, an epoch has {batches} batches", numbers)
    return not_observable(run, "the line stepped no scheduler of torch's over a loader with a length")


def _epoch_length(process: Process) -> int | None:
    lengths = [event["length"] for event in process.of("loader") if event["loader"] == process.busiest_loader]
    return lengths[0] if lengths else None


def _held(run: Run) -> list[Event]:
    return [each for _, event in run.each("schedulers") for each in event["held"]]


def _as_words(held: Sequence[dict[str, object]]) -> str:
    if not held:
        return "no scheduler"
    return ", ".join(f"interval {each['interval']!r}, frequency {each['frequency']}" for each in held)


def _unknown_in_optimizer_dict(claim: Claim, run: Run) -> Verdict:
    if not any(True for _ in run.each("schedulers")):
        return _unless_raised(claim, run)
    held, made = _held(run), {event["scheduler"] for _, event in run.each("scheduler")}
    dropped = made - {each["scheduler"] for each in held}
    if dropped:
        return confirmed(
            run, f"the program makes {len(made)} schedulers, the Trainer holds {_as_words(held)}", _history(run)
        )
    key = claim.details.get("0", "")
    if key in {"interval", "frequency", "monitor"} and held:
        values = {str(each[key]) for each in held}
        return still_open(run, f"the Trainer holds {key} {', '.join(sorted(values))} for its schedulers", _history(run))
    return refuted(run, f"the Trainer holds every scheduler: {_as_words(held)}", _history(run))


def _unknown_in_scheduler_dict(claim: Claim, run: Run) -> Verdict:
    if not any(True for _ in run.each("schedulers")):
        return _unless_raised(claim, run)
    held = _held(run)
    meant, real = claim.details.get("0", ""), claim.details.get("1", "")
    if meant and real and any(real in each for each in held):
        values = ", ".join(sorted({str(each[real]) for each in held if real in each}))
        return confirmed(run, f"the Trainer read nothing from `{meant}`: it holds {real} {values}", _history(run))
    return still_open(run, f"the Trainer holds {_as_words(held)}", _history(run))


def _unless_raised(claim: Claim, run: Run) -> Verdict:
    for _, event in run.each("exception"):
        if "scheduler" in event["message"]:
            return confirmed(run, f"Lightning raises {event['type']}: {event['message'].splitlines()[0]}")
    return not_observable(run, "no Trainer came to its loop")


def _stays_in_epoch(claim: Claim, run: Run) -> Verdict:
    for process in run.ranks.values():
        epochs: list[list[float]] = []
        stepped = 0
        for event in process.of("epoch", "step", "scheduler-step"):
            if event.kind == "epoch":
                epochs.append([])
            elif event.kind == "scheduler-step":
                stepped += 1
            elif epochs and event["rates"]:
                epochs[-1].append(event["rates"][0])
        whole = [rates[1:] for rates in epochs if len(rates) > 2]  # the first may be the last epoch's
        if not stepped or len(whole) < 2:
            continue
        moved = any(len(set(rates)) > 1 for rates in whole)
        between = len({rates[0] for rates in whole}) > 1
        if not moved and between:
            return confirmed(run, f"{stepped} scheduler steps, and the rate moves between epochs only", _history(run))
        if moved:
            return refuted(run, f"{stepped} scheduler steps move the rate within an epoch", _history(run))
        return still_open(run, f"{stepped} scheduler steps did not move the rate at all", _history(run))
    return not_observable(run, "the run had no two epochs with scheduler steps")


def _twice(claim: Claim, run: Run) -> Verdict:
    here = [event["scheduler"] for _, event in at(claim, run, "scheduler-step")]
    theirs = [event["scheduler"] for _, event in run.each("scheduler-step") if event["by_trainer"]]
    numbers = [Number("steps on the line", len(here)), Number("steps by the Trainer", len(theirs)), *_history(run)]
    if set(here) & set(theirs):
        return confirmed(run, f"one scheduler: {len(here)} steps on the line, {len(theirs)} by the Trainer", numbers)
    if here and theirs:
        return refuted(run, "the line and the Trainer step different schedulers", numbers)
    if here:
        return still_open(run, f"{len(here)} steps on the line and none by the Trainer so far", numbers)
    return not_observable(run, "the line stepped no scheduler in this run", numbers)


def _once_an_epoch(claim: Claim, run: Run) -> Verdict:
    for process in run.ranks.values():
        made = {event["scheduler"]: event for event in process.of("scheduler")}
        started = next(iter(process.of("schedulers")), None)
        if started is None:
            continue
        known = [(each, made[each["scheduler"]]) for each in started["held"] if each["scheduler"] in made]
        named = [pair for pair in known if pair[1]["type"] in claim.details.values()]
        for held, scheduler in (named or known)[:1]:
            return _by_interval(claim, run, process, started, held, scheduler)
    return not_observable(run, "no Trainer that holds a scheduler was seen")


def _by_interval(
    claim: Claim, run: Run, process: Process, started: Event, held: dict[str, object], scheduler: Event
) -> Verdict:
    """How often the Trainer steps a scheduler, against its length; a cut run plans fewer batches, as its schedule does."""
    length, kind, batches, in_run = scheduler["length"], scheduler["type"], started["batches"], started.get("in_run")
    taken = sum(event["scheduler"] == scheduler["scheduler"] for event in process.of("scheduler-step"))
    numbers = [Number("steps of the scheduler", taken), Number("steps of the optimizer", process.steps), *_history(run)]
    if length is not None:
        numbers.insert(0, Number("length", length, "steps"))
    if batches:
        numbers.insert(0, Number("batches in an epoch", batches))
    if held["interval"] == "step":
        return refuted(run, f"the Trainer steps {kind} after every batch", numbers)
    once = f"the Trainer took {taken} of them in {process.steps} batches"
    if length is None:
        said = f"the Trainer took {taken} steps of {kind} in {process.steps} batches"
        return (
            confirmed(run, said, numbers)
            if claim.tier == "error" and 0 < taken < process.steps
            else still_open(run, said, numbers)
        )
    if batches and length >= batches:
        return confirmed(
            run, f"{kind} is {length} steps long, the Trainer takes one an epoch of {batches} batches", numbers
        )
    if length == in_run and 0 < taken < process.steps:
        return confirmed(run, f"{kind} is {length} steps long, a step for each batch of this run; {once}", numbers)
    return still_open(run, f"{kind} is {length} steps long; {once}", numbers)


_BY_RULE = {
    "manual-scheduler-never-stepped": _never_stepped,
    "plateau-mode-mismatch": _rises_as_bad,
    "scheduler-before-optimizer": _ahead_of_optimizer,
    "scheduler-wrong-cadence": _cadence,
    "lr-scheduler-dict-unknown-key": _unknown_in_scheduler_dict,
    "optimizer-dict-unknown-key": _unknown_in_optimizer_dict,
    "scheduler-step-with-epoch": _stays_in_epoch,
    "scheduler-stepped-twice": _twice,
    "step-scheduler-on-epoch-interval": _once_an_epoch,
}

PROBES = {
    "learning-rate-history": Probe(learning_rate_history, meters=("rates", "trainer", "loaders"), needs_lines=False)
}
