"""The records of a run, read back: one file of JSON lines per process, each line an event.

Every event has `kind`, `time` (seconds of the host's monotonic clock) and `step` (optimizer steps the process had taken).

| kind | written by | further fields |
|---|---|---|
| start | boot | schema, host, pid, parent, forked, spawned, rank, world, argv, python |
| joining | boot | places: a process group is about to be made |
| rank | boot | rank, world, backend |
| package | boot | name, version |
| end | boot | reason: finished, cut, exit, exception; steps, batches |
| exception | boot | type, message, frames: [file, line, function] from the user's outermost to the innermost, places: the user's own, innermost first, causes: the errors behind it |
| exit | boot | name: `sys.exit`, `os._exit` or `exit`, code, places |
| meter-error | any | meter, message |
| write | files | path, what: file or directory, mode, places, locked: whether a lock of threads was held |
| written | files | path, lines, distinct: what a file that was written holds at the end |
| cost | any | meter, seconds |
| step | steps | optimizer, n (this optimizer's steps), rates, backwards, batches, closure (how often its closure ran, None without), automatic (inside Lightning) |
| line | lines | finding, hit, seconds, changes: {snapshot: {name: value}} from before to after, then: the row behind them (None: the function ended), raised |
| memory | usage | rss, allocated: bytes in use after an optimizer step, None where not known |
| call | lines | finding, function, number: the finding's own function was called |
| trainer-start, trainer-end | boot | stage, rank, world, device: a Lightning loop begins, ends |
| metrics | trainer | when (the hook), values: {key: value} of `trainer.callback_metrics`, epoch |
| callback | trainer | type, monitor, mode, best: what a checkpoint or early stopping callback keeps at the end |
| hyperparameters | trainer | modules: keys of `hparams` that hold a module |
| metric-counts | trainer | epoch, counts: {name: updates} of the metrics as a training epoch begins |
| loop | trainer | epoch, batches, global_step at the end of a fit |
| hook | trainer | name: Lightning came to this point of its loop, once for each name |
| parameters | parameters | when: before, after (an update) or backward (no optimizer has stepped yet), optimizer, tensors: {name: checksum}, versions: {name: count} |
| optimizer | gradients | optimizer, type, parameters: their numbers, groups: parameters in each, findings it is made on |
| backward | gradients | n, batches, findings, through (lightning, fabric or empty), leaf, root, mean, value; before, after: {optimizer: [parameters with a gradient, norm]} |
| zero-grad | gradients | by, optimizers it clears whole, held: gradients that were not zero, total, findings, backwards |
| clip | gradients | function, limit, parameters, held, before, after (norms), optimizers, scaler: {scale, stage}, findings, backwards |
| update | gradients | right before one: optimizer, held, none, total, norm, state: parameters that have one, scaler, findings, backwards |
| updated | gradients | right after one: optimizer, state |
| grad | gradients | `torch.autograd.grad`: count, with_graph, findings |
| precision | gradients | precision, scaler, strategy of a Trainer or a Fabric |
| scheduler | rates | scheduler, type, optimizer, length, mode, rates it starts with, findings |
| scheduler-step | rates | scheduler, type, rates: [before, after], bad: its bad epochs before and after, given, by_trainer, batches, findings |
| schedulers | rates | held: what the Trainer holds of each, automatic, batches of an epoch, in_run: batches that it plans for the whole run, None where that is not known |
| epoch | rates | number: an epoch of Lightning's begins |
| forward | modes | module, type, training, acting: [names in training mode, in eval mode] of dropout and batch norm, grad, trainable, stage (Lightning's), backwards, findings |
| frozen | modes | when (hook, or end), off: parameters without gradients, count, total |
| optimized | modes | when, held: parameters that Lightning's optimizers have, missing: names of trained ones that they have not |
| loss-call | functions | function, low, high, rows, log_rows (largest distance of a row's sum, of its logarithms', from 1), value, reduction, size, findings |
| softmax | functions | function, dimensions, picked, findings: a call without `dim` |
| compare | functions | shapes: [left, right, result], findings |
| dropout | functions | function, p, training (as given), owner (the mode of the module that calls it), changed: share of values, findings |
| module | modules | type, findings, modules: {attribute: {held, missing, parameters, trained}} of plain containers, tensors: {attribute: {lost, follows}}, parameters |
| kept | modules | name, changed: whether a state that shares memory with weights changed with the next step |
| loader | loaders | loader, length, batch_size, workers, sampler, shuffle, dataset, dataset_length, places: where it was made |
| pass | loaders | loader, number, indices (a sample of up to 20,000, None for iterable data), places: where it began |
| batch | loaders | loader, pass, number, wait and told (seconds: drawing it, recording the one before), digest |
| worker | rng | when: begin or end of a loader's worker, worker, group: its pass, initialised, generators and states: {name: checksum}, source: where its data set's class stands |
| loss | losses | number, value, graph (checksum of the operations behind it), nodes, rise: {device: MiB since the pass before}, device, anomaly |
| collective | collectives | number, name, shape, whole: of all ranks, items and distinct tensors of a list, places |
| exchange | collectives | when: forward or backward, model, wanted: whether DDP is to exchange gradients, grad, buffers: whether it broadcasts some, regroups: whether its second forward pass agrees on an order of gradients, whole: of all ranks, joined: inside `join`, inputs: a checksum of what a forward pass is given on the CPU, None elsewhere, places |
| attributes | holders | module, data_module: names of their attributes when training starts |
| warning | warnings | category, message, places |
| saved | checkpoints | path, error: why `weights_only=True` refuses it, places |
| loaded | checkpoints | missing, unexpected: keys that `load_state_dict` passed over, places |
| timed-call | times | number, skipped, seconds, since (seconds from the call before), behind_skipped, peak: {device: MiB}, places |
| injected | inject | finding, row, type: an error was raised there |
| nondeterministic | seed | operation, file, line: torch says that it is not deterministic |
| pass-end | loaders | loader, number, batches, cut |
| pass-left | loaders | loader, number, batches, steps, places: the program left the loop over the loader there |
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

SCHEMA = 1
SUFFIX = ".jsonl"
RUN_FILE = "run.json"  # what the launcher knows of the run
INCOMPLETE = ".incomplete"  # suffix of the empty file of a process that could not write all of its records


class Event(dict[str, Any]):
    """One line of a process's records."""

    @property
    def kind(self) -> str:
        return str(self["kind"])

    @property
    def step(self) -> int:
        return int(self.get("step", 0))

    @property
    def time(self) -> float:
        return float(self.get("time", 0.0))


