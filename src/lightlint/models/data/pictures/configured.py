"""timm: transforms as the configuration of a pretrained model wants them."""

from __future__ import annotations

import ast
import re

from lightlint.engine.arguments import Arguments
from lightlint.engine.machine import Machine
from lightlint.models.registry import function
from lightlint.values.core import Constant, Library, Mapping, Sequence, Unknown, Value, text_of, written
from lightlint.values.training import Instance, Module

Numbers = tuple[float, float, float]
_IMAGENET: tuple[Numbers, Numbers] = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
_HALF: tuple[Numbers, Numbers] = ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
_NAMED = {
    "IMAGENET_DEFAULT_MEAN": _IMAGENET[0],
    "IMAGENET_DEFAULT_STD": _IMAGENET[1],
    "IMAGENET_INCEPTION_MEAN": _HALF[0],
    "IMAGENET_INCEPTION_STD": _HALF[1],
}
_CONFIGS = {
    r"(?:timm/)?vit_(?:tiny_patch16|small_patch(?:16|32)|base_patch(?:8|16|32)|large_patch(?:16|32))_\d+(?:\.(?:augreg|orig)\w*)?": _HALF,
    r"(?:timm/)?mixer_[bl]16_224(?:\.goog\w*)?": _HALF,
    r"(?:timm/)?(?:resnet(?:18|34|50|101|152)|swin_(?:tiny|small|base)_patch4_window7_224|convnext_(?:tiny|small|base)|deit_(?:tiny|small|base)_patch16_224)": _IMAGENET,
}
"""By what numbers timm's models want their pictures normalised, by name (timm 1.0.15)."""


@function(
    "timm.data.resolve_data_config",
    "timm.data.resolve_model_data_config",
    "timm.data.config.resolve_data_config",
    "timm.data.config.resolve_model_data_config",
)
def config(_: Machine, given: Arguments, __: ast.AST) -> Value:
    """What a model wants pictures to be, where the program asks for nothing else."""
    found = Mapping(more=True)
    told = given.positional[0] if given.positional else None
    asks = isinstance(told, Mapping) and not (told.more or told.items)
    models = [each for each in given.values() if isinstance(each, Module)]
    numbers = _of_model(models[-1]) if models and (told in models or told is None or asks) else None
    if numbers is not None:
        found.items.update(zip(("mean", "std"), map(_sequence, numbers), strict=True))
    return found


@function("timm.data.create_transform", "timm.data.transforms_factory.create_transform")
def transform(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    """A transform of pictures: of what it does only the last is told, how they are normalised."""
    normalised = machine.instance(Library("torchvision.transforms.Normalize"), "transform", node)
    for name, usual in zip(("mean", "std"), _IMAGENET, strict=True):
        told = given.keywords.get(name)
        unsaid = Unknown() if given.double_star is not None else _sequence(usual)
        normalised.arguments[name] = told if told is not None else unsaid
    as_tensor = machine.instance(Library("torchvision.transforms.ToTensor"), "transform", node)
    whole = machine.instance(Library("torchvision.transforms.Compose"), "transform", node)
    whole.arguments["transforms"] = Sequence([as_tensor, normalised])
    return whole


def numbers_named(value: Value | None) -> Numbers | None:
    """The numbers that timm has a name for."""
    return _NAMED.get(value.last) if isinstance(value, Library) and value.path.startswith("timm.") else None


def _of_model(model: Module) -> tuple[Numbers, Numbers] | None:
    """By which numbers a model, or that of which this is the configuration, wants pictures normalised."""
    whole: Instance | None = model.unwrapped()
    while isinstance(whole, Module) and whole.whole is not None:
        whole = whole.whole
    made = isinstance(whole, Module) and isinstance(whole.cls, Library) and whole.cls.path == "timm.create_model"
    named = written(whole.argument("model_name", 0)) if isinstance(whole, Module) and made else None
    name = text_of(named) or ""
    return next((numbers for pattern, numbers in _CONFIGS.items() if re.fullmatch(pattern, name)), None)


def _sequence(numbers: Numbers) -> Sequence:
    return Sequence(map(Constant, numbers), "tuple")
