"""Shows that time grows with the code and no faster: `python tests/benchmarks/outliers.py [--shape NAME] [--most SECONDS]`.

Makes training code in the shapes that recursion without a memo cannot bear: methods that all call each other, statements
and expressions nested n deep, one name bound n times, chains of n branches, calls, base classes and star imports, a package
whose n files import one another. Each shape is linted at doubling n, with every rule, without cache and in one process.
Prints CPU seconds against n and kilobytes, and the growth: the exponent of time over size between a row and the one before
(1 is linear); and which rule took the most. A shape stops growing when a row took `--most` seconds.
"""

from __future__ import annotations

import argparse
import math
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import lightlint.clock
from lightlint.clock import STAGES
from lightlint.config.settings import load
from lightlint.pipeline import run

Files = dict[str, str]
SHAPES: dict[str, tuple[Callable[[int], Files], tuple[int, ...]]] = {}
_HEAD = """\
import os
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
import pytorch_lightning as pl
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler

"""


def shape(*sizes: int) -> Callable[[Callable[[int], Files]], Callable[[int], Files]]:
    """A shape of code, with the n it is made at."""

    def enter(make: Callable[[int], Files]) -> Callable[[int], Files]:
        SHAPES[make.__name__.replace("_", "-")] = make, sizes
        return make

    return enter


def _lines(count: int, line: str) -> str:
    return "".join(line.replace("@1", str(number + 1)).replace("@", str(number)) for number in range(count))


_TRAINER = """\
class Trainer:
    def __init__(self, loader, val_loader, device):
        dist.init_process_group("nccl")
        self.net = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.BatchNorm1d(8))
        self.model = DDP(self.net.to(device))
        self.optimizer = torch.optim.Adam(self.model.parameters())
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 3)
        self.scaler = torch.cuda.amp.GradScaler()
        self.loader, self.val_loader, self.total, self.best, self.losses = loader, val_loader, 0, 0, []

    def fit(self, epochs):
        for epoch in range(epochs):
            for x, y in self.loader:
                self.optimizer.zero_grad()
                loss = F.cross_entropy(self.model(x), y)
                self.scaler.scale(loss).backward()
                self.scaler.step(self.optimizer)
                self.scaler.update()
                self.losses.append(loss.item())
            self.scheduler.step()
            self.evaluate(epoch)
            self.method_0(epoch)
            torch.save(self.model.state_dict(), "last.pt")

    def evaluate(self, epoch):
        self.model.eval()
        with torch.no_grad():
            for x, y in self.val_loader:
                self.total += F.cross_entropy(self.model(x), y).item()
        dist.barrier()

"""


@shape(10, 20, 40, 80)
def methods_calling_all(n: int) -> Files:
    """A class of n methods, each of which calls all."""
    calls = _lines(n, "        self.method_@(x)\n")
    return {"train.py": _HEAD + _TRAINER + _lines(n, f"    def method_@(self, x):\n{calls}\n")}


@shape(40, 80, 160, 320, 640)
def methods_calling_next(n: int) -> Files:
    """A class of n methods, each of which calls the next three, twice, through the objects that hold it, too."""
    return {
        "train.py": _HEAD
        + _TRAINER
        + "".join(
            f"    def method_{number}(self, x):\n"
            + "".join(f"        x = self.method_{(number + step) % n}(x)\n" * 2 for step in (1, 2, 3))
            + "        return x\n\n"
            for number in range(n)
        )
    }


@shape(10, 20, 40, 80)
def functions_calling_all(n: int) -> Files:
    """A script of n functions, each of which is given model, optimizer and loader, and gives them to all."""
    given = "model, optimizer, loader, loss"
    calls = _lines(n, f"    loss = step_@({given})\n")
    body = f"def step_@({given}):\n{calls}    return loss\n\n\n"
    return {"train.py": _HEAD + _lines(n, body) + _SCRIPT.replace("BODY", f"step_0({given})")}


@shape(40, 80, 160, 320, 640)
def call_chain(n: int) -> Files:
    """A script of n functions, each of which gives what it is given to the next one."""
    given = "model, optimizer, loader, loss"
    body = f"def step_@({given}):\n    model.train()\n    return step_@1({given})\n\n\n"
    last = f"def step_{n}({given}):\n    loss.backward()\n    optimizer.step()\n    return loss\n\n\n"
    return {"train.py": _HEAD + _lines(n, body) + last + _SCRIPT.replace("BODY", f"step_0({given})")}


