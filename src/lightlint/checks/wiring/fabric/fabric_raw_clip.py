from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.explore.questions.accelerators import set_up_by
from lightlint.values.core import text_of, written
from lightlint.values.training import Instance, tensors_in

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_CLIPS = {"torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad_value_"}
_SCALED = {16, "16", "16-mixed"}
_SHARDED = ("fsdp", "deepspeed")


class FabricRawClip(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        for name in sorted(_CLIPS):
            for event in entry.calls.get(name, ()):
                given = event.argument("parameters", 0)
                fabric = next((by for each in tensors_in(given) if (by := set_up_by(each)) is not None), None)
                why = _why(fabric) if fabric is not None and fabric.kind == "fabric" else ""
                if why and ".unscale_gradients" not in entry.calls and ".unscale_" not in entry.calls:
                    yield Fault.of(event, f"`{event.name}` clips {why}")


def _why(fabric: Instance) -> str:
    """What is wrong with clipping by hand under a Fabric, empty where nothing is."""
    precision = written(fabric.argument("precision", 3))
    if precision is not None and precision.value in _SCALED:
        value = f'"{precision.value}"' if isinstance(precision.value, str) else precision.value
        return f"gradients that are still scaled, as `precision={value}` asks for"
    strategy = text_of(fabric.argument("strategy", 1))
    if strategy is not None and strategy.startswith(_SHARDED):
        return f'each rank\'s share of the gradients by its own norm, with `strategy="{strategy}"`'
    return ""
