from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.classes import CALLBACK
from lightlint.facts.compat import is_versioned
from lightlint.facts.keywords import Keyword, keywords
from lightlint.facts.names import UNKNOWN
from lightlint.facts.training import ENTRY_POINTS
from lightlint.facts.world import TRAINER
from lightlint.finding import Tier

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
