from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.facts.lightning.training import ENTRY_POINTS
from lightlint.facts.ranks.world import TRAINER
from lightlint.finding import Tier
from lightlint.models.python.settings import read
from lightlint.values.core import Constant, Library, Mapping, Sequence, is_constant, written
from lightlint.values.training import Instance

if TYPE_CHECKING:
    from lightlint.engine.events import Called
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Value

_CHECKPOINT = "lightning.callbacks.ModelCheckpoint"
_RATES = "lightning.callbacks.LearningRateMonitor"
_PROGRESS = ("lightning.callbacks.ProgressBar", "lightning.callbacks.TQDMProgressBar", "lightning.callbacks.RichProgressBar")  # fmt: skip
_TOO_MUCH_FOR_BAREBONES = {
    "enable_checkpointing", "logger", "enable_progress_bar", "log_every_n_steps", "enable_model_summary",
    "num_sanity_val_steps", "fast_dev_run", "detect_anomaly", "profiler",
}  # fmt: skip
_DEEPSPEED = "lightning.strategies.DeepSpeedStrategy"
_ACCUMULATION = "gradient_accumulation_steps"
_LOADERS = ("train_dataloaders", "val_dataloaders", "dataloaders")
_TRIGGERS = ("every_n_train_steps", "train_time_interval", "every_n_epochs")


class TrainerConflictingArgs(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        for event in entry.calls.get(TRAINER, ()):
            for keyword, message, tier in _trainer_faults(event):
                if not self.is_versioned(event):
                    yield Fault.of(event, message, tier=tier, argument=keyword)
        for event in entry.calls.get(_CHECKPOINT, ()):
            for keyword, message in _checkpoint_faults(event):
                if not self.is_versioned(event):
                    yield Fault.of(event, message, argument=keyword)
        for event in entry.calls.get(_DEEPSPEED, ()):
            config = event.argument("config")
            found = read(config, partial(self.facts.project.settings, folder=self.facts.path.parent))
            config = found[1] if found is not None else config
            if isinstance(config, Mapping) and _ACCUMULATION in config.items and not self.is_versioned(event):
                message = f"`{_ACCUMULATION}` in the DeepSpeed configuration, where the Trainer's `accumulate_grad_batches` belongs"
                site = config.places().get(_ACCUMULATION, event.site)
                yield Fault(site, message, None, (event.site,), event.where.places[1:], argument=_ACCUMULATION)
        for name in sorted(ENTRY_POINTS):
            for event in entry.calls.get(f".{name}", ()):
                trainer, data = event.receiver, event.argument("datamodule")
                loaders = [(key, each) for key in _LOADERS if (each := event.argument(key))]
                loaders += [("", each) for each in event.given.positional[1:]]
                if trainer is not None and trainer.kind == "trainer" and _is_made(data):
                    given = next((key for key, each in loaders if _is_made(each)), None)
                    if given is not None and not self.is_versioned(event):
                        yield Fault.of(event, f"`{name}` gets loaders and a `datamodule`", argument=given)


def _is_made(value: Value | None) -> bool:
    """Whether a value surely is not None."""
    return isinstance(value, (Instance, Sequence, Mapping))


def _trainer_faults(event: Called) -> Iterator[tuple[str, str, Tier | None]]:
    """What a Trainer's arguments say against each other."""
    given = event.given.sure()
    callbacks = event.argument("callbacks")
    for made in callbacks.items if isinstance(callbacks, Sequence) else [callbacks]:
        name = made.cls.path if isinstance(made, Instance) and isinstance(made.cls, Library) else ""
        switches = {"enable_checkpointing": (_CHECKPOINT,), "enable_progress_bar": _PROGRESS, "logger": (_RATES,)}
        for switch, kinds in switches.items():
            if name in kinds and is_constant(given.get(switch), False):
                yield (
                    "callbacks",
                    f"`{name.rpartition('.')[2]}` among the callbacks of a Trainer with `{switch}=False`",
                    None,
                )
    if is_constant(given.get("barebones"), True):
        for keyword, value in given.items():
            if keyword in _TOO_MUCH_FOR_BAREBONES and isinstance(value, Constant) and value.value:
                said = f'"{value.value}"' if isinstance(value.value, str) else repr(value.value)
                yield keyword, f"`{keyword}={said}` in a Trainer with `barebones=True`", None
    if is_constant(given.get("deterministic"), True) and is_constant(given.get("benchmark"), True):
        yield "benchmark", "`benchmark=True` undoes `deterministic=True`", Tier.WARNING
    interval = written(given.get("val_check_interval"))
    share = interval is not None and isinstance(interval.value, float)
    if share and is_constant(given.get("check_val_every_n_epoch"), None):
        yield (
            "val_check_interval",
            "`val_check_interval` is a share of an epoch, `check_val_every_n_epoch` is None",
            None,
        )


def _checkpoint_faults(event: Called) -> Iterator[tuple[str, str]]:
    """What a ModelCheckpoint's arguments say against each other."""
    given = event.given.sure()
    kept, monitor = written(given.get("save_top_k")), event.argument("monitor", 2)
    many = kept is not None and isinstance(kept.value, int) and kept.value not in {-1, 0, 1}
    if kept is not None and many and event.given.exact and (monitor is None or is_constant(monitor, None)):
        yield "save_top_k", f"`save_top_k={kept.value}` without a `monitor`"
    known = [each for each in _TRIGGERS if (value := written(given.get(each))) is not None and value.value]
    if len(known) > 1:
        yield known[-1], f"`{known[-1]}` beside `{known[0]}`, of which one at most may be set"
