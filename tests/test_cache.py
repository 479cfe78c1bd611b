"""The cache: what stands is not linted again, what may not stand is; damage, concurrent runs and any --jobs change nothing."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from forked import run_forked
from versions_anew import forget_versions

from lightlint.cache import store
from lightlint.cache.doubt import doubtful
from lightlint.cache.folder import clean, prepare
from lightlint.cache.store import Cache
from lightlint.config.settings import Settings, load
from lightlint.linting import batch
from lightlint.memo.looked import LOOKED
from lightlint.pipeline import run
from lightlint.results import Result

BASE = """
import lightning as L


class Base({base}):
    def training_step(self, batch, batch_idx):
        return {body}
"""
CHILD = """
import torch

from base import Base


class Child(Base):
    def __init__(self):
        self.layers = [torch.nn.Linear(2, 2)]

    def validation_step(self, batch, batch_idx):
        loss = self(batch)
        loss.backward()
        self.log("loss", loss)
"""
OTHER = """
import torch


def train(model, batches, optimizer):
    for batch in batches:
        loss = model(batch)
        loss.backward()
        optimizer.step()
"""
SCRIPT = """
import lightning as L

from child import Child

trainer = L.Trainer(devices=1)
trainer.fit(Child())
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pyproject.toml").write_text('[project]\nname = "x"\ndependencies = ["torch>=2", "lightning>=2.2"]\n')
    write(folder / "base.py", BASE.format(base="L.LightningModule", body="self(batch).mean()"))
    write(folder / "child.py", CHILD)
    write(folder / "other.py", OTHER)
    write(folder / "train.py", SCRIPT)
    age(folder)
    LOOKED.clear()  # a command is a process of its own
    return folder


def write(path: Path, text: str) -> None:
    path.write_text(text)


def age(folder: Path) -> None:
    """Let everything be as old as files mostly are; what is new is never trusted by its time."""
    for path in (*folder.rglob("*"), folder, *folder.parents[:2]):
        if ".lightlint_cache" not in path.parts:
            os.utime(path, (1_000_000_000, 1_000_000_000))
    time.sleep(0.05)  # nobody can set the time of this change itself, which must not be that of the next run


def lint(folder: Path, monkeypatch: pytest.MonkeyPatch, **options: object) -> tuple[Result, list[str]]:
    """Lint with the cache beside the project; the second value is the names of the files that were linted anew."""
    forget_versions()
    linted: list[str] = []
    whole = batch.lint

    def spied(source, *arguments, **more):
        linted.append(Path(source.filename).name)
        return whole(source, *arguments, **more)

    settings = load({"notes": True, **options}, isolated=True)
    with monkeypatch.context() as patched:
        patched.setattr(batch, "lint", spied)
        result = run.check([str(folder)], settings, cache=opened(folder, settings))
    assert result == run.check([str(folder)], settings), "with the cache and without must say the same"
    return result, sorted(linted)


def opened(folder: Path, settings: Settings) -> Cache:
    where = str(folder.parent / "cache")
    prepare(where)
    return Cache(where, settings)


EVERY = ["base.py", "child.py", "other.py", "train.py"]