@dataclass(frozen=True)
class Process:
    """What one process recorded, in order."""

    events: tuple[Event, ...]

    @cached_property
    def start(self) -> Event:
        return next(iter(self.of("start")), Event(kind="start"))

    @property
    def key(self) -> tuple[str, int]:
        """Host and process number."""
        return str(self.start.get("host", "")), int(self.start.get("pid", 0))

    @property
    def name(self) -> str:
        """The name of its records."""
        return "-".join(map(str, self.key))

    @cached_property
    def rank(self) -> int | None:
        """The rank it said it has: from the process group, else from its environment; None for workers and agents."""
        joined = list(self.of("rank"))
        if joined:
            return int(joined[-1]["rank"])
        rank = self.start.get("rank")
        return int(rank) if rank is not None and self.trains else None

    @property
    def trains(self) -> bool:
        """Whether it is a process that could train: neither a data loader's worker nor a launcher's agent."""
        return not self.start.get("forked") and not self.start.get("spawned") and not self.start.get("agent")

    @cached_property
    def world(self) -> int:
        joined = list(self.of("rank"))
        return int(joined[-1]["world"]) if joined else 1

    @cached_property
    def steps(self) -> int:
        """Optimizer steps taken, those of the busiest optimizer."""
        return max((event["n"] for event in self.of("step")), default=0)

    @cached_property
    def batches(self) -> Mapping[int, int]:
        """Batches drawn, by loader."""
        return Counter(event["loader"] for event in self.of("batch"))

    @cached_property
    def busiest_loader(self) -> int | None:
        """The loader that most batches came from: the training loader."""
        return max(self.batches, key=lambda loader: self.batches[loader], default=None)

    @cached_property
    def _by_kind(self) -> Mapping[str, list[Event]]:
        kinds: dict[str, list[Event]] = {}
        for event in self.events:
            kinds.setdefault(event.kind, []).append(event)
        return kinds

    def of(self, *kinds: str) -> Sequence[Event]:
        """The events of these kinds, in order."""
        if len(kinds) == 1:
            return self._by_kind.get(kinds[0], [])
        return [event for event in self.events if event.kind in kinds]


