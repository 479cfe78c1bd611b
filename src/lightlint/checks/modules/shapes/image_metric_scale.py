from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import MetricUsed
from lightlint.explore.pictures import gives_bytes, is_centred, transforms_of
from lightlint.values.core import Constant, is_constant
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_METRICS = (
    "FrechetInceptionDistance",
    "KernelInceptionDistance",
    "InceptionScore",
    "MemorizationInformedFrechetInceptionDistance",
)
_BYTES = (
    "are whole numbers from 0 to 255 already: times 255 they wrap around, and each picture is compared as its negative"
)
_CENTRED = "were normalised around 0: what is below 0 wraps around when it is made a byte"


class ImageMetricScale(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Pictures given to a metric that takes them for numbers from 0 to 1, and makes bytes of them."""
        for path in entry.paths[:1]:  # on which each sample is made
            for event in path.of(MetricUsed):
                if (what := _wrong(entry, event)) is not None:
                    expected = f"`{event.metric.name}` with `normalize=True` expects numbers from 0 to 1"
                    yield Fault.at(event, f"{expected}: these {what}")


def _wrong(entry: Entry, event: MetricUsed) -> str | None:
    metric, images = event.metric, event.args[0] if event.args else None
    if metric.name not in _METRICS or event.operation not in ("update", "forward") or not isinstance(images, Tensor):
        return None
    feature = metric.argument("feature", 0)
    if not is_constant(metric.arguments.get("normalize"), True) or not (
        feature is None or isinstance(feature, Constant)
    ):
        return None
    if images.dtype is not None:
        return _BYTES if images.dtype == "uint8" and not images.mixed else None
    transforms = transforms_of(entry, images)
    if not transforms:
        return None
    return _BYTES if gives_bytes(transforms) else _CENTRED if is_centred(transforms) else None