# files that stay as they are, and hang on a base class, on the Trainers of importers, and on calls anywhere
STEADY = {
    "steady.py": CHILD.replace("Child", "Steady"),
    "data.py": """
import lightning as L
from torch.utils.data import random_split


class Data(L.LightningDataModule):
    def setup(self, stage):
        self.train, self.val = random_split(self.whole, [8, 2])
""",
    "typo.py": """
import lightning as L


class Typo(L.LightningModule):
    def on_training_epoch_end(self):
        print("done")
""",
}
STEADY_SCRIPT = SCRIPT.replace("child", "data").replace("Child", "Data").replace("=1", '=4, strategy="ddp"')
VARIANTS = {
    "base.py": [
        BASE.format(base="L.LightningModule", body="self(batch).mean()"),
        BASE.format(base="L.LightningModule", body="self(batch).sum()"),
        BASE.format(base="object", body="self(batch).mean()"),
        "from other import Base\n",
    ],
    "child.py": [CHILD, CHILD.replace("loss.backward()", "pass"), CHILD.replace("from base", "from other")],
    "other.py": [OTHER, BASE.format(base="L.LightningModule", body="0"), "x.on_training_epoch_end()\n", ""],
    "train.py": [SCRIPT, STEADY_SCRIPT, SCRIPT.replace("child", "other"), "# Trainer\n"],
    "more.py": [None, OTHER, STEADY_SCRIPT],
    "run.yaml": [None, "trainer:\n  devices: 4\nmodel:\n  class_path: child.Child\n"],
}
CODE = [name for name, texts in VARIANTS.items() if None not in texts]


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 6))])
@pytest.mark.parametrize("names", [CODE, sorted(VARIANTS)], ids=["code", "everything"])
def test_whatever_changes_the_next_run_says_what_is_so(project, monkeypatch, names, seed):
    """Files are written in place or by another one, now or long ago, and runs are of all files or of one."""
    for name, text in STEADY.items():
        write(project / name, text)
    age(project)
    chance = random.Random(seed)
    settings = load({"notes": True}, isolated=True)
    asked: list[object] = []
    monkeypatch.setattr(store, "doubtful", lambda *given: asked.append(given) or doubtful(*given))
    for step in range(25):
        for name in chance.sample(names, chance.choice([1, 1, 1, 2])):
            change(project / name, chance.choice(VARIANTS[name]), in_place=chance.random() < 0.5)
            if (project / name).exists() and chance.random() < 0.8:
                os.utime(project / name, (1_000_000_000 + step, 1_000_000_000 + step))
        if chance.random() < 0.8:
            os.utime(project, (1_000_000_000 + step, 1_000_000_000 + step))
        time.sleep(0.03)  # what did not change is trusted then
        paths = [str(project)] if chance.random() < 0.6 else [str(chance.choice(sorted(project.glob("*.py"))))]
        forget_versions()
        LOOKED.clear()
        cached = run.check(paths, settings, cache=opened(project, settings))
        assert cached == run.check(paths, settings)
    assert asked or names is not CODE, "few files were in doubt, and not all"


def test_a_new_file_that_imports_an_old_one_is_seen(project, monkeypatch):
    write(project / "data.py", STEADY["data.py"])
    age(project)
    lint(project, monkeypatch)
    time.sleep(0.05)
    lint(project, monkeypatch)
    write(project / "more.py", STEADY_SCRIPT)
    assert "data.py" in lint(project, monkeypatch)[1]


def _notebook(code: str) -> str:
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": code}
    return json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 2})


def test_the_pins_of_a_setup_file_are_seen(project, monkeypatch):
    (project / "pyproject.toml").write_text("")
    write(project / "setup.py", "from setuptools import setup\n\nsetup(install_requires=['lightning==1.9'])\n")
    write(
        project / "old.py",
        "import lightning as L\n\n\nclass M(L.LightningModule):\n    def training_epoch_end(self, o): ...\n",
    )
    age(project)
    first, _ = lint(project, monkeypatch)
    time.sleep(0.05)
    lint(project, monkeypatch)
    write(project / "setup.py", "from setuptools import setup\n\nsetup(install_requires=['lightning==2.2'])\n")
    second, linted = lint(project, monkeypatch)
    assert "old.py" in linted
    assert first.findings != second.findings


@pytest.mark.parametrize(
    ("beside", "before", "after"),
    [
        (
            "launch_job.py",
            "",
            "from sagemaker.pytorch import PyTorch\nPyTorch(framework_version='1.4', image='lightning')\n",
        ),
        ("with_bolts.py", "import torch\n", "import pl_bolts\n"),
        ("run.ipynb", _notebook("!python old.py"), _notebook("!pip install pytorch-lightning==1.9.5\n!python old.py")),
    ],
)
def test_the_versions_that_other_code_tells_of_are_seen(project, monkeypatch, beside, before, after):
    (project / "pyproject.toml").write_text("")
    write(project / beside, before)
    write(
        project / "old.py",
        "import lightning as L\nimport torch\n\n\nclass M(L.LightningModule):\n    def training_epoch_end(self, o): ...\n",
    )
    age(project)
    first, _ = lint(project, monkeypatch)
    time.sleep(0.05)
    lint(project, monkeypatch)
    write(project / beside, after)
    second, linted = lint(project, monkeypatch)
    assert "old.py" in linted
    assert {each.message for each in first.findings} != {each.message for each in second.findings}


def change(path: Path, text: str | None, *, in_place: bool) -> None:
    if text is None:
        path.unlink(missing_ok=True)
    elif in_place:
        path.write_text(text)
    else:
        beside = path.with_name(path.name + ".new")
        beside.write_text(text)
        beside.replace(path)


@pytest.mark.parametrize("in_place", [True, False])
def test_a_new_body_leaves_files_that_do_not_run_it_out_of_doubt(project, monkeypatch, in_place):
    lint(project, monkeypatch)
    time.sleep(0.05)  # by the time of its last change of any kind, which cannot be set, the project is older now
    lint(project, monkeypatch)
    recalled: list[str] = []
    whole = Cache.recall
    monkeypatch.setattr(Cache, "recall", lambda *asked: recalled.append(asked[1].name) or whole(*asked))
    change(project / "base.py", BASE.format(base="L.LightningModule", body="self(batch).sum()"), in_place=in_place)
    assert lint(project, monkeypatch)[1] == ["base.py", "child.py", "train.py"]
    assert "other.py" not in recalled