_SCRIPT = """\
def main(rank):
    dist.init_process_group("nccl")
    dataset = torch.utils.data.TensorDataset(torch.randn(64, 8), torch.randint(2, (64,)))
    loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset), num_workers=2)
    model = DDP(nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.BatchNorm1d(8)).cuda(), device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3)
    losses, total = [], 0
    for epoch in range(10):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            BODY
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
            total += loss.item()
        scheduler.step()
        model.eval()
        if rank == 0:
            torch.save({"model": model.state_dict(), "total": total}, "last.pt")


if __name__ == "__main__":
    main(int(os.environ["LOCAL_RANK"]))
"""
_AT = " " * 12


def _script(body: str) -> Files:
    """The script with statements in the place where the loss is known."""
    indented = "".join(f"{_AT}{line}\n" for line in body.splitlines())
    return {"train.py": _HEAD + _SCRIPT.replace(f"{_AT}BODY\n", indented)}


@shape(40, 80, 160, 320, 640)
def one_name_bound(n: int) -> Files:
    """A loss that is bound n times, each time by its last value."""
    return _script(_lines(n, "loss = loss * 0.5 + F.mse_loss(model(x), y)\n"))


@shape(40, 80, 160, 320, 640)
def names_in_turn(n: int) -> Files:
    """n names, each made of the two before."""
    return _script(
        "h_0 = h_1 = x\n"
        + "".join(f"h_{number + 2} = F.relu(h_{number + 1} + h_{number})\n" for number in range(n))
        + f"loss = loss + F.mse_loss(h_{n + 1}, y)\n"
    )


@shape(40, 80, 160, 320, 640)
def branches_in_a_row(n: int) -> Files:
    """n tests in a row, each of which may bind the loss and the model anew: 2 ** n paths."""
    return _script(_lines(n, "if x.shape[0] > @:\n    loss = loss + model(x).mean() * @\n    y = y.to(x.device)\n"))


@shape(40, 80, 160, 320, 640)
def elif_chain(n: int) -> Files:
    """One chain of n branches."""
    return _script(
        "if epoch == -1:\n    loss = loss * 2\n"
        + _lines(n, "elif epoch == @:\n    loss = loss + F.mse_loss(model(x), y)\n    model.train(epoch > @)\n")
    )


@shape(10, 20, 40, 80)
def nested_branches(n: int) -> Files:
    """Tests nested n deep, with a loss in each."""
    return _script(
        "".join(
            f"{'  ' * depth}if epoch > {depth}:\n{'  ' * (depth + 1)}loss = loss + F.mse_loss(model(x), y)\n"
            for depth in range(n)
        )
    )


@shape(4, 8, 16)
def nested_loops(n: int) -> Files:
    """Loops nested n deep, with a step in each."""
    return _script(
        "".join(
            f"{'  ' * depth}for i_{depth} in range(3):\n"
            f"{'  ' * (depth + 1)}loss = F.mse_loss(model(x), y)\n"
            f"{'  ' * (depth + 1)}loss.backward()\n{'  ' * (depth + 1)}optimizer.step()\n"
            for depth in range(n)
        )
    )


@shape(2, 4, 8)
def nested_finally(n: int) -> Files:
    """`try` nested n deep in its own `finally`."""
    return _script(
        "".join(f"{'  ' * depth}try:\n{'  ' * depth}  loss.backward()\n{'  ' * depth}finally:\n" for depth in range(n))
        + f"{'  ' * n}optimizer.step()"
    )


@shape(10, 20, 40, 80)
def nested_functions(n: int) -> Files:
    """Functions nested n deep, each of which uses what the outer ones bound."""
    nested = "".join(
        f"{'  ' * depth}def inner_{depth}(a_{depth}):\n{'  ' * (depth + 1)}loss = F.mse_loss(model(a_{depth}), y)\n"
        for depth in range(n)
    )
    return _script(nested + f"{'  ' * n}loss.backward()\n" + "inner_0(x)\n")


@shape(40, 80, 160)
def nested_modules(n: int) -> Files:
    """Modules made inside one another, n deep."""
    made = "nn.Sequential(nn.Linear(8, 8), " * n + "nn.Dropout(0.1)" + ")" * n
    return _script(f"net = {made}.cuda()\nnet.eval()\nloss = loss + net(x).mean()\n")


@shape(40, 80, 160)
def nested_calls(n: int) -> Files:
    """Functions of a value, n deep, and as many methods in a row."""
    inner = "F.relu(" * n + "model(x)" + ")" * n
    return _script(f"loss = F.cross_entropy({inner}, y)\nout = model(x){'.float()' * n}\nloss += F.nll_loss(out, y)\n")


