"""The versions of torch and Lightning a file is written for: setting, else pins, else installed, else newest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, reduce
from operator import and_, or_
from pathlib import Path

from lightlint.facts.installed import version_text
from lightlint.facts.pins import Pin, parse_pip_command, pins_in
from lightlint.facts.tables import table
from lightlint.facts.versions import Range, Target, Version, parse_range, releases

# Distributions that hold a package, the one that decides first.
_DISTRIBUTIONS = {
    "torch": ("torch",),
    "lightning": ("lightning", "pytorch-lightning", "lightning-fabric"),
}


def target_of(
    package: str, path: Path, root: Path, *, setting: str | None = None, pip_lines: Sequence[str] = ()
) -> Target:
    """The target version of `torch` or `lightning` for a file.

    Args:
        path: the file.
        root: the project's top directory; pins are looked for from the file's directory up to here, nearest first.
            A range gives way to a lock file further up that lies in it.
        setting: what the settings ask for: a version (`1.9` is any 1.9.x) or a specifier.
        pip_lines: `pip install` commands of a notebook, or what a script's head asks for: they stand nearer than any file.

    Raises:
        ValueError: `setting` is neither a version nor a specifier.
    """
    if setting is not None:
        asked = parse_range(setting)
        if asked == Range() or asked.empty:
            raise ValueError(f"target {package} = {setting!r} is no version; write it like 2.1 or >=1.8,<2")
        return Target(package, asked.lower, asked.upper, "setting")
    found: _Choice | None = None
    for pins in _pins_upwards(path, root, tuple(pip_lines)):
        choice = _choose(package, pins)
        if choice and (found is None or (choice.pin.locked and _within(choice.range, found.range))):
            found = choice
        if found and found.pin.locked:
            break
    if found:
        return Target(package, found.range.lower, found.range.upper, f"pin {_place(found.pin, root)}")
    if version := installed(package):
        return Target(package, version, version.just_above(), "installed")
    if package == "lightning":
        return _beside(target_of("torch", path, root, pip_lines=pip_lines))
    return Target(package, releases(package)[-1], None, "newest")


def _beside(torch: Target) -> Target:
    """Lightning where a project pins torch and not Lightning: no release that asks for a newer torch."""
    needed = table("releases")["torch_for_lightning"]
    fitting = [Version(minor) for minor, oldest in needed.items() if torch.may_be_at_least(oldest)]
    if torch.source.startswith("pin") and fitting and len(fitting) < len(needed):
        return Target("lightning", None, fitting[-1].bumped(2), torch.source)
    return Target("lightning", releases("lightning")[-1], None, "newest")


@dataclass(frozen=True, slots=True)
class _Choice:
    range: Range
    pin: Pin


def _pins_upwards(path: Path, root: Path, pip_lines: tuple[str, ...]) -> Iterator[Iterable[Pin]]:
    yield [
        Pin(requirement.name, requirement.specifier, path, 0)
        for line in pip_lines
        for requirement in parse_pip_command(line)
        if requirement.specifier and not requirement.redirected
    ]
    path, root = path.absolute(), root.absolute()
    for directory in path.parents:
        yield pins_in(directory)
        if directory == root or root not in directory.parents:
            return


def _choose(package: str, pins: Iterable[Pin]) -> _Choice | None:
    """What the pins of one place come to: the lock's version if there is a lock, else what meets them all.

    Where they exclude each other, or hold in some environments only (extras, markers), it is the range around them.
    """
    for name in _DISTRIBUTIONS[package]:
        ranges = [(pin, parse_range(pin.specifier)) for pin in pins if pin.name == name]
        ranges = [(pin, found) for pin, found in ranges if found != Range() and not found.empty]
        locked = [item for item in ranges if item[0].locked]
        always = [item for item in ranges if not item[0].conditional]
        if chosen := locked or always or ranges:
            whole = reduce(and_, (found for _, found in chosen))
            if whole.empty or chosen is locked or chosen is ranges:
                whole = reduce(or_, (found for _, found in chosen))
            return _Choice(whole, next((pin for pin, found in chosen if found == whole), chosen[0][0]))
    return None


def _within(inner: Range, outer: Range) -> bool:
    return inner & outer == inner


def _place(pin: Pin, root: Path) -> str:
    if not pin.row:
        return "in the notebook" if pin.file.suffix == ".ipynb" else "in the script"
    file, root = pin.file.absolute(), root.absolute()
    return f"{file.relative_to(root).as_posix() if root in file.parents else file.name}:{pin.row}"


@cache
def installed(package: str) -> Version | None:
    """The version of a package in the environment lightlint runs in; the package is not imported."""
    for name in _DISTRIBUTIONS[package]:
        text = version_text(name)
        if text is not None:
            with suppress(ValueError):
                return Version(text)
    return None