def test_nothing_is_linted_twice(project, monkeypatch):
    first, linted = lint(project, monkeypatch)
    assert linted == EVERY
    assert first.findings
    again, linted = lint(project, monkeypatch)
    assert linted == []
    assert again == first


def test_a_new_base_class_has_the_classes_below_it_linted_anew(project, monkeypatch):
    first, _ = lint(project, monkeypatch)
    write(project / "base.py", BASE.format(base="object", body="self(batch).mean()"))
    second, linted = lint(project, monkeypatch)
    assert "other.py" not in linted
    assert {"base.py", "child.py"} <= set(linted)
    assert second.findings != first.findings
    write(project / "base.py", BASE.format(base="L.LightningModule", body="self(batch).mean()"))
    assert lint(project, monkeypatch)[0] == first


def test_another_body_has_only_files_linted_anew_that_run_it(project, monkeypatch):
    lint(project, monkeypatch)
    write(project / "base.py", BASE.format(base="L.LightningModule", body="self(batch).mean() + 1"))
    assert lint(project, monkeypatch)[1] == ["base.py", "child.py", "train.py"]
    assert lint(project, monkeypatch)[1] == []


def test_another_body_in_a_file_that_is_imported_and_never_run_is_linted_alone(project, monkeypatch):
    write(project / "tools.py", "def told(loss):\n    return loss\n")
    write(project / "other.py", f"from tools import told\n{OTHER}\n\ndef show(loss):\n    print(told(loss))\n")
    lint(project, monkeypatch)
    write(project / "tools.py", "def told(loss):\n    return loss + 1\n")
    assert lint(project, monkeypatch)[1] == ["tools.py"]
    write(project / "tools.py", "def told(loss):\n    return loss + 1\n\n\ntold(0)\n")
    assert lint(project, monkeypatch)[1] == ["other.py", "tools.py"]


def test_a_file_touched_but_not_changed_is_not_linted(project, monkeypatch):
    lint(project, monkeypatch)
    (project / "child.py").touch()
    assert lint(project, monkeypatch)[1] == []


def test_a_change_of_the_same_size_and_time_right_behind_a_run_is_seen(project, monkeypatch):
    (project / "other.py").touch()
    lint(project, monkeypatch)
    status = (project / "other.py").stat()
    write(project / "other.py", OTHER.replace("optimizer.step", "scheduler.step"[:14]))
    os.utime(project / "other.py", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert "other.py" in lint(project, monkeypatch)[1]


def test_new_and_removed_files_are_seen(project, monkeypatch):
    first, _ = lint(project, monkeypatch)
    (project / "base.py").rename(project / "moved.py")
    second, linted = lint(project, monkeypatch)
    assert "child.py" in linted
    (project / "moved.py").rename(project / "base.py")
    third, linted = lint(project, monkeypatch)
    assert "child.py" in linted
    assert "other.py" not in linted
    assert (third == first, second == first) == (True, False)


def test_the_trainers_of_the_files_that_import_one_are_seen(project, monkeypatch):
    lint(project, monkeypatch)
    write(project / "train.py", SCRIPT.replace("devices=1", 'devices=4, strategy="ddp"'))
    _, linted = lint(project, monkeypatch)
    assert "child.py" in linted
    assert "other.py" not in linted


def test_a_yaml_file_with_a_trainer_is_seen(project, monkeypatch):
    write(
        project / "train.py", SCRIPT.replace("trainer =", "from lightning.pytorch.cli import LightningCLI\ntrainer =")
    )
    lint(project, monkeypatch)
    write(project / "config.yaml", "trainer:\n  devices: 4\n")
    lint(project, monkeypatch)
    write(project / "config.yaml", "trainer:\n  devices: 2\n")
    lint(project, monkeypatch)


def test_pins_are_seen(project, monkeypatch):
    write(
        project / "old.py",
        "import lightning as L\n\n\nclass M(L.LightningModule):\n    def training_epoch_end(self, o): ...\n",
    )
    first, _ = lint(project, monkeypatch)
    (project / "pyproject.toml").write_text('[project]\nname = "x"\ndependencies = ["torch==1.13", "lightning==1.9"]\n')
    second, linted = lint(project, monkeypatch)
    assert "old.py" in linted
    assert first.findings != second.findings


def test_a_nearer_project_file_is_seen(project, monkeypatch):
    (project / "sub").mkdir()
    (project / "child.py").rename(project / "sub" / "child.py")
    lint(project, monkeypatch)
    (project / "sub" / "setup.py").write_text("")
    assert "child.py" in lint(project, monkeypatch)[1]


def test_other_rules_have_findings_of_their_own(project, monkeypatch):
    lint(project, monkeypatch)
    assert lint(project, monkeypatch, ignore=["LL1"])[1] == EVERY
    assert lint(project, monkeypatch, target={"torch": "1.9"})[1] == EVERY
    assert lint(project, monkeypatch)[1] == []


def test_files_that_cannot_be_linted_are_as_loud_the_second_time(project, monkeypatch):
    write(project / "broken.py", "def f(:\n")
    (project / "data.ipynb").write_text("version https://git-lfs.github.com/spec/v1\n")
    (project / "odd.py").write_bytes(b"x = '\xff'\n")
    first, _ = lint(project, monkeypatch)
    again, linted = lint(project, monkeypatch)
    assert again == first
    assert linted == []


@pytest.mark.parametrize("part", range(6))
def test_damage_is_a_miss(project, monkeypatch, part):
    first, _ = lint(project, monkeypatch)
    (kept,) = (project.parent / "cache").glob("*.json")
    data = kept.read_bytes()
    at = part * (len(data) - 1) // 5
    for damaged in (data[:at], data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :], b"", b"\xff\n{}\n{}"):
        kept.write_bytes(damaged)
        again, linted = lint(project, monkeypatch)
        assert again == first
        assert linted == EVERY


