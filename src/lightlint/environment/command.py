"""`lightlint env`: snapshot, diff, check."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from lightlint.arguments import Parser
from lightlint.environment.describing import probe

CLEAN, FOUND, FAILED = 0, 1, 2
_FEW = 10


def main(arguments: Sequence[str]) -> int:
    """Run `lightlint env` and return its exit status: 1 where `diff` or `check` show something that breaks the code."""
    from lightlint.environment.describing.side import SideError

    options = _parser().parse_args(arguments)
    try:
        status: int = options.run(options)
    except SideError as error:
        sys.stderr.write(f"lightlint: {error}\n")
        return FAILED
    return status


def _parser() -> Parser:
    parser = Parser(
        prog="lightlint env", description="Say why code runs in one environment and not in another.", allow_abbrev=False
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=Parser)

    one = commands.add_parser("snapshot", help="describe this environment", allow_abbrev=False)
    one.add_argument("-o", "--output", type=Path, metavar="FILE", help="write to FILE instead of standard output")
    one.add_argument("--python", metavar="EXECUTABLE", help="describe the environment of another Python")
    one.set_defaults(run=_snapshot)

    two = commands.add_parser("diff", help="compare two environments", allow_abbrev=False)
    forecast = "say whether the step fits that `lightlint forecast --output-format json` wrote into FILE"
    kinds = "a snapshot, what `pip freeze` prints, requirements, a lock file or a notebook"
    two.add_argument("first", type=Path, metavar="A", help=kinds)
    two.add_argument("second", type=Path, metavar="B", help="the other")
    two.add_argument("--code", nargs="+", default=[], metavar="PATH", help="rank by what this code uses")
    two.add_argument("--forecast", type=Path, metavar="FILE", help=forecast)
    two.add_argument("--all", action="store_true", help="list also all packages that the code does not use")
    two.add_argument("--output-format", choices=("text", "json"), default="text", help="text or json (default: text)")
    two.set_defaults(run=_diff)

    three = commands.add_parser("check", help="check code against an environment", allow_abbrev=False)
    three.add_argument("paths", nargs="+", metavar="PATH", help="files and directories")
    three.add_argument("--against", type=Path, metavar="FILE", help=f"{kinds}; this machine where none is given")
    three.add_argument("--forecast", type=Path, metavar="FILE", help=forecast)
    three.add_argument("--output-format", choices=("text", "json"), default="text", help="text or json (default: text)")
    three.set_defaults(run=_check)
    return parser


def _snapshot(options: argparse.Namespace) -> int:
    from lightlint.environment.describing.side import SideError

    text = _described(options.python or sys.executable)
    if options.output is None:
        sys.stdout.write(text)
        return CLEAN
    try:
        options.output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SideError(f"{options.output}: {error.strerror}") from error
    return CLEAN


def _described(python: str) -> str:
    """What the probe prints under a Python. A process of its own: a torch that crashes at import is told, too.

    Raises:
        SideError: it cannot be run.
    """
    from lightlint.environment.describing.side import SideError

    try:
        ran = subprocess.run([python, str(Path(probe.__file__))], capture_output=True, text=True, timeout=300)
    except (OSError, subprocess.SubprocessError) as error:
        raise SideError(f"{python}: {getattr(error, 'strerror', None) or error}") from error
    if ran.returncode:
        last = (ran.stderr.strip().splitlines() or ["no message"])[-1]
        raise SideError(f"{python}: ended with status {ran.returncode}: {last}")
    if not ran.stdout.startswith("{"):
        raise SideError(f"{python}: is no Python")
    return ran.stdout


def _diff(options: argparse.Namespace) -> int:
    from lightlint.config.settings import load
    from lightlint.environment.code.usage import Usage, usage_of
    from lightlint.environment.describing.side import read_side
    from lightlint.environment.diff import diff
    from lightlint.environment.memory import read_need

    settings = load({}, file=None, isolated=False)
    usage = usage_of(options.code, settings) if options.code else Usage()
    need = read_need(options.forecast) if options.forecast else None
    rows = diff(read_side(options.first), read_side(options.second), usage, options.code, settings, need)
    return _show(rows, options, most=len(rows) if options.all else _FEW, nothing="no difference")


def _check(options: argparse.Namespace) -> int:
    from lightlint.config.settings import load
    from lightlint.environment.code.check import check
    from lightlint.environment.code.usage import usage_of
    from lightlint.environment.describing.importing import failures
    from lightlint.environment.describing.side import Side, read_side
    from lightlint.environment.memory import read_need

    settings = load({}, file=None, isolated=False)
    if options.against:
        side = read_side(options.against)
    else:
        machine = json.loads(_described(sys.executable))
        side = Side("this machine", machine["packages"], whole=True, machine=machine)
    need = read_need(options.forecast) if options.forecast else None
    usage = usage_of(options.paths, settings)
    failing = () if options.against else failures(sorted(usage.required & usage.imports.keys()))
    rows = check(side, usage, options.paths, settings, need, failing)
    return _show(rows, options, most=len(rows), nothing="nothing amiss")


def _show(rows: Sequence[object], options: argparse.Namespace, *, most: int, nothing: str) -> int:
    from lightlint.environment import report
    from lightlint.environment.rows import FAILS, Row
    from lightlint.reports.paint import wants_colour

    known = [row for row in rows if isinstance(row, Row)]
    if options.output_format == "json":
        sys.stdout.write(report.as_json(known))
    else:
        sys.stdout.write(report.as_text(known, wants_colour(sys.stdout), most=most) or f"{nothing}\n")
    return FOUND if any(row.weight >= FAILS for row in known) else CLEAN
