"""Two environments compared, what the code uses first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lightlint.config.settings import Settings
from lightlint.environment import memory
from lightlint.environment.code import api
from lightlint.environment.code import findings as rules
from lightlint.environment.code.usage import Usage
from lightlint.environment.describing.packages import concerns, distance, distributions, ill_matched
from lightlint.environment.describing.side import Side
from lightlint.environment.rows import BREAKS, CHANGES, DIFFERS, FAILS, SLOWS, Row, ordered
from lightlint.finding import Tier
from lightlint.reports.place import place

_FLAGS = ("default_dtype", "float32_matmul_precision", "cudnn_benchmark", "cudnn_deterministic", "allow_tf32")
_BUILD = ("cuda", "hip", "cudnn", "nccl", "mps_available", "deterministic_algorithms", "threads")
_MACHINE = (
    ("system", CHANGES, "another operating system: paths, start method of processes, available wheels"),
    ("machine", CHANGES, "another processor architecture: other kernels, other wheels"),
    ("implementation", CHANGES, ""),
    ("libc", DIFFERS, ""),
    ("release", 1, ""),
    ("notebook", DIFFERS, "another notebook host brings other packages"),
    ("filesystem", DIFFERS, "reading data may be slower, locks and `mmap` may behave differently"),
)


def diff(
    first: Side,
    second: Side,
    usage: Usage,
    paths: Sequence[str],
    settings: Settings,
    need: memory.Need | None = None,
) -> tuple[Row, ...]:
    """The rows in which two environments differ, ranked by what the code uses.

    Args:
        usage: what the code uses; empty where no code is given, then rows are ranked by size alone.
        paths: the code.
        need: what a step takes, where a forecast is given.

    Raises:
        SideError: a forecast is given, and one side tells nothing of GPUs.
    """
    rows = [
        *_versioned(first, second, usage, paths, settings),
        *_named(first, second, usage),
        *_matches(first, second, usage),
    ]
    rows += _changed(first, second, usage, rows)
    explained = {row.subject for row in rows}
    rows += [row for row in _packages(first, second, usage) if row.subject not in explained]
    rows += [row for row in _python(first, second, usage) if row.weight == BREAKS or row.subject not in explained]
    if first.machine and second.machine:
        rows += [*_gpus(first, second, usage, need), *_resources(first, second, usage), *_settings_of(first, second)]
    if need is not None:
        rows += memory.compared(need, first, second)
    return ordered(rows)


def _versioned(first: Side, second: Side, usage: Usage, paths: Sequence[str], settings: Settings) -> Iterator[Row]:
    """What the rules find with the one's versions and not with the other's: the code itself breaks there.

    Whose version makes a finding is seen with the torch of the first and the Lightning of the second.
    """
    if not usage.sources or _versions(first, usage) == _versions(second, usage):
        return
    here = rules.findings(paths, usage, first, settings)
    there = rules.findings(paths, usage, second, settings)
    apart = ((first, rules.only_in(here, there)), (second, rules.only_in(there, here)))
    files = sorted({finding.filename for _, found in apart for finding in found})
    mixed = rules.findings(files, usage, first, settings, lightning_as_in=second) if files else ()
    for side, found in apart:
        rest = rules.only_in(found, mixed)
        for finding in found:
            by_torch = (finding not in rest) is (side is first)
            subject = "torch" if by_torch else rules.lightning_of(usage, side)[0]
            why = f"with {side.name}: {finding.message} ({finding.code})"
            weight = BREAKS if finding.tier is Tier.ERROR else FAILS
            yield Row(
                weight, subject, first.version(subject) or "", second.version(subject) or "", why, (place(finding),)
            )


def _versions(side: Side, usage: Usage) -> tuple[str | None, ...]:
    return side.version("torch"), rules.lightning_of(usage, side)[1]


def _named(first: Side, second: Side, usage: Usage) -> Iterator[Row]:
    """Names that one side has and the other has not."""
    lacking = {side.name: {concern.change: concern for concern in api.lacking(usage, side)} for side in (first, second)}
    for side, other in ((first, second), (second, first)):
        for change, concern in lacking[side.name].items():
            if change not in lacking[other.name]:
                yield Row(
                    BREAKS,
                    change.package,
                    *api.versions(change, first, second),
                    f"{api.missing(change)}: not there with {side.name}",
                    (concern.place,),
                )


def _changed(first: Side, second: Side, usage: Usage, known: Sequence[Row]) -> Iterator[Row]:
    """Calls that do something else on one side, where no rule has told so already."""
    for concern in api.changed(usage, first, second):
        change = concern.change
        if not any(row.subject == change.package and f"`{change.name}`" in row.why for row in known):
            why = f"since {change.package} {change.version} `{change.name}` {change.why}"
            yield Row(CHANGES, change.package, *api.versions(change, first, second), why, (concern.place,))


def _matches(first: Side, second: Side, usage: Usage) -> Iterator[Row]:
    """Packages that do not go together on one side, and do on the other."""
    pairs = {side.name: {(a, b): why for a, b, why in ill_matched(side)} for side in (first, second)}
    for side, other in ((first, second), (second, first)):
        for pair, why in pairs[side.name].items():
            if pair not in pairs[other.name] or side.name == other.name:
                yield Row(
                    BREAKS - 1 if concerns(pair[0], usage.imports) else CHANGES,
                    pair[0],
                    first.version(pair[0]) or "",
                    second.version(pair[0]) or "",
                    f"in {side.name}: {why}",
                )


def _packages(first: Side, second: Side, usage: Usage) -> Iterator[Row]:
    used = {name: module for module in usage.imports for name in distributions(module, first, second)}
    for name in sorted(first.packages.keys() | second.packages.keys()):
        one, other = first.packages.get(name, ""), second.packages.get(name, "")
        if one == other:
            continue
        module = used.get(name)
        if not one or not other:
            lacking = first if not one else second
            if not lacking.whole:
                continue
            if module and module in usage.required and not _brought(module, lacking, (first, second)):
                why = f"`import {module}` raises ModuleNotFoundError with {lacking.name}"
                yield Row(BREAKS - 2, name, one, other, why, (str(usage.imports[module]),))
            else:
                yield Row(SLOWS if module else 2, name, one, other)
        else:
            apart = distance(one, other)
            weight = (DIFFERS + 15 * apart) if module else 2 + apart
            places = (str(usage.imports[module]),) if module else ()
            yield Row(weight, name, one, other, "the code imports it" if module else "", places)


def _brought(module: str, side: Side, sides: tuple[Side, Side]) -> bool:
    return side.version(*distributions(module, *sides)) is not None


def _python(first: Side, second: Side, usage: Usage) -> Iterator[Row]:
    one, other = (str(side.machine.get("python", "")) for side in (first, second))
    if not one or not other or one == other:
        return
    for side, version in ((first, one), (second, other)):
        too_new = usage.too_new_for(version)
        if too_new is not None:
            yield Row(
                BREAKS,
                "python",
                one,
                other,
                f"SyntaxError with {side.name}: newer syntax than {version}",
                (str(too_new),),
            )
            return
    minor = one.split(".")[:2] != other.split(".")[:2]
    yield Row(
        SLOWS - 5 if minor else 3, "python", one, other, "other versions of packages are to be had" if minor else ""
    )


def _gpus(first: Side, second: Side, usage: Usage, need: memory.Need | None) -> Iterator[Row]:
    one, other = (side.machine.get("gpus") or [] for side in (first, second))
    names = [", ".join(gpu["name"] for gpu in each) for each in (one, other)]
    if names[0] != names[1]:
        asked = usage.devices
        if (not one or not other) and usage.gpu:
            lacking = first if not one else second
            yield Row(
                FAILS + 5,
                "gpus",
                names[0],
                names[1],
                f"the code asks for CUDA, {lacking.name} has no GPU",
                (str(usage.gpu),),
            )
        elif asked and min(len(one), len(other)) < asked[0] <= max(len(one), len(other)):
            yield Row(FAILS + 5, "gpus", names[0], names[1], f"the code asks for {asked[0]} devices", (str(asked[1]),))
        else:
            yield Row(SLOWS + 5, "gpus", names[0], names[1], "other kernels, other speed, other rounding")
    sizes = [min((gpu["memory_mib"] for gpu in each), default=0) for each in (one, other)]
    if need is None and all(sizes) and sizes[0] != sizes[1]:
        why = f"{min(sizes)} MiB may be too little: `lightlint forecast` and --forecast say"
        yield Row(CHANGES + 5, "gpu memory", f"{sizes[0]} MiB", f"{sizes[1]} MiB", why)
    capability = [(side.machine.get("torch") or {}).get("capability") for side in (first, second)]
    if usage.bf16 and any(each and each[0] < 8 for each in capability) and capability[0] != capability[1]:
        shown = [".".join(map(str, each)) if each else "" for each in capability]
        yield Row(FAILS, "compute capability", shown[0], shown[1], "bfloat16 is emulated below 8.0", (str(usage.bf16),))
    drivers = [one[0]["driver"] if one else "", other[0]["driver"] if other else ""]
    if all(drivers) and drivers[0] != drivers[1]:
        yield Row(DIFFERS, "driver", drivers[0], drivers[1])


def _resources(first: Side, second: Side, usage: Usage) -> Iterator[Row]:
    for key, label, floor in (
        ("memory_mib", "memory", 1.5),
        ("memory_limit_mib", "memory limit", 1.2),
        ("shared_memory_mib", "shared memory", 1.5),
    ):
        one, other = first.machine.get(key), second.machine.get(key)
        if one == other or (one and other and max(one, other) < floor * min(one, other)):
            continue
        shared = key == "shared_memory_mib" and min(one or 0, other or 0) < 1024 and usage.workers is not None
        why = "loader workers hand batches over in shared memory: a bus error where it is full" if shared else ""
        yield Row(FAILS - 5 if shared else SLOWS - 10, label, _mib(one), _mib(other), why)
    one, other = (side.machine.get("usable_cores") or 0 for side in (first, second))
    if one != other:
        asked = usage.workers
        short = asked is not None and min(one, other) < asked[0]
        why = f"the code asks for {asked[0]} loader workers" if asked and short else ""
        places = (str(asked[1]),) if asked and short else ()
        yield Row(SLOWS if short else DIFFERS - 2, "usable cores", str(one), str(other), why, places)
    one, other = (side.machine.get("start_method") for side in (first, second))
    if one != other:
        why = "with spawn, what workers are given is pickled and the script runs again in each"
        yield Row(CHANGES + 5 if usage.workers else DIFFERS, "start method", str(one), str(other), why)


def _mib(value: int | None) -> str:
    return f"{value} MiB" if value is not None else ""


def _settings_of(first: Side, second: Side) -> Iterator[Row]:
    for key, weight, why in _MACHINE:
        one, other = first.machine.get(key), second.machine.get(key)
        if one != other:
            yield Row(weight, key, str(one or ""), str(other or ""), why)
    builds = [side.machine.get("torch") or {} for side in (first, second)]
    for side, build in ((first, builds[0]), (second, builds[1])):
        if "error" in build:
            yield Row(
                BREAKS + 1, "torch", _error(builds[0]), _error(builds[1]), f"`import torch` fails with {side.name}"
            )
    for key in (*_FLAGS, *_BUILD):
        one, other = builds[0].get(key), builds[1].get(key)
        if one != other and all(builds) and not any("error" in build for build in builds):
            weight, why = (CHANGES - 10, "results differ") if key in _FLAGS else (DIFFERS + 5, "")
            yield Row(weight, f"torch {key}", str(one), str(other), why)
    variables = [side.machine.get("variables") or {} for side in (first, second)]
    for name in sorted(variables[0].keys() | variables[1].keys()):
        one, other = variables[0].get(name, ""), variables[1].get(name, "")
        if one != other:
            yield Row(SLOWS - 5 if name == "CUDA_VISIBLE_DEVICES" else DIFFERS - 1, name, one, other)


def _error(build: object) -> str:
    return str(build.get("error", build.get("version", ""))) if isinstance(build, dict) else ""
