"""A version constraint and how good a source it is from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from itertools import islice
from pathlib import Path

from lightlint.facts.versions.requirements import Requirement, normalise
from lightlint.facts.versions.versions import Version

# Conda's names for what PyPI calls torch.
_CONDA = {"pytorch": "torch", "pytorch-cpu": "torch", "pytorch-gpu": "torch"}
# Packages of Lightning 1: their last releases refuse Lightning 2, and older ones cannot be imported with it.
OF_LIGHTNING_1 = ("lightning-bolts", "lightning-flash")
# Packages whose old releases no newer torch goes with: `before_torch` of data/releases.toml.
TIED_TO_TORCH = ("allennlp", "cuda", "cuda-of-wheels", "cudatoolkit", "fastai", "timm", "torchtext", "xformers")
WHEELS_FOR_TORCH = "wheels-for-torch"  # what the address of a list of wheels says: `-f .../whl/torch-1.7.0+cu101.html`
_ANY = ">=0"
_WHEELS = re.compile(r"://\S*/torch-?(\d+\.\d+)(?:\.\d+)?(?:(?:\+|%2B)[^\s/]*?)?(?:/|\.html)", re.IGNORECASE)
_INDEX = re.compile(r"://download\.pytorch\.org/whl/cu(\d{1,2})(\d)(?!\d)", re.IGNORECASE)
_TAG = re.compile(r"\.git@v?(\d+\.\d+(?:\.\d+)?)(?=[#_-]|$)")  # a release of a repository
# Before which Python the wheels of a release of what is pinned exactly end: `numpy==1.19.2` does not get along with 3.9. That
# of transformers is what its tokenizers have.
_TENSORFLOW = (("2.2", "3.8"), ("2.5", "3.9"), ("2.8", "3.10"), ("2.12", "3.11"), ("2.16", "3.12"))
_ENDS_OF_WHEELS = {
    "numpy": (("1.17.3", "3.8"), ("1.19.3", "3.9"), ("1.21.2", "3.10"), ("1.23.2", "3.11")),
    "pandas": (("0.25.3", "3.8"), ("1.1.3", "3.9"), ("1.3.3", "3.10")),
    "scipy": (("1.3.2", "3.8"), ("1.5.4", "3.9")),
    "scikit-learn": (("0.22", "3.8"), ("0.24", "3.9")),
    "tensorflow": _TENSORFLOW,
    "tensorflow-gpu": _TENSORFLOW,
    "tokenizers": (("0.9.4", "3.9"), ("0.11", "3.10")),
    "transformers": (("4.0", "3.9"), ("4.16", "3.10")),
}
_EXACTLY = re.compile(r"===?(\d+(?:\.\d+)*)")
PINNED = frozenset(
    (
        *(
            "torch",
            "lightning",
            "pytorch-lightning",
            "lightning-fabric",
            "torchvision",
            "torchaudio",
            "torchtext",
            "torch-xla",
        ),
        *("transformers", "trl", "peft", "accelerate"),
        "python",
        *OF_LIGHTNING_1,
        *TIED_TO_TORCH,
    )
)


class Kind(IntEnum):
    """What a file that states versions is, the weakest first."""

    PROSE = 0
    README = 1
    CI = 2
    SCRIPT = 3
    IMAGE = 4
    DECLARED = 5


@dataclass(frozen=True, slots=True)
class Pin:
    """A version constraint: which distribution, in which file and row (from 1).

    `locked` is the exact outcome of a resolver; `conditional` holds in some environments only; `of_code`: nobody states
    it, but the code is written for it.
    """

    name: str
    specifier: str
    file: Path
    row: int
    locked: bool = False
    conditional: bool = False
    kind: Kind = Kind.DECLARED
    of_code: bool = False


def wheels_pins(file: Path, row: int, text: str, *, conditional: bool = False) -> Iterator[Pin]:
    """The torch that the wheels at an address are built for: PyG's, DGL's, mmcv's and detectron2's lists name it, PyTorch's
    own the CUDA, for which wheels are built for some releases only."""
    for found in _INDEX.finditer(text) if "://" in text else ():
        yield Pin("cuda-of-wheels", f"=={found[1]}.{found[2]}.*", file, row, conditional=conditional)
    for found in _WHEELS.finditer(text) if "://" in text else ():
        yield Pin(WHEELS_FOR_TORCH, f"=={found[1]}.*", file, row, conditional=conditional)


def canonical(name: str) -> str:
    """A distribution's name in the spelling of PyPI, whoever writes it."""
    name = normalise(name)
    return _CONDA.get(name, name)


def pin_of(file: Path, row: int, requirement: Requirement | None, *, conditional: bool = False) -> Iterator[Pin]:
    """The pin that a requirement is; none where it names something else, or no version and that says nothing."""
    name = canonical(requirement.name) if requirement else ""
    if requirement and name in PINNED:
        tag = _TAG.search(requirement.url)
        specifier = requirement.specifier or (f"=={tag[1]}" if tag else "")
        specifier = specifier or (_ANY if name in (*OF_LIGHTNING_1, "allennlp") else "")
        if specifier:
            yield Pin(name, specifier, file, row, conditional=conditional or bool(requirement.marker))


def pip_pins(file: Path, row: int, requirement: Requirement | None, *, conditional: bool = False) -> Iterator[Pin]:
    """The pins of a requirement that pip meets: it, and the Python that it has wheels for."""
    yield from pin_of(file, row, requirement, conditional=conditional)
    if requirement and (exact := _EXACTLY.fullmatch(requirement.specifier)):
        ends = _ENDS_OF_WHEELS.get(requirement.name, ())
        for end in islice((end for first, end in ends if Version(exact[1]) < Version(first)), 1):
            yield Pin("python", f"<{end}", file, row, conditional=conditional or bool(requirement.marker))
