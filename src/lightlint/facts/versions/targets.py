"""The versions of torch and Lightning a file is written for: setting, else pins, else installed, else newest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from operator import itemgetter
from pathlib import Path

from lightlint.facts.versions.doubts import older_than
from lightlint.facts.versions.evidence import DISTRIBUTIONS, IMPORTS_OLD_NAME, Choice, Places, places_in, settled
from lightlint.facts.versions.installed import version_text
from lightlint.facts.versions.pins import Kind, Pin
from lightlint.facts.versions.pins.pin import OF_LIGHTNING_1, PYTHON_OF_WHEELS, TIED_TO_TORCH, end_below
from lightlint.facts.versions.tables import table
from lightlint.facts.versions.versions import Range, Target, Version, parse_range, releases

_LAST_OF_OLD = Version("2.0")


def target_of(
    package: str, path: Path, root: Path, *, setting: str | None = None, pip_lines: Sequence[str] = ()
) -> Target:
    """The target version of `torch` or `lightning` for a file.

    Args:
        path: the file.
        root: the project's top directory; pins are looked for from the file's directory up to the top of the repository,
            nearest first (see `evidence.Places`). A range gives way to a more exact source further up that lies in it.
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
    if set(pip_lines) <= {IMPORTS_OLD_NAME}:
        return target_in(package, path.absolute().parent, root, *pip_lines)
    return _read(package, Places(path, root, pip_lines), path.absolute().parent, root)


@cache
def target_in(package: str, directory: Path, root: Path, *words: str) -> Target:
    """The target version for the files of a directory that say nothing of versions themselves, but perhaps what they import.

    Cached; `target_in.cache_clear()` forgets it.
    """
    return _read(package, places_in(directory, root, *words), directory, root)


def _read(package: str, around: Places, directory: Path, root: Path) -> Target:
    choice = settled(package, around)
    found = _target(package, choice, root) if choice else _unpinned(package, around, root)
    before = None if found.source == "installed" else found.upper
    if before is not None and found.lower is not None and before <= found.lower.bumped(2):
        return found  # one release: nothing to narrow
    ends = [
        (end, choice.pin) for name, choice in _bounding(package, around) if (end := _end(package, name, choice.range))
    ]
    ends += filter(None, [older_than(package, choice is not None, around, directory)])
    end, pin = min(ends, key=itemgetter(0), default=(None, None))
    if end is None or pin is None or (before is not None and end >= before):
        return found
    return _within(found, end, pin, root)


def _bounding(package: str, around: Places) -> Iterator[tuple[str, Choice]]:
    """What else is pinned that no newer release of a package goes with."""
    beside = {"torch": ("lightning", *TIED_TO_TORCH), "lightning": (*OF_LIGHTNING_1, "torch")}
    beside |= dict.fromkeys(_torch_asked_by(), ("torch",))
    beside |= {each: (*beside.get(each, ()), *rows) for each, rows in table("caps").items() if each in DISTRIBUTIONS}
    for name in ("python", PYTHON_OF_WHEELS, *beside.get(package, ())):
        choice = settled(name, around)
        if (
            choice
            and not (name == "lightning" and choice.pin.kind is Kind.PROSE)
            and not _is_stale(name, choice, around)
        ):
            yield name, choice


def _is_stale(name: str, choice: Choice, around: Places) -> bool:
    """Whether it is hearsay of a Python that the torch of the project does not run with: it tells of earlier days."""
    if name != "python" or choice.pin.kind is not Kind.PROSE:
        return False
    torch, end = settled("torch", around), _end_for("torch", choice.range)
    return bool(torch and end and torch.range.lower is not None and torch.range.lower >= end)


def _end(package: str, name: str, versions: Range) -> Version | None:
    """Before which version of a package its releases end that go with what is pinned; None where they go on."""
    if name in ("python", PYTHON_OF_WHEELS):
        return _end_for(package, versions)
    if name in OF_LIGHTNING_1:
        return _LAST_OF_OLD
    if name == "lightning":
        beside = _torch_beside(versions)
        return beside.upper if beside else None
    upper = versions.upper
    if name == "torch":
        known = table("releases")
        asked = (known["torch_for_lightning"] if package == "lightning" else _torch_asked_by()[package]).items()
        return next((Version(since) for since, oldest in asked if upper is not None and upper <= Version(oldest)), None)
    by_hand = table("releases")["before_torch"] if package == "torch" else {}
    end = end_below(by_hand.get(name) or table("caps")[package][name], upper)
    return Version(end) if end else None