@shape(40, 80, 160, 320)
def long_sum(n: int) -> Files:
    """A sum of n losses in one expression."""
    return _script("loss = loss" + _lines(n, " + F.mse_loss(model(x), y) * @") + "\n")


@shape(40, 80, 160, 320, 640)
def long_display(n: int) -> Files:
    """A dict and a list of n losses and tensors, read again key by key."""
    return _script(
        "out = {" + _lines(n, "'k@': F.mse_loss(model(x), y), ") + "}\n" + _lines(n, "loss = loss + out['k@']\n")
    )


@shape(40, 80, 160, 320, 640)
def optimizers(n: int) -> Files:
    """n models, each with an optimizer, a scheduler, a loader and a loop of its own."""
    one = """\
def train_@(rank):
    model_@ = DDP(nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5)).cuda())
    optimizer_@ = torch.optim.SGD(model_@.parameters(), lr=0.1)
    scheduler_@ = torch.optim.lr_scheduler.StepLR(optimizer_@, 3)
    loader_@ = DataLoader(torch.utils.data.TensorDataset(torch.randn(8, 8)), batch_size=4, shuffle=True)
    for epoch in range(3):
        for (x,) in loader_@:
            loss = model_@(x).pow(2).mean()
            loss.backward()
            optimizer_@.step()
            optimizer_@.zero_grad()
        scheduler_@.step()
        model_@.eval()
        torch.save(model_@.state_dict(), "m@.pt")


"""
    return {"train.py": _HEAD + 'dist.init_process_group("nccl")\n\n\n' + _lines(n, one)}


@shape(40, 80, 160, 320)
def top_level(n: int) -> Files:
    """The same n times in one scope, as a notebook's cells are: every name is bound n times."""
    one = """\
model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3)
loader = DataLoader(torch.utils.data.TensorDataset(torch.randn(8, 8)), batch_size=4, shuffle=True)
losses = []
for epoch in range(3):
    model.train()
    for (x,) in loader:
        loss = F.mse_loss(model(x), x)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    scheduler.step()
    model.eval()
    torch.save(model.state_dict(), "m.pt")
"""
    return {"train.py": _HEAD + _lines(n, one)}


_MODULE = """\
class Module_@1(Module_@):
    def __init__(self, width):
        super().__init__(width)
        self.layer_@ = nn.Linear(width, width)
        self.dropout_@ = nn.Dropout(0.1)

    def forward(self, x):
        return self.dropout_@(self.layer_@(super().forward(x)))

    def training_step(self, batch, batch_idx):
        loss = super().training_step(batch, batch_idx) + F.mse_loss(self(batch), batch)
        self.log("train_@", loss)
        self.helper(batch)
        return loss

    def validation_step(self, batch, batch_idx):
        self.eval()
        self.log("val_@", super().validation_step(batch, batch_idx))
        torch.save(self.state_dict(), "val.pt")

    def helper(self, batch):
        super().helper(batch)
        self.total = self.total + self.training_step(batch, 0)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


"""


@shape(10, 20, 40, 80, 160)
def base_chain(n: int) -> Files:
    """LightningModules, each of which extends the one before."""
    return {"model.py": _HEAD + "Module_0 = pl.LightningModule\n\n\n" + _lines(n, _MODULE)}


@shape(10, 20, 40, 80)
def base_chain_over_files(n: int) -> Files:
    """As before, each class in a file of its own."""
    files = {
        "package/__init__.py": "",
        "package/m_0.py": "import pytorch_lightning as pl\n\n\nclass Module_0(pl.LightningModule):\n    pass\n",
    }
    for number in range(n):
        head = f"{_HEAD}from package.m_{number} import Module_{number}\n\n\n"
        files[f"package/m_{number + 1}.py"] = head + _lines(number + 1, "\0" + _MODULE).rpartition("\0")[2]
    return files


@shape(10, 20, 40, 80)
def star_chain(n: int) -> Files:
    """n files, each of which imports everything of the next, and of the one behind it."""
    files = {"package/__init__.py": "from package.m_0 import *\n"}
    for number in range(n):
        stars = "".join(f"from package.m_{each} import *\n" for each in (number + 1, number + 2) if each < n)
        files[f"package/m_{number}.py"] = _HEAD + stars + _lines(number + 1, "\0" + _USER).rpartition("\0")[2]
    return files


@shape(10, 20, 40)
def star_mesh(n: int) -> Files:
    """n files, each of which imports everything of all."""
    stars = _lines(n, "from package.m_@ import *\n")
    return {"package/__init__.py": stars} | {
        f"package/m_{number}.py": _HEAD + stars + _lines(number + 1, "\0" + _USER).rpartition("\0")[2]
        for number in range(n)
    }


