"""Measure how time and memory grow with a tree: `python tests/benchmarks/scale.py [--files N --megabytes M] [--source PATH]`.

A tree is made of copies of a code base (by default lightning's and timm's source distributions), file by file in turn, each
copy with a name and a first line of its own, in packages of a hundred; files are cut or joined so that all have the mean
size that is asked for. lightlint runs over an eighth of it, a quarter, a half and the whole, without a cache, in as many
processes as it thinks right. Prints CPU seconds of the process tree, seconds a megabyte and the memory of the biggest
process; where the seconds a megabyte stay the same, time is linear.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path

from speed import _CACHE, CORPORA, LIGHTLINT, _machine, fetch

_PACKAGE = 100  # files


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--megabytes", type=float, default=250)
    parser.add_argument("--source", type=Path, action="append", help="code to copy; repeatable")
    options = parser.parse_args(arguments)
    sources = options.source or [fetch(each, _CACHE) for each in CORPORA]
    print("| files | MB | CPU s | s/MB | memory of the biggest process, MiB |")
    print("|---:|---:|---:|---:|---:|", flush=True)
    for part in (8, 4, 2, 1):
        files, size = options.files // part, int(options.megabytes * 1e6 / options.files)
        with tempfile.TemporaryDirectory() as folder:
            written = make(Path(folder), texts(sources, size), files)
            seconds, memory = run(Path(folder))
        megabytes = written / 1e6
        print(f"| {files} | {megabytes:.0f} | {seconds:.0f} | {seconds / megabytes:.2f} | {memory:.0f} |", flush=True)
    print(f"\n{_machine()}.")
    return 0


def texts(sources: Sequence[Path], size: int) -> Iterator[str]:
    """The files of some code bases again and again, each as long as `size` as whole top-level blocks allow."""
    paths = sorted(path for source in sources for path in source.rglob("*.py") if path.is_file())
    whole = [path.read_text(encoding="utf-8", errors="ignore") for path in paths]
    pieces: list[str] = []
    for text in cycle(whole):
        pieces += text.replace("\ndef ", "\n\0def ").replace("\nclass ", "\n\0class ").split("\0")
        while pieces and sum(map(len, pieces)) >= size:
            taken = [pieces.pop(0)]
            while pieces and sum(map(len, taken)) + len(pieces[0]) <= size:
                taken.append(pieces.pop(0))
            yield "".join(taken)


def make(folder: Path, contents: Iterator[str], files: int) -> int:
    """Write a tree; returns its size in bytes."""
    (folder / "pyproject.toml").touch()
    written = 0
    for number in range(files):
        package = folder / f"package_{number // _PACKAGE:03}"
        if not number % _PACKAGE:
            package.mkdir()
            (package / "__init__.py").touch()
        text = f"# {number}\nimport torch\nfrom torch import nn\n{next(contents)}\n"
        written += (package / f"module_{number % _PACKAGE:02}.py").write_text(text, encoding="utf-8")
    return written


def run(folder: Path) -> tuple[float, float]:
    """CPU seconds of a run over a folder, and the MiB that the biggest of its processes took at most.

    Raises:
        RuntimeError: the run failed.
    """
    ran = subprocess.run(
        [sys.executable, "-c", _MEASURED, *LIGHTLINT[1:], "."], cwd=folder, capture_output=True, text=True, check=False
    )
    if ran.returncode:
        raise RuntimeError(ran.stderr[-300:])
    seconds, kilobytes = ran.stderr.split()[-2:]
    return float(seconds), float(kilobytes) / 1024


_MEASURED = """
import resource, subprocess, sys
done = subprocess.run([sys.executable, *sys.argv[1:]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss, file=sys.stderr)
sys.exit(done.returncode)
"""  # in a process of its own: the biggest child of this one would be that of an earlier run


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
