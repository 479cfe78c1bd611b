"""What a command line runs: its interpreter, launcher and script, so that the script can be linted and rehearsed."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_LAUNCHERS = {
    "torchrun",
    "torch.distributed.run",
    "torch.distributed.launch",
    "accelerate",
    "accelerate.commands.launch",
    "srun",
    "mpirun",
    "deepspeed",
}


class CommandError(Exception):
    """A command that cannot be run or linted; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command line taken apart.

    Attributes:
        words: the whole line.
        at: index of the word that names the script or module.
        script: the file it runs.
        is_module: whether it is named as a module (`-m package.module`).
        launcher: the program that starts the ranks, empty where the script is started directly.
    """

    words: tuple[str, ...]
    at: int
    script: Path
    is_module: bool = False
    launcher: str = ""

    @property
    def is_notebook(self) -> bool:
        return self.script.suffix == ".ipynb"


def parse(words: Sequence[str]) -> Command:
    """Take a command line apart.

    Raises:
        CommandError: no script can be made out in it.
    """
    if not words:
        raise CommandError("no command given: write it behind `--`, as in `lightlint confirm -- python train.py`")
    launcher = next((name for word in words[:4] if (name := Path(word).name) in _LAUNCHERS), "")
    for at, word in enumerate(words):
        if word.endswith((".py", ".ipynb")) and Path(word).is_file():
            if at == 0:
                return Command((sys.executable, *words), 1, Path(word), launcher=launcher)
            return Command(tuple(words), at, Path(word), launcher=launcher)
        if word == "-m" and at + 1 < len(words) and words[at + 1] not in _LAUNCHERS:
            return Command(tuple(words), at + 1, _module_file(words[at + 1]), True, launcher)
    missing = next((word for word in words if word.endswith((".py", ".ipynb"))), None)
    if missing is not None:
        raise CommandError(f"{missing}: no such file")
    raise CommandError(f"no Python script found in `{' '.join(words)}`")


def _module_file(name: str) -> Path:
    relative = Path(*name.split("."))
    for folder in (Path.cwd(), Path.cwd() / "src"):
        for candidate in (folder / relative.with_suffix(".py"), folder / relative / "__main__.py"):
            if candidate.is_file():
                return candidate
    spec = importlib.util.find_spec(name) if "." not in name else None
    if spec is not None and spec.origin:
        return Path(spec.origin)
    raise CommandError(f"-m {name}: no such module in this project")
