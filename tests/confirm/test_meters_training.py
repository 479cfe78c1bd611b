"""The meters of gradients, weights, modes, rates, losses and modules in real programs: bad ones confirmed, good ones not."""

from __future__ import annotations

import pytest
from launched import Place, linux_only, place

pytest.importorskip("torch")
pytestmark = [linux_only, pytest.mark.slow]
__all__ = ["place"]

RAW = """
    import torch
    from torch import nn
    from torch.nn import functional as F
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(3)
    loader = DataLoader(TensorDataset(torch.rand(104, 5), torch.randint(0, 3, (104,))), batch_size=8, num_workers=0)


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = {layers}
            self.last = nn.Sequential(nn.Dropout(0.1), nn.Linear(5, 3))

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return self.last(x)


    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(2):
        {train}
        for x, y in loader:
            {clear}
            loss = F.cross_entropy({input}, y)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            print(sum((model(x).argmax(1) == y).sum().item() for x, y in loader))
"""
BAD = {"layers": "[nn.Linear(5, 5)]", "train": "pass", "clear": "pass", "input": "torch.softmax(model(x), 1)"}
GOOD = {
    "layers": "nn.ModuleList([nn.Linear(5, 5)])",
    "train": "model.train()",
    "clear": "optimizer.zero_grad()",
    "input": "model(x)",
}


def verdicts(place: Place) -> dict[str, str]:
    report = place.report("--", "python", "train.py")
    assert report["run"]["ended"] in {"finished", "cut"}, report["run"]
    return {each["finding"]["name"]: each["verdict"] for each in report["verdicts"]}


def test_a_raw_loop_with_three_faults(place: Place) -> None:
    place.write("train.py", RAW.format(**BAD))
    found = verdicts(place)
    faults = {
        "missing-zero-grad",
        "module-list-not-registered",
        "softmax-before-cross-entropy",
    }
    assert {name: found.get(name) for name in faults} == dict.fromkeys(faults, "confirmed")


def test_the_same_loop_repaired(place: Place) -> None:
    place.write("train.py", RAW.format(**GOOD))
    assert "confirmed" not in verdicts(place).values()


def test_weights_and_schedules_under_lightning(place: Place) -> None:
    pytest.importorskip("lightning")
    place.write(
        "train.py",
        """
        import lightning.pytorch as pl
        import torch
        from torch import nn
        from torch.utils.data import DataLoader, TensorDataset


        class Net(pl.LightningModule):
            def __init__(self):
                super().__init__()
                self.head = nn.Linear(5, 1)

            def training_step(self, batch, batch_idx):
                x, y = batch
                loss = nn.functional.mse_loss(self.head(x), y)
                self.head.weight.data *= 0.9
                return loss

            def configure_optimizers(self):
                optimizer = torch.optim.SGD(self.parameters(), lr=0.1)
                scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=26)
                return {"optimizer": optimizer, "scheduler": scheduler}


        data = TensorDataset(torch.rand(104, 5), torch.rand(104, 1))
        trainer = pl.Trainer(max_epochs=2, accelerator="cpu", devices=1, logger=False, enable_checkpointing=False)
        trainer.fit(Net(), DataLoader(data, batch_size=8, num_workers=0))
        """,
    )
    found = verdicts(place)
    assert found["param-data-mutation-in-step"] == "confirmed"
    assert found["optimizer-dict-unknown-key"] == "confirmed"


WAITING = """
    import warnings

    import torch
    from torch import nn

    warnings.simplefilter("ignore")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = nn.Linear(50, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = torch.utils.data.DataLoader(torch.rand(80, 50), batch_size=8)
    total = 0.0
    for x in data:
        optimizer.zero_grad()
        loss = model(x.to(device)).pow(2).mean()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(total)
"""


def test_waits_for_a_gpu_are_counted_where_there_is_one(place: Place) -> None:
    import torch

    place.write("train.py", WAITING)
    report = place.report("--", "python", "train.py")
    found = {each["finding"]["name"]: each for each in report["verdicts"]}["sync-in-batch-loop"]
    if torch.cuda.is_available():
        assert found["numbers"][0] == {"what": "waits for the GPU each time", "value": 1, "unit": "", "rank": None}
    else:
        assert found["verdict"] == "not observable"
