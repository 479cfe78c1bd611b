from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import AttributeSet
from lightlint.values.core import Library
from lightlint.values.training import Module

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_LAYER = re.compile(r"torch\.nn\.(?:Linear|Conv[123]d|ConvTranspose[123]d|Embedding|Bilinear)$")
_CLASSIFIER = re.compile(r"torchvision\.models\.(?!detection|segmentation|get_)(?:\w+\.)?\w+$")
_SIZES = {"in_features", "out_features", "in_channels", "out_channels", "num_embeddings", "embedding_dim"}
_HEADS = {
    "fc",
    "classifier",
    "head",
    "heads",
    "last_linear",
}  # of torchvision's classifiers, which end in a linear layer
_HEAD = re.compile(
    r"torchvision\.models\.(?!detection|segmentation|get_)[\w.]+?\.(?:fc|classifier|heads?|last_linear)(?:\.\[-?\d+\])?$"
)
_RESIZING = {"weight", "data", "setattr", "register_parameter", "__class__"}


class LayerSizeAttribute(Check):
    def visit_Assign(self, node: cst.Assign) -> None:
        for each in node.targets:
            target = each.target
            sized = isinstance(target, cst.Attribute) and target.attr.value in _SIZES
            if isinstance(target, cst.Attribute) and sized and self._is_layer(target.value, target.attr.value):
                self._judge(node, target)

    def _judge(self, node: cst.Assign, target: cst.Attribute) -> None:
        if not self._is_resized(node, target.value):
            size = target.attr.value
            self.report(target, f"`{size}` only says how the layer was made: its weight keeps the old shape")

    def _is_layer(self, value: cst.BaseExpression, size: str) -> bool:
        """Whether a value surely is a layer of torch, made in sight or the last one of a torchvision classifier."""
        origins = self.values.origins(value)
        if isinstance(value, cst.Name) and any(each.call in self.facts.reaching.sources(value) for each in origins):
            return False  # who just made the layer knows its size, and may say that of a whole of which it is a part
        if origins:
            return all(_LAYER.match(each.name) for each in origins)
        sources = self.facts.reaching.sources(value)
        return size.endswith("_features") and bool(sources) and all(self._is_head(each) for each in sources)

    def _is_head(self, value: cst.BaseExpression) -> bool:
        words: list[str] = []
        while isinstance(value, (cst.Attribute, cst.Subscript)):
            words += [value.attr.value] if isinstance(value, cst.Attribute) else []
            value = value.value
        if not words or not _HEADS.issuperset(words) or not isinstance(value, cst.Name):
            return False
        return all(self._is_classifier(each) for each in self.facts.reaching.sources(value))

    def _is_classifier(self, made: cst.BaseExpression) -> bool:
        name = self.names.call(made) or ""
        return bool(_CLASSIFIER.match(name)) and self.names.method(made).islower()

    def _is_resized(self, node: cst.Assign, layer: cst.BaseExpression) -> bool:
        """Whether the function gives a layer other weights, or puts another layer in its place."""
        owner, key = self.tree.owner(node), self.names.key(layer)
        for each in self.tree.own(owner, cst.AssignTarget):
            target = each.target
            changed = isinstance(target, cst.Attribute) and target.attr.value in _RESIZING
            if changed or (isinstance(target, cst.Attribute) and self.names.key(target) == key):
                return True
        return any(self.names.method(call) in _RESIZING for call in self.tree.own(owner, cst.Call))

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Sizes that are written to layers whose weights stay as they are."""
        for path in entry.paths:
            changes = path.of(AttributeSet)
            resized = {id(event.object) for event in changes if event.name in _RESIZING}
            for event in changes:
                layer = event.object
                if event.name not in _SIZES or not isinstance(layer, Module) or id(layer) in resized or layer.escaped:
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
