"""Real programs on a machine with one GPU: what two ranks do there, and what one process holds."""

from __future__ import annotations

from typing import Any

import pytest
from launched import Place, linux_only, place

__all__ = ["place"]
torch = pytest.importorskip("torch")
pytestmark = [linux_only, pytest.mark.skipif(torch.cuda.device_count() != 1, reason="for a machine with one GPU")]

FALLS_BACK = """
import os
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset


def main():
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    rank = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", rank) if torch.cuda.is_available() else torch.device("cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    loader = DataLoader(TensorDataset(torch.randn(256, 8), torch.randn(256, 1)), batch_size=16)
    model = DistributedDataParallel(nn.Linear(8, 1).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x.to(device)), y.to(device)).backward()
        optimizer.step()


if __name__ == "__main__":
    main()
"""


def test_two_ranks_of_a_program_that_falls_back_run_on_the_cpu(place: Place) -> None:
    place.write("train.py", FALLS_BACK)
    report: dict[str, Any] = place.report("--devices", "2", "--no-timing", "--", "python", "train.py")
    assert report["run"]["ended"] == "finished"
    assert report["run"]["ranks"] == 2
    verdicts = {each["finding"]["code"]: each["verdict"] for each in report["verdicts"]}
    assert verdicts["LL401"] == "confirmed"


MOVED = """
import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 1)

    def training_step(self, batch, batch_idx):
        x, y = batch
        return nn.functional.mse_loss(self.layer(x), y)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def main():
    net = Net()
    net.cuda()
    trainer = L.Trainer(max_steps=3, logger=False, enable_checkpointing=False, enable_progress_bar=False)
    trainer.fit(net, DataLoader(TensorDataset(torch.randn(64, 8), torch.randn(64, 1)), batch_size=8))


if __name__ == "__main__":
    main()
"""


def test_the_driver_tells_what_a_context_takes(place: Place) -> None:
    pytest.importorskip("lightning")
    place.write("train.py", MOVED)
    report: dict[str, Any] = place.report("--no-timing", "--", "python", "train.py")
    (moved,) = [each for each in report["verdicts"] if each["finding"]["name"] == "model-moved-before-fit"]
    held = {each["what"]: each["value"] for each in moved["numbers"]}
    assert held["held on cuda:0 with the context made here"] > 100, report
