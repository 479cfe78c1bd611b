"""Which of the version pins around a file hold for it: the nearest and the most exact of the best sources."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, reduce
from itertools import count
from operator import and_, or_
from pathlib import Path

from lightlint.facts.project.roots import nearest_with
from lightlint.facts.releases.torch_api import torch_release
from lightlint.facts.versions.pins import (
    Kind,
    Pin,
    Reach,
    Weight,
    is_project,
    pins_in,
    pins_of_runs,
    pins_of_settings,
    top_of,
)
from lightlint.facts.versions.pins.forks import FORK_OF, fork_of
from lightlint.facts.versions.pins.kinds import is_page
from lightlint.facts.versions.pins.notebooks import pins_of_notebooks
from lightlint.facts.versions.pins.old_code import pins_of_old_code
from lightlint.facts.versions.pins.pin import OF_LIGHTNING_1, WHEELS_FOR_TORCH, wheels_pins
from lightlint.facts.versions.pins.sent_to import folders_sent_to
from lightlint.facts.versions.requirements import normalise, parse_pip_command
from lightlint.facts.versions.versions import Range, Version, parse_range

# Distributions that hold a package, the one that decides first.
DISTRIBUTIONS = {
    "torch": ("torch",),
    "lightning": ("lightning", "pytorch-lightning", "lightning-fabric"),
    "transformers": ("transformers",),
    "trl": ("trl",),
    "peft": ("peft",),
    "accelerate": ("accelerate",),
}
_LIGHTNING_1 = Range(upper=Version("2.0"))
_STRONG = (Kind.DECLARED, Kind.IMAGE)
_VAGUE = (Kind.CI, Kind.PROSE)
_RAN_WITH = re.compile(r"# python (3\.\d{1,2})")  # as `Source.says_of_versions` puts it
_NAMED = re.compile(r"# names ([\w-]+) (\S+)")  # as `said_by` puts it
IMPORTS_OLD_NAME = "# imports pytorch_lightning"  # as `said_by` puts it
_INSTALLED = re.compile(r"# installed ([\w-]+)(==\S+)")
_OF_SAME_NUMBER = (WHEELS_FOR_TORCH, "torch-xla")
# Each release of which is made for one of torch.
COMPANIONS = ("torchvision", "torchaudio", "torchtext", *_OF_SAME_NUMBER)


@dataclass(frozen=True, slots=True)
class Place:
    """The pins of one place and of one kind of source."""

    kind: Kind
    pins: tuple[Pin, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """The versions that a pin leaves; `allowed` are those of the looser pin that it was taken instead of, if any."""

    range: Range
    pin: Pin
    allowed: Range


class Places:
    """Where the versions for a file may stand, the best place first; each is read when it is asked for, and once."""

    def __init__(self, path: Path, root: Path, pip_lines: Sequence[str] = ()) -> None:
        places = _places(path, root, pip_lines)
        if IMPORTS_OLD_NAME in pip_lines:
            places = map(_of_old_name, places)
        self._unread = (place for place in places if place.pins)
        self._read: list[Place] = []

    def __iter__(self) -> Iterator[Place]:
        for number in count():
            if number == len(self._read):
                place = next(self._unread, None)
                if place is None:
                    return
                self._read.append(place)
            yield self._read[number]


@cache
def places_in(directory: Path, root: Path, *words: str) -> Places:
    """The places for the files of a directory that say nothing of versions themselves, but perhaps what they import.

    Cached; `places_in.cache_clear()` forgets it.
    """
    return Places(directory / "_.py", root, words)


def _places(path: Path, root: Path, pip_lines: Sequence[str]) -> Iterator[Place]:
    """Where the versions for a file may stand, the best place first; many have no pins.

    First its own `pip install` lines, then what the folders from its own up to the top declare and which images they
    start from, and which one version the README of a part of the project names, then scripts, CI and READMEs, which tell
    of one way to install among others, then what READMEs mention, then what was there when runs were made, at last what
    the project's notebooks were run with, what folders say that a README sends to, and what code is written for.
    """
    own = [requirement for line in pip_lines for requirement in parse_pip_command(line)]
    lines = [each for each in own if each.specifier and not each.redirected]
    wheels = [pin for line in pip_lines for pin in wheels_pins(path, 0, line)]
    forks = [Pin(f"{FORK_OF}{fork}", ">=0", path, 0) for each in own if (fork := fork_of(each))]
    yield Place(Kind.DECLARED, (*(Pin(each.name, each.specifier, path, 0) for each in lines), *forks, *wheels))
    root = root.absolute()
    directories = _upwards(path.absolute(), root)
    tops = _tops(root, directories)
    for directory in directories:
        yield from (_of_kind(kind, directory, reach) for kind in _STRONG for reach in _near(directory, root))
        if directory not in tops:
            yield _exact(_of_kind(Kind.README, directory, Reach.OWN))
    yield from (_of_kind(kind, directory, Reach.WIDE) for directory in tops for kind in _STRONG)
    for kind in (Kind.SCRIPT, Kind.CI, Kind.README, Kind.PROSE):
        for directory in directories:
            near = (_of_kind(kind, directory, reach) for reach in _near(directory, root))
            yield from map(_without_pages, near) if _is_above(directory, root) else near
        yield from (_of_kind(kind, directory, Reach.WIDE) for directory in tops)
    for told in (pins_of_runs, pins_of_settings):
        yield from (Place(Kind.PROSE, told(directory)) for directory in tops)
    ran = [found[1] for line in pip_lines if (found := _RAN_WITH.fullmatch(line))]
    noted = [found.groups() for line in pip_lines if (found := _INSTALLED.fullmatch(line))]
    yield Place(Kind.PROSE, tuple(Pin(normalise(name), each, path, 0, kind=Kind.PROSE) for name, each in noted))
    named = [found.groups() for line in pip_lines if (found := _NAMED.fullmatch(line))]
    yield Place(Kind.PROSE, tuple(Pin(name, each, path, 0, kind=Kind.PROSE) for name, each in named))
    yield Place(Kind.PROSE, tuple(Pin("python", each, path, 0, kind=Kind.PROSE) for each in ran))
    within = (directory for directory in directories if not _is_above(directory, root))
    yield from (Place(Kind.PROSE, pins_of_notebooks(directory)) for directory in within)
    sent = [folder for directory in tops for folder in folders_sent_to(directory)]
    yield from (_as_prose(_of_kind(kind, folder, Reach.OWN)) for folder in sent for kind in reversed(Kind))
    yield from (Place(Kind.PROSE, pins_of_old_code(directory)) for directory in directories)


def _of_old_name(place: Place) -> Place:
    """For code that imports `pytorch_lightning` only: an environment written down whole has `lightning` of another version beside it."""
    if all(pin.name != "pytorch-lightning" for pin in place.pins):
        return place
    return Place(place.kind, tuple(pin for pin in place.pins if pin.name != "lightning"))


def _of_kind(kind: Kind, directory: Path, reach: Reach) -> Place:
    weights = (Weight.STRONG,) if kind in _STRONG else (Weight.STRONG, Weight.WEAK)  # a YAML file may be of any kind
    pins = (pin for weight in weights for pin in pins_in(directory, reach, weight))
    return Place(kind, tuple(pin for pin in pins if pin.kind is kind))


def _as_prose(place: Place) -> Place:
    """What a part of a project says for itself, as what it tells of the days of the whole."""
    return Place(Kind.PROSE, tuple(replace(pin, kind=Kind.PROSE) for pin in place.pins))


def _without_pages(place: Place) -> Place:
    """Without what lies about above a project: of the texts there, a README alone speaks of what is below."""
    return Place(place.kind, tuple(pin for pin in place.pins if not is_page(pin.file)))


def _exact(place: Place) -> Place:
    return Place(place.kind, tuple(pin for pin in place.pins if _is_exact(parse_range(pin.specifier))))


def _near(directory: Path, root: Path) -> tuple[Reach, Reach]:
    """A folder's own files and those in folders beside; above the project only of folders that are none themselves."""
    return Reach.OWN, Reach.ABOVE if _is_above(directory, root) else Reach.SIDE


