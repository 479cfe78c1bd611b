"""Code against one environment: what it needs and does not find there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from lightlint.config.settings import Settings
from lightlint.environment import memory
from lightlint.environment.code import api
from lightlint.environment.code import findings as rules
from lightlint.environment.code.usage import Usage
from lightlint.environment.describing.importing import Failure
from lightlint.environment.describing.packages import concerns, distributions, ill_matched, reached_by
from lightlint.environment.describing.side import Side
from lightlint.environment.rows import BREAKS, CHANGES, FAILS, SLOWS, Row, ordered
from lightlint.facts.project.roots import root_of
from lightlint.facts.versions.pins import Kind, pins_in
from lightlint.facts.versions.versions import Version, parse_range
from lightlint.finding import Tier
from lightlint.reports.place import place

_VERSIONED = ("LL7", "LL8")  # families whose findings speak of versions and environments


def check(
    side: Side,
    usage: Usage,
    paths: Sequence[str],
    settings: Settings,
    need: memory.Need | None = None,
    failures: Sequence[Failure] = (),
) -> tuple[Row, ...]:
    """What is amiss with code in an environment, the worst first, and whether a forecast step fits.

    Args:
        side: the environment.
        usage: what the code needs.
        paths: where it is.
        settings: those of its rules.
        need: what a forecast says of its memory.
        failures: imports of the code that were tried there and failed.

    Raises:
        SideError: a forecast is given, and the environment's description tells nothing of GPUs.
    """
    rows = [
        *_imports(side, usage),
        *_failing(side, usage, failures),
        *_names(side, usage),
        *_pins(side, paths),
        *_api(side, usage, paths, settings),
        *_devices(side, usage),
    ]
    rows += _ill_matched(side, usage)
    if need is not None:
        rows += memory.held_against(need, side)
    return ordered(rows)


def _imports(side: Side, usage: Usage) -> Iterator[Row]:
    for module in sorted(usage.required & usage.imports.keys()) if side.whole else ():
        names = distributions(module, side)
        if names and side.version(*names) is None:
            why = f"`import {module}` raises ModuleNotFoundError"
            yield Row(BREAKS, names[0], "not installed", None, why, (str(usage.imports[module]),))


def _failing(side: Side, usage: Usage, failures: Sequence[Failure]) -> Iterator[Row]:
    for each in failures:
        within = f", in `{each.culprit}`, which it imports" if each.culprit != each.module else ""
        name = distributions(each.culprit, side)[0]
        why = f"`import {each.module}` raises {each.error}{within}"
        yield Row(BREAKS, name, side.version(name) or "not installed", None, why, (str(usage.imports[each.module]),))


def _ill_matched(side: Side, usage: Usage) -> Iterator[Row]:
    for first, _, why in ill_matched(side):
        way = reached_by(first, usage.imports)
        where = (str(usage.imports[way]),) if way else ()
        why = f"{why}, and `import {way}` imports it" if way else why
        yield Row(
            BREAKS - 1 if concerns(first, usage.imports) else CHANGES,
            first,
            side.version(first) or "",
            None,
            why,
            where,
        )


def _names(side: Side, usage: Usage) -> Iterator[Row]:
    for concern in api.lacking(usage, side):
        change = concern.change
        yield Row(BREAKS, change.package, api.told(change.package, side), None, api.missing(change), (concern.place,))


def _pins(side: Side, paths: Sequence[str]) -> Iterator[Row]:
    """The project's pins on torch and Lightning that this environment does not keep."""
    for root in dict.fromkeys(
        root_of(Path(path).resolve() if Path(path).is_dir() else Path(path).resolve().parent) for path in paths
    ):
        for pin in pins_in(root):
            version = side.version(pin.name)
            if version is None or not version[:1].isdigit() or pin.conditional or pin.kind is not Kind.DECLARED:
                continue
            if Version(version) not in parse_range(pin.specifier):
                why = f"{pin.file.name} asks for {pin.name}{pin.specifier if not pin.specifier[:1].isdigit() else f'=={pin.specifier}'}"
                yield Row(FAILS, pin.name, version, None, why, (f"{pin.file.name}:{pin.row}",))


def _api(side: Side, usage: Usage, paths: Sequence[str], settings: Settings) -> Iterator[Row]:
    for finding in rules.findings(paths, usage, side, settings):
        if finding.counts and finding.code.startswith(_VERSIONED):
            weight = BREAKS if finding.tier is Tier.ERROR else SLOWS
            yield Row(weight, finding.name, "", None, f"{finding.message} ({finding.code})", (place(finding),))


def _devices(side: Side, usage: Usage) -> Iterator[Row]:
    if not side.machine:
        return
    gpus = side.machine.get("gpus") or []
    if usage.gpu and not gpus:
        yield Row(FAILS, "gpus", "none", None, "the code asks for CUDA", (str(usage.gpu),))
    if usage.devices and gpus and usage.devices[0] > len(gpus):
        yield Row(
            FAILS,
            "gpus",
            str(len(gpus)),
            None,
            f"the code asks for {usage.devices[0]} devices",
            (str(usage.devices[1]),),
        )
    cores = side.machine.get("usable_cores") or 0
    if usage.workers and cores and usage.workers[0] > cores:
        why = f"the code asks for {usage.workers[0]} loader workers on {cores} cores"
        yield Row(SLOWS, "usable cores", str(cores), None, why, (str(usage.workers[1]),))
