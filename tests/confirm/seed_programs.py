"""The programs of fixtures/seeds and what a run must say of each finding in them.

`python tests/confirm/seed_programs.py FILE` runs them all and writes their verdicts with the machine and the versions;
status 1 where one is not as told here.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import date
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any

SEEDS = Path(__file__).parents[2] / "fixtures" / "seeds"
_PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])  # `python` is the tests' own
_ALONE = {"s01_model_moved", "s08_empty_cache"}  # what these measure others would share
_TORCHRUN = ("torchrun", "--standalone", "--nproc-per-node", "2")


@dataclass(frozen=True)
class Said:
    """What must be said of a rule's findings in a program.

    Attributes:
        verdict: where there are fewer than `from_gpus` GPUs.
        words: parts of the reason, in any place.
        numbers: `rank: what` of numbers that must be there, "all" for those of no rank; with `= value`, that value.
        gpu: the verdict where there are so many GPUs, if another one.
    """

    verdict: str
    words: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    gpu: str = ""
    from_gpus: int = 2


@dataclass(frozen=True)
class Program:
    """A program and its verdicts by rule; of other rules' findings none may be confirmed.

    Attributes:
        seed: its folder.
        words: the command.
        ended: how the run ends; empty where that depends on what is installed.
        ended_on_gpus: how it ends where there are two GPUs, if otherwise; then no second rank comes to begin.
        options: of `lightlint confirm`.
        moved: a program of the same folder, a rule and a line of this one: there that rule's first finding is judged.
        determinism: a part of what is said of two seeded runs.
    """

    seed: str
    words: tuple[str, ...]
    said: dict[str, Said] = field(default_factory=dict)
    ended: str = "finished"
    ended_on_gpus: str = ""
    options: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    determinism: str = ""
    ranks: int = 1

    @property
    def name(self) -> str:
        return f"{self.seed}/{self.words[-1]}"


_WRITTEN = (
    "0: writes of drift.log = 2",
    "1: writes of drift.log = 2",
    "all: repeated lines in drift.log = 2",
)
_SAME_SAMPLES = Said(
    "confirmed",
    ("100% overlap", "4 of 4 batches equal"),
    ("all: samples drawn by all ranks together / distinct = 2.0",),
)
_OWN_SAMPLES = Said(
    "refuted", ("0% overlap",), ("all: samples drawn by all ranks together / distinct = 1.0", "0: samples drawn = 32")
)
_NO_GPU = "not observable"
_MUTATED = ("0: weights changed", "0: weights after step 4", "1: weights after step 4", "all: first = `head.weight`")
PROGRAMS = (
    Program(
        "s01_model_moved",
        ("python", "one_process.py"),
        {"model-moved-before-fit": Said("not reached", gpu="refuted", from_gpus=1)},
        options=("--devices", "1"),  # its `auto` takes as many as there are
    ),
    Program(
        "s01_model_moved",
        ("python", "two_ranks.py"),
        {"model-moved-before-fit": Said(_NO_GPU, gpu="confirmed")},
        ranks=2,
    ),
    Program(
        "s01_model_moved",
        ("python", "forked.ipynb"),
        {"model-moved-before-fit": Said("not reached", gpu="confirmed")},
        ended_on_gpus="raised",
        ranks=2,
    ),
    Program("s02_batch_of_5000", ("python", "one_device.py")),
    Program(
        "s02_batch_of_5000",
        ("python", "two_devices.py"),
        {
            "unseeded-data-per-rank": Said(
                "confirmed", ("different data in",), ("0: checksum of readings", "1: checksum of readings")
            )
        },
        ranks=2,
    ),
    Program(
        "s03_lightning_upgraded",
        ("python", "notebook.ipynb"),
        {
            "trainer-removed-arg": Said("confirmed", ("TypeError", "unexpected keyword argument")),
            "unpinned-install": Said("not checked"),
        },
        ended="raised",
    ),
    Program(
        "s03_lightning_upgraded/pinned_new",
        ("python", "train.py"),
        {"trainer-removed-arg": Said("confirmed", ("TypeError", "unexpected keyword argument"))},
        ended="raised",
    ),
    Program("s03_lightning_upgraded/either", ("python", "train.py")),
    Program("s04_keras", ("python", "cnn.py"), ended=""),
    Program(
        "s05_full_batch", ("python", "train.py"), ended="cut", options=("--determinism",), determinism="bit for bit"
    ),
    Program(
        "s06_pool_lambda",
        ("python", "load.py"),
        {"unpicklable-worker-callable": Said("confirmed", ("pickle",))},
        ended="raised",
    ),
    Program(
        "s06_pool_lambda",
        ("python", "load.ipynb"),
        {"unpicklable-worker-callable": Said("confirmed", ("pickle",))},
        ended="raised",
    ),
    Program(
        "s07_batch_of_128",
        ("python", "train.py"),
        {"loader-without-workers": Said("confirmed", numbers=("0: share of a step spent waiting",))},
        options=("--batches", "20"),
    ),
    Program(
        "s08_empty_cache",
        ("python", "emptied.py"),
        {"empty-cache-in-loop": Said(_NO_GPU, ("no GPU",), gpu="confirmed", from_gpus=1)},
    ),
    Program("s08_empty_cache", ("python", "plain.py")),
    Program(
        "s09_accumulation",
        ("python", "train.py"),
        {"accumulation-index-unbound": Said("confirmed", ("NameError",), ("0: steps taken = 0",))},
        ended="raised",
    ),
    Program(
        "s09_accumulation",
        ("python", "train.ipynb"),
        {"accumulation-index-unbound": Said("confirmed", ("26 batches, 26 steps",), ("0: steps taken = 26",))},
        options=("--batches", "20"),
    ),
    Program(
        "s10_shrinking_weights",
        ("python", "every_rank.py"),
        {"param-data-mutation-in-step": Said("confirmed", ("version 2 -> 2", "the ranks stay equal"), _MUTATED)},
        ranks=2,
    ),
    Program(
        "s10_shrinking_weights",
        ("python", "one_rank.py"),
        {"param-data-mutation-in-step": Said("confirmed", ("different weights from step 1 on",), _MUTATED)},
        ranks=2,
    ),
    Program(
        "s11_same_data_on_every_rank",
        ("python", "sampler_off.py"),
        {"loader-without-distributed-sampler": _SAME_SAMPLES},
        ranks=2,
    ),
    Program(
        "s11_same_data_on_every_rank",
        (*_TORCHRUN, "raw_ddp.py"),
        {"loader-without-distributed-sampler": _SAME_SAMPLES},
        ranks=2,
    ),
    Program(
        "s11_same_data_on_every_rank",
        ("python", "fabric.py"),
        {"loader-without-distributed-sampler": _SAME_SAMPLES},
        ranks=2,
    ),
    Program(
        "s11_same_data_on_every_rank",
        ("python", "injected.py"),
        {
            "loader-without-distributed-sampler": _OWN_SAMPLES,
            "unseeded-data-per-rank": Said(
                "confirmed", ("different data in `answers`",), ("0: checksum of answers", "1: checksum of answers")
            ),
        },
        ranks=2,
    ),
    Program(
        "s12_swallowed_error",
        ("python", "one_device.py"),
        {"training-step-swallows-exception": Said("confirmed", ("without a backward pass",), ("0: steps",))},
        options=("--inject",),
    ),
    Program(
        "s12_swallowed_error",
        ("python", "two_ranks.py"),
        {
            "training-step-swallows-exception": Said(
                "confirmed",
                ("injected on rank 1", "rank 1 raised RuntimeError: Skipping the `training_step`"),
                ("1: steps",),
            )
        },
        ended="raised",
        options=("--inject",),
        ranks=2,
    ),
    Program(
        "s13_log_file",
        ("python", "locked.py"),
        {
            "file-write-on-every-rank": Said("confirmed", ("ranks 0 and 1 wrote the same file",), _WRITTEN),
            "thread-lock-across-processes": Said("confirmed", ("under the lock",), _WRITTEN),
        },
        ranks=2,
    ),
    Program(
        "s13_log_file",
        ("python", "unlocked.py"),
        {"file-write-on-every-rank": Said("confirmed", ("ranks 0 and 1 wrote the same file",), _WRITTEN)},
        ranks=2,
    ),
    Program(
        "s13_log_file",
        ("python", "rank_zero.py"),
        {"file-write-on-every-rank": Said("refuted", ("one writer", "drift.log"), ("0: writes of drift.log = 2",))},
        moved=("unlocked.py", "file-write-on-every-rank", 'with open(self.path, "a")'),
        ranks=2,
    ),
    Program(
        "s14_bigger_on_rank_0",
        ("python", "train.py"),
        {
            "rank-dependent-forward": Said(
                "confirmed",
                ("rank 0 takes ", "MiB to its loss where rank 1 takes 0"),  # 64 MiB, less what it had freed before
                ("0: memory from a step's begin to its loss", "1: memory from a step's begin to its loss"),
            )
        },
        ranks=2,
    ),
    Program(
        "s15_other_order_per_rank",
        ("python", "train.py"),
        {
            "rank-dependent-forward": Said(
                "confirmed",
                ("two functions",),
                (
                    "0: losses",
                    "1: losses",
                    "all: steps after which all ranks held the same parameters = 4 of 4",
                ),
            )
        },
        ranks=2,
    ),
)


def broken(program: Program, report: dict[str, Any], gpus: int) -> Iterator[str]:
    """Where a report says something else than it must."""
    run = report["run"]
    expected = (program.ended or run["ended"], program.ranks)
    if gpus > 1 and program.ended_on_gpus:
        expected = (program.ended_on_gpus, 1)
    if (run["ended"], run["ranks"]) != expected:
        yield f"the run {run['ended']} on {run['ranks']} ranks"
    if program.determinism not in ((report["determinism"] or {}).get("sentence") or ""):
        yield f"two seeded runs: {report['determinism']}"
    found = report["verdicts"]
    for rule, said in program.said.items():
        of_rule = [each for each in found if each["finding"]["name"] == rule]
        if not of_rule:
            yield f"{rule} was not found"
        for each in of_rule:
            yield from (f"{rule}: {what}" for what in _differences(said, each, gpus))
    for each in found:
        if each["finding"]["name"] not in program.said and each["verdict"] == "confirmed":
            yield f"{each['finding']['name']} is confirmed, too: {each['reason']}"


def _differences(said: Said, judged: dict[str, Any], gpus: int) -> Iterator[str]:
    expected = (gpus >= said.from_gpus and said.gpu) or said.verdict
    if judged["verdict"] != expected:
        yield f"{judged['verdict']} ({judged['reason']}), not {expected}"
    elif expected == said.verdict:
        yield from (f"{word!r} is not in {judged['reason']!r}" for word in said.words if word not in judged["reason"])
        shown = [
            f"{'all' if each['rank'] is None else each['rank']}: {each['what']} = {each['value']}"
            for each in judged["numbers"]
        ]
        for number in said.numbers:
            if not any(each.startswith(number) for each in shown):
                yield f"no number {number!r} in {shown}"


def report_of(program: Program, folder: Path) -> dict[str, Any]:
    """Run a program in a copy of its folder, below `folder`, and return the JSON report.

    Raises:
        RuntimeError: there was none.
    """
    copied = folder / program.seed
    shutil.copytree(SEEDS / program.seed, copied, ignore=shutil.ignore_patterns("expected.txt"))
    (copied / "pyproject.toml").touch()
    options = list(program.options)
    if program.moved:
        options += ["--findings", str(_moved(program, copied, folder / "findings.json"))]
    done = _lightlint("confirm", "--output-format", "json", *options, "--", *program.words, cwd=copied)
    if not done.stdout:
        raise RuntimeError(f"{program.name}: {done.stderr}")
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def _moved(program: Program, folder: Path, findings: Path) -> Path:
    """The first finding of a rule in a neighbour, as if it were at a line of this program."""
    neighbour, rule, line = program.moved
    found = json.loads(_lightlint("--output-format", "json", "--exit-zero", neighbour, cwd=folder).stdout)
    finding = next(each for each in found if each["name"] == rule)
    rows = (folder / program.words[-1]).read_text(encoding="utf-8").splitlines()
    row = next(number for number, text in enumerate(rows, start=1) if line in text)
    for place in ("location", "end_location"):
        finding[place] = {**finding[place], "row": row}
    findings.write_text(json.dumps([{**finding, "filename": str(folder / program.words[-1])}]), encoding="utf-8")
    return findings


def _lightlint(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "lightlint", *words],
        cwd=cwd,
        env={**os.environ, "PATH": _PATH},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument(
        "--at-once", type=int, default=1, help="run so many side by side; what measures GPUs runs alone"
    )
    parser.add_argument(
        "--only", action="append", metavar="SEED", help="run these again; FILE keeps what it says of the rest"
    )
    options = parser.parse_args(arguments)
    machine = _machine()
    gpus = len(machine["gpus"])
    reports: dict[str, dict[str, Any]] = {}
    if options.only and options.file.exists():
        kept = json.loads(options.file.read_text(encoding="utf-8"))
        if {**kept["machine"], "date": machine["date"]} != machine:
            parser.error(f"{options.file} is of another machine: {kept['machine']}")
        reports = kept["programs"]
    failed, started = False, time.monotonic()
    chosen = [each for each in PROGRAMS if not options.only or any(each.name.startswith(seed) for seed in options.only)]
    alone = [program for program in chosen if program.seed in _ALONE]
    together = [program for program in chosen if program.seed not in _ALONE]
    with ThreadPoolExecutor(options.at_once) as pool:
        for program, report in zip(
            [*together, *alone], chain(pool.map(_reported, together), map(_reported, alone)), strict=True
        ):
            reports[program.name] = _told(report)
            wrong = list(broken(program, report, gpus))
            print(f"{time.monotonic() - started:5.0f} s  {program.name}: {'; '.join(wrong) or 'as told'}", flush=True)
            failed = failed or bool(wrong)
            told = {"machine": machine, "programs": reports}
            options.file.write_text(
                json.dumps(told, indent=1) + "\n", encoding="utf-8"
            )  # what a later hang cannot take
    return int(failed)


def _reported(program: Program) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        return report_of(program, Path(folder))


def _machine() -> dict[str, Any]:
    import torch

    gpus = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
    versions = {name: version(name) for name in ("torch", "lightning", "lightlint")}
    return {
        "date": date.today().isoformat(),
        "gpus": gpus,
        "python": platform.python_version(),
        "system": platform.system(),
        **versions,
    }


def _told(report: dict[str, Any]) -> dict[str, Any]:
    """A report without paths of the machine."""
    run = {key: value for key, value in report["run"].items() if key in {"ended", "status", "ranks", "steps"}}
    verdicts = [
        {
            "finding": f"{Path(each['finding']['filename']).name}:{each['finding']['location']['row']}"
            f" {each['finding']['name']}",
            **{key: each[key] for key in ("verdict", "reason", "scope", "numbers")},
        }
        for each in report["verdicts"]
    ]
    observed = [f"{each['kind']} on {each['ranks']}" for each in report["observations"]]
    return {"run": run, "observations": observed, "determinism": report["determinism"], "verdicts": verdicts}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