def _is_above(directory: Path, root: Path) -> bool:
    return directory in root.parents and nearest_with((".git",), directory) is None


def _tops(root: Path, directories: list[Path]) -> list[Path]:
    """The folders that a project may start in: where its files say so, and the top of the repository or the next above if it is one."""
    inside = [each for each in directories if each == root or root in each.parents] or directories[:1]
    above = directories[len(inside) :]
    if above and nearest_with((".git",), above[-1]) == above[-1]:
        return [inside[-1], above[-1]]
    return [inside[-1], *(each for each in above[:1] if is_project(each))]


def _upwards(path: Path, root: Path) -> list[Path]:
    """The folders from a file's own up to the top of all that may speak for it."""
    start = path.parent
    top = top_of(root if root == start or root in start.parents else start)
    return [each for each in (start, *start.parents) if each == top or top in each.parents] or [start]


def settled(package: str, around: Iterable[Place]) -> Choice | None:
    """What places come to: the first that says something, or a more exact one further on that lies in it."""
    found: Choice | None = None
    for place in around:
        choice = choice_in(package, place)
        if choice and (found is None or _refines(choice, found)):
            found = Choice(choice.range, choice.pin, found.allowed if found else choice.range)
        if found and (found.pin.locked or _is_exact(found.range)):
            break
    return found


def _refines(choice: Choice, found: Choice) -> bool:
    """Whether a source says more exactly what a better one leaves open.

    CI tries versions at both ends, and prose tells of what was once used: they do not, unless that is where an open range
    begins. Then it is what the project was made with.
    """
    narrower = choice.range != found.range and choice.range & found.range == choice.range
    bounded = choice.range.lower is not None and choice.range.upper is not None
    sure = choice.pin.locked or not (choice.pin.conditional or choice.pin.kind in _VAGUE)
    is_first = choice.pin.kind is Kind.PROSE and found.range.upper is None and choice.range.lower == found.range.lower
    return narrower and bounded and (sure or is_first)


