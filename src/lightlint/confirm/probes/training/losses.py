"""What losses, softmaxes and comparisons are given, and whether dropout stops in eval mode."""

from __future__ import annotations

from math import isfinite

from lightlint.confirm.probes.probe import Probe, confirmed, hits, not_observable, refuted, still_open
from lightlint.confirm.probes.training.gradients import at
from lightlint.confirm.records import Event, Run
from lightlint.confirm.verdict import Claim, Number, Verdict

_FUNCTIONS = {
    "kl-div-input-not-log": "kl_div",
    "nll-without-log-softmax": "nll_loss",
    "sigmoid-before-bce-with-logits": "binary_cross_entropy_with_logits",
    "softmax-before-cross-entropy": "cross_entropy",
}
_NEAR = 1e-3  # how far a row of probabilities may sum from 1: half precision rounds


def loss_input_range(claim: Claim, run: Run) -> Verdict:
    """Whether what the loss is given lies in the range that it expects."""
    calls = [event for _, event in at(claim, run, "loss-call") if event["function"] == _FUNCTIONS[claim.name]]
    if not calls:
        return not_observable(run, "the line called no loss of torch's")
    low, high = min(event["low"] for event in calls), max(event["high"] for event in calls)
    numbers = [Number("smallest input", low), Number("largest input", high), Number("calls", len(calls))]
    if not isfinite(low) or not isfinite(high):
        return still_open(run, "the loss is given values that are not finite", numbers)
    words = f"in {len(calls)} calls from {low:.4g} to {high:.4g}"
    if claim.name in {"kl-div-input-not-log", "nll-without-log-softmax"}:
        return _log_expected(run, calls, words, numbers)
    if claim.name == "sigmoid-before-bce-with-logits":
        if low >= 0 and high <= 1:
            return confirmed(run, f"the loss takes logits and is given probabilities, {words}", numbers)
        return refuted(run, f"the loss is given logits, {words}", numbers)
    if _all_near(calls, "rows") and low >= 0:
        return confirmed(run, f"the loss takes logits and is given rows that sum to 1, {words}", numbers)
    if _all_near(calls, "log_rows"):
        reason = f"the loss is given log-probabilities, which it takes for logits and leaves as they are, {words}"
        return (confirmed if claim.tier == "note" else refuted)(run, reason, numbers)
    return refuted(run, f"the loss is given logits, {words}", numbers)


def _log_expected(run: Run, calls: list[Event], words: str, numbers: list[Number]) -> Verdict:
    if any(event["high"] > _NEAR for event in calls):
        return confirmed(run, f"the loss takes log-probabilities and is given positive values, {words}", numbers)
    if _all_near(calls, "log_rows"):
        return refuted(run, f"the loss is given log-probabilities, {words}", numbers)
    return still_open(run, f"the loss is given values below 0 that are no log-probabilities of a row, {words}", numbers)


def _all_near(calls: list[Event], key: str) -> bool:
    return all(event[key] is not None and event[key] <= _NEAR for event in calls)


def compared_shapes(claim: Claim, run: Run) -> Verdict:
    """Whether a comparison has more elements than either side."""
    shapes = [event["shapes"] for _, event in at(claim, run, "compare")]
    if not shapes:
        return not_observable(run, "no two tensors were compared on the line")
    grown = [each for each in shapes if _count(each[2]) > max(_count(each[0]), _count(each[1]))]
    if grown:
        left, right, result = (tuple(each) for each in grown[0])
        return confirmed(run, f"{left} is compared with {right}: the result has the shape {result}")
    return refuted(run, f"the shapes fit: {tuple(shapes[0][0])} and {tuple(shapes[0][1])}")


def _count(shape: list[int]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def normalised_dimension(claim: Claim, run: Run) -> Verdict:
    """Whether a softmax without `dim` normalises another dimension than the last."""
    calls = [event for _, event in at(claim, run, "softmax")]
    if not calls:
        return not_observable(run, "no softmax without `dim` was called on the line or by what it makes")
    other = [event for event in calls if event["picked"] != max(0, event["dimensions"] - 1)]
    if other:
        return confirmed(
            run, f"an input of {other[0]['dimensions']} dimensions is normalised over dimension {other[0]['picked']}"
        )
    return refuted(run, f"inputs of {calls[0]['dimensions']} dimensions are normalised over the last one")


def eval_is_repeatable(claim: Claim, run: Run) -> Verdict:
    """Whether the line drops values although its module is in eval mode."""
    calls = [event for _, event in at(claim, run, "dropout") if event["owner"] is False]
    dropping = [event for event in calls if event["training"] and event["p"] > 0]
    numbers = [Number("calls in eval mode", len(calls)), Number("that drop", len(dropping))]
    if dropping:
        share = next((event["changed"] for event in dropping if event["changed"]), None)
        effect = f": {share:.0%} of the values change" if share else ""
        return confirmed(
            run, f"{len(dropping)} of {len(calls)} calls in eval mode drop with p={dropping[0]['p']:g}{effect}", numbers
        )
    if calls:
        return refuted(run, f"none of {len(calls)} calls in eval mode drops anything", numbers)
    return not_observable(run, "the line did not run in a module that is in eval mode", numbers)


def reported_loss(claim: Claim, run: Run) -> Verdict:
    """Whether the sum that is divided is one of batch means."""
    name = claim.details.get("0", "")
    for rank, process in run.ranks.items():
        means: list[Event] = []
        for event in process.events:
            if event.kind == "pass":
                means = []
            elif event.kind == "loss-call" and event["reduction"] == "mean" and event["value"] is not None:
                means.append(event)
            elif event.kind == "line" and event["finding"] == claim.index and len(means) > 1:
                value = event["changes"].get("variables", {}).get(name, [None])[0]
                whole = sum(each["value"] for each in means)
                examples = sum(each["size"] for each in means)
                if value is None or not whole or examples <= len(means):
                    continue
                numbers = [
                    Number("mean of the batches", whole / len(means), rank=rank),
                    Number("as it is reported, by examples", whole / examples, rank=rank),
                    Number("batches", len(means), rank=rank),
                ]
                if abs(value - whole) <= _NEAR * abs(whole):
                    return confirmed(
                        run,
                        f"`{name}` is the sum of {len(means)} batch means: by {examples} examples it is "
                        f"{examples / len(means):.3g} times too small",
                        numbers,
                    )
                weighted = sum(each["value"] * each["size"] for each in means)
                if abs(value - weighted) <= _NEAR * abs(weighted):
                    return refuted(run, f"`{name}` is the sum over {examples} examples", numbers)
    if hits(claim, run):
        return still_open(run, f"`{name}` is not the plain sum of the losses that were seen")
    return not_observable(run, "the line did not run")


PROBES = {
    "loss-input-range": Probe(loss_input_range, meters=("functions",)),
    "compared-shapes": Probe(compared_shapes, meters=("functions",)),
    "normalised-dimension": Probe(normalised_dimension, meters=("functions",), needs_lines=False),
    "eval-is-repeatable": Probe(eval_is_repeatable, meters=("functions",)),
    "reported-loss": Probe(reported_loss, meters=("functions", "variables")),
}
