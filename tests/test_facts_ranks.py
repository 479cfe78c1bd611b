"""How many ranks run code, which code only some of them run, and what differs between them."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import libcst as cst
import pytest

from lightlint.facts.file import FileFacts
from lightlint.facts.project.project import Projects
from lightlint.facts.project.roots import nearest_with
from lightlint.facts.ranks.world import Ranks
from lightlint.sources.load import load
from lightlint.trees.parsing import parse


def facts_of(folder: Path, name: str, *, distributed: bool | None = None, **files: str) -> FileFacts:
    """The facts of one of several files, given by name without `.py` (`__` stands for a folder)."""
    (folder / "pyproject.toml").touch()
    for file, text in files.items():
        target = folder / f"{file.replace('__', '/')}.py"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(dedent(text))
    path = folder / f"{name.replace('__', '/')}.py"
    source = load(path)
    return FileFacts(source, parse(source), Projects().of(path), distributed=distributed, target={"lightning": "2.4"})


def call(facts: FileFacts, name: str) -> cst.Call:
    """The one call of what is spelled `name` at its end."""
    found = [each for each in facts.tree.all(cst.Call) if facts.names.method(each) == name]
    assert len(found) == 1
    return found[0]


MODEL = "import lightning as L\nclass Net(L.LightningModule):\n    pass\n"


@pytest.mark.parametrize(
    ("trainers", "wanted"),
    [
        ("L.Trainer(devices=1)", Ranks.ONE),
        ("L.Trainer(devices=2)", Ranks.MANY),
        ("L.Trainer()", Ranks.MAYBE),
        ("L.Trainer(accelerator='cpu')", Ranks.ONE),
        ("L.Trainer(strategy='ddp')", Ranks.MANY),
        ("L.Trainer(strategy='ddp', devices=1)", Ranks.ONE),
        ("L.Trainer(devices=1, num_nodes=2)", Ranks.MANY),
        ("L.Trainer(devices=[0, 3])", Ranks.MANY),
        ("L.Trainer(devices='0,1')", Ranks.MANY),
        ("L.Trainer(devices=-1)", Ranks.MAYBE),
        ("L.Trainer(**given)", Ranks.MAYBE),
        ("L.Trainer(devices=1), L.Trainer(devices=2)", Ranks.MANY),
        ("L.Trainer(devices=1), L.Trainer(devices=1)", Ranks.ONE),
    ],
)
def test_trainers_say_how_many_ranks_run_the_files_they_import(tmp_path: Path, trainers: str, wanted: Ranks) -> None:
    entry = f"import lightning as L\nfrom model import Net\nresult = {trainers}\n"
    assert facts_of(tmp_path, "model", model=MODEL, train=entry).world.lightning is wanted
    assert facts_of(tmp_path, "train", model=MODEL, train=entry).world.lightning is wanted


def test_own_trainer_counts_before_those_of_other_files(tmp_path: Path) -> None:
    own = MODEL + "trainer = L.Trainer(devices=1)\n"
    other = "import lightning as L\nimport model\ntrainer = L.Trainer(devices=8)\n"
    assert facts_of(tmp_path, "model", model=own, other=other).world.lightning is Ranks.ONE


def test_several_entries_count_as_their_largest(tmp_path: Path) -> None:
    small = "import lightning as L\nfrom model import Net\ntrainer = L.Trainer(devices=1)\n"
    large = "import lightning as L\nfrom model import Net\ntrainer = L.Trainer(devices=4)\n"
    assert facts_of(tmp_path, "model", model=MODEL, small=small, large=large).world.lightning is Ranks.MANY


def test_import_through_a_package_counts(tmp_path: Path) -> None:
    entry = "import lightning as L\nfrom parts import Net\ntrainer = L.Trainer(devices=2)\n"
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "__init__.py").write_text("from parts.model import Net\n")
    facts = facts_of(tmp_path, "parts__model", parts__model=MODEL, train=entry)
    assert facts.world.lightning is Ranks.MANY


def test_file_of_the_same_name_elsewhere_is_another(tmp_path: Path) -> None:
    entry = "import lightning as L\nfrom model import Net\ntrainer = L.Trainer(devices=2)\n"
    facts = facts_of(tmp_path, "one__model", one__model=MODEL, two__model=MODEL, two__train=entry)
    assert facts.world.lightning is Ranks.MAYBE
    assert facts.world.is_untold
    assert facts_of(tmp_path, "two__model").world.lightning is Ranks.MANY


@pytest.mark.parametrize(("setting", "wanted"), [(True, Ranks.MANY), (False, Ranks.ONE)])
def test_setting_outweighs_what_the_text_says(tmp_path: Path, setting: bool, wanted: Ranks) -> None:
    world = facts_of(tmp_path, "model", distributed=setting, model=MODEL + "L.Trainer(devices=3)\n").world
    assert (world.lightning, world.raw) == (wanted, wanted)
    assert not world.is_untold


def test_trainers_of_a_folder_s_module_may_lie_in_the_rest_of_the_repository(tmp_path: Path) -> None:
    inner = tmp_path / "network"
    inner.mkdir()
    assert not facts_of(inner, "model", model=MODEL).world.may_be_run_elsewhere
    (tmp_path / ".git").mkdir()
    nearest_with.cache_clear()
    assert facts_of(inner, "model", model=MODEL).world.may_be_run_elsewhere
    assert not facts_of(inner, "model", model=MODEL + "L.Trainer(devices=3)\n").world.may_be_run_elsewhere
    assert not facts_of(tmp_path, "whole", whole=MODEL).world.may_be_run_elsewhere


def test_process_group_of_an_importer_makes_plain_code_distributed(tmp_path: Path) -> None:
    entry = "import torch.distributed as dist\nimport parts\ndist.init_process_group('gloo')\n"
    assert facts_of(tmp_path, "parts", parts="x = 1\n", train=entry).world.raw is Ranks.MANY
    assert facts_of(tmp_path, "alone", alone="x = 1\n").world.raw is Ranks.ONE


def test_seeds_of_importers_are_in_sight(tmp_path: Path) -> None:
    entry = "import lightning as L\nimport model\nL.seed_everything(1)\ntrainer = L.Trainer(devices=2)\n"
    world = facts_of(tmp_path, "model", model=MODEL, train=entry).world
    assert "lightning.seed_everything" in world.called_by_users


@pytest.mark.parametrize(
    ("body", "guarded"),
    [
        ("write()", False),
        ("if trainer.is_global_zero:\n            write()", True),
        ("if trainer.global_rank != 0:\n            return\n        write()", True),
        ("if trainer.current_epoch:\n            write()", False),
        ("if int(os.environ.get('LOCAL_RANK', 0)) == 0:\n            write()", True),
        ("if self.gpu_id == 0:\n            write()", True),
        ("if is_main_process():\n            write()", True),
        ("trainer.is_global_zero and write()", True),
        ("world, rank = start()\n        first = rank == 0\n        if first:\n            write()", True),
    ],
)
def test_guard_is_a_test_or_an_early_exit(tmp_path: Path, body: str, guarded: bool) -> None:
    text = f"""
    import os
    import lightning as L
    class Notes(L.Callback):
        def on_fit_end(self, trainer, pl_module):
            {body.replace("        ", "            ")}
    """
    facts = facts_of(tmp_path, "notes", notes=text)
    assert facts.guards.guarded(call(facts, "write")) is guarded


@pytest.mark.parametrize(
    "decorator", ["rank_zero_only", "rank_zero_experiment", "utilities.rank_zero_only", "on_main_process()"]
)
def test_decorator_guards_a_function(tmp_path: Path, decorator: str) -> None:
    facts = facts_of(tmp_path, "notes", notes=f"@{decorator}\ndef save():\n    write()\n")
    assert facts.guards.guarded(call(facts, "write"))


def test_helper_is_guarded_when_every_call_of_it_is(tmp_path: Path) -> None:
    text = """
    import torch.distributed as dist
    def save():
        write()
    def main(last):
        if dist.get_rank() == 0:
            save()
        {more}
    """
    facts = facts_of(tmp_path, "once", once=text.format(more="pass"))
    assert facts.guards.guarded(call(facts, "write"))
    facts = facts_of(tmp_path, "twice", twice=text.format(more="save()"))
    assert not facts.guards.guarded(call(facts, "write"))


RUN = """
import torch.multiprocessing as mp
from torch.distributed import init_process_group, get_rank
from torch.nn.parallel import DistributedDataParallel

