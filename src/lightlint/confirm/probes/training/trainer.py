"""What Lightning's loops did: hooks that are never called, keys that are never there, fits without a batch."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, isfinite

from lightlint.confirm.probes.probe import Probe, confirmed, not_observable, refuted, still_open
from lightlint.confirm.records import Event, Run
from lightlint.confirm.verdict import Claim, Number, Verdict

_POINTS = (
    "setup",
    "on_train_start",
    "on_train_batch_end",
    "on_train_epoch_end",
    "on_train_end",
    "on_validation_epoch_end",
)
_STAGES = {"validation": "on_validation_epoch_end", "test": "on_test_epoch_end", "predict": "on_predict_epoch_end"}


def hook_calls(claim: Claim, run: Run) -> Verdict:
    """Whether Lightning called the finding's method while the loop it belongs to ran through."""
    calls = dict.fromkeys(run.ranks, 0)
    for rank, event in run.each("call"):
        if event["finding"] == claim.index:
            calls[rank] = event["number"]
    numbers = [Number("calls", count, rank=rank) for rank, count in calls.items()]
    name = claim.details.get("0", "the method")
    if any(calls.values()):
        return refuted(run, f"`{name}` was called", numbers)
    due = _due(name, claim)
    if any(event["name"] == due for _, event in run.each("hook")):
        return confirmed(run, f"`{name}` was never called, while Lightning came to `{due}`", numbers)
    return not_observable(run, f"the run never came to `{due}`, where `{name}` would have been due", numbers)


def _due(name: str, claim: Claim) -> str:
    """The point of Lightning's loops at which a method would have been called: of the hook it resembles, else of its stage."""
    resembled = [hook for hook in claim.details.values() if hook in _POINTS and hook != name]
    return (
        resembled[0]
        if resembled
        else next((hook for stage, hook in _STAGES.items() if stage in name), "on_train_epoch_end")
    )


def callback_metrics(claim: Claim, run: Run) -> Verdict:
    """Whether a monitored key is ever among the Trainer's metrics."""
    named = set(claim.details.values())
    watched = sorted({event["monitor"] for _, event in run.each("callback")} & named)
    seen = {key for _, event in run.each("metrics") for key in event["values"]}
    known = f"there {'are' if len(seen) != 1 else 'is'} {', '.join(sorted(seen)) or 'none'}"
    if not watched:
        return not_observable(run, "no callback of the run watches what the finding names")
    if not any(True for _ in run.each("metrics")):
        return not_observable(run, "the run came to no point where metrics are read")
    missing = [key for key in watched if key not in seen]
    if missing:
        return confirmed(run, f"`{missing[0]}` is never among the metrics: {known}")
    return refuted(run, f"the metrics have `{watched[0]}`: {known}")


def best_of_history(claim: Claim, run: Run) -> Verdict:
    """Whether the score a callback keeps as its best is the worst by the metric's own direction."""
    for kept, values in _kept_of(run):
        named = kept["monitor"] in claim.details.values() and f"'{kept['mode']}'" in claim.message
        if not named or not isfinite(inf if kept["best"] is None else kept["best"]) or len(set(values)) < 2:
            continue
        numbers = [
            Number("kept as best", kept["best"]),
            Number("values", ", ".join(f"{value:.4g}" for value in values)),
        ]
        worst = max(values) if kept["mode"] == "max" else min(values)
        if abs(kept["best"] - worst) <= 1e-6 * max(1.0, abs(worst)):
            return confirmed(run, f"mode `{kept['mode']}` keeps {kept['best']:.4g} of `{kept['monitor']}`", numbers)
        return still_open(
            run, f"`{kept['monitor']}` is kept as {kept['best']:.4g}, which is no end of its values", numbers
        )
    return still_open(run, "the monitored value did not change in this run, or no callback kept one")


def _kept_of(run: Run) -> Iterator[tuple[Event, list[float]]]:
    """What callbacks kept, with the values of what they watch up to then: a later `validate` is not theirs."""
    for process in run.ranks.values():
        seen: list[Event] = []
        for event in process.of("metrics", "callback"):
            if event.kind == "metrics":
                seen.append(event)
                continue
            values = [each["values"].get(event["monitor"]) for each in seen if each["when"] == "on_validation_end"]
            yield event, [value for value in values if value is not None]


def batches_per_fit(_claim: Claim, run: Run) -> Verdict:
    """Whether a later fit of the same Trainer trained on nothing."""
    for rank, process in run.ranks.items():
        fits: list[int] = []
        steps = 0
        for event in process.events:
            if event.kind == "trainer-start" and event["stage"] == "fit":
                steps = 0
            elif event.kind == "step":
                steps += 1
            elif event.kind == "trainer-end" and event["stage"] == "fit":
                fits.append(steps)
        if len(fits) > 1:
            numbers = [Number(f"steps of fit {number}", count, rank=rank) for number, count in enumerate(fits, 1)]
            if fits[0] and not all(fits[1:]):
                return confirmed(run, "a later fit takes no step", numbers)
            return refuted(run, "every fit takes steps", numbers)
    return not_observable(run, "the run came to one fit only")


def hyperparameter_types(claim: Claim, run: Run) -> Verdict:
    """Whether the saved hyperparameters hold a module, optimizer or scheduler that the finding names."""
    told = [event["modules"] for _, event in run.each("hyperparameters")]
    if not told:
        return not_observable(run, "no fit began")
    named = sorted({key for keys in told for key in keys} & set(claim.details.values()))
    if named:
        return confirmed(run, f"`hparams` holds {', '.join(f'`{name}`' for name in named)} with all their state")
    return refuted(run, "no hyperparameter that the finding names has a state of its own")


def metric_update_count(claim: Claim, run: Run) -> Verdict:
    """Whether a metric goes into its second epoch with the updates of the first."""
    later = [event["counts"] for _, event in run.each("metric-counts") if event["epoch"] > 0]
    if not later:
        return not_observable(run, "the run came to one epoch only")
    name = next((each.removeprefix("self.") for each in claim.details.values() if each.startswith("self.")), "")
    counts = [counts[name] for counts in later if name in counts]
    if not counts:
        return not_observable(run, f"the module has no metric `{name}`")
    numbers = [Number("updates as the second epoch begins", counts[0])]
    if counts[0]:
        return confirmed(run, f"`{name}` begins the second epoch with {counts[0]} updates", numbers)
    return refuted(run, f"`{name}` begins the second epoch anew", numbers)


PROBES = {
    "hyperparameter-types": Probe(hyperparameter_types, meters=("trainer",), needs_lines=False),
    "metric-update-count": Probe(metric_update_count, meters=("trainer",), needs_lines=False),
    "hook-calls": Probe(hook_calls, meters=("trainer",), needs_lines=False),
    "callback-metrics": Probe(callback_metrics, meters=("trainer",), needs_lines=False),
    "best-of-history": Probe(best_of_history, meters=("trainer",), needs_lines=False),
    "batches-per-fit": Probe(batches_per_fit, meters=("trainer",), needs_lines=False),
}
