"""`lightlint confirm`: the command line of the runtime companion, and its exit status."""

from __future__ import annotations

import argparse
import importlib
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from lightlint.arguments import Parser, before_command, count, seconds
from lightlint.config.settings import load as load_settings
from lightlint.confirm import flow
from lightlint.confirm.launch.system.home import home
from lightlint.confirm.launch.system.signals import Interrupted, interruptible
from lightlint.confirm.launch.target import CommandError, parse
from lightlint.confirm.reports.report import Report

CLEAN, FAULTY, FAILED = 0, 1, 2
FORMATS = ("text", "json", "html")


def main(arguments: Sequence[str]) -> int:
    """Run `lightlint confirm`.

    Returns:
        1 where a finding is confirmed, the run showed a fault or failed, 0 where none of it is, 2 where lightlint failed
        or was used wrongly, 128 and the signal's number where it was told to end.
    """
    ours, words = before_command(arguments)
    options = _parser().parse_args(ours)
    line = shlex.join(["lightlint", "confirm", *arguments])
    try:
        with interruptible():
            show = importlib.import_module(f"lightlint.confirm.reports.{options.output_format}")  # may ask for plotly
            report, number = _report(options, words, line)
            sys.stdout.write(show.render(report))
            sys.stdout.flush()
    except CommandError as error:
        return _failed(str(error))
    except BrokenPipeError:
        raise
    except OSError as error:
        return _failed(f"{error.filename or 'the run'}: {error.strerror or error}")
    except Interrupted as told:
        _failed("interrupted")
        return told.status
    return Interrupted(number).status if number else _status(report)


def _report(options: argparse.Namespace, words: Sequence[str], line: str) -> tuple[Report, int]:
    if options.judge:
        if words:
            raise CommandError("--judge reads records: it takes no command")
        return flow.again(options.judge, line), 0
    names = flow.Options.__dataclass_fields__
    wanted = flow.Options(**{name: value for name, value in vars(options).items() if name in names})
    command = parse(words)
    with home() as place:
        return flow.confirm(command, wanted, load_settings({}, file=None, isolated=False), place, line)


def _status(report: Report) -> int:
    return FAULTY if report.failed else CLEAN


def _failed(message: str) -> int:
    sys.stderr.write(f"lightlint: {' '.join(message.splitlines())}\n")
    return FAILED


def _parser() -> Parser:
    parser = Parser(
        prog="lightlint confirm",
        usage="lightlint confirm [options] -- COMMAND\n       lightlint confirm [options] --judge DIR ...",
        description="Run a training command for a few steps and say of each finding whether it is real.",
        epilog="It runs your code with your rights, your data and your network.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument_group("the run").add_argument
    add("--devices", type=count, metavar="N", help="run on N ranks of this machine")
    add("--epochs", type=count, default=2, metavar="N", help="passes over the training data (default: 2)")
    add("--batches", type=count, default=4, metavar="N", help="steps in each pass (default: 4)")
    add("--timeout", type=seconds, default=600, metavar="S", help="end the run after S seconds (default: 600)")
    add(
        "--stall",
        type=seconds,
        default=30,
        metavar="S",
        help="seconds without progress that are a stall (default: 30)",
    )
    add("--no-sandbox", dest="sandbox", action="store_false", help="let the run write where it does without lightlint")

    add = parser.add_argument_group("further runs").add_argument
    add("--no-timing", dest="timing", action="store_false", help="no second run for findings about time")
    add("--inject", action="store_true", help="make each suspected `try` fail once, in a run of its own")
    add("--determinism", action="store_true", help="compare two runs with one seed")

    add = parser.add_argument_group("findings and verdicts").add_argument
    add("--findings", type=Path, metavar="FILE", help="judge these, from `lightlint --output-format json`")
    add("--output-format", choices=FORMATS, default="text", help="text, json or html (default: text)")
    add("--keep", type=Path, metavar="DIR", help="keep the records in DIR")
    add("--judge", type=Path, nargs="+", metavar="DIR", help="judge kept records anew, those of several hosts together")
    return parser
