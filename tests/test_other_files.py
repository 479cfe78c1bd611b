"""What a program does in other files of its project is told at its own calls, unless it is told there."""

from __future__ import annotations

from pathlib import Path

from lightlint.config.settings import load
from lightlint.facts.project.project import Projects
from lightlint.linting.lint import lint
from lightlint.pipeline import run
from lightlint.sources.load import load as load_source

METER = """\
class Meter:
    def __init__(self):
        self.total = 0.0

    def add(self, value):
        self.total = self.total + value
"""
TRAIN = """\
import torch
from torch import nn

from meter import Meter


def main(batches):
    net = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    meter = Meter()
    for x, y in batches:
        loss = nn.functional.mse_loss(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        meter.add(loss)
    print(float(meter.total))
"""
LOOP = """\
import torch
from torch import nn


def fit(net, optimizer, batches):
    for x, y in batches:
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
"""
STARTS = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from loop import fit

net = nn.Linear(4, 4)
data = TensorDataset(torch.rand(8, 4), torch.rand(8, 4))
fit(net, torch.optim.SGD(net.parameters(), lr=0.1), DataLoader(data, batch_size=4))
"""


def told(folder: Path, name: str, *, gate: bool = True) -> list[tuple[str, int, str]]:
    linted = lint(load_source(folder / name), load({}, isolated=True), Projects(), gate=gate)
    assert not linted.crashes
    return [(each.code, each.location.row, each.message) for each in linted.findings if each.counts]


def project(folder: Path, **files: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return folder


def test_fault_that_only_a_caller_makes_is_told_at_its_call(tmp_path: Path) -> None:
    folder = project(tmp_path, meter=METER, train=TRAIN)
    expected = [("LL102", 16, "the sum keeps the autograd graph of every iteration alive (meter.py:6)")]
    assert told(folder, "train.py") == expected
    assert told(folder, "train.py", gate=False) == expected
    assert told(folder, "meter.py") == []


def test_mended_caller_is_silent(tmp_path: Path) -> None:
    assert told(project(tmp_path, meter=METER, train=TRAIN.replace("add(loss)", "add(loss.item())")), "train.py") == []


def test_fault_that_its_own_file_shows_is_told_once(tmp_path: Path) -> None:
    folder = project(tmp_path, loop=LOOP, starts=STARTS)
    assert [code for code, _, _ in told(folder, "loop.py")] == ["LL101"]
    assert [each for each in told(folder, "starts.py") if each[0] == "LL101"] == []


def test_rule_is_asked_by_the_words_of_all_files_that_run(tmp_path: Path) -> None:
    """`no_grad` and the loop stand elsewhere: the file that starts them has no word of the rule's."""
    penalty = (
        "import torch\n\n\ndef penalty(critic, real):\n    real = real.detach().requires_grad_(True)\n"
        "    score = critic(real)\n    slope = torch.autograd.grad(score.sum(), real)[0]\n"
        "    return slope.square().sum(1).mean()\n"
    )
    train = TRAIN.replace("from meter import Meter", "from penalty import penalty").replace("    meter = Meter()\n", "")
    train = train.replace("mse_loss(net(x), y)", "mse_loss(net(x), y) + penalty(net, x)")
    train = train.replace("        meter.add(loss)\n    print(float(meter.total))\n", "")
    folder = project(tmp_path, penalty=penalty, train=train)
    found = told(folder, "train.py")
    assert [(code, message[-14:]) for code, _, message in found] == [("LL147", "(penalty.py:7)")]
    assert told(folder, "train.py", gate=False) == found


def test_a_folder_is_found_by_its_name_from_inside(tmp_path: Path) -> None:
    """`parts/` has no `__init__.py`, and nothing says where the project starts."""
    train = TRAIN.replace("from meter import", "from parts.meter import")
    (tmp_path / "parts").mkdir()
    folder = project(tmp_path / "parts", meter=METER, train=train)
    assert [code for code, _, _ in told(folder, "train.py")] == ["LL102"]
    assert [code for code, _, _ in told(project(tmp_path, train=train), "train.py")] == ["LL102"]


SETTINGS = """\
def kwargs(workers=0):
    given = dict(batch_size=4, num_workers=workers)
    given["prefetch_factor"] = 2
    return given
"""


def test_a_fault_of_this_file_is_told_by_the_words_of_another(tmp_path: Path) -> None:
    """Only `settings.py` has the words of the rule about the loader of `starts.py`."""
    starts = STARTS.replace("import fit\n", "import fit\nfrom settings import kwargs\n")
    starts = starts.replace("batch_size=4", "**kwargs()")
    folder = project(tmp_path, loop=LOOP, settings=SETTINGS, starts=starts)
    assert ("LL307", 10) in [(code, row) for code, row, _ in told(folder, "starts.py")]


