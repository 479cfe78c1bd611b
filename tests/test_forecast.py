"""`lightlint forecast`: arithmetic on hand-made steps, and real programs simulated without a GPU."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from checkout import ROOT, run

from lightlint.environment.describing.probe import describe
from lightlint.forecast import fit
from lightlint.forecast.breakdown import MIB, Simulation, Step
from lightlint.forecast.gpus import BudgetError, all_gpus, find, parse_size


def needs_torch(test: Callable[..., None]) -> Callable[..., None]:
    return pytest.mark.slow(pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")(test))


needs_lightning = pytest.mark.skipif(find_spec("lightning") is None, reason="Lightning is not installed")
MODEL = """
import torch
from torch import nn


def model():
    return nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 1024))


def batch():
    return torch.zeros(256, 1024)
"""
LOOP = """
import torch
from torch import nn
from torch.utils.data import DataLoader

model = nn.Linear(64, 1).to("cuda")
optimizer = torch.optim.AdamW(model.parameters())
for batch in DataLoader(torch.zeros(512, 64), batch_size=128):
    loss = model(batch.cuda()).mean()
{body}
    optimizer.zero_grad()
"""


def forecast(cwd: Path, *words: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    ran = run([sys.executable, "-m", "lightlint", "forecast", *words], cwd, CUDA_VISIBLE_DEVICES="")
    assert ran.returncode == status, ran.stderr
    return ran


def simulated(cwd: Path, text: str, *options: str, status: int = 0) -> Any:
    (cwd / "train.py").write_text(text)
    command = ("--", sys.executable, "train.py")
    return json.loads(forecast(cwd, "--output-format", "json", *options, *command, status=status).stdout)


def test_the_largest_batch_lies_on_the_line_through_two_forecasts() -> None:
    steps = (Step("step", 8, 100 * MIB + 8 * MIB), Step("double", 16, 100 * MIB + 16 * MIB))
    assert fit.largest(Simulation(steps), 150 * MIB) == 50
    assert fit.largest(Simulation(steps), 99 * MIB) == 0


def test_one_forecast_tells_no_largest_batch() -> None:
    assert fit.largest(Simulation((Step("step", 8, 100 * MIB),)), 150 * MIB) is None


def test_checkpointing_leaves_each_layers_result_and_one_layer_at_a_time() -> None:
    modules = {f"net.layers.{layer}.mlp": 100 for layer in range(4)} | {f"net.layers.{layer}": 10 for layer in range(4)}
    found = fit.checkpointed(Step("step", 8, 500, modules={**modules, "net.head": 60}))
    assert found == fit.Blocks("net.layers", 4, 440 - 110 - 40)


def test_no_list_of_layers_nothing_to_checkpoint() -> None:
    assert fit.checkpointed(Step("step", 8, 500, modules={"net.0": 100, "net.1": 100, "head": 60})) is None


@pytest.mark.parametrize(("text", "size"), [("15GiB", 15 * 2**30), ("16 GB", 16 * 10**9), ("1.5MiB", 3 * 2**19)])
def test_sizes_are_read_as_written(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "15", "much", "-1GiB"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(BudgetError, match="15GiB"):
        parse_size(text)


def test_every_gpu_has_memory_and_a_source() -> None:
    assert all(gpu.memory_mib > 8_000 and "http" in gpu.source for gpu in all_gpus().values())
    assert find("a100-40").memory_mib == 40_960
    with pytest.raises(BudgetError, match="T4"):
        find("Voodoo2")


def test_a_command_or_a_model_must_be_given(tmp_path: Path) -> None:
    ran = forecast(tmp_path, status=2)
    assert ran.stderr.count("\n") == 1


@needs_torch
def test_parameters_gradients_and_state_are_counted_to_the_byte(tmp_path: Path) -> None:
    (tmp_path / "models.py").write_text(MODEL)
    words = ("--model", "models:model", "--batch", "models:batch", "--gpu", "T4", "--output-format", "json")
    found = json.loads(forecast(tmp_path, *words).stdout)
    assert found["problem"] == ""
    step = found["step"]
    size = 4 * (1024 * 4096 + 4096 + 4096 * 1024 + 1024)
    assert step["kinds"]["parameters"] == size
    assert step["gradients"] == size
    assert step["kinds"]["optimizer state"] == pytest.approx(2 * size, rel=0.001)
    assert step["kinds"]["batch"] == 256 * 1024 * 4
    budget = found["budgets"][0]
    assert budget["fits"]
    assert budget["checked"]
    assert budget["largest_batch"] > 100_000


@needs_torch
def test_a_step_that_does_not_fit_is_status_1(tmp_path: Path) -> None:
    (tmp_path / "models.py").write_text(MODEL)
    words = ("--model", "models:model", "--batch", "models:batch", "--budget", "100MiB")
    ran = forecast(tmp_path, *words, status=1)
    assert "does not fit" in ran.stdout


@needs_torch
def test_env_holds_a_forecast_against_a_snapshot(tmp_path: Path) -> None:
    (tmp_path / "models.py").write_text(MODEL)
    words = ("--model", "models:model", "--batch", "models:batch", "--output-format", "json")
    (tmp_path / "report.json").write_text(forecast(tmp_path, *words).stdout)
    for name, size in (("large", 15360), ("small", 600)):
        there = {**describe(), "gpus": [{"name": name, "memory_mib": size, "driver": "1", "mig": False}]}
        (tmp_path / f"{name}.json").write_text(json.dumps(there))
    env = (sys.executable, "-m", "lightlint", "env")
    command = ("check", "models.py", "--forecast", "report.json", "--against")
    fits, fails = (run([*env, *command, f"{name}.json"], tmp_path) for name in ("large", "small"))
    assert "MiB: it fits" in fits.stdout
    assert "MiB: out of memory" in fails.stdout
    assert fails.returncode == 1
    both = run([*env, "diff", "large.json", "small.json", "--forecast", "report.json"], tmp_path)
    assert "it does not fit small.json" in both.stdout.splitlines()[1]


@needs_torch
def test_a_program_that_asks_for_cuda_is_simulated_without(tmp_path: Path) -> None:
    found = simulated(tmp_path, LOOP.format(body="    loss.backward()\n    optimizer.step()\n    print(loss.item())"))
    assert found["problem"] == ""
    assert [step["batch"] for step in found["steps"]][:3] == [128, 128, 256]


@needs_torch
def test_accumulated_gradients_are_one_step(tmp_path: Path) -> None:
    body = "    loss.backward()\n    count = globals().get('count', 0) + 1\n    if count % 2:\n        continue\n    optimizer.step()"
    assert simulated(tmp_path, LOOP.format(body=body))["step"]["gradients"] == 65 * 4


@needs_torch
def test_values_that_a_program_prints_or_hands_to_numpy_do_not_end_the_simulation(tmp_path: Path) -> None:
    printed = (
        "print(f'{loss:.3f}', loss.detach().numpy().round(2), batch.mean(1).tolist()[0], np.asarray(batch).mean())"
    )
    text = LOOP.format(body=f"    {printed}\n    loss.backward()\n    optimizer.step()")
    found = simulated(tmp_path, f"import numpy as np\n{text}")
    assert found["problem"] == ""
    assert [step["label"] for step in found["steps"]] == ["first", "step", "double", "bf16"]


@needs_torch
def test_what_cannot_be_simulated_is_told_with_its_line(tmp_path: Path) -> None:
    text = LOOP.format(body="    print(batch[batch > 0].shape)\n    loss.backward()\n    optimizer.step()")
    (tmp_path / "train.py").write_text(text)
    ran = forecast(tmp_path, "--", sys.executable, "train.py", status=2)
    row = text.splitlines().index("    print(batch[batch > 0].shape)") + 1
    assert f"train.py:{row}" in ran.stdout


@needs_torch
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import torch\nmodel = torch.nn.Linear(2, 2)\n", "took no optimizer step"),
        ("raise ValueError('no data here')\n", "ValueError: no data here"),
    ],
)
def test_a_program_that_never_steps_is_one_clear_line(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "train.py").write_text(text)
    ran = forecast(tmp_path, "--", sys.executable, "train.py", status=2)
    assert words in ran.stdout
    assert ran.stdout.count("\n") == 1


LIGHTNING = """
import copy

