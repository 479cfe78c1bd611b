"""The arguments of `lightlint`, and the settings they stand for."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from lightlint.cache.folder import NAME as CACHE
from lightlint.config.options import OUTPUT_FORMATS
from lightlint.pipeline.run import WHOLE, Shard

_EPILOG = """commands:
  lightlint rule CODE|NAME   explain a rule
  lightlint rule --all       list all rules
  lightlint confirm -- CMD   run a training command for a few steps: which findings are real?
  lightlint forecast -- CMD  say how much GPU memory its training step takes
  lightlint env diff A B     say why code runs in one environment and not in another
  lightlint merge FILE...    join the reports of --shard runs
  lightlint clean            remove the cache

exit status: 0 nothing found, 1 errors or warnings found, 2 lightlint failed or was used wrongly"""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line that names the nearest option."""

    def error(self, message: str) -> NoReturn:
        """Leave with status 2."""
        import difflib

        unknown = message.removeprefix("unrecognized arguments: ")
        options = [option for action in self._actions for option in action.option_strings]
        near = difflib.get_close_matches(re.split("[ =]", unknown)[0], options, n=1) if unknown != message else []
        hint = f"; did you mean `{near[0]}`?" if near else f"; see `{self.prog} --help`"
        sys.stderr.write(f"lightlint: {message}{hint}\n")
        raise SystemExit(2)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments; leaves the process for `--help` and, with status 2, for wrong ones."""
    parser = _parser()
    # intermixed: `lightlint a.py --fix b.py` has two paths
    options = parser.parse_intermixed_args(arguments)
    if options.isolated and options.config:
        parser.error("--isolated and --config exclude each other")
    if options.stdin_filename is not None and not options.paths:
        options.paths = ["-"]
    if "-" in options.paths and len(options.paths) > 1:
        parser.error("`-` (standard input) cannot be mixed with other paths")
    options.paths = options.paths or ["."]
    return options


def as_settings(options: argparse.Namespace) -> dict[str, object]:
    """What was given on the command line, by the keys of a settings file."""
    keys = ("select", "extend-select", "ignore", "exclude", "extend-exclude", "output-format", "notes", "fix")
    switches = ("unsafe-fixes", "force-exclude", "respect-gitignore")
    given = {key: getattr(options, key.replace("-", "_")) for key in (*keys, *switches)}
    target = {"torch": options.target_torch, "lightning": options.target_lightning}
    given |= {"fix": True} if options.fix_only else {}
    given["target"] = {package: version for package, version in target.items() if version is not None} or None
    return {key: value for key, value in given.items() if value is not None}


def _parser() -> Parser:
    parser = Parser(
        prog="lightlint",
        usage="lightlint [PATH ...] [options]",
        description="Find faults in PyTorch and PyTorch Lightning training code, and repair them.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("paths", nargs="*", metavar="PATH", help="files and directories; `-` is standard input (default: .)")
    add("-V", "--version", action="version", version=_version(), help="print the version and exit")

    group = parser.add_argument_group("fixes")
    switch = argparse.BooleanOptionalAction
    group.add_argument("--fix", action=switch, help="repair what can be repaired safely")
    group.add_argument("--unsafe-fixes", action=switch, help="let --fix and --diff take fixes that need a look, too")
    group.add_argument("--diff", action="store_true", help="show what --fix would change, and change nothing")
    group.add_argument("--fix-only", action="store_true", help="repair, and say nothing of what is left")
    group.add_argument(
        "--exit-non-zero-on-fix", action="store_true", help="exit with 1 where something was repaired, too"
    )

    group = parser.add_argument_group("rules", "RULES: codes, names, prefixes or families, separated by commas")
    listed = {"action": "extend", "type": _comma_list, "metavar": "RULES"}
    group.add_argument("--select", **listed, help="run only these")  # type: ignore[arg-type]
    group.add_argument("--extend-select", **listed, help="run these, too")  # type: ignore[arg-type]
    group.add_argument("--ignore", **listed, help="do not run these")  # type: ignore[arg-type]
    group.add_argument("--notes", action=switch, help="list notes, too")
    group.add_argument(
        "--write-baseline", type=Path, metavar="FILE", help="write what is found into it, to live with for now"
    )
    group.add_argument("--baseline", type=Path, metavar="FILE", help="say nothing of what is in it")
    for package, name in (("torch", "torch"), ("lightning", "Lightning")):
        help_text = f"the {name} version the code is for"
        group.add_argument(f"--target-{package}", metavar="VERSION", help=help_text)

    group = parser.add_argument_group("files")
    listed["metavar"] = "GLOBS"
    group.add_argument("--exclude", **listed, help="leave these out, instead of the usual ones")  # type: ignore[arg-type]
    group.add_argument("--extend-exclude", **listed, help="leave these out, too")  # type: ignore[arg-type]
    group.add_argument("--force-exclude", action=switch, help="leave excluded files out even where they are named")
    group.add_argument("--respect-gitignore", action=switch, help="leave out what git ignores (default: yes)")
    group.add_argument("--show-files", action="store_true", help="name the files that would be linted, and lint none")
    group.add_argument("--stdin-filename", metavar="FILE", help="the name standard input goes by")

    group = parser.add_argument_group("output")
    group.add_argument("--output-format", metavar="FORMAT", help=f"{', '.join(OUTPUT_FORMATS)} (default: full)")
    group.add_argument(
        "-o", "--output-file", type=Path, metavar="FILE", help="write the findings there, not to the terminal"
    )
    group.add_argument("--statistics", action="store_true", help="count findings by rule, and say what takes how long")
    group.add_argument("-q", "--quiet", action="store_true", help="print findings only")
    group.add_argument("-v", "--verbose", action="store_true", help="print the traceback of a check that failed")
    group.add_argument("-e", "--exit-zero", action="store_true", help="exit with 0 even where something is found")

    group = parser.add_argument_group("settings")
    group.add_argument("--config", type=Path, metavar="FILE", help="a settings file to use for all paths")
    group.add_argument(
        "--show-settings",
        action="store_true",
        help="say for each file which settings and versions hold, and from where",
    )
    group.add_argument("--isolated", action="store_true", help="read no settings file")
    group.add_argument("--no-cache", action="store_true", help="read and write no cache")
    group.add_argument(
        "--cache-dir", type=Path, metavar="DIR", help=f"the cache (default: {CACHE} beside the settings)"
    )

    group = parser.add_argument_group("speed")
    group.add_argument(
        "-j", "--jobs", type=_jobs, metavar="N", help="processes to lint in (default: by the work), or dask:ADDRESS"
    )
    group.add_argument(
        "--shard",
        type=_shard,
        default=WHOLE,
        metavar="I/N",
        help="lint the I-th of N parts; `lightlint merge` joins them",
    )
    return parser


def count(text: str) -> int:
    """The value of an option that counts something.

    Raises:
        argparse.ArgumentTypeError: it is no whole number above nought.
    """
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"expected a number from 1, found {text!r}")
    return int(text)


def _jobs(text: str) -> int | str:
    return text.removeprefix("dask:") if text.startswith("dask:") else count(text)


def _shard(text: str) -> Shard:
    found = re.fullmatch(r"([0-9]+)/([0-9]+)", text)
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise argparse.ArgumentTypeError(f"expected I/N with I from 1 to N, found {text!r}")
    return Shard(int(found[1]), int(found[2]))


def seconds(text: str) -> float:
    """The value of an option that is a time.

    Raises:
        argparse.ArgumentTypeError: it is no number of seconds above nought.
    """
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"`{text}` is not a number of seconds above 0")
    return value


def before_command(arguments: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """A subcommand's own arguments, and those behind the first `--`: the command line that it runs."""
    if "--" not in arguments:
        return arguments, ()
    at = arguments.index("--")
    return arguments[:at], arguments[at + 1 :]


def _comma_list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _version() -> str:
    from lightlint import __version__

    return f"lightlint {__version__}"
