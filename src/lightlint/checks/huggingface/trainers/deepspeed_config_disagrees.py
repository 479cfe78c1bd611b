from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.explore.questions.training_arguments import calls_of, said
from lightlint.models.python.settings import read
from lightlint.values.core import Constant, Mapping, written

if TYPE_CHECKING:
    from lightlint.engine.events import Called
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Value

_PAIRS: dict[tuple[str, ...], tuple[str, object]] = {
    ("train_micro_batch_size_per_gpu",): ("per_device_train_batch_size", 8),
    ("gradient_accumulation_steps",): ("gradient_accumulation_steps", 1),
    ("gradient_clipping",): ("max_grad_norm", 1.0),
    ("optimizer", "params", "lr"): ("learning_rate", 5e-5),
    ("optimizer", "params", "eps"): ("adam_epsilon", 1e-8),
    ("optimizer", "params", "weight_decay"): ("weight_decay", 0.0),
    ("scheduler", "params", "warmup_max_lr"): ("learning_rate", 5e-5),
    ("scheduler", "params", "warmup_num_steps"): ("warmup_steps", 0),
    ("fp16", "enabled"): ("fp16", False),
    ("bf16", "enabled"): ("bf16", False),
}
"""What the Trainer holds against each other, and the default of its argument."""


class DeepspeedConfigDisagrees(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """DeepSpeed configurations that say another number than the TrainingArguments they are given to."""
        for event in calls_of(entry):
            config, file = self._config(said(event, "deepspeed"))
            if isinstance(config, Mapping) and not config.more and event.path.startswith(("transformers.", "trl.")):
                found = [each for path in _PAIRS if (each := _compared(event, config, path)) is not None]
                if found:
                    message = f"the DeepSpeed configuration{file} says {'; '.join(found)}"
                    yield Fault.of(event, message, argument="deepspeed")

    def _config(self, given: Value | None) -> tuple[Value | None, str]:
        """A configuration, and the name of the file it stands in, for a message."""
        found = read(given, partial(self.facts.project.settings, folder=self.facts.path.parent))
        return (given, "") if found is None else (found[1], f" in `{Path(found[0]).name}`")


def _written_down(given: Value) -> Constant | None:
    """What code or a file of settings says, and no option of a command line that mostly is given one."""
    in_file = isinstance(given.key, tuple) and given.key[:1] == ("setting",)
    return written(given) if in_file or isinstance(given, Constant) else None


def _compared(event: Called, config: Mapping, path: tuple[str, ...]) -> str | None:
    name, default = _PAIRS[path]
    value: Value | None = config
    for key in path:
        value = value.items.get(key) if isinstance(value, Mapping) and not value.more else None
    given = said(event, name)
    if path == ("scheduler", "params", "warmup_num_steps") and (
        "warmup_ratio" in event.given.keywords or given is None
    ):
        return None
    if event.path.startswith("trl.") and given is None:
        return None  # TRL's own defaults are others
    config_says, wanted = written(value), _written_down(given) if given is not None else Constant(default)
    if config_says is None or wanted is None or isinstance(config_says.value, str) or isinstance(wanted.value, str):
        return None
    if wanted.value == config_says.value:
        return None
    default_said = " by default" if given is None else ""
    return f"`{'.'.join(path)}` = {config_says.value}, and `{name}` is {wanted.value}{default_said}"