import lightning as L
import torch
import torchmetrics
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 10))
        self.accuracy = torchmetrics.Accuracy("multiclass", num_classes=10)

    def training_step(self, batch, batch_idx):
        print("batch", batch_idx)
        images, labels = batch
        loss = nn.functional.cross_entropy(self.net(images), labels)
        self.accuracy(self.net(images), labels)
        self.log("loss", loss, prog_bar=True, on_epoch=True)
        self.log("accuracy", self.accuracy)
        self.best = copy.deepcopy(self.net.state_dict())
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())


data = TensorDataset(torch.randn(512, 512), torch.randint(0, 10, (512,)))
trainer = L.Trainer(max_epochs=2, accelerator="gpu", precision="16-mixed", gradient_clip_val=1.0)
trainer.fit(Net(), DataLoader(data, batch_size=64))
"""


@needs_torch
@needs_lightning
def test_a_lightning_module_that_logs_measures_and_copies_is_simulated(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(LIGHTNING)
    ran = forecast(tmp_path, "--output-format", "json", "--gpu", "T4", "--", sys.executable, "train.py")
    found = json.loads(ran.stdout)
    assert found["problem"] == ""
    labels = [step["label"] for step in found["steps"]]
    assert labels[:4] == ["first", "step", "double", "bf16"]
    assert ran.stderr.count("\nbatch ") + ran.stderr.startswith("batch ") == len(labels)  # a step takes one batch
    size = 4 * (512 * 1024 + 1024 + 1024 * 10 + 10)
    assert found["step"]["gradients"] == size
    assert found["step"]["kinds"]["optimizer state"] == pytest.approx(2 * size, rel=0.01)
    assert found["budgets"][0]["largest_batch"] > 100_000


@needs_torch
@needs_lightning
def test_the_seed_with_a_batch_of_5000_takes_19_mib(tmp_path: Path) -> None:
    text = (ROOT / "fixtures" / "seeds" / "s02_batch_of_5000" / "one_device.py").read_text()
    found = simulated(tmp_path, text, "--gpu", "T4")
    assert found["step"]["kinds"]["batch"] // MIB == 19
    assert found["step"]["peak"] // MIB == 19
    assert found["budgets"][0]["fits"]
