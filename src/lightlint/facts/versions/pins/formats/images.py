"""Which torch, Lightning and Transformers a container image holds, by its name and tag; NVIDIA's from `data/releases.toml`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lightlint.facts.versions.tables import table

IMAGE = re.compile(
    r"(?<![\w$}/.-])((?:[\w.-]+(?::\d+)?/)*[\w.-]*(?:torch|lightning|transformers)[\w.-]*(?:/[\w.-]+)*):([\w][\w.+-]*)",
    re.I,
)
_RELEASE = re.compile(
    r"(?:(?:ngc|nvidia|nvcr)[-_.]?)?((?:1[7-9]|[2-9]\d)\.(?:0[1-9]|1[0-2]))(?:\.\d+)?(?=[-_]|$)", re.I
)
_OF_UBUNTU = re.compile(r"\d[02468]\.04(?!-py).*")
_LEADING = re.compile(r"v?(\d+\.\d+(?:\.\d+)?)(?=$|[-_+.]?[a-z]|[-_+])", re.I)
_WITHIN = re.compile(r"(?:py)?(?:torch|pth)[-_:]?v?(\d+\.\d+(?:\.\d+)?)", re.I)
_DASHED = re.compile(r"pytorch[\w-]*\.(\d+)-(\d+)$")  # gcr.io/deeplearning-platform-release/pytorch-gpu.1-13
_TRANSFORMERS = re.compile(r"(?:^|/)transformers(?:-(?:pytorch|tensorflow|gpu|cpu|tpu))*$", re.I)
_WITH_TRANSFORMERS = re.compile(
    r"transformers[-_]?(\d+\.\d+(?:\.\d+)?)", re.I
)  # of Amazon's: 1.13.1-transformers4.26.0-gpu-py39
_OF_TORCH = re.compile(r"(?:^|[/_-])(?:py)?torch(?:[-_]\w+)*$", re.I)
_LIGHTNING = re.compile(r"(?:^|/)(?:pytorch[-_]?)?lightning$", re.I)


def image_pins(name: str, tag: str) -> Iterator[tuple[str, str]]:
    """Distributions and specifiers that an image stands for."""
    is_of_nvidia = name.startswith("nvcr.io/nvidia/") or name == "nvidia/pytorch"
    release = _RELEASE.match(tag) if _OF_TORCH.search(name) else None
    if is_of_nvidia or (release and not _OF_UBUNTU.fullmatch(tag)):  # others hand it on: `nersc/pytorch:ngc-21.08`
        specifier = _of_release(release[1]) if release else None
        if specifier:
            yield "torch", specifier
        elif found := _WITHIN.search(tag):  # l4t-pytorch:r32.7.1-pth1.10-py3
            yield "torch", _specifier(found[1])
        return
    if _TRANSFORMERS.search(name):
        if own := _LEADING.match(tag):
            yield "transformers", _specifier(own[1])
        return
    if beside := _WITH_TRANSFORMERS.search(tag):
        yield "transformers", _specifier(beside[1])
    if _LIGHTNING.search(name) and (own := _LEADING.match(tag)):
        yield "pytorch-lightning", _specifier(own[1])
    inner, leading, dashed = _WITHIN.search(tag), _LEADING.match(tag), _DASHED.search(name)
    if inner:
        yield "torch", _specifier(inner[1])
    elif dashed:
        yield "torch", f"=={dashed[1]}.{dashed[2]}.*"
    elif leading and not release and _OF_TORCH.search(name):
        yield "torch", _specifier(leading[1])


def _specifier(version: str) -> str:
    """An exact version where all three numbers are told, else any release that starts with it."""
    return f"=={version}" if version.count(".") > 1 else f"=={version}.*"


def _of_release(release: str) -> str | None:
    """The torch in a monthly release of NVIDIA's image; for one that is not listed what lies between its neighbours.

    `2.1.0a0` is a commit on the way to 2.1: it may have what 2.1 has, or not.
    """
    known = table("releases")["torch_in_nvidia_image"]
    before = max((each for each in known if each <= release), default=None)
    after = min((each for each in known if each >= release), default=None)
    lower = f">={known[before]}" if before else ""
    upper = f"<={known[after].removesuffix('a0')}" if after else ""
    return ",".join(filter(None, (lower, upper))) or None
