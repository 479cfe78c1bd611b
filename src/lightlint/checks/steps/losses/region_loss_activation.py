from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import RegionsCompared
from lightlint.values.core import is_constant
from lightlint.values.training import Module, Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Value

_OF_MONAI = {"sigmoid": 2, "softmax": 3, "other_act": 4}
_TAKE_PROBABILITIES = (
    "DiceLoss",
    "GeneralizedDiceLoss",
    "DiceCELoss",
    "DiceFocalLoss",
    "GeneralizedDiceFocalLoss",
    "TverskyLoss",
)
_FROM_LOGITS = {"DiceLoss": 3, "JaccardLoss": 3, "TverskyLoss": 3}
_NETS = {
    "UNet", "BasicUNet", "BasicUNetPlusPlus", "DynUNet", "SegResNet", "SegResNetVAE", "SegResNetDS", "UNETR", "SwinUNETR",
    "AttentionUnet", "FlexibleUNet", "VNet", "HighResNet", "RegUNet", "Unet", "UnetPlusPlus", "FPN", "Linknet", "PSPNet",
    "DeepLabV3", "DeepLabV3Plus", "PAN", "MAnet", "UPerNet", "Segformer",
}  # fmt: skip
"""Networks that give scores unless they are told an activation."""


class RegionLossActivation(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Losses of regions that get scores for probabilities, or probabilities for scores."""
        for event in entry.of(RegionsCompared):
            message = _fault(event.criterion, event.input) if isinstance(event.input, Tensor) else None
            if message is not None:
                made = event.criterion.site
                if made is not None and message.endswith("raw scores"):  # where it is to be told of an activation
                    yield Fault(made, message, None, (event.site,), event.where.places[1:])
                else:
                    yield Fault.at(event, message, *([] if made is None else [made]))


def _fault(criterion: Module, given: Tensor) -> str | None:
    if criterion.open_arguments or given.escaped or not criterion.libraries():
        return None
    of_monai = criterion.libraries()[0].startswith("monai.")
    named = [name for name, place in _OF_MONAI.items() if not _is_off(criterion, name, place)] if of_monai else []
    activated = given.role in ("sigmoid", "probabilities")
    if of_monai and criterion.name in _TAKE_PROBABILITIES and not named and _is_raw(given):
        return (
            f"`{criterion.name}` takes probabilities unless told `sigmoid=True` or `softmax=True`, and gets raw scores"
        )
    if of_monai and named in (["sigmoid"], ["softmax"]) and activated and is_constant(_said(criterion, named[0]), True):
        return f"`{criterion.name}` applies {named[0]} itself, and gets what an activation has given"
    if not of_monai and criterion.name in _FROM_LOGITS:
        asked = criterion.argument("from_logits", _FROM_LOGITS[criterion.name])
        if (asked is None or is_constant(asked, True)) and activated:
            return f"`{criterion.name}` takes scores unless told `from_logits=False`, and gets what an activation has given"
        if is_constant(asked, False) and _is_raw(given):
            return f"`{criterion.name}` with `from_logits=False` takes probabilities, and gets raw scores"
    return None


def _said(criterion: Module, name: str) -> Value | None:
    return criterion.argument(name, _OF_MONAI[name])


def _is_off(criterion: Module, name: str, place: int) -> bool:
    given = criterion.argument(name, place)
    return given is None or is_constant(given, False, None)


def _is_raw(given: Tensor) -> bool:
    """Whether scores are as a layer or a network for pictures gave them."""
    layer = given.layer in _NETS or given.layer.startswith(("Conv", "Linear"))
    return layer and given.role is None and given.activation is None
