from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.facts.classes import CALLBACK
from lightlint.facts.compat import is_versioned
from lightlint.facts.keywords import Keyword, keywords
from lightlint.facts.names import UNKNOWN
from lightlint.facts.training import ENTRY_POINTS
from lightlint.facts.world import TRAINER
from lightlint.finding import Tier
from lightlint.values.core import Constant, Library, Sequence, is_constant, written
from lightlint.values.training import Instance

if TYPE_CHECKING:
    from lightlint.engine.events import Called
    from lightlint.explore.rehearsals import Entry

_CHECKPOINT = "lightning.callbacks.ModelCheckpoint"
_RATES = "lightning.callbacks.LearningRateMonitor"
_PROGRESS = ("lightning.callbacks.ProgressBar", "lightning.callbacks.TQDMProgressBar", "lightning.callbacks.RichProgressBar")  # fmt: skip
_TOO_MUCH_FOR_BAREBONES = {
    "enable_checkpointing", "logger", "enable_progress_bar", "log_every_n_steps", "enable_model_summary",
    "num_sanity_val_steps", "fast_dev_run", "detect_anomaly", "profiler",
}  # fmt: skip
_LOADERS = {"train_dataloaders", "val_dataloaders", "dataloaders"}
_TRIGGERS = ("every_n_train_steps", "train_time_interval", "every_n_epochs")


class TrainerConflictingArgs(Check):
    def visit_Call(self, call: cst.Call) -> None:
        name = self.names.of(call.func)
        if name not in {TRAINER, _CHECKPOINT} and self.names.method(call) not in ENTRY_POINTS:
            return
        if is_versioned(self.facts, call):
            return
        if name == TRAINER:
            self._callbacks(call)
            self._barebones(call)
            self._pairs(call)
        elif name == _CHECKPOINT:
            self._checkpoint(call)
        elif any(run.call is call for run in self.facts.training.runs):
            self._sources(call)

    def _constant(self, call: cst.Call, keyword: str) -> object:
        given = self.names.argument(call, keyword)
        return self.names.constant(given.value) if given is not None else UNKNOWN

    def _callbacks(self, trainer: cst.Call) -> None:
        given = self.names.argument(trainer, "callbacks")
        value = given.value if given else None
        items = [each.value for each in value.elements] if isinstance(value, (cst.List, cst.Tuple)) else [value]
        for item in items:
            origin = self.values.constructor(item) if item is not None else None
            if origin is None or not self.classes.name_is_a(origin.name, CALLBACK) or item is None:
                continue
            short = origin.name.rpartition(".")[2]
            switches = {"enable_checkpointing": (_CHECKPOINT,), "enable_progress_bar": _PROGRESS, "logger": (_RATES,)}
            for switch, kinds in switches.items():
                if self._constant(trainer, switch) is False and self.classes.name_is_a(origin.name, *kinds):
                    self.report(item, f"`{short}` among the callbacks of a Trainer with `{switch}=False`")

    def _barebones(self, trainer: cst.Call) -> None:
        if self._constant(trainer, "barebones") is not True:
            return
        for arg in trainer.args:
            keyword = arg.keyword.value if arg.keyword else ""
            value = self.names.constant(arg.value)
            if keyword in _TOO_MUCH_FOR_BAREBONES and value is not UNKNOWN and value:
                self.report(arg, f"`{self.code.text_of(arg)}` in a Trainer with `barebones=True`")

    def _pairs(self, trainer: cst.Call) -> None:
        if self._constant(trainer, "deterministic") is True and self._constant(trainer, "benchmark") is True:
            given = self.names.argument(trainer, "benchmark")
            if given is not None:
                self.report(given, "`benchmark=True` undoes `deterministic=True`", tier=Tier.WARNING)
        interval = self.names.argument(trainer, "val_check_interval")
        is_share = interval is not None and isinstance(self.names.constant(interval.value), float)
        if interval is not None and is_share and self._constant(trainer, "check_val_every_n_epoch") is None:
            self.report(interval, "`val_check_interval` is a share of an epoch, `check_val_every_n_epoch` is None")

    def _checkpoint(self, call: cst.Call) -> None:
        given = {each.name: each for each in keywords(self.facts, call)}
        if all(self._is_read(arg, given) for arg in call.args if arg.star):
            self._top_k(call, given)
        triggers = [each for name in _TRIGGERS if (each := given.get(name)) and self._is_set(each.value)]
        if len(triggers) > 1:
            last, first = triggers[-1], triggers[0]
            self.report(last.node, f"`{last.name}` beside `{first.name}`, of which one at most may be set")

    def _top_k(self, call: cst.Call, given: dict[str, Keyword]) -> None:
        kept = given.get("save_top_k")
        value = self.names.constant(kept.value) if kept else 1
        place = self.names.argument(call, "monitor", 2)
        monitor = given["monitor"].value if "monitor" in given else place.value if place else None
        has_monitor = monitor is not None and self.names.constant(monitor) is not None
        if kept is not None and isinstance(value, int) and value not in {-1, 0, 1} and not has_monitor:
            self.report(kept.node, f"`save_top_k={value}` without a `monitor`")

    def _is_set(self, value: cst.BaseExpression) -> bool:
        constant = self.names.constant(value)
        return constant is not UNKNOWN and bool(constant)

    def _is_read(self, arg: cst.Arg, given: dict[str, Keyword]) -> bool:
        """Whether all that a `**config` holds is among the keywords that were read."""
        made: cst.BaseExpression | None = arg.value
        if isinstance(made, cst.Name):
            found = self.names.bindings.lookup(made)
            made = found[0].value if len(found) == 1 and isinstance(found[0].value, cst.BaseExpression) else None
        if arg.star != "**" or not isinstance(made, cst.Dict):
            return False
        keys = [
            self.names.constant(each.key) if isinstance(each, cst.DictElement) else UNKNOWN for each in made.elements
        ]
        return bool(keys) and all(key in given for key in keys)

    def _sources(self, call: cst.Call) -> None:
        data = self.names.argument(call, "datamodule")
        if data is None:
            return
        named = [arg for arg in call.args if arg.keyword and arg.keyword.value in _LOADERS]
        plain = [arg for arg in call.args[1:] if arg.keyword is None and not arg.star]
        for arg in (named + plain)[:1]:
            if self._is_sure(arg.value) and self._is_sure(data.value):
                self.report(arg, f"`{self.names.method(call)}` gets loaders and a `datamodule`")

    def _is_sure(self, value: cst.BaseExpression) -> bool:
        """Whether a value surely is not None: made by a constructor in sight, not only annotated."""
        origins = self.values.origins(value)
        made = bool(origins) and all(each.call is not None for each in origins)
        return made or isinstance(value, (cst.List, cst.Dict))

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        for event in entry.calls.get(TRAINER, ()):
            for message, tier in _trainer_faults(event):
                if not self.is_versioned(event):
                    yield Fault.of(event, message, tier=tier)
        for event in entry.calls.get(_CHECKPOINT, ()):
            for message in _checkpoint_faults(event):
                if not self.is_versioned(event):
                    yield Fault.of(event, message)