def set_up():
    init_process_group("gloo")

def helper():
    inside()

class Run:
    def __init__(self, net):
        self.net = DistributedDataParallel(net)
    def save(self):
        method()

def worker(index, path):
    set_up()
    helper()
    Run(None).save()

def main():
    before()
    mp.spawn(worker, args=("a",), nprocs=2)
"""


@pytest.mark.parametrize(("name", "wanted"), [("inside", True), ("method", True), ("before", False)])
def test_per_rank_follows_the_process_group(tmp_path: Path, name: str, wanted: bool) -> None:
    facts = facts_of(tmp_path, "run", run=RUN)
    assert facts.processes.per_rank(call(facts, name)) is wanted


def test_spawned_function_is_known(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, "run", run=RUN)
    spawned = {each.name.value for each in facts.tree.all(cst.FunctionDef) if facts.processes.is_spawned(each)}
    assert spawned == {"worker"}


def test_share_of_another_files_data_set_is_seen(tmp_path: Path) -> None:
    shared = "class Mine:\n    def __init__(self, rank):\n        self.rank = rank\n"
    whole = "class Whole:\n    pass\n"
    text = "from shared import Mine\nfrom whole import Whole\nfirst(Mine())\nsecond(Whole())\n"
    facts = facts_of(tmp_path, "train", shared=shared, whole=whole, train=text)
    assert facts.processes.may_be_share(call(facts, "first").args[0].value)
    assert not facts.processes.may_be_share(call(facts, "second").args[0].value)


@pytest.mark.parametrize(
    ("statement", "wanted"),
    [
        ("open('a', 'w')", "open"),
        ("open('a')", None),
        ("open('a', mode)", None),
        ("Path('a').open('a')", "open"),
        ("(Path('a') / 'b').write_text('c')", "write_text"),
        ("here.with_suffix('.txt').write_text('c')", "write_text"),
        ("other.write_text('c')", None),
        ("torch.save(x, 'a.pt')", "torch.save"),
        ("torch.save(x, io.BytesIO())", None),
        ("np.save('a', x)", "np.save"),
        ("os.makedirs('a')", "os.makedirs"),
        ("os.makedirs('a', exist_ok=True)", None),
        ("Path('a').mkdir()", "mkdir"),
        ("Path('a').mkdir(exist_ok=True)", None),
        ("frame.to_csv('a.csv')", "to_csv"),
        ("frame.to_csv()", None),
        ("frame.to_csv(None)", None),
        ("plt.savefig('a.png')", "plt.savefig"),
    ],
)
def test_writes(tmp_path: Path, statement: str, wanted: str | None) -> None:
    text = f"""
    import io, os
    from pathlib import Path
    import matplotlib.pyplot as plt
    import numpy as np
    import pandas as pd
    import torch
    here = Path("here")
    {statement}
    """
    facts = facts_of(tmp_path, "writes", writes=text)
    outermost = facts.tree.statement(facts.tree.all(cst.Call)[-1])
    assert isinstance(outermost, cst.Expr)
    assert isinstance(outermost.value, cst.Call)
    write = facts.writes.of(outermost.value)
    assert (write.name if write else None) == wanted


def test_file_opened_by_a_with_is_written_once(tmp_path: Path) -> None:
    text = "import torch\nwith open('a', 'wb') as file:\n    torch.save(x, file)\n"
    facts = facts_of(tmp_path, "once", once=text)
    assert [bool(facts.writes.of(each)) for each in facts.tree.all(cst.Call)] == [True, False]


def test_training_loaders_are_followed_through_classes_and_helpers(tmp_path: Path) -> None:
    text = """
    from torch.utils.data import DataLoader
    class Run:
        def __init__(self, net, loader):
            self.loader = loader
        def fit(self):
            for x in self.loader:
                self.step(x)
        def step(self, x):
            self.net(x).backward()
    def make(data):
        return DataLoader(data, shuffle=True)
    def main(data, net):
        Run(net, make(data)).fit()
        for x in DataLoader(data):
            print(net(x))
    """
    facts = facts_of(tmp_path, "run", run=text)
    made = [each for each in facts.tree.all(cst.Call) if facts.names.method(each) == "DataLoader"]
    assert list(facts.loading.training) == made[:1]


def test_loader_without_a_sampler_beside_a_sampled_one_does_not_count(tmp_path: Path) -> None:
    text = """
    from torch.utils.data import DataLoader
    def main(data, sampler, distributed, net):
        if distributed:
            loader = DataLoader(data, sampler=sampler)
        else:
            loader = DataLoader(data, shuffle=True)
        for x in loader:
            net(x).backward()
    """
    facts = facts_of(tmp_path, "run", run=text)
    assert all(facts.loading.is_sampled(each) for each in facts.loading.training)
    assert len(facts.loading.training) == 1
