"""Training mode and autograd mode where a model is trained and where it is evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from lightlint.confirm.probes.probe import Probe, confirmed, hits, not_observable, refuted, still_open
from lightlint.confirm.probes.training.gradients import at
from lightlint.confirm.records import Event, Run
from lightlint.confirm.verdict import Claim, Number, Verdict

_EVALUATING = {"validate", "test", "sanity_check"}


def training_flags(claim: Claim, run: Run) -> Verdict:
    """Modes at the forward passes, read by what the rule says of them."""
    return _BY_RULE[claim.name](claim, run)


def _named(names: Sequence[str], kind: str) -> str:
    shown = ", ".join(f"`{name}`" if name else f"the {kind} itself" for name in names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"


def _in_stage(run: Run, stages: set[str]) -> list[Event]:
    return [event for _, event in run.each("forward") if event["stage"] in stages]


def _eval_before_fit(claim: Claim, run: Run) -> Verdict:
    passes = [event for event in _in_stage(run, {"train"}) if event["grad"] and event["trainable"]]
    if not passes:
        return not_observable(run, "no forward pass in Lightning's training was seen")
    first = passes[0]
    training, evaluating = first["acting"]
    if not first["training"] and evaluating and not training:
        return confirmed(run, f"the first training batch runs in eval mode: {_named(evaluating, first['type'])}")
    if first["training"] and not evaluating and training:
        return refuted(run, f"the first training batch runs in training mode: {_named(training, first['type'])}")
    return still_open(run, "the model has no module that the mode of the whole decides about")


def _leak(claim: Claim, run: Run) -> Verdict:
    return _from_training_to_eval(
        [event for event in _in_stage(run, {"train"}) if claim.index not in event["findings"]], run
    )


def _not_restored(claim: Claim, run: Run) -> Verdict:
    """Passes that a backward pass follows are the training's: an evaluation may record gradients, too."""
    passes = [event for _, event in run.each("forward") if event["grad"] and event["trainable"]]
    trained = [
        event
        for event, later in pairwise(passes)
        if later["backwards"] > event["backwards"] and later["module"] == event["module"]
    ]
    return _from_training_to_eval(trained, run)


def _from_training_to_eval(passes: Sequence[Event], run: Run) -> Verdict:
    began: dict[tuple[int, str], bool] = {}
    leaked: list[str] = []
    looked = 0
    for event in passes:
        if not event["grad"] or not event["trainable"]:
            continue
        looked += 1
        training, evaluating = event["acting"]
        for name in training:
            began[event["module"], name] = True
        leaked += [name for name in evaluating if began.get((event["module"], name)) and name not in leaked]
    if leaked:
        return confirmed(run, f"trained in training mode first and in eval mode later: {_named(leaked, 'model')}")
    if looked < 2 or not began:
        return not_observable(run, "no two training passes of a model with dropout or batch norm were seen")
    return still_open(run, f"in {looked} training passes every module stayed in the mode it began in")


def _on_in_evaluation(claim: Claim, run: Run) -> Verdict:
    passes = _in_stage(run, _EVALUATING)
    turned: list[str] = []
    off: set[tuple[int, str]] = set()
    for event in passes:
        training, evaluating = event["acting"]
        off |= {(event["module"], name) for name in evaluating}
        turned += [name for name in training if claim.index not in event["findings"] and name not in turned]
    if turned and hits(claim, run):
        return confirmed(run, f"evaluated in training mode: {_named(turned, 'model')}")
    if passes and off and hits(claim, run):
        return refuted(run, f"all {len(passes)} evaluation passes ran in eval mode")
    return not_observable(run, "no evaluation pass of a model with dropout or batch norm was seen")


def _without_eval(claim: Claim, run: Run) -> Verdict:
    passes = [event for _, event in at(claim, run, "forward") if not event["grad"]]
    training = [event for event in passes if event["acting"][0]]
    acting = [event for event in passes if event["acting"][0] or event["acting"][1]]
    numbers = [Number("passes on the line", len(passes)), Number("in training mode", len(training))]
    if training:
        names = _named(training[0]["acting"][0], training[0]["type"])
        return confirmed(run, f"{len(training)} of {len(passes)} passes evaluate in training mode: {names}", numbers)
    if acting:
        return refuted(run, f"all {len(passes)} passes on the line ran in eval mode", numbers)
    if passes:
        return refuted(run, "the model on the line has no module that acts by the mode", numbers)
    return not_observable(run, "no forward pass without gradients ran on the line", numbers)


