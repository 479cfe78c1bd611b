"""Which processes wrote which files, and what they sent to their workers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from lightlint.confirm.probes.probe import Probe, confirmed, hits, not_observable, refuted, still_open, through
from lightlint.confirm.records import Event, Run
from lightlint.confirm.verdict import Claim, Number, Verdict

Writers = Mapping[str, Mapping[int, list[Event]]]  # path to rank to events


def writers_per_path(claim: Claim, run: Run) -> Verdict:
    """How many ranks wrote each path from the finding's lines, or while a lock of its file was held."""
    if "Lock" in claim.message:
        return _under_lock(claim, run)
    written = _writers(run, lambda event: through(event["places"], claim))
    if written:
        return _judged(run, written, "from this line")
    if hits(claim, run):
        return not_observable(run, "no file that the line wrote was seen: it may be written by C code")
    return not_observable(run, "nothing was written from this line")


def _under_lock(claim: Claim, run: Run) -> Verdict:
    written = _writers(run, lambda event: event["locked"] and any(file == claim.file for file, _, _ in event["places"]))
    if not written:
        return not_observable(run, "no file was written while the lock was held")
    return _judged(run, written, "under the lock")


def _writers(run: Run, belongs: object) -> Writers:
    found: dict[str, dict[int, list[Event]]] = {}
    for rank, event in run.each("write"):
        if belongs(event):  # type: ignore[operator]
            found.setdefault(event["path"], {}).setdefault(rank, []).append(event)
    return found


def _judged(run: Run, written: Writers, how: str) -> Verdict:
    shared = {path: by_rank for path, by_rank in written.items() if len(by_rank) > 1}
    numbers = [
        Number(f"writes of {Path(path).name}", len(events), rank=rank)
        for path, by_rank in (shared or written).items()
        for rank, events in by_rank.items()
    ]
    if not shared and run.ended not in {"finished", "cut"}:
        return still_open(run, f"each path had one writer {how} until the run was {run.ended}", numbers)
    if not shared:
        names = ", ".join(sorted(Path(path).name for path in written))
        return refuted(run, f"each path had one writer {how}: {names}", numbers)
    path, by_rank = next(iter(shared.items()))
    kind = next(iter(by_rank.values()))[0]["what"]
    repeated = _repeated(run, shared)
    if repeated:
        numbers.append(Number(f"repeated lines in {Path(path).name}", repeated))
    return confirmed(run, f"ranks {_listed(by_rank)} wrote the same {kind} {how}: {Path(path).name}", numbers)


def _repeated(run: Run, paths: Iterable[str]) -> int:
    """Lines that a shared text file holds more than once, by the process that saw most of it."""
    fullest: dict[str, Event] = {}
    for process in run.processes:
        for event in process.of("written"):
            known = fullest.get(event["path"])
            if event["path"] in paths and (known is None or event["lines"] >= known["lines"]):
                fullest[event["path"]] = event
    return sum(event["lines"] - event["distinct"] for event in fullest.values())


def _listed(ranks: Iterable[int]) -> str:
    numbers = [str(rank) for rank in ranks]
    return " and ".join((", ".join(numbers[:-1]), numbers[-1])) if len(numbers) > 1 else numbers[0]


PROBES = {"writers-per-path": Probe(writers_per_path, meters=("files",), ranks=2, needs_lines=False)}
