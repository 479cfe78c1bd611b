"""Two runs with one seed, compared: the first step and the first tensor that differ, and the operations that may do it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lightlint.confirm.records import Event, Process, Run


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two runs part: `what` is a tensor's name, or the batch that was drawn."""

    rank: int
    step: int
    what: str


@dataclass(frozen=True, slots=True)
class Determinism:
    """What the comparison of two seeded runs gave.

    Attributes:
        compared: moments at which both runs could be compared, over all ranks.
        difference: the first one, None where there is none.
        operations: the operations that torch says are not deterministic, each with the place it was called from.
        problem: why the runs could not be compared, empty where they were.
    """

    compared: int = 0
    difference: Difference | None = None
    operations: tuple[str, ...] = ()
    problem: str = ""

    @property
    def sentence(self) -> str:
        """The result in words."""
        if self.problem:
            return f"not compared: {self.problem}"
        if self.difference is None:
            return f"two runs with one seed agree bit for bit, {self.compared} times compared"
        found = self.difference
        return f"two runs with one seed differ first at step {found.step} on rank {found.rank}, in {found.what}"


def compare(first: Run, second: Run, deterministic: Run | None = None) -> Determinism:
    """Compare two seeded runs; `deterministic` is the one in which torch names operations."""
    operations = tuple(dict.fromkeys(_operations(deterministic))) if deterministic else ()
    ranks = sorted(first.ranks.keys() & second.ranks.keys())
    pairs = {rank: _moments(first.ranks[rank], second.ranks[rank]) for rank in ranks}
    compared = sum(map(len, pairs.values()))
    if not compared:
        return Determinism(operations=operations, problem=_problem(first, second))
    differences = [
        Difference(rank, one.step, what)
        for rank, moments in pairs.items()
        for one, two in moments
        if (what := _differs(one, two))
    ]
    return Determinism(compared, min(differences, key=lambda each: (each.step, each.rank), default=None), operations)


def _moments(one: Process, two: Process) -> list[tuple[Event, Event]]:
    """The batches and the parameters of two processes, moment by moment."""
    kinds = "batch", "parameters"
    return [
        (left, right)
        for left, right in zip(one.of(*kinds), two.of(*kinds), strict=False)
        if _moment(left) == _moment(right)
    ]


def _moment(event: Event) -> tuple[object, ...]:
    return event.kind, event.step, event.get("when"), event.get("number")


def _differs(one: Event, two: Event) -> str:
    """The first thing that is not the same, empty where all is."""
    if one.kind == "batch":
        return f"batch {one['number']}, as drawn from the loader" if one["digest"] != two["digest"] else ""
    tensors = one["tensors"]
    return next((f"`{name}`" for name, crc in tensors.items() if two["tensors"].get(name, crc) != crc), "")


def _operations(run: Run) -> Iterator[str]:
    for _, event in run.each("nondeterministic"):
        yield f"{event['operation']} ({event['file']}:{event['line']})"


def _problem(first: Run, second: Run) -> str:
    for run in (first, second):
        if not run.started:
            return "the command wrote no record"
        if run.ended not in {"finished", "cut"}:
            return f"a run {run.ended}"
    return "no batch was drawn and no optimizer stepped"
