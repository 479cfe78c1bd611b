"""The logger that stands in for a program's own: a program that uses its loggers runs as it would with them."""

from __future__ import annotations

import copy
import os
import pickle

import pytest
from launched import Place, linux_only, place

from lightlint.confirm.boot.frameworks.logger import Experiment, make_logger

__all__ = ["place"]

PROGRAM = """
    from pathlib import Path
    import lightning as L
    import torch
    from lightning.pytorch.loggers import CSVLogger
    from torch.utils.data import DataLoader, TensorDataset

    class Net(L.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = torch.nn.Linear(3, 1)

        def training_step(self, batch, batch_idx):
            self.logger.experiment.add_scalar("a", 1, batch_idx)
            self.loggers[1].experiment.config.update({"a": 1})
            self.logger.log_image(key="x", images=[])
            for folder in (self.logger.log_dir, self.trainer.log_dir, self.logger.save_dir):
                (Path(folder) / "a.txt").write_text("x")
            return self.net(batch[0]).square().mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    class Quick(L.Trainer):
        pass

    if __name__ == "__main__":
        trainer = Quick(accelerator="cpu", max_epochs=3, logger=[CSVLogger("x"), CSVLogger("y")])
        trainer.fit(Net(), DataLoader(TensorDataset(torch.randn(32, 3)), 4))
"""


def test_an_experiment_takes_everything() -> None:
    experiment = Experiment("/runs")
    experiment.config.update({"a": 1})
    experiment["loss"] = 1
    with experiment.span("step"):
        assert list(experiment.files()) == []
    assert (os.fspath(experiment.dir), os.fspath(pickle.loads(pickle.dumps(experiment)))) == ("/runs", "/runs")


def test_a_logger_is_pickled_and_copied() -> None:
    pytest.importorskip("lightning")
    logger = make_logger("lightning.pytorch", "/runs")
    for each in (logger, copy.deepcopy(logger), pickle.loads(pickle.dumps(logger))):
        assert (each.save_dir, each.log_dir, each.root_dir) == ("/runs", "/runs", "/runs")


@linux_only
def test_a_program_writes_beside_its_logs(place: Place) -> None:
    pytest.importorskip("lightning")
    place.write("train.py", PROGRAM)
    report = place.report("--no-timing", "--no-sandbox", "--", "python", "train.py")
    assert (report["run"]["ended"], report["run"]["steps"], report["run"]["written"]) == ("finished", {"0": 8}, [])
    assert sorted(path.name for path in place.project.iterdir() if path.name != "__pycache__") == [
        "pyproject.toml",
        "train.py",
    ]
