"""Which random transforms do the same to every picture, by what they are given, and how large pictures are."""

from __future__ import annotations

from collections.abc import Callable

from lightlint.values.core import Sequence, Value, is_constant, number_of
from lightlint.values.training import Instance

Size = tuple[float, float]

_PICTURES = {
    (32, 32): {"CIFAR10", "CIFAR100", "SVHN"},
    (28, 28): {"MNIST", "FashionMNIST", "KMNIST", "QMNIST", "EMNIST"},
    (96, 96): {"STL10"},
}
_SURE_AT_ONE = {
    "HorizontalFlip",
    "VerticalFlip",
    "Transpose",
    "RandomHorizontalFlip",
    "RandomVerticalFlip",
    "RandomGrayscale",
    "RandomInvert",
    "RandomPosterize",
    "RandomSolarize",
    "RandomAdjustSharpness",
    "RandomAutocontrast",
    "RandomEqualize",
}
"""Transforms that draw only whether they are applied."""
_SIZED = {"Resize", "CenterCrop", "RandomCrop", "RandomResizedCrop"}
_KEEP_SIZE = {
    "ToTensor",
    "PILToTensor",
    "ToImage",
    "ToDtype",
    "Normalize",
    "ColorJitter",
    "GaussianBlur",
    *_SURE_AT_ONE,
}


def pictures_of(data: str) -> Size | None:
    """How large the pictures of a data set of torchvision are; None where they differ, or nobody knows."""
    return next((size for size, names in _PICTURES.items() if data in names), None)


def is_fixed(transform: Instance) -> bool:
    """Whether a random transform is never applied, or draws from one value only."""
    chance = number_of(transform.arguments.get("p"))
    if chance == 0 or (chance == 1 and transform.name in _SURE_AT_ONE):
        return True
    if transform.libraries()[0].startswith("albumentations."):
        return _ends(transform.arguments.get("limit")) == (0, 0)
    told = _FIXED.get(transform.name)
    return told is not None and told(transform)


def takes_whole(transform: Instance, size: Size | None) -> bool:
    """Whether a crop of pictures of a size has one place only to lie at."""
    if transform.name != "RandomCrop" or size is None or _ends(transform.arguments.get("size")) != size:
        return False
    padding = transform.arguments.get("padding")
    return (padding is None and not transform.open_arguments) or is_constant(padding, None, 0)


def size_after(transform: Value, size: Size | None) -> Size | None:
    """How large pictures of a size are behind a transform; `Resize(32)` says that of one side only."""
    if not isinstance(transform, Instance):
        return None
    if transform.name in _SIZED:
        told = transform.arguments.get("size")
        return _ends(told) if transform.name != "Resize" or isinstance(told, Sequence) else None
    return size if transform.name in _KEEP_SIZE else None


def _ends(value: Value | None) -> Size | None:
    """The two ends of a range, or sides of a picture; a number is both."""
    number = number_of(value)
    if number is not None:
        return number, number
    if not isinstance(value, Sequence) or value.more or len(value.items) != 2:
        return None
    low, high = map(number_of, value.items)
    return (low, high) if low is not None and high is not None else None


def _is_point(value: Value | None) -> bool:
    ends = _ends(value)
    return ends is not None and ends[0] == ends[1]


def _stays(transform: Instance, name: str) -> bool:
    """Whether a change that is off by default, and that a number gives both ways, is off or the same each time."""
    value = transform.arguments.get(name)
    if value is None or is_constant(value, None):
        return value is not None or not transform.open_arguments
    return _is_point(value) and (isinstance(value, Sequence) or number_of(value) == 0)


def _affine(transform: Instance) -> bool:
    moved = transform.arguments.get("translate")
    nowhere = _ends(moved) == (0, 0) or (_stays(transform, "translate") and not isinstance(moved, Sequence))
    return nowhere and all(_stays(transform, each) for each in ("degrees", "scale", "shear"))


def _point(name: str) -> Callable[[Instance], bool]:
    return lambda transform: _is_point(transform.arguments.get(name))


def _only(name: str, wanted: float) -> Callable[[Instance], bool]:
    return lambda transform: _ends(transform.arguments.get(name)) == (wanted, wanted)


_FIXED: dict[str, Callable[[Instance], bool]] = {
    "GaussianBlur": _point("sigma"),
    "GaussianNoise": _only("sigma", 0),
    "ColorJitter": lambda it: all(_stays(it, each) for each in ("brightness", "contrast", "saturation", "hue")),
    "RandomRotation": lambda it: "degrees" in it.arguments and _stays(it, "degrees"),
    "RandomAffine": _affine,
    "RandomPerspective": _only("distortion_scale", 0),
    "ElasticTransform": _only("alpha", 0),
    "RandomResizedCrop": _only("scale", 1),
    "RandAugment": _only("num_ops", 0),
    "ScaleJitter": _point("scale_range"),
    "RandomZoomOut": _point("side_range"),
}
"""Whether each transform of torchvision has nothing to draw."""
