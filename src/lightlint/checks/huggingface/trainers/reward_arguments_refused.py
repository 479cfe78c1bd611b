from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events.huggingface import TrainerMade
from lightlint.values.core import Bound, Class, Function, Sequence
from lightlint.values.training import Instance

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Value

_REWARDED = ("GRPOTrainer", "RLOOTrainer")
_ALWAYS = ("prompts", "completions", "completion_ids")


class RewardArgumentsRefused(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Reward functions that take less than TRL gives them."""
        for event in entry.of(TrainerMade):
            if not any(path.startswith("trl.") and path.endswith(_REWARDED) for path in event.trainer.libraries()):
                continue
            given = event.trainer.argument("reward_funcs", 1)
            for function in given.items if isinstance(given, Sequence) else [given]:
                missing = _missing(function)
                held = _function(function)
                if missing and isinstance(held, Function):
                    said = ", ".join(f"`{each}`" for each in missing)
                    message = f"the reward function takes no {said}, which the trainer gives it by name"
                    yield Fault(held.name_site(), message, None, (event.site,))


def _function(value: Value | None) -> Value | None:
    """The function that a reward is, or that an object runs which is called like one."""
    if isinstance(value, Instance) and isinstance(value.cls, Class):
        return value.cls.find("__call__")
    return value.function if isinstance(value, Bound) else value


def _missing(function: Value | None) -> list[str]:
    held = _function(function)
    if not isinstance(held, Function) or held.node.args.kwarg is not None or held.wrapped is not None:
        return []
    parameters = held.node.args
    names = {each.arg for each in (*parameters.args, *parameters.kwonlyargs)}
    return [each for each in _ALWAYS if each not in names]
