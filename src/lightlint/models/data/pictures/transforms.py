"""Transforms of torchvision: which draw at random, and what they make of samples."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from lightlint.engine.arguments import Arguments
from lightlint.engine.choices import holds_draw
from lightlint.engine.events import Transformed
from lightlint.engine.machine import Machine
from lightlint.models.data.pictures import mixing
from lightlint.models.data.pictures.fixed import Size, is_fixed, size_after, takes_whole
from lightlint.models.registry import FunctionModel, function
from lightlint.models.tensors.draws import MOVING
from lightlint.values.core import LASTING, Library, Mapping, Sequence, Unknown, Value, traits_of
from lightlint.values.training import Instance, Module

_PLACES = re.compile(
    r"Random(?:HorizontalFlip|VerticalFlip|Rotation|Affine|Perspective|Crop|ResizedCrop|SizedCrop|IoUCrop|ZoomOut)"
    r"|ElasticTransform|ScaleJitter|RandomResize|RandomShortestSize"
)
"""Transforms that move what is in a picture."""
_OF_ALBUMENTATIONS = re.compile(
    r"(?:Horizontal|Vertical)?Flip|D4|Transpose|Rotate|SafeRotate|ShiftScaleRotate|Affine|Perspective|PiecewiseAffine"
    r"|Random(?:Rotate90|Scale|SizedCrop|SizedBBoxSafeCrop|GridShuffle)|CropNonEmptyMaskIfExists|(?:Grid|Optical)Distortion"
)
FUNCTIONS = (
    "hflip",
    "vflip",
    "rotate",
    "affine",
    "perspective",
    "crop",
    "resized_crop",
    "horizontal_flip",
    "vertical_flip",
    "elastic",
)
AS_TOLD = (*FUNCTIONS, *MOVING)
"""What moves things in a picture as it is told, at random where that was drawn."""
_CONTENT = re.compile(
    r"ColorJitter|Random(?:Grayscale|Erasing|Invert|Posterize|Solarize|AdjustSharpness|Autocontrast|Equalize|PhotometricDistort)"
    r"|GaussianNoise|GaussianBlur|AutoAugment|RandAugment|TrivialAugmentWide|AugMix"
)
"""Transforms that change what a picture looks like."""


_WINDOW = ("top", "left")  # where a window of a picture begins


def transformed(machine: Machine, transform: Instance, given: Arguments, node: ast.AST) -> Value:
    """What a transform makes of samples: of several as many."""
    values = given.values()
    if mixing.mixes(transform) and (len(values) > 1 or given.star is not None):
        return mixing.mixed(machine, transform, given, node)
    made: list[Value] = []
    for each in values:
        result = Unknown(None, traits_of(each) & LASTING, hint=transform.name)
        result.made_by = transform
        result.lent = [each, *getattr(each, "lent", ())]
        made.append(result)
    whole: Value = made[0] if len(made) == 1 else Sequence(made, "tuple")
    if transform.libraries()[0].startswith("albumentations."):
        named = zip(given.keywords, made[len(given.positional) :], strict=False)
        whole = Mapping(dict(named), more=not given.exact)
    machine.emit(Transformed(machine.where(node), transform, values, whole))
    return whole


def _moving(path: str) -> FunctionModel:
    def move(machine: Machine, given: Arguments, node: ast.AST) -> Value:
        transform = machine.instance(Library(path), "transform", node)
        picture, rest = given.positional[:1], [*given.positional[1:], *given.keywords.values()]
        transform.arguments = {f"#{number}": each for number, each in enumerate(rest)}
        return transformed(machine, transform, Arguments(picture), node) if picture else Unknown()

    return move


for _name in FUNCTIONS:
    for _version in ("", ".v2"):
        _path = f"torchvision.transforms{_version}.functional.{_name}"
        function(_path)(_moving(_path))


def cropped(machine: Machine, value: Value, index: Value, node: ast.AST) -> Value | None:
    """What a window of a picture is, in two dimensions, that lies where it was drawn; None for another part."""
    parts = index.items if isinstance(index, Sequence) and index.kind == "tuple" else ()
    slices = [each for each in parts if isinstance(each, Sequence) and each.kind == "slice"]
    drawn = [bounds[0] for each in slices if (bounds := [part for part in each.items if holds_draw(part.key)])]
    if len(drawn) != len(_WINDOW):
        return None
    transform = machine.instance(Library("torchvision.transforms.functional.crop"), "transform", node)
    transform.arguments = {f"#{number}": each for number, each in enumerate(drawn)}
    found = transformed(machine, transform, Arguments([value]), node)
    found.traits |= value.traits
    return found


def _parameters(machine: Machine, _: Arguments, __: ast.AST) -> Value:
    """What `get_params` draws for one picture, or for all that are moved by it."""
    machine.clock += 1
    return Unknown(("drawn", machine.clock), hint="params")


for _name in (
    "RandomCrop",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomAffine",
    "RandomPerspective",
    "ElasticTransform",
):
    for _version in ("", ".v2"):
        function(f"torchvision.transforms{_version}.{_name}.get_params")(_parameters)


def drawing(value: Value | None, *, moving: bool = False, size: Size | None = None) -> Iterator[Instance]:
    """The transforms in one that surely draw at random, in another way for each picture, or that are `moving` things in it.

    Those that a run may be told to leave out, by a probability out of sight, count: they would not be written for nothing.
    The pictures may be known to have a size.
    """
    held: list[Value] = []
    if isinstance(value, Sequence):
        held = value.items
    elif isinstance(value, Module):
        held = [*value.items] if isinstance(value.items, list) else []
    elif isinstance(value, Instance) and value.kind == "transform":
        if is_fixed(value) or takes_whole(value, size):
            return
        name = value.name
        found = _PLACES.fullmatch(name) or (not moving and _CONTENT.fullmatch(name))
        found = found or (value.libraries()[0].startswith("albumentations.") and _OF_ALBUMENTATIONS.fullmatch(name))
        if found:
            yield value
        for each in value.arguments.values() if not found else ():
            yield from drawing(each, moving=moving, size=size)
    for each in held:
        yield from drawing(each, moving=moving, size=size)
        size = size_after(each, size)