def _torch_asked_by() -> dict[str, dict[str, str]]:
    """The oldest torch that a package asks for, by the release that asks for it first, oldest first."""
    rows: dict[str, dict[str, str]] = table("releases")["torch_asked_by"]
    return rows


def _end_for(package: str, python: Range) -> Version | None:
    """Before which version of a package its releases end that some Python of a range runs, None where they go on."""
    ends = table("releases")["last_for_python"].get(package, {})
    known = [(Version(minor).bumped(2), Version(last).bumped(2)) for minor, last in ends.items()]
    return min((end for above, end in known if python.upper is not None and python.upper <= above), default=None)


def _within(found: Target, end: Version, pin: Pin, root: Path) -> Target:
    """What a project's Python, or another package, leaves of one that it does not pin, or from below only."""
    pinned = found.source.startswith("pin")
    if pinned and found.lower is not None and found.lower >= end:
        return found
    lower = found.lower if pinned else None
    return Target(found.package, lower, end, f"pin {place_of(pin, root)}", found.allowed, hearsay=True)


def _pinned(package: str, around: Places, root: Path) -> Target | None:
    found = settled(package, around)
    return _target(package, found, root) if found else None


def _unpinned(package: str, around: Places, root: Path) -> Target:
    """The target where no file names a version: what the other package leaves, what is installed, the newest."""
    if package == "torch":
        lightning = settled("lightning", around)
        bound = _torch_beside(lightning.range) if lightning else None
        if lightning and bound:
            return _target("torch", replace(lightning, range=bound), root)
    if version := installed(package):
        return Target(package, version, version.just_above(), "installed")
    if package == "lightning":
        torch = _pinned("torch", around, root)
        return (torch and _lightning_beside(torch)) or Target(package, releases(package)[-1], None, "newest")
    return Target(package, releases(package)[-1], None, "newest")


def _target(package: str, found: Choice, root: Path) -> Target:
    whole = found.allowed if found.allowed != found.range else None
    return Target(
        package,
        found.range.lower,
        found.range.upper,
        f"pin {place_of(found.pin, root)}",
        whole,
        found.pin.kind is Kind.PROSE,
        found.pin.of_code,
    )


def _lightning_beside(torch: Target) -> Target | None:
    """Lightning where a project pins torch and not Lightning: no release that asks for a newer torch."""
    needed = table("releases")["torch_for_lightning"]
    fitting = [Version(minor) for minor, oldest in needed.items() if torch.may_be_at_least(oldest)]
    if fitting and len(fitting) < len(needed):
        return Target("lightning", None, fitting[-1].bumped(2), torch.source, hearsay=torch.hearsay)
    return None


def _torch_beside(lightning: Range) -> Range | None:
    """The torch of a project that pins an old Lightning and no torch: one of its days, newer ones it does not run with."""
    if lightning.upper is None or lightning.upper > _LAST_OF_OLD:
        return None
    known = table("releases")
    minors = {version.minor for version in releases("lightning") if version in lightning}
    oldest = [Version(known["torch_for_lightning"][minor]) for minor in minors]
    newest = [Version(known["last_torch_for_lightning"][minor]) for minor in minors]
    return Range(min(oldest), max(newest).bumped(2)) if minors else None


def place_of(pin: Pin, root: Path) -> str:
    """Where a pin stands, as people are told of it: a path from the project's root, and a row."""
    if not pin.row:
        return "in the notebook" if pin.file.suffix == ".ipynb" else "in the script"
    file, root = pin.file.absolute(), root.absolute()
    for above in (root, *root.parents[:3]):
        if above in file.parents:
            return f"{'../' * len(root.relative_to(above).parts)}{file.relative_to(above).as_posix()}:{pin.row}"
    return f"{file.name}:{pin.row}"


@cache
def installed(package: str) -> Version | None:
    """The version of a package in the environment lightlint runs in; the package is not imported."""
    for name in DISTRIBUTIONS[package]:
        text = version_text(name)
        if text is not None:
            with suppress(ValueError):
                return Version(text)
    return None
