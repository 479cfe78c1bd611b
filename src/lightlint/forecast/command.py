"""`lightlint forecast`: simulate a command's training step and say what memory it takes."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from lightlint.arguments import Parser, before_command, seconds
from lightlint.confirm import plan as plans
from lightlint.confirm.launch import start
from lightlint.confirm.launch.home import Home, home
from lightlint.confirm.launch.signals import Interrupted, interruptible
from lightlint.confirm.launch.start import Start
from lightlint.confirm.launch.target import CommandError, parse
from lightlint.forecast import report
from lightlint.forecast.breakdown import RESULT, VARIABLE, Simulation, read
from lightlint.forecast.gpus import BudgetError, find, parse_size
from lightlint.forecast.report import Budget, Forecast
from lightlint.reports.paint import wants_colour

FITS, DOES_NOT_FIT, FAILED = 0, 1, 2


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
    step = forecast.step
    if step is None:
        return FAILED
    return DOES_NOT_FIT if any(step.peak > budget.tensors for budget in forecast.budgets) else FITS


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
        driver = Path(__file__).with_name("driver.py")
        words = [sys.executable, str(driver), options.model, options.batch, options.optimizer]
    with home() as place:
        simulation = _simulated(words, budgets, options.timeout, place)
    return Forecast(shlex.join(words), simulation, budgets)


def _simulated(words: list[str], budgets: Sequence[Budget], timeout: float, place: Home) -> Simulation:
    command = parse(words)
    records, scratch = place.new("records"), place.new("scratch")
    plan = plans.Plan(str(records), str(scratch), meters=("lightlint.forecast.inside",), limits=plans.NEVER)
    asked = json.dumps({"budgets": {budget.name: budget.tensors for budget in budgets}})
    variables = {VARIABLE: asked, "TORCHDYNAMO_DISABLE": "1"}
    ending = start.run(
        Start(command.words, Path.cwd(), variables, timeout=timeout, stall=timeout), plans.write(plan), scratch, place
    )
    result = records / RESULT
    if result.exists():
        return read(json.loads(result.read_text(encoding="utf-8")))
    if not any(os.scandir(records)):
        return Simulation((), "the command wrote no record: another interpreter, or `python -I`, `-E` or `-S`")
    how = "took no optimizer step" if ending.ended == "finished" else ending.ended
    return Simulation(
        (), f"the program {how}{f' (status {ending.status})' if ending.status else ''} before a training step"
    )


def _shown(forecast: Forecast, output_format: str) -> str:
    if output_format == "json":
        return report.render_json(forecast)
    if output_format == "html":
        from lightlint.forecast.charts import charts

        return report.render_html(forecast, charts(forecast))
    return report.render_text(forecast, wants_colour(sys.stdout))
