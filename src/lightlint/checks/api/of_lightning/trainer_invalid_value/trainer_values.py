"""Which values a Trainer's arguments take, release by release. Read off and tried with Lightning 2.6.6 unless said otherwise."""

from __future__ import annotations

from lightlint.facts.releases.api import lightning_api
from lightlint.facts.versions.versions import Target, Version

_TWO = Version("2.0")
_GONE_STRATEGIES = {"dp", "ddp2", "horovod", "bagua", "colossalai", "hivemind", "collaborative", "ddp_sharded"}
_GONE_STRATEGIES |= {
    "ddp_sharded_spawn",
    "ddp_sharded_find_unused_parameters_false",
    "ddp_fully_sharded",
    "fsdp_native",
}
_GONE_STRATEGIES |= {"ddp_sharded_spawn_find_unused_parameters_false", "tpu_spawn", "tpu_spawn_debug", "ipu_strategy"}
_ACCELERATORS = {"gpus", "tpus", "cpus", "cuda:0", "cuda:1", "gpu:0", "dp", "ddp", "ddp2", "ddp_cpu", "ddp_spawn", "horovod", "fsdp"}  # fmt: skip
_PROFILERS = {"simple", "advanced", "pytorch", "xla"}
_SHARES = {"limit_train_batches", "limit_val_batches", "limit_test_batches", "limit_predict_batches", "val_check_interval"}  # fmt: skip
_MIXED = {16: "16-mixed", "16": "16-mixed", "bf16": "bf16-mixed"}


def fault(argument: str, value: object, target: Target) -> str | None:
    """What is wrong with a value, None if nothing is or that depends on the version within the target."""
    two = target.surely_at_least(_TWO)
    if argument == "strategy" and isinstance(value, str) and two and value in _GONE_STRATEGIES:
        return "is no strategy since Lightning 2.0"
    if argument == "strategy" and value is None and two:
        return "is no strategy since Lightning 2.0"
    if argument == "accelerator" and target.surely_at_least("1.7"):
        return _accelerator(value, two=two)
    if argument == "precision" and not isinstance(value, bool) and isinstance(value, (int, str)):
        return _precision(value, target)
    if argument == "accumulate_grad_batches" and value is dict and two:
        return "is no number: since Lightning 2.0 the first batch fails"
    if argument == "max_steps" and value is None and target.surely_at_least("1.7"):
        return "is no number of steps since Lightning 1.7"
    if argument in _SHARES and isinstance(value, float) and not 0 <= value <= 1:
        return "is no share between 0.0 and 1.0"
    if argument == "gradient_clip_algorithm" and isinstance(value, str) and value.lower() not in {"norm", "value"}:
        return 'is neither "norm" nor "value"'
    if argument == "profiler" and isinstance(value, str) and target.surely_at_least("1.7") and value not in _PROFILERS:
        return "is no profiler"
    if argument == "devices" and two and not isinstance(value, bool):
        return _devices(value)
    return None


def callback_fault(callback: str, argument: str, value: object, target: Target) -> str | None:
    """As `fault`, for an argument of one of Lightning's callbacks."""
    compares = callback in {"ModelCheckpoint", "EarlyStopping"} and argument == "mode"
    if compares and isinstance(value, str) and value not in {"min", "max"} and target.surely_at_least("1.3"):
        return 'is neither "min" nor "max"'
    if callback == "LearningRateMonitor" and argument == "logging_interval" and value not in {"step", "epoch", None}:
        return 'is neither "step" nor "epoch"'
    return None


def _accelerator(value: object, *, two: bool) -> str | None:
    if isinstance(value, str) and value in _ACCELERATORS:
        return "is no accelerator"
    return "is no accelerator since Lightning 2.0" if value is None and two else None


def _precision(value: int | str, target: Target) -> str | None:
    if target.surely_at_least(_TWO):
        return None if value in lightning_api().precisions else "is no precision"
    if target.surely_below(_TWO) and isinstance(value, str) and value.endswith(("-mixed", "-true")):
        return "is a precision since Lightning 2.0 only"
    return None


def _devices(value: object) -> str | None:
    if value in (0, "0", []):
        return 'leaves the Trainer without a device and it raises: give it one or more, or `accelerator="cpu"`'
    if isinstance(value, list) and len({str(each) for each in value}) < len(value):
        return "names a device twice"
    return None


def newer_precision(value: object, target: Target) -> str | None:
    """The name since 2.0 of a precision that is accepted with a warning."""
    plain = isinstance(value, (int, str)) and not isinstance(value, bool)
    return _MIXED.get(value) if plain and target.surely_at_least(_TWO) else None
