"""What some of the labelled cases need to run at all: arguments, or lines that train the classes they define."""

from __future__ import annotations

_TENSORS = """
from torch.utils.data import DataLoader as _Loader, TensorDataset as _Set

def _loader(*shapes, size=4, rows=32):
    torch.manual_seed(0)
    columns = (torch.randn(rows, *each) if isinstance(each, tuple) else each for each in shapes)
    return _Loader(_Set(*columns), size)

"""
_QUIET = 'accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False'
_MAIN = 'if __name__ == "__main__":\n    '

ARGUMENTS: dict[str, tuple[str, ...]] = {
    "P036": ("--train-iters", "8", "--save-interval", "2"),
}
# By case: the file that runs (empty: the case's own), and what follows in it.
DRIVERS: dict[str, tuple[str, str]] = {
    "L006": ("", f"{_TENSORS}{_MAIN}train(_loader((256,), ()), _loader((256,), ()))\n"),
    "L012": (
        "",
        f"{_TENSORS}{_MAIN}L.Trainer(max_epochs=1, {_QUIET}).fit("
        "Enhancer(nn.Linear(6, 6), nn.Linear(6, 1)), _loader((6,), (6,)))\n",
    ),
    "L016": (
        "",
        _TENSORS
        + "class _Generator(torch.nn.Module):\n"
        + "    def __init__(self):\n        super().__init__()\n        self.net = torch.nn.Linear(6, 6)\n"
        + "    def forward(self, content, f0):\n        return self.net(content) + f0\n\n"
        + f"{_MAIN}pl.Trainer(max_epochs=2, {_QUIET}).fit("
        + "VoiceConversion(_Generator(), torch.nn.Linear(6, 1)), _loader((6,), (6,), (6,)))\n",
    ),
    "L020": ("", f"{_TENSORS}{_MAIN}main(_loader((784,)))\n"),
    "L022": (
        "",
        _TENSORS
        + "class _Scenes(torch.utils.data.Dataset):\n    def __len__(self):\n        return 16\n"
        + "    def __getitem__(self, index):\n"
        + "        return {'image': torch.ones(3, 8, 8), 'semantic': torch.zeros(8, 8, dtype=torch.long)}\n\n"
        + f"{_MAIN}pl.Trainer(max_epochs=1, {_QUIET}).fit("
        + "PanopticNet(nn.Conv2d(3, 256, 1), 5), _Loader(_Scenes(), 4))\n",
    ),
    "L024": (
        "",
        f"{_TENSORS}{_MAIN}pl.Trainer(max_epochs=2, {_QUIET}).fit(Forecaster(3, 5, 2), "
        "_loader((5, 3), (2, 3)), _loader((5, 3), (2, 3)))\n",
    ),
    "L026": (
        "",
        f"{_TENSORS}{_MAIN}L.Trainer(max_epochs=2, {_QUIET}).fit(TabularNet(3, [4, 5]), "
        "_loader((3,), torch.zeros(32, 2, dtype=torch.long), ()))\n",
    ),
    "L028": (
        "",
        "import torch\n"
        "class _Fit(L.LightningModule):\n"
        "    def __init__(self):\n        super().__init__()\n        self.net = torch.nn.Linear(3, 1)\n"
        "    def training_step(self, batch, batch_idx):\n        return self.net(batch[0]).square().mean()\n"
        "    def validation_step(self, batch, batch_idx):\n"
        "        self.log('val_loss', self.net(batch[0]).square().mean())\n"
        "    def configure_optimizers(self):\n        return torch.optim.SGD(self.parameters(), lr=0.1)\n\n"
        "class _Data(L.LightningDataModule):\n"
        "    def train_dataloader(self):\n"
        "        return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(32, 3)), 4)\n"
        "    val_dataloader = train_dataloader\n\n"
        f"{_MAIN}train(_Fit(), _Data(), 'out')\n",
    ),
    "L036": (
        "",
        _TENSORS
        + "class _Meshes(torch.utils.data.Dataset):\n    def __len__(self):\n        return 16\n"
        + "    def __getitem__(self, index):\n        return {'image': torch.ones(2048), 'joints': torch.zeros(24, 3)}\n\n"
        + f"{_MAIN}pl.Trainer(max_epochs=2, {_QUIET}).fit("
        + "MeshRegressor(nn.Identity()), _Loader(_Meshes(), 4), _Loader(_Meshes(), 4))\n",
    ),
    "L040": (
        "",
        f"{_TENSORS}{_MAIN}pl.Trainer(max_epochs=2, {_QUIET}).fit("
        "PropertyModel(nn.Linear(4, 4), nn.Linear(4, 1)), _loader((4,), (1,)))\n",
    ),
    "L044": ("", f"{_TENSORS}{_MAIN}run(_loader((21, 3), (), (21, 3)), _loader((21, 3), (), (21, 3)))\n"),
    "L058": (
        "",
        f"{_TENSORS}_labels = torch.arange(32) % 2\n{_MAIN}pl.Trainer(max_epochs=2, {_QUIET}).fit(ChurnModel(5), "
        "_loader((5,), _labels), _loader((5,), _labels))\n",
    ),
    "L062": (
        "model.py",
        f"{_TENSORS}{_MAIN}L.Trainer(max_epochs=1, {_QUIET}).fit(CharModel(), "
        "_Loader(torch.zeros(16, 9, dtype=torch.long), 4))\n",
    ),
    "L066": ("", f"{_TENSORS}{_MAIN}main(_loader((7, 3), (3,)), 3)\n"),
    "L068": (
        "",
        f"{_TENSORS}{_MAIN}L.Trainer(max_epochs=2, {_QUIET}).fit(VideoPredictor(hidden=4), "
        "_loader((1, 3, 8, 8), (1, 3, 8, 8)))\n",
    ),
}
# They need a GPU, a package or another file that is not there, or are about notebooks and what pip installs.
UNRUNNABLE = frozenset(
    (
        *("L004", "L008", "L010", "L014", "L018", "L030", "L032", "L034", "L038", "L046", "L048", "L050"),
        *("L052", "L054", "L056", "L060", "P022", "P072", "P044", "P046", "P054", "P060", "P062"),
    )
)