_BY_RULE = {
    "eval-mode-before-fit": _eval_before_fit,
    "eval-mode-leak": _leak,
    "train-mode-in-eval-hook": _on_in_evaluation,
    "train-mode-not-restored": _not_restored,
    "validation-without-eval-mode": _without_eval,
}


def grad_enabled_in_eval(claim: Claim, run: Run) -> Verdict:
    """Whether autograd records the forward passes of the line."""
    passes = [event for _, event in at(claim, run, "forward")]
    recorded = [event for event in passes if event["grad"] and event["trainable"] and not event["training"]]
    numbers = [Number("passes on the line", len(passes)), Number("recorded by autograd", len(recorded))]
    if not passes:
        return not_observable(run, "no module ran on the line")
    if len(recorded) == len(passes):
        return confirmed(run, f"autograd records all {len(passes)} passes in eval mode", numbers)
    if not any(event["grad"] for event in passes):
        return refuted(run, f"autograd records none of {len(passes)} passes", numbers)
    return still_open(run, f"autograd records {len(recorded)} of {len(passes)} passes in eval mode", numbers)


def trainable_parameters(claim: Claim, run: Run) -> Verdict:
    """Whether the line changes how many parameters ask for gradients."""
    named = claim.details.get("1", "") if claim.name == "module-requires-grad-attribute" else ""
    holder = named.split(".")[0].split("[")[0]
    changes = [
        (name, *values)
        for _, event in hits(claim, run)
        for name, values in event["changes"].get("trainable", {}).items()
        if values[0] is not None and (not holder or name == holder)
    ]
    moved = [f"`{name}`: {before} -> {after}" for name, before, after in changes if before != after]
    if moved:
        return refuted(run, f"the line changes what is trained: {moved[0]} parameters")
    still = {name: after for name, _, after in changes if after}
    if still:
        name, count = next(iter(still.items()))
        return confirmed(
            run,
            f"the line freezes nothing: `{name}` has {count} trained parameters before it and behind it",
            [Number(f"trained parameters of {name}", count) for name, count in still.items()],
        )
    return not_observable(run, "no module or parameter that is trained was among the line's variables")


def requires_grad_after_step(claim: Claim, run: Run) -> Verdict:
    """Whether a training step leaves parameters frozen that were trained when it began."""
    for rank, process in run.ranks.items():
        looks = process.of("frozen")
        first = next((event for event in looks if event["when"] == "on_train_start"), None)
        later = [event for event in looks if event["when"] != "on_train_start"]
        if first is None or not later:
            continue
        raised = any("does not require grad" in event["message"] for event in process.of("exception"))
        worst = max(later, key=lambda event: event["count"])
        numbers = [
            Number("frozen at the start", first["count"], rank=rank),
            Number("frozen later", worst["count"], rank=rank),
        ]
        if worst["count"] > first["count"] and hits(claim, run):
            left = sorted(set(worst["off"]) - set(first["off"]))
            then = ", and a backward pass then raises" if raised else ""
            return confirmed(run, f"a step leaves {_named(left, 'module')} without gradients{then}", numbers)
        if any(event["when"] == "on_train_batch_end" for event in later):
            return refuted(run, f"behind each of {len(later) - 1} batches everything is trained as before", numbers)
    return not_observable(run, "no training step of Lightning's came to its end")


def parameters_in_optimizer(claim: Claim, run: Run) -> Verdict:
    """Whether the module has trained parameters that no optimizer holds."""
    looks = [event for _, event in run.each("optimized") if event["held"]]
    missing = sorted({name for event in looks for name in event["missing"]})
    named = claim.details.get("0", "").removeprefix("self.")
    here = [name for name in missing if name == named or name.startswith(f"{named}.")]
    if here:
        return confirmed(
            run, f"no optimizer holds {_named(here, 'module')}", [Number("missing parameters", len(missing))]
        )
    if looks:
        return (
            refuted(run, f"the optimizers hold every parameter of `{named}`")
            if not missing
            else still_open(run, f"no optimizer holds {_named(missing, 'module')}, which the finding does not name")
        )
    return not_observable(run, "no Trainer with an optimizer was seen")


PROBES = {
    "training-flags": Probe(training_flags, meters=("modes",), needs_lines=False),
    "grad-enabled-in-eval": Probe(grad_enabled_in_eval, meters=("modes",)),
    "trainable-parameters": Probe(trainable_parameters, meters=("modes",)),
    "requires-grad-after-step": Probe(requires_grad_after_step, meters=("modes",), needs_lines=False),
    "parameters-in-optimizer": Probe(parameters_in_optimizer, meters=("modes",), needs_lines=False),
}
