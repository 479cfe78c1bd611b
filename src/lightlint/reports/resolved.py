"""What decides how a file is linted: its settings, and which versions it is taken to be written for, from where."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lightlint.config.options import shown
from lightlint.config.settings import Settings
from lightlint.facts.project.roots import root_of
from lightlint.facts.versions.evidence import COMPANIONS, DISTRIBUTIONS, Places
from lightlint.facts.versions.own_words import said_by
from lightlint.facts.versions.pins import Kind, Pin
from lightlint.facts.versions.targets import place_of, target_of
from lightlint.facts.versions.versions import Range, Target
from lightlint.pages import all_pages
from lightlint.sources.load import load
from lightlint.sources.source import UnreadableError

_SOURCES = {
    Kind.DECLARED: "what the project declares",
    Kind.IMAGE: "a container",
    Kind.SCRIPT: "a script",
    Kind.CI: "CI",
    Kind.README: "a README",
    Kind.PROSE: "what a README tells",
}
_WHY = {
    "setting": "the setting `target.{}`",
    "installed": "installed beside lightlint; no file of the project names a version",
    "newest": "the newest release that lightlint knows; no file of the project names a version",
}
_PLAIN = ("fix", "unsafe_fixes", "notes", "output_format", "force_exclude", "respect_gitignore")
_MOST = 20


def render(path: Path, settings: Settings) -> str:
    """The resolved settings of a file, for people to read."""
    full = path.absolute()
    root = root_of(full.parent)
    return "".join(
        f"{line}\n" for line in (str(path), *_settings(full, root, settings), *_versions(full, root, settings))
    )


def _settings(path: Path, root: Path, settings: Settings) -> Iterator[str]:
    on = settings.rules_for(path)
    off = sorted(page.code for page in all_pages().values() if page.name not in on)
    yield f"  settings file: {shown(settings.file) if settings.file else 'none'}"
    yield f"  project: {shown(root)}"
    yield f"  rules: {len(on)} on" + (f"; off: {', '.join(off)}" if off else "")
    for key in _PLAIN:
        value = getattr(settings, key)
        yield f"  {key.replace('_', '-')}: {str(value).lower() if isinstance(value, bool) else value}"
    yield f"  distributed: {'auto' if settings.distributed is None else str(settings.distributed).lower()}"
    yield f"  exclude: {', '.join(settings.exclude)}"


def _versions(path: Path, root: Path, settings: Settings) -> Iterator[str]:
    try:
        source = load(path)
    except UnreadableError as error:
        yield f"  versions: not known, the file cannot be read: {error}"
        return
    lines = said_by(source)
    for package in DISTRIBUTIONS:
        setting: str | None = getattr(settings.target, package)
        target = target_of(package, path, root, setting=setting, pip_lines=lines)
        yield f"  {package}: {_range(target)}"
        taken = target.source.removeprefix("pin ")
        seen = list(_seen(package, path, root, lines))
        chosen = [pin for pin in seen if target.source != taken and place_of(pin, root) == taken]
        why = _WHY.get(target.source, "").format(package)
        yield f"    from {why or (_told(chosen[0], root) if chosen else f'{taken}, what goes with what stands there')}"
        if target.allowed is not None:
            yield f"    fixes keep to what the project allows: {_limits(target.allowed)}"
        others = [_told(pin, root) for pin in seen if pin not in chosen]
        for other in others[:_MOST]:
            yield f"    also seen: {other}"
        if len(others) > _MOST:
            yield f"    and {len(others) - _MOST} more"


def _seen(package: str, path: Path, root: Path, lines: tuple[str, ...]) -> Iterator[Pin]:
    """All pins that say something of a package, the best source first."""
    names = {*DISTRIBUTIONS[package], *(COMPANIONS if package == "torch" else ())}
    told: set[tuple[object, ...]] = set()
    for place in Places(path, root, lines):
        for pin in place.pins:
            key = (pin.name, pin.file, pin.row)  # a requirements file may be named by others, too
            if pin.name in names and key not in told:
                told.add(key)
                yield pin


def _told(pin: Pin, root: Path) -> str:
    version = pin.specifier if not pin.specifier[:1].isdigit() else f"=={pin.specifier}"
    where = " (a lock file)" if pin.locked else " (in some environments)" if pin.conditional else ""
    source = "what was installed when a run began" if pin.of_run else _SOURCES[pin.kind]
    source = "what the code is written for" if pin.of_code else source
    return f"{place_of(pin, root)}: {pin.name}{version}, {source}{where}"


def _range(target: Target) -> str:
    limits = _limits(Range(target.lower, target.upper))
    return limits if limits == str(target.version) else f"{limits}, judged as {target.version}"


def _limits(versions: Range) -> str:
    """A range as people write it."""
    lower, upper = versions.lower, versions.upper
    if lower is not None and upper == lower.just_above() and not lower.is_early:
        return str(lower)
    low = f">={lower}" if lower is not None else ""
    high = ""
    if upper is not None:
        high = f"<={upper}" if upper.is_just_above else f"<{upper}"
    return ",".join(filter(None, (low, high))) or "any"
