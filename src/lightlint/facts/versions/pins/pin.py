"""A version constraint and how good a source it is from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from pathlib import Path

from lightlint.facts.versions.pins.forks import FORK_OF, fork_of
from lightlint.facts.versions.requirements import Requirement, normalise
from lightlint.facts.versions.tables import table
from lightlint.facts.versions.versions import Version, parse_range

# Conda's names for what PyPI calls torch.
_CONDA = {"pytorch": "torch", "pytorch-cpu": "torch", "pytorch-gpu": "torch"}
# Packages of Lightning 1: their last releases refuse Lightning 2, and older ones cannot be imported with it.
OF_LIGHTNING_1 = ("lightning-bolts", "lightning-flash")
# Packages whose old releases no newer torch goes with: `before_torch` of data/releases.toml.
TIED_TO_TORCH = (
    "allennlp",
    "cuda",
    "cuda-of-wheels",
    "cudatoolkit",
    "fastai",
    "mmcv-full",
    "pytorch-cuda",
    "timm",
    "torchtext",
    "xformers",
)
WHEELS_FOR_TORCH = "wheels-for-torch"  # what the address of a list of wheels says: `-f .../whl/torch-1.7.0+cu101.html`
PYTHON_OF_WHEELS = "python-of-wheels"  # what those have that are pinned: weaker than a Python that is named
ELSEWHERE = "elsewhere"  # what a project says nothing of but to look in another repository
_ANY = ">=0"
_WHEELS = re.compile(r"://\S*/torch-?(\d+\.\d+)(?:\.\d+)?(?:(?:\+|%2B)[^\s/]*?)?(?:/|\.html)", re.IGNORECASE)
_INDEX = re.compile(r"://download\.pytorch\.org/whl/cu(\d{1,2})(\d)(?!\d)", re.IGNORECASE)
_TAG = re.compile(r"\.git@v?(\d+\.\d+(?:\.\d+)?)(?=[#_-]|$)")  # a release of a repository
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
    it, but the code is written for it; `of_run`: it was installed when a run was made.
    """

    name: str
    specifier: str
    file: Path
    row: int
    locked: bool = False
    conditional: bool = False
    kind: Kind = Kind.DECLARED
    of_code: bool = False
    of_run: bool = False


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


@cache
def capping() -> frozenset[str]:
    """Packages whose releases end with some Python, torch, Transformers or TRL: `data/caps.toml`."""
    return frozenset(name for package, rows in table("caps").items() if package != "schema" for name in rows)


def is_pinned(name: str) -> bool:
    """Whether a distribution's version matters, by its canonical name."""
    return name in PINNED or any(name in rows for rows in _caps().values())


def _caps() -> dict[str, dict[str, list[list[str]]]]:
    """Before which versions of packages those end that go with the releases of others, without what Python leaves of any."""
    return {package: rows for package, rows in table("caps").items() if package not in ("schema", "python")}


@cache
def _capping_now() -> frozenset[str]:
    """The packages whose newest release caps another: to name one without a version says as much."""
    return frozenset(
        name for rows in _caps().values() for name, ends in rows.items() if ends[-1][1] and not ends[-1][0]
    )


def pin_of(file: Path, row: int, requirement: Requirement | None, *, conditional: bool = False) -> Iterator[Pin]:
    """The pin that a requirement is; none where it names something else, or no version and that says nothing."""
    if requirement and (fork := fork_of(requirement)):
        yield Pin(f"{FORK_OF}{fork}", _ANY, file, row, conditional=conditional or bool(requirement.marker))
        return
    name = canonical(requirement.name) if requirement else ""
    if requirement and is_pinned(name):
        tag = _TAG.search(requirement.url)
        specifier = requirement.specifier or (f"=={tag[1]}" if tag else "")
        specifier = specifier or (_ANY if name in OF_LIGHTNING_1 or name in _capping_now() else "")
        if specifier:
            yield Pin(name, specifier, file, row, conditional=conditional or bool(requirement.marker))


def pip_pins(file: Path, row: int, requirement: Requirement | None, *, conditional: bool = False) -> Iterator[Pin]:
    """The pins of a requirement that pip meets: it, and the Python that it has wheels for."""
    yield from pin_of(file, row, requirement, conditional=conditional)
    rows = table("caps")["python"].get(requirement.name) if requirement and requirement.specifier else None
    if requirement and rows and (end := end_below(rows, parse_range(requirement.specifier).upper)):
        yield Pin(PYTHON_OF_WHEELS, f"<{end}", file, row, conditional=conditional or bool(requirement.marker))


def end_below(rows: Sequence[Sequence[str]], upper: Version | None) -> str:
    """What ends where releases end that lie below a version, by the first row that fits: empty where nothing does."""
    return next((end for below, end in rows if not below or (upper is not None and upper <= Version(below))), "")
