"""`--devices N`: the command line that starts a program on N ranks of this machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lightlint.confirm.launch.target import Command, CommandError
from lightlint.facts.project.project import Project
from lightlint.facts.project.roots import root_of

_AGENT = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node")
_STARTERS = ("torch.multiprocessing.spawn", "torch.multiprocessing.start_processes")
_LIGHTNING = ("lightning.Trainer", "lightning.fabric.Fabric", "lightning.cli.LightningCLI")


@dataclass(frozen=True, slots=True)
class _Launcher:
    """How a launcher is told to start so many processes on this machine alone, and what told it of others."""

    count: str
    fixed: Mapping[str, str]
    dropped: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


_TORCHRUN = _Launcher(
    "--nproc-per-node",
    {"--nnodes": "1"},
    ("--node-rank", "--master-addr", "--master-port", "--rdzv-backend", "--rdzv-endpoint", "--rdzv-id", "--rdzv-conf"),
    ("--standalone",),
)
_ACCELERATE = _Launcher("--num_processes", {"--num_machines": "1"}, ("--machine_rank", "--main_process_ip"))
_LAUNCHERS = {
    "torchrun": _TORCHRUN,
    "torch.distributed.run": _TORCHRUN,
    "torch.distributed.launch": _TORCHRUN,
    "accelerate": _ACCELERATE,
    "accelerate.commands.launch": _ACCELERATE,
    "deepspeed": _Launcher("--num_gpus", {"--num_nodes": "1"}, ("--hostfile", "--include", "--exclude")),
}


@dataclass(frozen=True, slots=True)
class Uses:
    """What the files that run call.

    Attributes:
        lightning: its ranks come from a Trainer or Fabric.
        spawns: they come from the program itself.
        falls_back: it asks whether there is CUDA, so it runs without.
    """

    lightning: bool
    spawns: bool
    falls_back: bool = False


def uses(files: Iterable[Path]) -> Uses:
    """What starts the ranks of a program, by the calls in its files."""
    files = tuple(files)
    project = Project(root_of(files[0].parent))
    summaries = [project.summary(path) for path in files]
    called = frozenset().union(*(summary.called for summary in summaries))
    imports = any(
        name.partition(".")[0] in {"lightning", "pytorch_lightning"} for each in summaries for name in each.imported
    )
    trainer = not called.isdisjoint(_LIGHTNING) or any(name.endswith(".LightningCLI") for name in called)
    grouped = "torch.distributed.init_process_group" in called
    return Uses(
        trainer or (imports and not grouped),
        not called.isdisjoint(_STARTERS),
        "torch.cuda.is_available" in called,
    )


def rehearsed(command: Command, devices: int, used: Uses) -> Command:
    """The command that runs on so many ranks; that of a Lightning script is the same, its Trainer is told instead.

    Raises:
        CommandError: the launcher's processes are counted elsewhere.
    """
    if command.launcher:
        launcher = _LAUNCHERS.get(command.launcher)
        if launcher is None:
            raise CommandError(f"--devices: give the number of ranks to {command.launcher} itself")
        return _counted(command, launcher, devices)
    if used.lightning or used.spawns or devices == 1:
        return command
    at = command.at - 1 if command.is_module else command.at
    agent = (*_AGENT, str(devices))
    return replace(
        command,
        words=(*command.words[:at], *agent, *command.words[at:]),
        at=command.at + len(agent),
        launcher=_AGENT[1],
    )


def _counted(command: Command, launcher: _Launcher, devices: int) -> Command:
    """The launcher's line with its counts replaced."""
    first = 1 + next(at for at, word in enumerate(command.words) if Path(word).name == command.launcher)
    if command.launcher == "accelerate":
        first += 1  # `launch`
    end = command.at - 1 if command.is_module else command.at
    told = ((launcher.count, str(devices)), *launcher.fixed.items())
    left = _without(command.words[first:end], (launcher.count, *launcher.fixed, *launcher.dropped), launcher.flags)
    counts = (*launcher.flags, *(part for pair in told for part in pair))
    words = (*command.words[:first], *counts, *left, *command.words[end:])
    return replace(command, words=words, at=command.at + len(words) - len(command.words))


def _without(words: Sequence[str], options: Iterable[str], flags: Iterable[str]) -> list[str]:
    """Launcher words without some options with their values and some flags, whichever way they are spelled."""
    unwanted = {_spelled(option) for option in options}
    unwanted_flags = {_spelled(flag) for flag in flags}
    left: list[str] = []
    skip = False
    for word in words:
        name, equals, _ = word.partition("=")
        if skip:
            skip = False
        elif _spelled(name) in unwanted:
            skip = not equals
        elif _spelled(name) not in unwanted_flags:
            left.append(word)
    return left


def _spelled(option: str) -> str:
    return option.replace("_", "-")