@dataclass(frozen=True)
class Run:
    """The processes of one run and how it ended.

    Attributes:
        ended: finished, cut, raised, stalled, timed out, interrupted, killed or failed to start.
        status: exit status of the command, None where it was ended from outside.
        stacks: for each rank (or process) that stalled, the stack of its threads.
        standing: the user's frames of these stacks, (file, row, function) innermost first, by the name of the process.
        gone: by the name of the process, when it was noticed that it is gone, and the status that its parent got.
        written: files the run wrote, below the project.
        incomplete: why records are missing, empty where none are.
        notes: what else is to be told of the run.
    """

    processes: tuple[Process, ...]
    ended: str = "finished"
    status: int | None = 0
    stacks: Mapping[str, str] | None = None
    standing: Mapping[str, Sequence[Sequence[Any]]] = field(default_factory=dict)
    gone: Mapping[str, tuple[float, int | None]] = field(default_factory=dict)
    written: tuple[str, ...] = ()
    incomplete: str = ""
    notes: tuple[str, ...] = ()

    @cached_property
    def ranks(self) -> Mapping[int, Process]:
        """The training processes by rank; a run without process group has rank 0 only."""
        ranked = {process.rank: process for process in self.processes if process.rank is not None}
        if ranked:
            return dict(sorted(ranked.items()))
        alone = [process for process in self.processes if process.trains]
        busiest = max(alone, key=lambda process: len(process.events), default=None)
        return {0: busiest} if busiest else {}

    @property
    def world(self) -> int:
        return max((process.world for process in self.ranks.values()), default=1)

    @property
    def steps(self) -> int:
        """Optimizer steps of the rank that took most."""
        return max((process.steps for process in self.ranks.values()), default=0)

    @property
    def scope(self) -> str:
        """The scope that every verdict of this run has."""
        ranks = f"{self.world} ranks" if self.world > 1 else "1 process"
        return f"{ranks}, {self.steps} step{'' if self.steps == 1 else 's'}"

    def each(self, *kinds: str) -> Iterator[tuple[int, Event]]:
        """The events of these kinds with the rank of their process."""
        for rank, process in self.ranks.items():
            for event in process.of(*kinds):
                yield rank, event

    @property
    def is_whole(self) -> bool:
        """Whether it came to its end, or to where it was to be cut."""
        return self.ended in {"finished", "cut"}

    @property
    def started(self) -> bool:
        """Whether any process wrote a record: `python -I` and other interpreters do not."""
        return bool(self.processes)


def read(*directories: str | Path) -> Run:
    """The run whose records lie in these directories: one for each host that took part.

    A last line that was cut off (a killed process, a full disk) is left out.
    """
    processes: dict[tuple[str, int], Process] = {}
    about: dict[str, Any] = {}
    for directory in map(Path, directories):
        for path in sorted(directory.glob(f"*{SUFFIX}")):
            process = Process(tuple(_events(path)))
            if process.events:
                processes[process.key] = process
        if (directory / RUN_FILE).exists():
            about = {**json.loads((directory / RUN_FILE).read_text(encoding="utf-8")), **_worse(about)}
    return Run(
        tuple(processes.values()),
        about.get("ended", "finished"),
        about.get("status", 0),
        about.get("stacks"),
        about.get("standing", {}),
        about.get("gone", {}),
        tuple(about.get("written", ())),
        about.get("incomplete", ""),
        tuple(about.get("notes", ())),
    )


def _worse(about: Mapping[str, Any]) -> Mapping[str, Any]:
    """What an earlier host said, if it did not end well."""
    return about if about.get("ended", "finished") not in {"finished", "cut"} else {}


def _events(path: Path) -> Iterator[Event]:
    with path.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            try:
                yield Event(json.loads(line))
            except (ValueError, TypeError):
                continue
