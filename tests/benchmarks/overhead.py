"""Measure what `lightlint confirm` costs per training step: `python tests/benchmarks/overhead.py [--rounds N]`.

A small model (about 0.3 ms a step) and a large one (6 layers of 512, about 40 ms on a CPU core) are trained by a plain loop,
once as they are and once under the companion, in turn. What the companion measures depends on what is found, so each loop
comes without a finding and with one whose probe reads this or that meter. The program takes its own times: processor time
of the process on a CPU (one thread), time of the clock with the GPU synchronised on a GPU. A step's time is the median of a
run and the least of the rounds.

Needs torch. Prints a Markdown table, with the machine and the versions below.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import median

PROGRAM = """
import json
import os
import sys
import time

import torch
from torch import nn


def model_of(size):
    if size == "small":
        return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1)), 16, 8
    layers = [part for _ in range(6) for part in (nn.Linear(512, 512), nn.ReLU())]
    return nn.Sequential(*layers, nn.Linear(512, 1)), 512, 256


def main():
    size, steps, device = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model, width, rows = model_of(size)
    model.to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    x, y = torch.randn(rows, width, device=device), torch.randn(rows, 1, device=device)
    clock = time.process_time if device == "cpu" else time.perf_counter
    stamps, total = [], 0.0
    for _ in range(steps):
        if device != "cpu":
            torch.cuda.synchronize()
        stamps.append(clock())
        {clear}
        loss = nn.functional.mse_loss(model(x), y)
        {more}
        loss.backward()
        optimizer.step()
    with open(os.environ["STEP_TIMES"], "w") as file:
        json.dump(stamps, file)


if __name__ == "__main__":
    main()
"""
_CLEAR = "optimizer.zero_grad()"
# What is found, and the two statements that differ.
VARIANTS = {
    "nothing": (_CLEAR, "pass"),
    "graph-kept-by-accumulation": (_CLEAR, "total += loss"),
    "missing-zero-grad": ("pass", "pass"),
    "param-data-mutation-in-step": (_CLEAR, "for weight in model.parameters(): weight.data.mul_(0.999)"),
}
STEPS = {"small": 400, "large": 40}
_WARM = 5  # steps that are not counted


@dataclass(frozen=True)
class Cost:
    """Milliseconds per step of a model without and with the companion."""

    model: str
    found: str
    plain: float
    watched: float

    @property
    def row(self) -> str:
        more = self.watched - self.plain
        return (
            f"| {self.model} | {self.found} | {self.plain:.2f} | {self.watched:.2f} | {more:+.2f} |"
            f" {more / self.plain:+.0%} |"
        )


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="pairs of runs (default: %(default)s)")
    parser.add_argument("--device", choices=("cpu", "cuda"), default=None, help="default: a GPU if there is one")
    options = parser.parse_args(arguments)
    device = options.device or _device()
    print("| model | found | alone, ms | under lightlint, ms | more, ms | |")
    print("|---|---|--:|--:|--:|--:|")
    for model in STEPS:
        for found in VARIANTS:
            print(_cost(model, found, device, options.rounds).row, flush=True)
    print(f"\n{_where(device)}, Python {platform.python_version()}, torch {version('torch')}.")
    return 0


def _cost(model: str, found: str, device: str, rounds: int) -> Cost:
    clear, more = VARIANTS[found]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "pyproject.toml").touch()
        (Path(folder) / "train.py").write_text(PROGRAM.replace("{clear}", clear).replace("{more}", more))
        pairs = [
            (_milliseconds(model, device, Path(folder)), _milliseconds(model, device, Path(folder), found))
            for _ in range(rounds)
        ]
    plain, watched = (min(each) for each in zip(*pairs, strict=True))
    return Cost(model, found, plain, watched)


def _milliseconds(model: str, device: str, folder: Path, found: str | None = None) -> float:
    """A step's time, under the companion where it is told what that is to find."""
    times = folder / "times.json"
    program = ["train.py", model, str(STEPS[model]), device]
    companion = ["-m", "lightlint", "confirm", "--output-format", "json", "--epochs", "1", "--no-sandbox"]
    command = [*companion, "--batches", "1000000", "--", sys.executable] if found else []
    done = subprocess.run(
        [sys.executable, *command, *program],
        cwd=folder,
        env={**os.environ, "STEP_TIMES": str(times)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if found:
        judged = [each["finding"]["name"] for each in json.loads(done.stdout)["verdicts"]]
        if judged != [name for name in (found,) if name != "nothing"]:
            raise SystemExit(f"{found} was to be found, and found were {judged}: {done.stderr}")
    elif done.returncode:
        raise SystemExit(done.stderr)
    stamps = json.loads(times.read_text())
    times.unlink()
    return 1000 * median(later - earlier for earlier, later in zip(stamps[_WARM:], stamps[_WARM + 1 :], strict=False))


def _device() -> str:
    asked = "import torch; print('cuda' if torch.cuda.is_available() else 'cpu')"
    return subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout.strip()


def _where(device: str) -> str:
    if device == "cuda":
        asked = "import torch; print(torch.cuda.get_device_name())"
        return subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout.strip()
    names = [line.partition(":")[2].strip() for line in _cpu_lines() if line.startswith("model name")]
    return f"One core of {names[0]}" if names else f"One core of {platform.processor() or platform.machine()}"


def _cpu_lines() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
