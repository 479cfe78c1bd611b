"""Findings that raise or warn: whether the run did so at their lines, or by what they name."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from lightlint.confirm.probes.probe import (
    Probe,
    confirmed,
    hits,
    not_observable,
    not_reached,
    refuted,
    still_open,
    through,
)
from lightlint.confirm.records import Event, Run
from lightlint.confirm.verdict import Claim, Number, Verdict

_CALL = 20  # rows that a call may have before and behind one of its arguments
_UNRELATED = {"OutOfMemoryError", "MemoryError", "ConnectionError", "DistBackendError", "TimeoutError"}


@dataclass(frozen=True, slots=True)
class Expected:
    """What a rule's fault raises.

    Attributes:
        types: names of the exceptions, a pattern; any but those of the machine where empty.
        text: a pattern that its message holds; NAMES stands for the identifiers of the finding.
        where: where it is raised: on the finding's "line"; "beside" it, by the call that the line is an argument of; or
            anywhere in the "run", where its text tells it.
        named: whether its message must hold a name that the finding's message gives in backticks.
        by: the event that is recorded only where it was not raised: "step" for what stops a fit from starting.
        runs: how often the lines must have run without it to say that they do not raise.
        gpu: whether it is raised on a GPU only.
        ranks: ranks that are needed.
    """

    types: str = ""
    text: str = ""
    where: str = "line"
    named: bool = False
    by: str = ""
    runs: int = 1
    gpu: bool = False
    ranks: int = 1


_MISSING = "AttributeError|ImportError|ModuleNotFoundError|TypeError|RuntimeError|MisconfigurationException"
_REFUSED = "MisconfigurationException|ValueError|TypeError|RuntimeError"
_EXPECTED = {
    "backward-over-freed-graph": Expected("RuntimeError", r"second time|inplace operation", runs=2),
    "backward-over-running-sum": Expected("RuntimeError", r"second time|inplace operation", runs=2),
    "adapter-loaded-frozen": Expected("RuntimeError", r"does not require grad", "run"),
    "best-metric-not-computed": Expected("KeyError", r"metric_for_best_model|eval_", "run"),
    "best-model-without-evaluation": Expected("ValueError", r"load_best_model_at_end", "beside"),
    "bce-under-autocast": Expected("RuntimeError", r"autocast", gpu=True),
    "colab-only-import": Expected("ModuleNotFoundError|ImportError", r"google"),
    "configure-optimizers-return-shape": Expected("", r"Unknown configuration for model optimizers", "run", by="step"),
    "cuda-in-dataloader-worker": Expected("RuntimeError", r"forked subprocess", "run", gpu=True),
    "dataloader-arg-conflict": Expected("ValueError", where="beside", named=True),
    "dataloader-hook-no-return": Expected("TypeError|MisconfigurationException", r"dataloader", "run", named=True),
    "dataloader-idx-mismatch": Expected("RuntimeError|MisconfigurationException|TypeError", r"dataloader_idx", "run"),
    "distributed-sampler-too-early": Expected("RuntimeError|ValueError", r"process group", "beside"),
    "fabric-not-launched": Expected("RuntimeError|TypeError", r"launch", "run"),
    "grad-in-eval-hook": Expected("RuntimeError", r"does not require grad|inference tensor|grad_fn"),
    "half-weights-with-fp16": Expected("ValueError", r"unscale FP16", "run", gpu=True),
    "half-model-with-scaler": Expected("ValueError", r"unscale FP16", "run", gpu=True),
    "hook-removed-raises": Expected("NotImplementedError", r"has been removed", "run", named=True, by="step"),
    "hook-signature-mismatch": Expected("TypeError", r"argument", "run", named=True),
    "init-args-not-in-hparams": Expected("TypeError", r"missing \d+ required", "run"),
    "lightning-removed-arg": Expected("TypeError", r"argument", "beside", named=True),
    "lightning-removed-attribute": Expected(_MISSING, named=True),
    "lightning-removed-import": Expected(_MISSING),
    "load-from-checkpoint-on-instance": Expected("TypeError", r"cannot be called on an instance"),
    "load-weights-only-unset": Expected("", r"[Ww]eights[ _]only"),
    "log-in-forbidden-hook": Expected("MisconfigurationException", r"log", "beside"),
    "log-invalid-level": Expected("MisconfigurationException", r"on_step|on_epoch|log", "beside"),
    "log-twice-conflicting": Expected("MisconfigurationException", r"twice|different arguments", "beside"),
    "log-unsupported-value": Expected("", r"cannot be logged|values", "beside"),
    "loss-target-mismatch": Expected("RuntimeError|ValueError"),
    "lr-scheduler-removed-arg": Expected("TypeError", r"argument", "beside"),
    "manual-trainer-clip-accumulate": Expected(
        "MisconfigurationException", r"[Aa]utomatic gradient (clipping|accumulation)", "run", by="step"
    ),
    "metric-not-registered": Expected("MisconfigurationException", r"attribute for the `?torchmetrics", "beside"),
    "missing-super-init": Expected(
        "AttributeError|TypeError", r"before Module\.__init__|'(NAMES)' object has no attribute", "run", by="step"
    ),
    "mixed-lightning-imports": Expected("TypeError|MisconfigurationException|ValueError", where="run", by="step"),
    "model-assigned-from-load": Expected(
        "TypeError|AttributeError",
        r"_IncompatibleKeys|'NoneType' object has no attribute '(step|zero_grad|param_groups|state_dict)'",
        "run",
    ),
    "multiple-optimizers-automatic": Expected("RuntimeError", r"multiple optimizers", "run", by="step"),
    "nccl-cpu-tensor": Expected("RuntimeError|ValueError", r"[Bb]ackend|CUDA|device type cpu", gpu=True),
    "optimizer-count-mismatch": Expected("TypeError|AttributeError|ValueError|IndexError"),
    "optimizer-idx-arg": Expected("RuntimeError", r"optimizer_idx", "run", by="step"),
    "plateau-without-monitor": Expected("MisconfigurationException", r"ReduceLROnPlateau", "run", by="step"),
    "rank-zero-only-value-used": Expected("TypeError|AttributeError", r"NoneType", ranks=2),
    "reserved-attribute": Expected("AttributeError", r"setter|can't set"),
    "scalar-loss-indexed": Expected("IndexError"),
    "stft-return-complex-unset": Expected("RuntimeError|ValueError", r"return_complex", "beside"),
    "test-best-without-checkpoint": Expected("ValueError|MisconfigurationException", r"best", "run"),
    "torch-removed-name": Expected(_MISSING),
    "train-dataloader-len-in-configure-optimizers": Expected(
        "TypeError|MisconfigurationException|AttributeError", r"NoneType|train_dataloader"
    ),
    "trainer-access-in-init": Expected("RuntimeError|AttributeError", r"attached|NoneType|Trainer"),
    "trainer-conflicting-args": Expected(_REFUSED, where="beside", named=True),
    "trainer-invalid-value": Expected(_REFUSED, where="beside", named=True),
    "trainer-removed-arg": Expected("TypeError", r"unexpected keyword argument", "beside", named=True),
    "training-step-bad-return": Expected("MisconfigurationException", r"training_step|must return", "run", by="step"),
    "training-step-without-grad": Expected("RuntimeError", r"does not require grad", "run", by="step"),
    "twin-callbacks": Expected(
        "RuntimeError", r"more than one|state[_ ]key|stateful callback", "run", by="trainer-start"
    ),
    "unpicklable-worker-callable": Expected("PicklingError|AttributeError|TypeError", r"pickle", "run"),
    "wrapped-state-dict-prefix": Expected("RuntimeError", r"loading state_dict[\s\S]*(module|_orig_mod)\.", "run"),
}


def exception(claim: Claim, run: Run) -> Verdict:
    """Whether an exception of the finding's kind came through its lines, or ended the run by what it names."""
    expected = _EXPECTED.get(claim.name, Expected())
    if run.world < expected.ranks:
        return not_observable(run, f"shows on {expected.ranks} ranks only: add `--devices {expected.ranks}`")
    came = hits(claim, run)
    for rank, event in came:
        kind, _, message = event.get("raised", "").partition(": ")
        if kind and _is(expected, claim, kind, message):
            return _raised(run, rank, f"the line raised {kind}", message)
    ended = list(run.each("exception"))
    for rank, event in ended:
        if _belongs(event, claim, expected) and _is(expected, claim, event["type"], event["message"]):
            return _raised(run, rank, f"the run ended with {event['type']}", event["message"])
    if not came:
        return not_reached(run)
    return _not_raised(claim, run, expected, [event for _, event in came], [event for _, event in ended])


