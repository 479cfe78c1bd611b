"""Names that torch, torchvision, torchaudio and functorch removed or deprecated: `data/torch-api.toml`, typed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from lightlint.facts.versions.tables import table
from lightlint.facts.versions.versions import Version

_ROOMS = ("detection.", "optical_flow.", "segmentation.", "video.")
_LAST_OWN = "0.13"  # the last number of torchaudio's own
_IN_STEP = 15  # torchvision 0.15 came with torch 2.0, and each release since with the next
_MODELS = "torchvision.models."


@dataclass(frozen=True, slots=True)
class OldName:
    """A function, class or module that is deprecated, or gone.

    `deprecated` and `removed` are releases of `package`; `torch_deprecated` and `torch_removed` are the releases of torch
    these were made for. `replacement` is a name that does the same, empty where there is none; `note` says in prose how
    code changes; `fix` is "safe", "unsafe" or empty: how exact it is to write
    the replacement for the name, the arguments left as they are; `partners` are words of code that works with the old name
    and not with the replacement. `is_module` names take all below them along;
    `is_called_name` names live on as something that cannot be called.
    """

    name: str
    package: str
    deprecated: Version | None
    removed: Version | None
    torch_deprecated: Version | None
    torch_removed: Version | None
    replacement: str = ""
    note: str = ""
    fix: str = ""
    partners: tuple[str, ...] = ()
    is_module: bool = False
    is_called_name: bool = False


@cache
def old_names() -> Mapping[str, OldName]:
    """Every removed or deprecated name by its canonical full name."""
    return MappingProxyType({name: _old_name(name, entry) for name, entry in table("torch-api")["names"].items()})


@cache
def last_words() -> frozenset[str]:
    """What stands behind the last dot of a removed or deprecated name: most attributes are none of these."""
    return frozenset(name.rpartition(".")[2] for name in old_names())


def old_name_in(full: str) -> OldName | None:
    """The entry for a full name, or for a module that went with all below it."""
    names = old_names()
    found = names.get(full)
    while found is None and "." in full:
        full = full.rpartition(".")[0]
        above = names.get(full)
        found = above if above is not None and above.is_module else None
    return found


def vision_weights(function: str, parameter: str) -> str | None:
    """The weights that `pretrained=True` (or `pretrained_backbone=True`) of a torchvision model stands for.

    Args:
        function: full name, `torchvision.models.resnet18`, `torchvision.models.resnet.resnet18`.
        parameter: "pretrained" or "pretrained_backbone".

    Returns:
        The name of the weights, such as "IMAGENET1K_V1"; None for what takes no such argument.
    """
    rest = function.removeprefix(_MODELS)
    if rest == function or rest.startswith("quantization."):  # there the weights depend on `quantize`
        return None
    room = next((room for room in _ROOMS if rest.startswith(room)), "")
    return _weights(parameter).get(room + rest.rpartition(".")[2])


@cache
def vision_models() -> frozenset[str]:
    """The names of torchvision's models, without the modules they are in."""
    return frozenset(name.rpartition(".")[2] for each in _SUCCEEDED for name in _weights(each))


_SUCCEEDED = ("pretrained", "pretrained_backbone")


@cache
def _weights(parameter: str) -> Mapping[str, str]:
    rooms = table("torch-api")["vision_weights"][parameter]
    return {model: weights for weights, models in rooms.items() for model in models}


def _old_name(name: str, entry: Mapping[str, Any]) -> OldName:
    package = name.partition(".")[0]
    package = "torch" if package == "functorch" else package
    deprecated, removed = entry.get("deprecated"), entry.get("removed")
    return OldName(
        name=name,
        package=package,
        deprecated=Version(deprecated) if deprecated else None,
        removed=Version(removed) if removed else None,
        torch_deprecated=torch_release(package, deprecated) if deprecated else None,
        torch_removed=torch_release(package, removed) if removed else None,
        replacement=entry.get("replacement", ""),
        note=entry.get("note", ""),
        fix=entry.get("fix", ""),
        partners=tuple(entry.get("partners", ())),
        is_module=entry.get("kind") == "module",
        is_called_name=entry.get("kind") == "call",
    )


def torch_release(package: str, release: str) -> Version | None:
    """The release of torch that a release of it or one of its companions, such as "0.15", was made for, if it is known."""
    version = Version(release)
    first, minor = version.minor.split(".")
    if package == "torch":
        return version
    if package == "torchaudio" and first not in ("0", "1"):
        return Version(version.minor)
    rows = table("torch-api")["companions"][package].items()  # some patches went to the next torch: torchvision 0.4.1
    known = next(
        (
            torch
            for since, torch in reversed(rows)
            if Version(since).minor == version.minor and Version(since) <= version
        ),
        None,
    )
    if known is None and package == "torchaudio" and version > Version(_LAST_OWN):
        return Version("2.0")  # torchaudio 0.13 was followed by 2.0: that is what `<1.0` ends at
    if known is None and int(minor) < _IN_STEP:
        return None
    return Version(known or f"2.{int(minor) - _IN_STEP}")
