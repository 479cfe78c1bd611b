"""Compare with TorchFix: `python tests/ecosystem/torchfix.py --torchfix COMMAND DIRECTORY...` (not part of the test run).

Both lint the directories with all rules. A finding of TorchFix is ours as well if a rule with its code for an alias has one
in the same statement, or at the import of the name that it tells at each use. Prints how many of each code are, and those
that are not, with their line: each of these is to be read, and is a miss or a false alarm. TorchFix asks for an older
libcst, so its command lies in another environment; what it printed before can be given as `--recorded FILE`.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from lightlint.config.settings import load
from lightlint.pages import all_pages
from lightlint.pipeline import run

_LINE = re.compile(r"^(?P<path>[^\s:][^:\n]*):(?P<row>\d+):\d+: (?P<code>TOR\d+) (?P<text>.*)", re.MULTILINE)

_USED = re.compile(r"Use of deprecated function (?P<name>[\w.]+)")

Place = tuple[Path, int | str, str]
"""A file, the first row of a statement or the name that is imported, and a code of TorchFix."""


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directories", nargs="+", type=Path)
    parser.add_argument("--torchfix", default="torchfix", metavar="COMMAND", help="(default: %(default)s)")
    parser.add_argument("--recorded", type=Path, metavar="FILE", help="TorchFix's output, if it has run in this place")
    options = parser.parse_args(arguments)
    paths = [str(directory) for directory in options.directories]
    output = options.recorded.read_text("utf-8") if options.recorded else _torchfix(options.torchfix, paths)
    ours = set(_ours(paths))
    total: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    for each in _LINE.finditer(output):
        path, row, code = Path(each["path"]).resolve(), int(each["row"]), each["code"]
        total[code] += 1
        used = _USED.search(each["text"])
        if ours.isdisjoint({(path, _statement(path, row), code), (path, used["name"] if used else "", code)}):
            missed[code] += 1
            print(f"{each['path']}:{row}: {code}  {path.read_text('utf-8').splitlines()[row - 1].strip()}")
    print("\n| code | TorchFix | ours too | not ours |\n| --- | ---: | ---: | ---: |")
    for code, count in sorted(total.items()):
        print(f"| {code} | {count} | {count - missed[code]} | {missed[code]} |")
    return int(bool(missed))


def _torchfix(command: str, paths: Sequence[str]) -> str:
    return subprocess.run([command, "--select", "ALL", *paths], check=True, capture_output=True, text=True).stdout


def _ours(paths: Sequence[str]) -> Iterator[Place]:
    aliases = {page.code: page.aliases for page in all_pages().values()}
    for finding in run.check(paths, load({"notes": True}, isolated=True), jobs=None).findings:
        for alias in aliases.get(finding.code, ()):
            path = Path(finding.filename).resolve()
            row = _statement(path, finding.location.row)
            yield path, row, alias
            if path.read_text("utf-8").splitlines()[row - 1].lstrip().startswith(("import ", "from ")):
                yield path, finding.message.split("`")[1], alias


def _statement(path: Path, row: int) -> int:
    """The first row of the smallest statement that holds a row; the row itself where the file does not parse."""
    return max((first for first, last in _statements(path) if first <= row <= last), default=row)


@cache
def _statements(path: Path) -> tuple[tuple[int, int], ...]:
    try:
        with warnings.catch_warnings(action="ignore"):
            module = ast.parse(path.read_bytes())
    except SyntaxError:
        return ()
    return tuple(
        (node.lineno, node.end_lineno or node.lineno) for node in ast.walk(module) if isinstance(node, ast.stmt)
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
