"""The whole of `lightlint confirm`: lint what a command runs, run it as often as the findings need, judge."""

from __future__ import annotations

import dataclasses
import os
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lightlint.config.settings import Settings
from lightlint.confirm import claims, determinism, kept, records
from lightlint.confirm import plan as plans
from lightlint.confirm.claims import Suspicion
from lightlint.confirm.judge import judge, unnamed
from lightlint.confirm.launch import injection, notebook, ranks
from lightlint.confirm.launch.start import Ending, Start, run
from lightlint.confirm.launch.system import sandbox
from lightlint.confirm.launch.system.home import Home
from lightlint.confirm.launch.target import Command, CommandError
from lightlint.confirm.observed import observe
from lightlint.confirm.plan import Limits, Plan
from lightlint.confirm.probes import all_probes
from lightlint.confirm.records import Run
from lightlint.confirm.reports.report import Judged, Report
from lightlint.facts.project.roots import root_of

_TIMED_BATCHES = 12  # of each pass of the run that measures time: the first few warm up
_RUNS, _TIMED, _INJECTED, _SEEDED = "runs", "timed", "injected-", "seeded-"
_SEED = 20_240_229
_SCHEDULED_ELSEWHERE = {"srun", "mpirun"}  # their ranks do not inherit what the launcher sees


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says of the runs; seconds where it says times."""

    devices: int | None = None
    epochs: int = 2
    batches: int = 4
    timeout: float = 600
    stall: float = 30
    sandbox: bool = True
    timing: bool = True
    inject: bool = False
    determinism: bool = False
    findings: Path | None = None
    keep: Path | None = None


@dataclass(frozen=True)
class _Rehearsal:
    """A command, ready to be run several times in one home."""

    command: Command
    options: Options
    home: Home
    found: tuple[Suspicion, ...]
    variables: dict[str, str] = field(default_factory=dict)
    path: tuple[str, ...] = ()
    folder: Path = field(default_factory=Path.cwd)
    project: Path = field(default_factory=Path.cwd)
    notes: tuple[str, ...] = ()
    falls_back: bool = False

    def run(self, name: str = "", **changes: Any) -> tuple[Run, Ending]:
        """One run in folders of its own, its records kept under `name`."""
        folder = self.home.folder / _RUNS / name
        folder.mkdir(parents=True, exist_ok=True)
        scratch = self.home.new("scratch", name or "first")
        plan = replace(self._plan(folder, scratch), **changes)
        start = Start(
            self.command.words,
            self.folder,
            self.variables,
            self.path,
            self._sandbox(scratch),
            self.options.timeout,
            self.options.stall,
            name.partition("-")[0],
        )
        ending = run(start, plans.write(plan), scratch, self.home)
        seen = records.read(folder)
        ending = replace(ending, written=(*ending.written, *self._written_outside(seen, start.sandbox)))
        notes = (*self.notes, *_notes(seen, ending, self.options.devices))
        ending.write(folder, notes)
        return records.read(folder), ending

    def _plan(self, folder: Path, scratch: Path) -> Plan:
        return Plan(
            str(folder),
            str(scratch),
            claims.targets(self.found),
            tuple(sorted({*claims.meters(self.found), "files", "collectives"})),
            Limits(self.options.epochs, self.options.batches),
            self.options.devices,
            self.falls_back,
            notebook=self.command.is_notebook or bool(self.path),
        )

    def _sandbox(self, scratch: Path) -> sandbox.Sandbox:
        if not self.options.sandbox or self.command.launcher in _SCHEDULED_ELSEWHERE:
            return sandbox.NONE
        return sandbox.prepare(self.project, self.folder, self.home.folder, scratch / "overlay")

    def _written_outside(self, seen: Run, covered: sandbox.Sandbox) -> list[str]:
        """Files that the run opened to be written where no overlay kept them off."""
        inside = [self.home.folder, *(covering for covering, _ in covered.overlays)]
        paths = {
            Path(event["path"])
            for each in seen.processes
            for event in each.of("write")
            if event["what"] == "file" and Path(event["path"]).exists()
        }
        outside = (path for path in sorted(paths) if not any(path.is_relative_to(each) for each in inside))
        return [
            str(path.relative_to(self.project)) if path.is_relative_to(self.project) else str(path) for path in outside
        ]


def confirm(command: Command, options: Options, settings: Settings, home: Home, line: str) -> tuple[Report, int]:
    """Run a command and judge its findings.

    Args:
        line: the line that does it again.

    Returns:
        the report, and the number of the signal that ended it early or 0.

    Raises:
        CommandError: the command cannot be run.
        OSError: there is no room for what the run needs.
    """
    rehearsal = _prepared(command, options, settings, home)
    folder, text = home.folder / _RUNS, shlex.join(command.words)
    seen, ending = rehearsal.run()
    kept.save(rehearsal.found, text, folder)
    further = _further(rehearsal.found, options, seen) if seen.started else {}
    for name, changes in further.items():
        if not ending.number:
            _, ending = rehearsal.run(name, **changes)
    if options.keep:
        _keep(folder, options.keep)
    return _judged(text, line, rehearsal.found, (folder,)), ending.number


def _further(found: Sequence[Suspicion], options: Options, seen: Run) -> dict[str, dict[str, Any]]:
    """The runs behind the first one that saw `seen`: by name, what their plans have instead."""
    probes = [(each.claim, all_probes()[each.claim.probe]) for each in found if each.claim.probe in all_probes()]
    runs: dict[str, dict[str, Any]] = {}
    timed = {meter for _, probe in probes if probe.timed for meter in ("loaders", *probe.meters)}
    if timed and options.timing and seen.is_whole:
        limits = Limits(options.epochs, max(options.batches, _TIMED_BATCHES))
        runs[_TIMED] = {"meters": tuple(sorted(timed)), "limits": limits}
    for claim, probe in probes:
        target = injection.place(claim) if probe.inject and options.inject else None
        if target is not None:
            meters = {"loaders", "inject", *probe.meters} - {"lines"}
            where = {"inject": claim.index, "inject_rank": min(1, seen.world - 1), "targets": (target,)}
            runs[f"{_INJECTED}{claim.index}"] = {"meters": tuple(sorted(meters)), **where}
    for number in (1, 2, 3) if options.determinism and seen.is_whole else ():
        seed = {"seed": _SEED, "deterministic": number == 3, "targets": ()}
        runs[f"{_SEEDED}{number}"] = {"meters": ("loaders", "parameters"), **seed}
    return {name: {"trace": False, **changes} for name, changes in runs.items()}


def again(folders: Sequence[Path], line: str) -> Report:
    """Judge kept records anew, those of several hosts as one run.

    Raises:
        CommandError: a folder holds no kept run.
    """
    command, found = kept.load(folders[0])
    for other in folders[1:]:
        kept.load(other)
    return _judged(command, line, found, folders)


def _prepared(command: Command, options: Options, settings: Settings, home: Home) -> _Rehearsal:
    script = command.script.resolve()
    project = root_of(script.parent)
    ran: Path | None = None
    variables: dict[str, str] = {}
    path: tuple[str, ...] = ()
    folder = Path.cwd()
    if command.is_notebook:
        ran = notebook.as_script(script, home.new("notebook"))
        words = tuple(str(ran) if at == command.at else word for at, word in enumerate(command.words))
        command = replace(command, words=words)
        variables = {"PYTHONSAFEPATH": "1", "MPLBACKEND": os.environ.get("MPLBACKEND", "Agg")}
        path, folder = (str(script.parent),), script.parent
    if options.findings is None:
        found = claims.suspicions(script, settings, ran)
    else:
        found = claims.claimed(kept.read_findings(options.findings), script, ran)
    notes: tuple[str, ...] = ()
    falls_back = False
    if options.devices is not None:
        used = ranks.uses(claims.files_of(script))
        falls_back = used.falls_back
        if used.spawns and not command.launcher:
            notes = (
                "the program starts its ranks itself, by torch.multiprocessing: --devices does not change their number",
            )
        command = ranks.rehearsed(command, options.devices, used)
    return _Rehearsal(command, options, home, found, variables, path, folder, project, notes, falls_back)


def _notes(seen: Run, ending: Ending, devices: int | None) -> list[str]:
    """What the reader of a report must know to believe it."""
    notes = []
    if not seen.started and ending.ended in {"finished", "raised", "failed to start"}:
        notes.append("the command wrote no record: another interpreter, or `python -I`, `-E` or `-S`")
    if ending.incomplete:
        notes.append(ending.incomplete)
    whole = ending.ended in {"finished", "cut"}
    if whole and devices is not None and devices > 1 and len(seen.ranks) > 1 and seen.world == 1:
        notes.append(f"the script makes no process group: its {len(seen.ranks)} ranks trained alone")
    return notes


def _judged(command: str, line: str, found: Sequence[Suspicion], folders: Sequence[Path]) -> Report:
    """The verdicts by all runs whose records lie below the folders."""
    names = {path.name for folder in folders for path in folder.iterdir() if path.is_dir()}
    runs = {name: records.read(*(folder / name for folder in folders if (folder / name).is_dir())) for name in names}
    seen = records.read(*folders)
    injected = {int(name.removeprefix(_INJECTED)): each for name, each in runs.items() if name.startswith(_INJECTED)}
    observed, about = observe(seen), [each.claim for each in found]
    verdicts = judge(about, seen, timed=runs.get(_TIMED), injected=injected, observed=observed)
    judged = tuple(map(Judged, (each.finding for each in found), verdicts))
    seeded = [runs.get(f"{_SEEDED}{number}") for number in (1, 2, 3)]
    report = Report(command, line, seen, judged, unnamed(observed, about, verdicts))
    if seeded[0] is None or seeded[1] is None:
        return report
    return dataclasses.replace(report, determinism=determinism.compare(seeded[0], seeded[1], seeded[2]))


def _keep(folder: Path, keep: Path) -> None:
    try:
        shutil.copytree(folder, keep, dirs_exist_ok=True)
    except (OSError, shutil.Error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "some files could not be copied"
        raise CommandError(f"--keep {keep}: {reason}") from error
