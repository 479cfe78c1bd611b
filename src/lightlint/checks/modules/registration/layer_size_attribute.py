from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import AttributeSet, WeightSet
from lightlint.values.core import Library
from lightlint.values.training import Module

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_LAYER = re.compile(r"torch\.nn\.(?:Linear|Conv[123]d|ConvTranspose[123]d|Embedding|Bilinear)$")
_SIZES = {"in_features", "out_features", "in_channels", "out_channels", "num_embeddings", "embedding_dim"}
_HEAD = re.compile(
    r"torchvision\.models\.(?!detection|segmentation|get_)[\w.]+?\.(?:fc|classifier|heads?|last_linear)(?:\.\[-?\d+\])?$"
)
_RESIZING = {"weight", "data", "setattr", "register_parameter", "__class__"}


class LayerSizeAttribute(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Sizes that are written to layers whose weights stay as they are."""
        for path in entry.paths:
            changes = path.of(AttributeSet)
            resized = {id(event.object) for event in changes if event.name in _RESIZING}
            given = {id(event.parameter) for event in path.of(WeightSet)}  # `weight.data = ...` may be of any shape
            for event in changes:
                layer = event.object
                if event.name not in _SIZES or not isinstance(layer, Module) or id(layer) in resized or layer.escaped:
                    continue
                if given and not given.isdisjoint(map(id, layer.parameters())):
                    continue
                made = layer.site is not None and self.facts.rehearsed.span(layer.site) is not None
                rows = self.facts.rehearsed.around
                together = made and layer.site is not None and rows(layer.site[1]) == rows(event.site[1])
                full = layer.cls.path if isinstance(layer.cls, Library) else ""
                if (_LAYER.match(full) and (not together or event.site[1] == rows(event.site[1])[0])) or _HEAD.match(
                    full
                ):
                    yield Fault.of(
                        event, f"`{event.name}` only says how the layer was made: its weight keeps the old shape"
                    )
