from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.explore.questions.training_arguments import calls_of, said
from lightlint.values.core import Constant, Mapping, is_constant

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
            config = said(event, "deepspeed")
            if isinstance(config, Mapping) and not config.more and event.path.startswith(("transformers.", "trl.")):
                found = [each for path in _PAIRS if (each := _compared(event, config, path)) is not None]
                if found:
                    yield Fault.of(event, f"the DeepSpeed configuration says {'; '.join(found)}", argument="deepspeed")


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
    if not isinstance(value, Constant) or is_constant(value, "auto") or isinstance(value.value, str):
        return None
    if given is not None and not isinstance(given, Constant):
        return None
    wanted = given.value if isinstance(given, Constant) else default
    if wanted == value.value or isinstance(wanted, str):
        return None
    default_said = " by default" if given is None else ""
    return f"`{'.'.join(path)}` = {value.value}, and `{name}` is {wanted}{default_said}"