def _is_exact(found: Range) -> bool:
    return found.lower is not None and found.upper == found.lower.just_above()


def choice_in(package: str, place: Place) -> Choice | None:
    """What a place says of a package, by itself or by what comes with it."""
    found = next(filter(None, (_of(name, place) for name in DISTRIBUTIONS.get(package, (package,)))), None)
    if package == "torch":
        return _narrowed(found, place) if found else _beside(place)
    return _first_lightning(found, place) if package == "lightning" else found


def _first_lightning(found: Choice | None, place: Place) -> Choice | None:
    """Lightning as a package that works with its first major version only leaves it: `lightning-bolts`."""
    tied = next(filter(None, (_of(name, place) for name in OF_LIGHTNING_1)), None)
    if tied is None or (found and found.range.upper is not None):
        return found
    left = _LIGHTNING_1 & (found.range if found else Range())
    return found if left.empty else Choice(left, found.pin if found else tied.pin, left)


def _narrowed(found: Choice, place: Place) -> Choice:
    """Torch as the release of torchvision or another companion beside it leaves it: `torch>=1.7`, `torchvision==0.11.3`.

    Where no companion goes with it, nothing installs the two, and one of them is not what runs: anything between may be.
    """
    companions = [*_companions(place)]
    agreeing = [each for each in companions if not (each.range & found.range).empty]
    if agreeing:
        left = Choice(agreeing[0].range & found.range, agreeing[0].pin, found.range)
        return left if _refines(left, found) else found
    tied = [each for each in companions if _binds(each.pin)]
    whole = reduce(or_, (each.range for each in tied), found.range)
    return Choice(whole, found.pin, whole) if tied else found


def _binds(pin: Pin) -> bool:
    """Whether a companion's release asks for one release of torch: older ones take any newer one."""
    lower = parse_range(pin.specifier).lower
    return pin.name in _BINDS_SINCE and lower is not None and lower >= Version(_BINDS_SINCE[pin.name])


_BINDS_SINCE = {"torchvision": "0.4", "torchaudio": "0.4", "torchtext": "0.8"}


def _beside(place: Place) -> Choice | None:
    """The torch that the companions pinned in a place were made for."""
    return next(_companions(place), None)


def _companions(place: Place) -> Iterator[Choice]:
    """The torch that each companion pinned in a place was made for."""
    for name in COMPANIONS:
        found = _of(name, place)
        made_for = found and _torch_for(name, found.range)
        if found and made_for and made_for != Range() and not made_for.empty:
            yield Choice(made_for, found.pin, made_for)


def _exact_within(chosen: list[tuple[Pin, Range]]) -> list[tuple[Pin, Range]]:
    """Of pins that exclude each other the exact ones that lie in all loose ones, if any: two environments of one requirement."""
    loose = reduce(and_, (found for _, found in chosen if not _is_of_one_release(found)), Range())
    return [item for item in chosen if _is_of_one_release(item[1]) and not (item[1] & loose).empty] or chosen


def _is_of_one_release(found: Range) -> bool:
    return found.lower is not None and found.upper is not None and found.upper <= found.lower.bumped(2)


def _torch_for(companion: str, versions: Range) -> Range:
    if companion in _OF_SAME_NUMBER:
        end = versions.upper
        return Range(
            versions.lower and Version(versions.lower.minor), end.bumped(2) if end and end.is_just_above else end
        )
    lower = versions.lower and torch_release(companion, versions.lower.numbers)
    upper: Version | None = None
    if versions.upper is not None:
        last = torch_release(companion, versions.upper.numbers)
        is_first = versions.upper.release == Version(versions.upper.minor).release and not versions.upper.is_just_above
        upper = last.bumped(2) if last and not is_first else last
    return Range(lower or None, upper)


def _of(name: str, place: Place) -> Choice | None:
    """What the pins on a distribution in one place come to: the lock's version if there is a lock, else what meets them all.

    Where they exclude each other, or hold in some environments only (extras, markers), it is the range around them.
    """
    ranges = [(pin, parse_range(pin.specifier)) for pin in place.pins if pin.name == name]
    ranges = [(pin, found) for pin, found in ranges if found != Range() and not found.empty]
    locked = [item for item in ranges if item[0].locked]
    always = [item for item in ranges if not item[0].conditional]
    chosen = locked or always or ranges
    if not chosen:
        return None
    if place.kind not in {Kind.DECLARED, Kind.PROSE}:  # one of several ways to install
        chosen = [item for item in chosen if None not in (item[1].lower, item[1].upper)] or chosen
    whole = reduce(and_, (found for _, found in chosen))
    if whole.empty or chosen is locked or chosen is ranges or place.kind is not Kind.DECLARED:
        chosen = _exact_within(chosen) if whole.empty else chosen
        whole = reduce(or_, (found for _, found in chosen))
    pin = next((pin for pin, found in chosen if found == whole), chosen[0][0])
    return Choice(whole, pin, whole)
