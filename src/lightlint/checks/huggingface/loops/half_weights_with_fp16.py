from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.choices import Asked
from lightlint.engine.events import Halved, Stepped
from lightlint.engine.events.huggingface import TrainerRan
from lightlint.explore.questions.accelerators import manager_of, scales
from lightlint.frameworks.huggingface.values import dtype_of, has_adapter, is_off, is_on, is_quantized, setting
from lightlint.values.core import Constant, Unknown
from lightlint.values.training import Instance, Module

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path

_FP16 = Constant("fp16").key
_ENGINES = ("deepspeed", "fsdp", "sagemaker_mp", "use_cpu", "no_cuda", "half_precision_backend")


class HalfWeightsWithFp16(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Models with float16 weights that a Trainer with `fp16`, or an Accelerator with "fp16", trains."""
        paths = [path for path in entry.paths if [*path.of(TrainerRan), *path.of(Stepped)]]
        found = [[*_half(path)] for path in paths if not _is_otherwise(path)]
        if found and all(found):
            message = (
                "the weights are loaded in float16 and trained with fp16, whose gradient scaler refuses their gradients"
            )
            for event in found[0]:
                keyword = event.asked_at[0] if event.asked_at is not None else ""
                yield Fault.of(event, message, argument=keyword) if keyword else Fault.at(event, message)


def _is_otherwise(path: Path) -> bool:
    """Whether a test has told that what prepares the training is no Accelerator with "fp16"."""
    managers = [manager for step in path.of(Stepped) if (manager := manager_of(step.optimizer)) is not None]
    asked = [(key, path.machine.choices.get(key)) for each in managers if (key := _precision_key(each)) is not None]
    return any(told.decides(Asked(key, frozenset([_FP16]))) is False for key, told in asked if told is not None)


def _half(path: Path) -> Iterator[Halved]:
    trained = {id(model): model for model in _trained(path)}
    for event in path.of(Halved):
        if id(event.module) in trained and any(each.requires_grad for each in event.parameters):
            yield event


def _trained(path: Path) -> Iterator[Module]:
    for event in path.of(TrainerRan):
        model = event.model
        if isinstance(model, Module) and event.method == "train" and not has_adapter(model):
            fp16 = is_on(setting(event.settings, "fp16"))
            others = [setting(event.settings, name) for name in _ENGINES]
            if fp16 and all(is_off(each) for each in others) and _is_half(model):
                yield model
    for step in path.of(Stepped):
        manager = manager_of(step.optimizer)
        if manager is not None and not step.optimizer.escaped:
            known = not manager.open_arguments and not {"deepspeed_plugin", "fsdp_plugin"} & manager.arguments.keys()
            if known and (scales(manager) or _is_told(path, manager)):
                owners = {each.owner for each in step.parameters if each.owner is not None}
                yield from (each for each in owners if _is_half(each))


def _is_told(path: Path, manager: Instance) -> bool:
    """Whether a test has told that an Accelerator has "fp16"."""
    choices = path.machine.choices.get(_precision_key(manager))
    return choices is not None and choices.left == frozenset([_FP16])


def _precision_key(manager: Instance) -> Hashable | None:
    told = manager.arguments.get("mixed_precision")
    return told.key if isinstance(told, Unknown) else None


def _is_half(model: Module) -> bool:
    return dtype_of(model) == "float16" and not is_quantized(model) and not model.escaped