_USER = """\
class Net_@(Base_@1):
    def __init__(self):
        super().__init__()
        self.net = Net_@1()

    def training_step(self, batch, batch_idx):
        loss = unknown_@(self.net(batch))
        torch.save(self.net.state_dict(), "net.pt")
        return loss


def unknown_@1(x):
    dist.barrier()
    return x.mean()


def main():
    trainer = pl.Trainer(devices=2, strategy="ddp")
    trainer.fit(Net_@(), DataLoader(Data_@1(), batch_size=4))


"""


@shape(10, 20, 40)
def files_importing_all(n: int) -> Files:
    """A package of n files, each of which imports and uses a class and a function of all."""
    files = {"package/__init__.py": _lines(n, "from package.m_@ import Module_@1, work_@1\n")}
    for number in range(n):
        imports = _lines(n, "from package.m_@ import Module_@1 as Other_@, work_@1 as job_@\n")
        uses = _lines(n, "    job_@(model)\n    Other_@(8)\n")
        one = _lines(number + 1, "\0" + _MODULE.replace("(Module_@)", "(pl.LightningModule)")).rpartition("\0")[2]
        work = f"def work_{number + 1}(model):\n{uses}    torch.save(model.state_dict(), 'm.pt')\n\n\n"
        files[f"package/m_{number}.py"] = _HEAD + imports + one + work
    files["train.py"] = (
        f"{_HEAD}from package import *\n\nmodel = Module_1(8)\nwork_1(model)\npl.Trainer(devices=2).fit(model)\n"
    )
    return files


@shape(10, 20, 40, 80, 160)
def scripts_beside_one_package(n: int) -> Files:
    """n scripts that train what one package defines, as a folder of examples does."""
    package = (
        _HEAD
        + "Module_0 = pl.LightningModule\n\n\n"
        + _lines(3, _MODULE)
        + "def work(model):\n    torch.save(model, 'm.pt')\n"
    )
    script = f"{_HEAD}from package.model import Module_3, work\n\n" + _SCRIPT.replace("BODY", "work(model)")
    trained = "\npl.Trainer(devices=2).fit(Module_3(8), None)\n"
    return {"package/__init__.py": "from package.model import *\n", "package/model.py": package} | {
        f"train_{number}.py": script + trained for number in range(n)
    }


@dataclass(frozen=True)
class Row:
    """One measurement."""

    n: int
    kilobytes: float
    seconds: float
    slowest: str

    def growth(self, before: Row | None) -> str:
        """The exponent of time over size since the row before, empty where both took next to nothing."""
        if before is None or self.seconds < 0.2:
            return ""
        return f"{math.log(self.seconds / before.seconds) / math.log(self.kilobytes / before.kilobytes):.1f}"


def measure(n: int, files: Files) -> Row:
    """Write files and lint them."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {"pyproject.toml": "", **files}.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        start = time.process_time()
        result = run.check([folder], load({}, file=None, isolated=True), timed=True)
        seconds = time.process_time() - start
    if result.problems:
        raise RuntimeError(result.problems[0].details or result.problems[0].message)
    rules = [(spent, name) for name, spent in result.spent if name not in STAGES]
    spent, name = max(rules, default=(0.0, ""))
    size = sum(map(len, files.values())) / 1000
    return Row(n, size, seconds, f"{name} {spent:.1f}" if spent > seconds / 5 else "")


def rows(name: str, most: float) -> Iterator[Row]:
    """A shape at doubling n, until a row takes too long."""
    make, sizes = SHAPES[name]
    for n in sizes:
        row = measure(n, make(n))
        yield row
        if row.seconds > most:
            return


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=sorted(SHAPES), action="append", help="only this; repeatable")
    parser.add_argument("--most", type=float, default=20, metavar="SECONDS", help="stop behind a row that took longer")
    options = parser.parse_args(arguments)
    lightlint.clock.perf_counter = time.process_time  # the machine may have other work
    measure(1, optimizers(1))  # imports are none of the first row's
    print(
        "| shape | n | kB | CPU s | ms/kB | growth | slowest rule, s |\n|---|---:|---:|---:|---:|---:|---|", flush=True
    )
    for name in options.shape or SHAPES:
        before = None
        for row in rows(name, options.most):
            cells = f"{row.kilobytes:.0f} | {row.seconds:.2f} | {1000 * row.seconds / row.kilobytes:.1f}"
            print(f"| {name} | {row.n} | {cells} | {row.growth(before)} | {row.slowest} |", flush=True)
            before = row
    print(f"\nPython {platform.python_version()}, {platform.machine()}.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
