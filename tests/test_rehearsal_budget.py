"""A file that takes too long to be rehearsed whole: some of its entries are left without a path, and no check falls over it."""

from __future__ import annotations

from pathlib import Path

import pytest

from lightlint.config.settings import load
from lightlint.explore import rehearsals
from lightlint.facts.project.project import Projects
from lightlint.linting.lint import lint
from lightlint.sources.load import load as load_source

PROGRAM = """
import lightning as L
import torch
from torch.utils.data import DataLoader, random_split


class Data(L.LightningDataModule):
    def train_dataloader(self):
        return DataLoader(random_split(self.data, [8, 2])[0])

    def val_dataloader(self):
        return DataLoader(random_split(self.data, [8, 2])[1])


class Net(L.LightningModule):
    def training_step(self, batch, batch_idx):
        return self.net(batch).mean()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())


def train(model, loader):
    optimizer = torch.optim.Adam(model.parameters())
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
"""


@pytest.mark.parametrize("steps", [0, 1, 50, 200])
def test_no_check_fails_where_the_budget_is_gone(steps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsals, "_STEPS_PER_FILE", steps)
    (tmp_path / "program.py").write_text(PROGRAM)
    linted = lint(load_source(tmp_path / "program.py"), load(isolated=True), Projects())
    assert not linted.crashes, linted.crashes[0].traceback


STEPPED = """
import lightning as L
import torch
from torch import nn


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.head = nn.Linear(16, 1)

    def training_step(self, batch, batch_idx):
        optimizer = self.optimizers()
        decay = self.lr_schedulers()
        optimizer.zero_grad()
        self.manual_backward(self.head(batch).mean())
        optimizer.step()
        for _ in range(100):
            self.log("loss", self.head(batch).mean())
        decay.step()

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=0.1)
        return [optimizer], [torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)]
"""


@pytest.mark.parametrize("steps", range(20, 160, 10))
def test_what_lies_behind_the_budget_is_not_missed(steps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsals, "_STEPS_PER_PATH", steps)
    (tmp_path / "program.py").write_text(STEPPED)
    linted = lint(load_source(tmp_path / "program.py"), load(isolated=True), Projects())
    assert not [finding for finding in linted.findings if finding.counts], steps


SAVED = """
import torch


def train(model, loader, optimizer, epochs, every=1000, step=0):
    for _ in range(epochs):
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % every == 0:
                torch.cuda.empty_cache()
            step += 1
"""


@pytest.mark.parametrize("steps", range(20, 240, 20))
def test_the_first_of_many_steps_is_not_each_one(steps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the budget ends, a call at each thousandth step is none in each batch."""
    monkeypatch.setattr(rehearsals, "_STEPS_PER_PATH", steps)
    (tmp_path / "program.py").write_text(SAVED)
    linted = lint(load_source(tmp_path / "program.py"), load(isolated=True), Projects())
    assert not [each for each in linted.findings if each.code == "LL501"]