def _is(expected: Expected, claim: Claim, kind: str, message: str) -> bool:
    if expected.types and not re.fullmatch(expected.types, kind):
        return False
    if not expected.types and kind in _UNRELATED:
        return False
    text = expected.text.replace("NAMES", "|".join(sorted(_names(claim))) or "no name")
    named = not expected.named or bool(_names(claim) & set(re.findall(r"[A-Za-z_]\w+", message)))
    return named and bool(re.search(text, message))


def _names(claim: Claim) -> set[str]:
    """The identifiers that the finding gives in backticks."""
    return {word for each in claim.details.values() for word in re.findall(r"[A-Za-z_]\w+", each)}


def _belongs(event: Event, claim: Claim, expected: Expected) -> bool:
    """Whether an exception came through the lines, or through their file where other lines raise it."""
    if through(event["frames"], claim):
        return True
    return expected.where == "run" or (expected.where == "beside" and _is_near(event, claim))


def _is_near(event: Event, claim: Claim) -> bool:
    """Whether it came through a line beside the finding's: an argument's row is not that of its call."""
    rows = range(claim.first - _CALL, claim.last + _CALL)
    return any(file == claim.file and row in rows for file, row, _ in event["frames"])


def _raised(run: Run, rank: int, what: str, message: str) -> Verdict:
    first = message.strip().splitlines()[0][:200] if message.strip() else ""
    where = f" on rank {rank}" if run.world > 1 else ""
    return confirmed(run, f"{what}{where}: {first}" if first else f"{what}{where}")