def test_the_folder_is_marked_and_cleaned(project, monkeypatch):
    lint(project, monkeypatch)
    where = project.parent / "cache"
    assert (where / ".gitignore").read_text() == "*\n"
    assert (where / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55")
    assert clean(str(where))
    assert not where.exists()
    assert not clean(str(where))
    with pytest.raises(OSError, match="no cache"):
        clean(str(project))


def test_old_files_of_a_cache_go(project, monkeypatch):
    where = project.parent / "cache"
    where.mkdir()
    for number in range(40):
        (where / f"{number}.json").write_text("x")
    (where / "1.json.99-1").write_text("never finished")
    os.utime(where / "1.json.99-1", (1, 1))
    lint(project, monkeypatch)
    assert len(list(where.glob("*.json"))) <= 17
    assert not (where / "1.json.99-1").exists()


def command(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_forked("lightlint", "--isolated", "--notes", "--output-format", "json", *arguments, cwd=project)


def test_a_hit_imports_none_of_what_lints(project):
    command(project, ".")
    age(project)
    command(project, ".")
    code = (
        "import sys\nfrom lightlint.cli.main import run_command\n"
        "run_command(['--isolated', '--exit-zero', '--output-format', 'json', '--notes', '.'])\n"
        "print([m for m in sys.modules if m.startswith(('libcst', 'rich', 'lightlint.facts', 'lightlint.checks'))],"
        " file=sys.stderr)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=project, capture_output=True, text=True, check=True)
    assert ran.stderr.strip() == "[]"
    assert json.loads(ran.stdout)


def test_concurrent_runs_say_the_same(project):
    alone = command(project, "--no-cache", ".")
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda _: command(project, "."), range(6)))
    assert {ran.stdout for ran in together} == {alone.stdout}
    assert {ran.stderr for ran in together} == {""}
    assert command(project, ".").stdout == alone.stdout


def test_any_number_of_jobs_says_the_same(project):
    for number in range(5):
        write(project / f"copy{number}.py", OTHER + "\n" * number)
    alone = command(project, "--no-cache", "--jobs", "1", ".")
    assert json.loads(alone.stdout)
    for jobs in ("2", "3", "50"):
        assert command(project, "--no-cache", "--jobs", jobs, ".").stdout == alone.stdout
    assert command(project, "--jobs", "2", ".").stdout == alone.stdout
    assert command(project, "--jobs", "2", ".").stdout == alone.stdout


def test_cache_options(project, tmp_path):
    command(project, "--cache-dir", str(tmp_path / "mine"), ".")
    assert list((tmp_path / "mine").glob("*.json"))
    assert not (project / ".lightlint_cache").exists()
    command(project, "--no-cache", ".")
    assert not (project / ".lightlint_cache").exists()
    assert command(project, "--jobs", "0", ".").returncode == 2
    command(project, ".")
    assert "removed" in run_forked("lightlint", "clean", cwd=project).stdout
    assert not (project / ".lightlint_cache").exists()