def test_rule_is_asked_wherever_its_events_happen(tmp_path: Path) -> None:
    """The text lacks a word of the rule's `needs`, `zero_grad`: it is called all the same."""
    train = TRAIN.replace("from meter import Meter\n", "").replace("    meter = Meter()\n", "")
    train = train.replace("        meter.add(loss)\n    print(float(meter.total))\n", "")
    train = train.replace(
        "        optimizer.zero_grad()\n        loss.backward()\n", "        loss.backward()\n        CLEAR\n"
    )
    folder = project(tmp_path, train=train.replace("CLEAR", 'getattr(optimizer, "zero" "_grad")()'))
    found = told(folder, "train.py")
    assert [(code, row) for code, row, _ in found] == [("LL141", 12)]
    assert told(folder, "train.py", gate=False) == found


LOADERS = """\
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


def provide(args, data):
    if args.task == "forecast":
        return DataLoader(data, batch_size=8, sampler=DistributedSampler(data))
    return DataLoader(data, batch_size=8, shuffle=True)
"""
TASK = """\
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from loaders import provide


class Imputation:
    def __init__(self, args):
        self.args = args
        self.net = nn.Linear(4, 4)

    def fit(self, data, held_out):
        loader, checked = provide(self.args, data), provide(self.args, held_out)
        optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        for epoch in range(self.args.epochs):
            for x, y in loader:
                loss = nn.functional.mse_loss(self.net(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            self.validate(checked)

    def validate(self, loader):
        with torch.no_grad():
            for x, y in loader:
                print(nn.functional.mse_loss(self.net(x), y).item())
"""


def test_a_sampler_of_one_task_is_not_told_to_the_loops_of_all(tmp_path: Path) -> None:
    always = LOADERS.replace('if args.task == "forecast":', "if args.distributed:")
    assert [code for code, _, _ in told(project(tmp_path, loaders=always, task=TASK), "task.py")] == ["LL406"]
    assert told(project(tmp_path, loaders=LOADERS, task=TASK), "task.py") == []


def shown(folder: Path, *names: str, **settings: object) -> list[tuple[str, int, str, str]]:
    """What a run over some files, or the whole folder, tells of LL102 and of suppressions."""
    paths = [str(folder / name) for name in names] or [str(folder)]
    found = run.check(paths, load(settings, isolated=True)).findings
    return [(Path(f.filename).name, f.location.row, f.code, f.message) for f in found if f.code in ("LL002", "LL102")]


KEEPS = "the sum keeps the autograd graph of every iteration alive"


def test_fault_is_told_where_it_lies_if_that_file_is_linted_too(tmp_path: Path) -> None:
    folder = project(tmp_path, meter=METER, train=TRAIN, again=TRAIN)
    assert shown(folder) == [("meter.py", 6, "LL102", f"{KEEPS} (run by again.py:16)")]
    assert shown(folder, "train.py") == [("train.py", 16, "LL102", f"{KEEPS} (meter.py:6)")]
    assert shown(folder, "meter.py") == []


def test_comment_where_a_fault_lies_silences_it_and_is_used(tmp_path: Path) -> None:
    silenced = METER.replace("+ value", "+ value  # noqa: LL102")
    folder = project(tmp_path, meter=silenced, train=TRAIN)
    assert shown(folder) == []
    assert shown(folder, "train.py") == []


def test_fault_stays_at_the_call_where_its_rule_is_off_for_the_other_file(tmp_path: Path) -> None:
    folder = project(tmp_path, meter=METER, train=TRAIN)
    ignored = {str(folder / "meter.py"): ["LL102"]}
    assert shown(folder, **{"per-file-ignores": ignored}) == [("train.py", 16, "LL102", f"{KEEPS} (meter.py:6)")]


def test_a_script_that_only_starts_what_trains_elsewhere_is_rehearsed(tmp_path: Path) -> None:
    train = TRAIN.replace("    meter = Meter()\n", "").replace("main(batches)", "main(batches, meter)")
    start = "from meter import Meter\nfrom train import main\n\nif __name__ == '__main__':\n    main([], Meter())\n"
    folder = project(tmp_path, meter=METER, train=train, start=start, idle=start.replace("from train", "from other"))
    (folder / "other.py").write_text("def main(batches, meter):\n    meter.add(1)\n")
    start = start.replace("[]", "zip(range(9), range(9))")
    (folder / "start.py").write_text(start)
    assert [(code, row) for code, row, _ in told(folder, "start.py")] == [("LL102", 5)]
    assert told(folder, "idle.py") == []


def test_what_training_step_gives_may_be_for_a_loop_of_another_file(tmp_path: Path) -> None:
    model = (
        "import lightning as L\n\n\nclass Net(L.LightningModule):\n    def training_step(self, batch, batch_idx):\n"
        "        loss = self(batch).mean()\n        return loss, 0\n"
    )
    loop = "def train(model, batches):\n    for batch in batches:\n        loss, _ = model.training_step(batch, 0)\n        loss.backward()\n"
    assert [code for code, _, _ in told(project(tmp_path / "a", model=model), "model.py")] == ["LL128"]
    assert told(project(tmp_path / "b", model=model, loop=loop), "model.py") == []