def _not_raised(claim: Claim, run: Run, expected: Expected, came: list[Event], ended: list[Event]) -> Verdict:
    """What it means that the lines ran and the finding's exception did not come."""
    numbers = [Number("times the line ran", len(came))]
    other = next((event["raised"] for event in came if event.get("raised")), "")
    if other:
        return still_open(run, f"the line raised something else: {other.splitlines()[0][:160]}", numbers)
    if expected.gpu:
        return not_observable(run, "it is raised on a GPU only, and nothing was raised here", numbers)
    if claim.tier != "error" or ("raise" not in claim.message and claim.name in _TWO_KINDS):
        return still_open(run, "nothing was raised in this run", numbers)
    if ended:
        return still_open(run, f"the run ended with {ended[0]['type']} from other lines", numbers)
    if expected.where == "run":
        if expected.by and any(run.each(expected.by)):
            return refuted(run, "the line ran and training started all the same", numbers)
        return still_open(run, "the line ran, and nothing was raised in this run", numbers)
    if not any(event["then"] is None or event["then"] > claim.last for event in came):
        return still_open(run, "the line ran, and what comes behind it was not seen", numbers)
    if len(came) < expected.runs:
        return still_open(run, f"the line ran {len(came)} times and raised nothing: too seldom to tell", numbers)
    return refuted(run, f"the line ran {len(came)} times and raised nothing", numbers)


_TWO_KINDS = {"load-from-checkpoint-on-instance", "train-dataloader-len-in-configure-optimizers"}
_BY_PYTHON = {"checkpoint-reentrant-unset", "deprecated-cuda-amp"}  # warn by `warnings.warn`, which is always seen
_WARNINGS = {
    "checkpoint-reentrant-unset": r"use_reentrant",
    "tensor-copy-construct": r"copy construct",
    "torch-distributed-launch": r"torch\.distributed\.launch",
    "torchvision-pretrained-arg": r"pretrained|weights",
}


def warning(claim: Claim, run: Run) -> Verdict:
    """Whether the finding's lines gave the warning that it speaks of."""
    pattern = re.compile(_WARNINGS.get(claim.name, r"deprecated|will be removed|is replaced|will be changed"))
    for process in run.processes:
        for event in process.of("warning"):
            launched = claim.name == "torch-distributed-launch" and not event["places"]
            if (launched or through(event["places"], claim)) and pattern.search(event["message"]):
                first = event["message"].strip().splitlines()[0][:200]
                return confirmed(run, f"the line gives a {event['category']}: {first}")
    came = len(hits(claim, run))
    if not came:
        return not_reached(run)
    numbers = [Number("times the line ran", came)]
    if claim.name in _BY_PYTHON:
        return refuted(run, f"the line ran {came} times and gave no warning", numbers)
    return still_open(run, f"the line ran {came} times, and no warning of it was seen", numbers)