def _trainer_faults(event: Called) -> Iterator[tuple[str, Tier | None]]:
    """What a Trainer's arguments say against each other."""
    given = event.given.keywords
    callbacks = event.argument("callbacks")
    for made in callbacks.items if isinstance(callbacks, Sequence) else [callbacks]:
        name = made.cls.path if isinstance(made, Instance) and isinstance(made.cls, Library) else ""
        switches = {"enable_checkpointing": (_CHECKPOINT,), "enable_progress_bar": _PROGRESS, "logger": (_RATES,)}
        for switch, kinds in switches.items():
            if name in kinds and is_constant(given.get(switch), False):
                yield f"`{name.rpartition('.')[2]}` among the callbacks of a Trainer with `{switch}=False`", None
    if is_constant(given.get("barebones"), True):
        for keyword, value in given.items():
            if keyword in _TOO_MUCH_FOR_BAREBONES and isinstance(value, Constant) and value.value:
                yield f"`{keyword}={value.value!r}` in a Trainer with `barebones=True`", None
    if is_constant(given.get("deterministic"), True) and is_constant(given.get("benchmark"), True):
        yield "`benchmark=True` undoes `deterministic=True`", Tier.WARNING
    interval = written(given.get("val_check_interval"))
    share = interval is not None and isinstance(interval.value, float)
    if share and is_constant(given.get("check_val_every_n_epoch"), None):
        yield "`val_check_interval` is a share of an epoch, `check_val_every_n_epoch` is None", None


def _checkpoint_faults(event: Called) -> Iterator[str]:
    """What a ModelCheckpoint's arguments say against each other."""
    given = event.given.keywords
    kept, monitor = written(given.get("save_top_k")), event.argument("monitor", 2)
    many = kept is not None and isinstance(kept.value, int) and kept.value not in {-1, 0, 1}
    if kept is not None and many and event.given.exact and (monitor is None or is_constant(monitor, None)):
        yield f"`save_top_k={kept.value}` without a `monitor`"
    known = [each for each in _TRIGGERS if (value := written(given.get(each))) is not None and value.value]
    if len(known) > 1:
        yield f"`{known[-1]}` beside `{known[0]}`, of which one at most may be set"
