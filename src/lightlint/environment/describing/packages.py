"""What is known of packages beside their version: which distribution an import comes from, which versions go together."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from lightlint.environment.describing.side import Side
from lightlint.facts.versions.requirements import normalise

# Imported name: distributions that bring it, the usual one first.
_DISTRIBUTIONS: Mapping[str, tuple[str, ...]] = {
    "PIL": ("pillow", "pillow-simd"),
    "cv2": ("opencv-python", "opencv-python-headless", "opencv-contrib-python"),
    "sklearn": ("scikit-learn",),
    "skimage": ("scikit-image",),
    "yaml": ("pyyaml",),
    "lightning_fabric": ("lightning-fabric",),
    "pytorch_lightning": ("pytorch-lightning",),
    "lightning": ("lightning",),
    "pl_bolts": ("lightning-bolts",),
    "hydra": ("hydra-core",),
    "bs4": ("beautifulsoup4",),
    "dateutil": ("python-dateutil",),
    "google": (),
    "google.colab": ("google-colab",),
    "mpl_toolkits": ("matplotlib",),
    "attr": ("attrs",),
    "umap": ("umap-learn",),
    "faiss": ("faiss-cpu", "faiss-gpu"),
    "tensorboard": ("tensorboard",),
}


def distributions(module: str, *sides: Side) -> tuple[str, ...]:
    """The distributions that may bring an imported module, as snapshots tell, else as is usual."""
    told = [side.imports[module] for side in sides if module in side.imports]
    return tuple(dict.fromkeys([*told, *_DISTRIBUTIONS.get(module, (normalise(module),))]))


# What imports a package where it is installed, and raises what that raises: tried with torchmetrics 1.9.0, lightning and
# pytorch-lightning 2.6.6 and timm 1.0.31 beside a torchvision of another torch.
_REACHED_BY = {"torchvision": ("torchmetrics", "lightning", "pytorch_lightning", "timm")}


def concerns(package: str, modules: Collection[str]) -> bool:
    """Whether a package that does not go with torch concerns code that imports some modules, or any code if none are given.

    numpy concerns all code: tensors become arrays without an import of it.
    """
    return not modules or package == "numpy" or package in modules or reached_by(package, modules) is not None


def reached_by(package: str, modules: Collection[str]) -> str | None:
    """Which of some modules imports a package that code does not import itself."""
    if package in modules:
        return None
    return next((each for each in _REACHED_BY.get(package, ()) if each in modules), None)


def ill_matched(side: Side) -> Iterator[tuple[str, str, str]]:
    """Pairs of packages in one environment that do not go together: (first, second, why).

    torchvision 0.(15 + n) belongs to torch 2.n and torchaudio 2.n to torch 2.n (https://pytorch.org/get-started/previous-versions/);
    torch before 2.3 was built against numpy 1 (https://github.com/pytorch/pytorch/issues/107302).
    """
    torch, vision, audio, numpy = (
        _release(side.version(name)) for name in ("torch", "torchvision", "torchaudio", "numpy")
    )
    if torch and vision and torch[0] == 2 and vision[0] == 0 and vision[1] != 15 + torch[1]:
        yield (
            "torchvision",
            "torch",
            f"torchvision {side.version('torchvision')} is built for another torch than {side.version('torch')}: its operators do not load",
        )
    elif torch and vision and _another_build(side):
        yield (
            "torchvision",
            "torch",
            f"torchvision {side.version('torchvision')} is not built for torch {side.version('torch')}: CPU and CUDA builds do not go together",
        )
    if torch and audio and torch[0] == 2 and audio[0] == 2 and audio[1] != torch[1] and torch[1] < 9:
        yield (
            "torchaudio",
            "torch",
            f"torchaudio {side.version('torchaudio')} is built for another torch than {side.version('torch')}: its operators do not load",
        )
    if torch and numpy and numpy[0] >= 2 and torch < (2, 3):
        yield (
            "numpy",
            "torch",
            f"torch {side.version('torch')} was built against numpy 1: `Tensor.numpy()` raises with numpy {side.version('numpy')}",
        )


def _another_build(side: Side) -> bool:
    """Whether one of torch and torchvision is built for the CPU alone and the other is not, as `+cpu` and `+cu130` say.

    On Linux and x86-64, the package index's own torchvision is untagged and built for CUDA; beside a `+cpu` torch its operators do
    not load (tried with 2.13.0+cpu and 0.28.0).
    """
    torch, vision = ((side.version(name) or "").partition("+")[2] for name in ("torch", "torchvision"))
    if not vision:
        return torch == "cpu" and (side.machine.get("system"), side.machine.get("machine")) == ("Linux", "x86_64")
    return bool(torch) and (torch == "cpu") != (vision == "cpu")


def _release(version: str | None) -> tuple[int, int] | None:
    """The first two numbers of an exact version, None for a range."""
    found = re.match(r"(\d+)\.(\d+)", version or "")
    return (int(found[1]), int(found[2])) if found else None


def distance(first: str, second: str) -> int:
    """How far two versions are apart: 3 another major, 2 another minor, 1 less; 2 where one is a range."""
    one, other = re.findall(r"\d+", first)[:2], re.findall(r"\d+", second)[:2]
    if not first[:1].isdigit() or not second[:1].isdigit():
        return 2
    if one[:1] != other[:1]:
        return 3
    return 2 if one != other else 1