def checkpoint_loads(claim: Claim, run: Run) -> Verdict:
    """Whether what the finding's file saved can be loaded with torch's defaults."""
    saved = [event for _, event in run.each("saved") if any(place[0] == claim.file for place in event["places"])]
    exact = [event for event in saved if through(event["places"], claim)] or _behind(claim, run, saved)
    refusing = [event for event in exact if event["error"]]
    if refusing:
        said = {match[1] for event in refusing for match in re.finditer(r"GLOBAL ([\w.]+)", event["error"])}
        what = f": it holds {', '.join(f'`{name}`' for name in sorted(said))}" if said else ""
        reason = f"`torch.load` with `weights_only=True` refuses what was saved{what}"
        return confirmed(run, reason) if _is_said(claim, said) else still_open(run, f"{reason} before it comes to this")
    if exact:
        return refuted(run, f"`torch.load` with `weights_only=True` took the {len(exact)} files that were saved")
    if any(run.each("exception")):
        return exception(claim, run)
    return (
        still_open(run, "what was saved in this run does not come from this line")
        if hits(claim, run)
        else not_reached(run)
    )


def _behind(claim: Claim, run: Run, saved: Sequence[Event]) -> list[Event]:
    """The saves of a payload that the finding's lines make: the next behind them in a function that they are in."""
    if hits(claim, run) and len({tuple(event["places"][0]) for event in saved}) == 1:
        return list(saved)
    functions = {event.get("function") for _, event in hits(claim, run)}
    rows: dict[int, list[Event]] = {}
    for event in saved:
        for file, row, function in event["places"]:
            if file == claim.file and row > claim.last and function in functions:
                rows.setdefault(row, []).append(event)
    return rows[min(rows)] if rows else []


def _is_said(claim: Claim, names: Collection[str]) -> bool:
    """Whether torch refuses what the finding is about; it names the first class that it does not take."""
    about = next((word for word in ("numpy", "SimpleNamespace", "Namespace") if word in claim.message), "")
    return not names or any(about in name for name in names)


def unmatched_keys(claim: Claim, run: Run) -> Verdict:
    """Whether the load passed over keys."""
    loads = [event for _, event in run.each("loaded") if through(event["places"], claim)]
    if not loads:
        return still_open(run, "no load of this line was seen")
    missing, unexpected = (max(len(each[kind]) for each in loads) for kind in ("missing", "unexpected"))
    numbers = [Number("keys of the model without a value", missing), Number("values without a key", unexpected)]
    if missing or unexpected:
        worst = max(loads, key=lambda each: len(each["missing"]) + len(each["unexpected"]))
        names = ", ".join(f"`{name}`" for name in [*worst["missing"], *worst["unexpected"]][:3])
        return confirmed(run, f"the load passed over {missing + unexpected} keys without a word: {names}", numbers)
    return refuted(run, "every key of the model got its value", numbers)


def visible_devices(claim: Claim, run: Run) -> Verdict:
    """Whether CUDA was in use when the line set which devices it sees."""
    started = [event["changes"].get("memory", {}).get("cuda started", [None])[0] for _, event in hits(claim, run)]
    if any(started):
        return confirmed(run, "CUDA was in use before the line ran")
    return not_observable(run, "torch had not used CUDA when the line ran")


def spawned(claim: Claim, run: Run) -> Verdict:
    """Whether a process that was spawned died while it imported the script."""
    for process in run.processes:
        for event in process.of("exception"):
            if "bootstrapping phase" in event["message"]:
                return confirmed(run, f"a spawned process raised {event['type']} when it ran the script again")
    if any(process.start.get("spawned") for process in run.processes):
        return still_open(run, "processes were spawned, and none of them failed for it")
    return not_observable(run, "workers are forked here and do not import the script: spawn and forkserver do")


PROBES = {
    "spawn-run": Probe(spawned, needs_lines=False),
    "exception": Probe(exception, needs_lines=False),
    "warning": Probe(warning, meters=("warnings",), needs_lines=False),
    "checkpoint-loads": Probe(checkpoint_loads, meters=("checkpoints",), needs_lines=False),
    "unmatched-keys": Probe(unmatched_keys, meters=("checkpoints",)),
    "visible-devices": Probe(visible_devices, meters=("memory",)),
}
