"""What a run is to watch: the findings' lines, the meters they need and the limits. Written by the launcher, read by every process."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

VARIABLE = "LIGHTLINT_CONFIRM"  # environment variable: the path of the plan
FILE = "plan.json"


@dataclass(frozen=True, slots=True)
class Target:
    """The lines of a finding, as the run sees them: rows `first` to `last` of `file` (an absolute path).

    `names` are those its message has in backticks: a function of such a name that begins there is counted when called.
    """

    finding: int
    file: str
    first: int
    last: int
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Limits:
    """Where a run is cut: passes over the training data, and optimizer steps (or, without steps, batches) in each."""

    epochs: int = 2
    batches: int = 4


NEVER = Limits(10**9, 10**9)  # a program that its author watches runs to its own end


@dataclass(frozen=True, slots=True)
class Plan:
    """One run.

    Attributes:
        records: directory that every process writes its records into.
        scratch: directory for what the user's code would write elsewhere (checkpoints, loggers).
        targets: the findings' lines.
        meters: modules to switch on: names in `lightlint.confirm.meters`, or whole dotted names.
        limits: where the run is cut.
        devices: number of ranks to rehearse with, or None to leave the script's own.
        falls_back: whether the program runs without CUDA, which it asks for.
        inject: index of the finding whose `try` is made to fail on rank `inject_rank`, or None.
        seed: seed to set before the script starts, or None.
        deterministic: whether torch is to name the operations that are not deterministic.
        trace: whether lines may be traced; a run that measures time does not.
        notebook: whether the script is made of a notebook's cells.
    """

    records: str
    scratch: str
    targets: tuple[Target, ...] = ()
    meters: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    devices: int | None = None
    falls_back: bool = False
    inject: int | None = None
    inject_rank: int = 0
    seed: int | None = None
    deterministic: bool = False
    trace: bool = True
    notebook: bool = False


def write(plan: Plan) -> Path:
    """Write a plan beside its records and return its path."""
    path = Path(plan.records) / FILE
    path.write_text(json.dumps(asdict(plan)), encoding="utf-8")
    return path


def read(path: str | Path) -> Plan:
    """The plan that `write` wrote.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no plan.
    """
    raw = json.loads(Path(path).read_text(encoding="utf-8"))
    return Plan(
        **{
            **raw,
            "targets": _targets(raw["targets"]),
            "meters": tuple(raw["meters"]),
            "limits": Limits(**raw["limits"]),
        }
    )


def _targets(rows: Sequence[dict[str, object]]) -> tuple[Target, ...]:
    return tuple(Target(**{**row, "names": tuple(row["names"])}) for row in rows)  # type: ignore[arg-type]
