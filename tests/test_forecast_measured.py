"""Steps that cannot be simulated: measured where there is a GPU, one clear line where there is none."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from checkout import run

from lightlint.forecast import report
from lightlint.forecast.breakdown import MIB, Measured, Simulation
from lightlint.forecast.report import Budget, Forecast


def needs_torch(test: Callable[..., None]) -> Callable[..., None]:
    return pytest.mark.slow(pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")(test))


LOOP = """
import torch
from torch import nn
from torch.utils.data import DataLoader

device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Sequential(nn.Linear(2048, 8192), nn.ReLU(), nn.Linear(8192, 2048)).to(device)
optimizer = torch.optim.AdamW(model.parameters())
for number, batch in enumerate(DataLoader(torch.randn(4096, 2048), batch_size=512)):
    loss = model(batch.to(device)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    large = batch[batch > 3].mean()  # of a size that a simulation does not know
    if number == 1 and device == "cuda":
        torch.cuda.reset_peak_memory_stats()
if device == "cuda":
    print("peak", torch.cuda.max_memory_allocated())
"""
ROW = LOOP.splitlines().index("    large = batch[batch > 3].mean()  # of a size that a simulation does not know") + 1


def has_gpu() -> bool:
    if find_spec("torch") is None:
        return False
    import torch

    return bool(torch.cuda.is_available())


needs_gpu = pytest.mark.skipif(not has_gpu(), reason="there is no GPU")


def forecast(cwd: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return run([sys.executable, "-m", "lightlint", "forecast", *words], cwd, **environment)


def measured(cwd: Path, *options: str) -> Any:
    words = ("--output-format", "json", *options, "--", sys.executable, "train.py")
    ran = forecast(cwd, *words)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@needs_torch
def test_without_a_gpu_it_says_the_line_and_that_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(LOOP)
    ran = forecast(tmp_path, "--", sys.executable, "train.py", CUDA_VISIBLE_DEVICES="")
    assert ran.returncode == 2
    assert ran.stdout.count("\n") == 1
    assert "the step cannot be simulated, and here is no GPU to measure it" in ran.stdout
    assert f"train.py:{ROW}" in ran.stdout


def told(*budgets: Budget, device: str = "H200", steps: Measured | None = None) -> Forecast:
    simulation = Simulation((), "RuntimeError: no data at train.py:14", device=device)
    return Forecast("python train.py", simulation, budgets, steps)


def test_a_measured_step_is_told_as_measured() -> None:
    kinds = {"parameters": 100 * MIB, "optimizer state": 200 * MIB}
    step = Measured("NVIDIA H200", 1000 * MIB, 1200 * MIB, kinds, batch=512)
    found = told(Budget("T4", 15_000 * MIB), Budget("small", 1010 * MIB), steps=step)
    text = report.render_text(found, colour=False)
    assert "1,000 MiB allocated at the peak, 1,200 MiB reserved, batch 512: measured on NVIDIA H200" in text
    assert "700 MiB  gradients, batch, activations, workspace" in text
    assert "measured, as it cannot be simulated: RuntimeError: no data at train.py:14" in text
    raw = report.as_dict(found)
    assert [row["fits"] for row in raw["budgets"]] == [True, False]
    assert raw["reserved"] == (1200 * MIB, 1200 * MIB)
    assert raw["measured"]["allocated"] == 1000 * MIB
    assert raw["allocated"] == 1000 * MIB


def test_a_step_that_could_not_be_measured_either_says_so() -> None:
    assert report.render_text(told(), colour=False).startswith(
        "no forecast: the step cannot be simulated, nor measured on H200: RuntimeError"
    )


@needs_gpu
def test_on_a_gpu_it_measures_what_the_program_itself_measures(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(LOOP)
    itself = re.search(r"peak (\d+)", run([sys.executable, "train.py"], tmp_path).stdout)
    assert itself is not None
    found = measured(tmp_path, "--gpu", "T4")
    assert found["step"] is None
    assert f"train.py:{ROW}" in found["problem"]
    assert found["measured"]["allocated"] == pytest.approx(int(itself[1]), rel=0.02)
    assert found["measured"]["batch"] == 512
    assert found["measured"]["kinds"]["optimizer state"] == pytest.approx(2 * 4 * (2 * 2048 * 8192 + 10_240), rel=0.01)
    assert found["budgets"][0]["fits"]


@needs_gpu
def test_what_can_be_simulated_is_not_measured_on_a_gpu_either(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(LOOP.replace("batch[batch > 3].mean()", "batch.mean()"))
    itself = re.search(r"peak (\d+)", run([sys.executable, "train.py"], tmp_path).stdout)
    assert itself is not None
    found = measured(tmp_path)
    assert found["problem"] == ""
    assert found["measured"] is None
    assert found["allocated"] == pytest.approx(int(itself[1]), rel=0.1)
