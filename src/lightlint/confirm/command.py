"""`lightlint confirm`: lint what a command runs, run it instrumented, judge each finding, report."""

from __future__ import annotations

import argparse
import importlib
import json
import shlex
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lightlint.arguments import Parser
from lightlint.confirm import plan as plans
from lightlint.confirm import records
from lightlint.confirm.claims import Suspicion, suspicions
from lightlint.confirm.judge import judge
from lightlint.confirm.launch import start
from lightlint.confirm.launch.target import Command, CommandError, parse
from lightlint.confirm.plan import Limits, Plan, Target
from lightlint.confirm.probes import all_probes
from lightlint.confirm.reports.report import Judged, Report
from lightlint.confirm.verdict import Outcome
from lightlint.settings import Settings
from lightlint.settings import load as load_settings

CLEAN, CONFIRMED, FAILED = 0, 1, 2
FORMATS = ("text", "json", "html")


def main(arguments: Sequence[str]) -> int:
    """Run `lightlint confirm` and return its exit status: 1 where a finding is confirmed, 2 where lightlint failed."""
    ours, words = _split(arguments)
    options = _parser().parse_args(ours)
    try:
        render = importlib.import_module(f"lightlint.confirm.reports.{options.output_format}").render
        report = _confirm(parse(words), options)
    except CommandError as error:
        sys.stderr.write(f"lightlint: {error}\n")
        return FAILED
    sys.stdout.write(render(report))
    return CONFIRMED if any(each.verdict.outcome is Outcome.CONFIRMED for each in report.judged) else CLEAN


def _split(arguments: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    if "--" not in arguments:
        return arguments, ()
    at = arguments.index("--")
    return arguments[:at], arguments[at + 1 :]


def _parser() -> Parser:
    parser = Parser(
        prog="lightlint confirm",
        usage="lightlint confirm [options] -- COMMAND",
        description="Run a training command for a few steps and say of each finding whether it is real.",
        epilog="It runs your code with your rights, your data and your network.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--devices", type=int, metavar="N", help="run on N ranks of this machine")
    add("--epochs", type=int, default=2, metavar="N", help="passes over the training data (default: 2)")
    add("--batches", type=int, default=4, metavar="N", help="steps in each pass (default: 4)")
    add("--timeout", type=float, default=600, metavar="S", help="end the run after S seconds (default: 600)")
    add(
        "--stall",
        type=float,
        default=30,
        metavar="S",
        help="seconds without progress that count as a stall (default: 30)",
    )
    add("--output-format", choices=FORMATS, default="text", help="text, json or html (default: text)")
    add("--keep", type=Path, metavar="DIR", help="keep the records in DIR")
    return parser


def _confirm(command: Command, options: argparse.Namespace) -> Report:
    """The whole of it, in a directory of its own that is gone afterwards."""
    home = Path(tempfile.mkdtemp(prefix="lightlint-confirm-"))
    try:
        found = suspicions(command.script, _settings())
        run_directory, scratch = home / "records", home / "scratch"
        run_directory.mkdir()
        scratch.mkdir()
        plan = _plan(found, options, run_directory, scratch)
        ending = start.run(command.words, plans.write(plan), scratch, timeout=options.timeout, stall=options.stall)
        about = {"ended": ending.ended, "status": ending.status, "stacks": ending.stacks}
        (run_directory / records.RUN_FILE).write_text(json.dumps(about), encoding="utf-8")
        run = records.read(run_directory)
        if options.keep:
            shutil.copytree(run_directory, options.keep, dirs_exist_ok=True)
        verdicts = judge((each.claim for each in found), run)
        judged = tuple(map(Judged, (each.finding for each in found), verdicts))
        return Report(shlex.join(command.words), f"lightlint confirm -- {shlex.join(command.words)}", run, judged)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _settings() -> Settings:
    return load_settings({}, file=None, isolated=False)


def _plan(found: Sequence[Suspicion], options: argparse.Namespace, run_directory: Path, scratch: Path) -> Plan:
    probes = [all_probes()[each.claim.probe] for each in found if each.claim.probe in all_probes()]
    meters = sorted({"lines", "loaders", *(meter for probe in probes for meter in probe.meters)})
    targets = tuple(
        Target(each.claim.index, each.claim.file, each.claim.first, each.claim.last, tuple(each.claim.details.values()))
        for each in found
    )
    limits = Limits(options.epochs, options.batches)
    return Plan(str(run_directory), str(scratch), targets, tuple(meters), limits, options.devices)
