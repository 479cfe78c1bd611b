"""`lightlint forecast`: simulate a command's training step and say what memory it takes."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from lightlint.arguments import Parser, before_command, seconds
from lightlint.confirm import plan as plans
from lightlint.confirm.launch import start
from lightlint.confirm.launch.start import Ending, Start
from lightlint.confirm.launch.system.home import Home, home
from lightlint.confirm.launch.system.signals import Interrupted, interruptible
from lightlint.confirm.launch.target import Command, CommandError, parse
from lightlint.confirm.records import read as read_records
from lightlint.forecast import report
from lightlint.forecast.breakdown import MEASURED, RESULT, VARIABLE, Measured, Simulation, read
from lightlint.forecast.gpus import BudgetError, find, parse_size
from lightlint.forecast.report import Budget, Forecast
from lightlint.reports.paint import wants_colour

FITS, DOES_NOT_FIT, FAILED = 0, 1, 2
_DRIVER = Path(__file__).with_name("driver.py")  # trains a model on a batch


def main(arguments: Sequence[str]) -> int:
    """Run `lightlint forecast`.

    Returns:
        0, or 1 where the step does not fit a GPU or budget that was asked for, 2 where there is no forecast.
    """
    ours, words = before_command(arguments)
    options = _parser().parse_args(ours)
    try:
        with interruptible():
            forecast = _forecast(options, list(words))
            sys.stdout.write(_shown(forecast, options.output_format))
    except (CommandError, BudgetError) as error:
        sys.stderr.write(f"lightlint: {error}\n")
        return FAILED
    except Interrupted as told:
        sys.stderr.write("lightlint: interrupted\n")
        return told.status
    fits = [forecast.fits(budget) for budget in forecast.budgets]
    if forecast.step is None and forecast.measured is None:
        return FAILED
    return DOES_NOT_FIT if False in fits else FITS


def _parser() -> Parser:
    parser = Parser(
        prog="lightlint forecast",
        usage="lightlint forecast [options] -- COMMAND\n       lightlint forecast [options] --model PACKAGE.MODULE:FACTORY --batch PACKAGE.MODULE:FACTORY",
        description="Say how much GPU memory a training step takes, without a GPU.",
        epilog="It runs your program until its first batch, with your rights, your data and your network.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--model", metavar="NAME", help="a function that makes the model, as package.module:function")
    add(
        "--batch", metavar="NAME", help="a function that makes a batch: a tensor, or arguments as a tuple or dictionary"
    )
    add("--optimizer", default="AdamW", metavar="NAME", help="with --model: a class of torch.optim (default: AdamW)")
    add(
        "--gpu",
        default=[],
        action="extend",
        type=lambda text: text.split(","),
        metavar="GPUS",
        help="GPUs to fit, such as T4,A100-40,H100",
    )
    add("--budget", default=[], action="append", metavar="SIZE", help="memory to fit, such as 15GiB")
    add("--timeout", type=seconds, default=600, metavar="S", help="give up after S seconds (default: 600)")
    add("--output-format", choices=("text", "json", "html"), default="text", help="text, json or html (default: text)")
    return parser


def _forecast(options: argparse.Namespace, words: list[str]) -> Forecast:
    budgets = (
        *(Budget(gpu.name, gpu.usable, gpu) for gpu in map(find, options.gpu)),
        *(Budget(text, parse_size(text)) for text in options.budget),
    )
    if options.output_format == "html":
        import lightlint.forecast.charts  # noqa: F401  # tells at once where plotly is missing
    if bool(words) == bool(options.model):
        raise CommandError("give a command behind `--`, or --model and --batch")
    if options.model:
        if not options.batch:
            raise CommandError("--model needs --batch")
        for option, name in (("--model", options.model), ("--batch", options.batch)):
            if not re.fullmatch(r"[\w.]+:\w+", name):
                raise CommandError(f"{option} {name}: write it like package.module:function")
        words = [sys.executable, str(_DRIVER), options.model, options.batch, options.optimizer]
    command = parse(words)
    with home() as place:
        simulation = _simulated(command, budgets, options.timeout, place)
        measured = None
        if not simulation.steps and simulation.device:
            measured = _measured(command, options.timeout, place)
    return Forecast(shlex.join(words), simulation, budgets, measured)


def _simulated(command: Command, budgets: Sequence[Budget], timeout: float, place: Home) -> Simulation:
    asked = {"budgets": {budget.name: budget.tensors for budget in budgets}, "quiet": str(_DRIVER) in command.words}
    variables = {VARIABLE: json.dumps(asked), "TORCHDYNAMO_DISABLE": "1"}
    records, ending = _run(command, "lightlint.forecast.simulation.inside", variables, timeout, place)
    result = records / RESULT
    if result.exists():
        return read(json.loads(result.read_text(encoding="utf-8")))
    if not read_records(records).started:
        return Simulation((), "the command wrote no record: another interpreter, or `python -I`, `-E` or `-S`")
    status = f" (status {ending.status})" if ending.status else ""
    if ending.ended == "finished":
        return Simulation((), f"the program took no optimizer step{status}")
    ended = "was killed" if ending.ended == "killed" else ending.ended
    return Simulation((), f"the program {ended}{status} before a training step")


def _measured(command: Command, timeout: float, place: Home) -> Measured | None:
    """The step on this machine's GPU; None where the program does not get to a second one."""
    records, _ = _run(command, "lightlint.forecast.simulation.measure", {}, timeout, place)
    result = records / MEASURED
    return Measured(**json.loads(result.read_text(encoding="utf-8"))) if result.exists() else None


def _run(
    command: Command, meter: str, variables: Mapping[str, str], timeout: float, place: Home
) -> tuple[Path, Ending]:
    """Run the command with a meter; the folder of its records, and how it went."""
    own = meter.rpartition(".")[2]
    records, scratch = place.new(own, "records"), place.new(own, "scratch")
    plan = plans.Plan(str(records), str(scratch), meters=(meter,), limits=plans.NEVER)
    asked = Start(command.words, Path.cwd(), variables, timeout=timeout, stall=timeout)
    return records, start.run(asked, plans.write(plan), scratch, place)


def _shown(forecast: Forecast, output_format: str) -> str:
    if output_format == "json":
        return report.render_json(forecast)
    if output_format == "html":
        from lightlint.forecast.charts import charts

        return report.render_html(forecast, charts(forecast))
    return report.render_text(forecast, wants_colour(sys.stdout))
