"""Keeps the user's files as they are: the run sees its project through an overlay and writes into a folder of lightlint's.

Where the kernel or the place of the project does not allow one, the run writes as it would without lightlint.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lightlint.confirm.launch.system import enter

_PROBE = 10  # seconds that making an overlay may take
_MAY_MOUNT = 21  # CAP_SYS_ADMIN
_MOST_FILES = 100_000  # of a project, whose owners are looked at in under a second
_OWN_FILES = (".pyc", ".pyo")  # what Python itself writes beside the code


@dataclass(frozen=True, slots=True)
class Sandbox:
    """Folders with what a run writes into them instead: pairs of a folder and where its changes go."""

    overlays: tuple[tuple[Path, Path], ...] = ()

    def wrapped(self, words: Sequence[str], folder: Path) -> list[str]:
        """The command line that runs `words` inside, in a working directory as seen from there."""
        if not self.overlays:
            return list(words)
        pairs = [part for pair in self.overlays for part in map(str, pair)]
        return [sys.executable, "-I", "-S", enter.__file__, str(folder), str(len(self.overlays)), *pairs, *words]

    def written(self) -> tuple[str, ...]:
        """Files that the run wrote or removed, below their folder."""
        return tuple(sorted(name for _, changes in self.overlays for name in _files(changes / "upper")))


NONE = Sandbox()


def prepare(project: Path, working: Path, home: Path, scratch: Path) -> Sandbox:
    """A sandbox over a project and a working directory, tried with a program that does nothing; `NONE` where it fails."""
    folders = [folder for folder in dict.fromkeys((project, working)) if folder.is_dir()]
    outer = [folder for folder in folders if not any(other in folder.parents for other in folders)]
    if not sys.platform.startswith("linux") or not all(_may_cover(folder, home) for folder in outer):
        return NONE
    sandbox = Sandbox(tuple((folder, scratch / str(number)) for number, folder in enumerate(outer)))
    for _, changes in sandbox.overlays:
        for part in ("upper", "work"):
            (changes / part).mkdir(parents=True)
    nothing = shutil.which("true") or "/bin/true"
    try:
        tried = subprocess.run(
            sandbox.wrapped([nothing], working),
            timeout=_PROBE,
            capture_output=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return NONE
    return sandbox if tried.returncode == 0 else NONE


def _may_cover(folder: Path, home: Path) -> bool:
    """Not the system's or the user's root, not what the run writes into, and nothing that is mounted below."""
    user = Path.home()
    if folder in {Path("/"), user, home} or folder in user.parents or folder in home.parents:
        return False
    return not any(folder in mounted.parents for mounted in _mounts()) and (_may_mount() or _is_own(folder))


def _may_mount() -> bool:
    """Whether this process may mount without a namespace of its own for users: root outside containers."""
    try:
        text = Path("/proc/self/status").read_text(encoding="utf-8")
    except OSError:
        return False
    capabilities = next((line.split()[1] for line in text.splitlines() if line.startswith("CapEff:")), "0")
    return bool(int(capabilities, 16) >> _MAY_MOUNT & 1)


def _is_own(folder: Path) -> bool:
    """Whether all below belongs to this user and group: others have no number in a user's namespace, and their files
    cannot be changed there."""
    own = os.getuid(), os.getgid()
    seen = 0
    for path, folders, files in os.walk(folder):
        for name in (".", *folders, *files):
            seen += 1
            status = os.lstat(f"{path}/{name}")
            if (status.st_uid, status.st_gid) != own or seen > _MOST_FILES:
                return False
    return True


def _mounts() -> Iterator[Path]:
    try:
        lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        yield Path(line.split()[4].replace("\\040", " "))


def _files(upper: Path) -> Iterator[str]:
    for folder, folders, files in os.walk(upper):
        folders[:] = [each for each in folders if each != "__pycache__"]
        for name in files:
            if not name.endswith(_OWN_FILES):
                yield str((Path(folder) / name).relative_to(upper))
