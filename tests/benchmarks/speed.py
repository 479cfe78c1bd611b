"""Measure lightlint's CPU time beside its peers': `python tests/benchmarks/speed.py --peers VENV/bin [PATH...]`.

The corpora are source distributions of PyPI at pinned versions, fetched by pip into a cache directory, and any paths that
are named. Every run is cold (no tool's cache is used). The peers, those of torchfix, flake8, fixit, pylint and ruff that the
directories given with `--peers` hold, need environments of their own: torchfix asks for an older libcst than lightlint, and
where either is installed, flake8 runs it, too. `--peers FLAKE8/bin --peers TORCHFIX/bin` takes each from the first that
has it, and `--only PEER` leaves out the others.

In each round every peer runs right behind a run of lightlint, so that what else the machine does falls on both. Times are
user plus system seconds of the whole process tree, medians over the rounds; a ratio is the median of the pairs' ratios.
Prints a Markdown table, with the machine and the versions below.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

CORPORA = ("timm==1.0.20", "lightning==2.6.0")
PEERS = {
    "torchfix": ("torchfix", "--select", "ALL"),
    "flake8": ("flake8", "--isolated", "--exit-zero"),
    "fixit": ("fixit", "--quiet", "lint"),
    "pylint": ("pylint", "--exit-zero", "--jobs", "1", "--recursive", "y", "--rcfile", os.devnull),
    "ruff": ("ruff", "check", "--isolated", "--select", "ALL", "--no-cache", "--exit-zero", "--quiet"),
}
LIGHTLINT = (sys.executable, "-m", "lightlint", "--isolated", "--no-cache", "--exit-zero", "--quiet")
_CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "lightlint-benchmarks"


@dataclass(frozen=True)
class Pairs:
    """CPU seconds of lightlint and of a peer, run right after one another."""

    peer: str
    seconds: tuple[tuple[float, float], ...]

    @property
    def row(self) -> tuple[str, str, str, str]:
        ours, theirs = (median(each) for each in zip(*self.seconds, strict=True))
        ratio = median(their / our for our, their in self.seconds)
        return self.peer, f"{ours:.2f}", f"{theirs:.2f}", f"{ratio:.2g}" if ratio < 10 else f"{ratio:.0f}"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path, help="more code to measure on")
    parser.add_argument(
        "--peers",
        type=Path,
        required=True,
        action="append",
        metavar="BIN",
        help="where peers' commands lie; repeatable",
    )
    parser.add_argument(
        "--only", choices=sorted(PEERS), action="append", help="one peer; repeatable (default: all there)"
    )
    parser.add_argument("--cache", type=Path, default=_CACHE, help="where to keep the corpora (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each pair (default: %(default)s)")
    parser.add_argument("--only-paths", action="store_true", help="leave out the corpora")
    options = parser.parse_args(arguments)
    if options.only_paths and not options.paths:
        parser.error("--only-paths needs a path")
    where = os.pathsep.join(str(each.absolute()) for each in options.peers)
    peers = {name: path for name in options.only or PEERS if (path := shutil.which(name, path=where))}
    if not peers:
        parser.error(f"{options.peers}: holds none of {', '.join(PEERS)}")
    fetched = () if options.only_paths else CORPORA
    corpora = [*(path.resolve() for path in options.paths), *(fetch(each, options.cache) for each in fetched)]
    print("| corpus | files | MB | peer | lightlint, CPU s | peer, CPU s | peer / lightlint |", flush=True)
    print("|---|---:|---:|---|---:|---:|---:|", flush=True)
    for corpus in corpora:
        sizes = [path.stat().st_size for path in corpus.rglob("*.py") if path.is_file()]
        for name, command in peers.items():
            cells = measure(corpus, name, command, options.rounds).row
            print("|", " | ".join([corpus.name, str(len(sizes)), f"{sum(sizes) / 1e6:.1f}", *cells]), "|", flush=True)
    print(f"\n{', '.join(_versions(peers))}. {_machine()}. Medians of {options.rounds} cold runs.")
    return 0


def fetch(requirement: str, cache: Path) -> Path:
    """The unpacked source distribution of a pinned requirement."""
    name = requirement.replace("==", "-")
    unpacked = cache / name
    if not unpacked.is_dir():
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
        subprocess.run([*pip, "--dest", str(cache), requirement], check=True)
        with tarfile.open(cache / f"{name}.tar.gz") as archive:
            archive.extractall(cache, filter="data")
    return unpacked


def measure(corpus: Path, peer: str, command: str, rounds: int) -> Pairs:
    """Run lightlint and a peer over a corpus, by turns; one run of each beforehand fills the file system's cache."""
    theirs = (command, *PEERS[peer][1:])
    for each in (LIGHTLINT, theirs):
        cpu_seconds([*each, "."], corpus)
    seconds = [(cpu_seconds([*LIGHTLINT, "."], corpus), cpu_seconds([*theirs, "."], corpus)) for _ in range(rounds)]
    return Pairs(peer, tuple(seconds))


def cpu_seconds(command: Sequence[str], cwd: Path) -> float:
    """User and system seconds of a command and the processes it started and waited for.

    Raises:
        RuntimeError: the command failed; linters that found something have not.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = subprocess.run(command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if ran.returncode not in {0, 1}:
        raise RuntimeError(
            f"{' '.join(command)}: status {ran.returncode}: {ran.stderr.decode(errors='replace')[-300:]}"
        )
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _versions(peers: dict[str, str]) -> Iterator[str]:
    commands = {"lightlint": [*LIGHTLINT[:3], "--version"]} | {
        name: [path, "--version"] for name, path in peers.items()
    }
    for name, command in commands.items():
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        yield f"{name} {next(word for word in said if word[0].isdigit())}"


def _machine() -> str:
    python = f"Python {platform.python_version()}"
    return f"{python}, {platform.system()} {platform.machine()}, {os.cpu_count()} cores{_processor()}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    return next((f" ({line.partition(': ')[2]})" for line in lines if line.startswith("model name")), "")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
