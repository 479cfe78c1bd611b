"""`lightlint env` as a user runs it: snapshots of real interpreters, and environments that differ in one true cause."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from checkout import run

from lightlint.config.settings import load
from lightlint.environment.code.usage import Usage, usage_of
from lightlint.environment.describing.packages import ill_matched
from lightlint.environment.describing.probe import describe, variables
from lightlint.environment.describing.side import Side, SideError, read_side
from lightlint.sources.load import read

LIGHTLINT = [sys.executable, "-m", "lightlint"]
MODULE = """\
import pytorch_lightning as pl
import torch


class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch, batch_idx):
        return self.layer(batch).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)
"""


def env(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return run([*LIGHTLINT, "env", *words], cwd)


def differing(cwd: Path, first: str, second: str, code: str) -> list[Any]:
    """The rows of `lightlint env diff` as JSON; the sides are given as requirements."""
    (cwd / "first.txt").write_text(first)
    (cwd / "second.txt").write_text(second)
    (cwd / "train.py").write_text(code)
    ran = env("diff", "first.txt", "second.txt", "--code", "train.py", "--output-format", "json", cwd=cwd)
    assert ran.stderr == ""
    rows: list[Any] = json.loads(ran.stdout)
    assert ran.returncode == (1 if any(row["weight"] >= 80 for row in rows) else 0)
    return rows


def usage(text: str) -> Usage:
    return Usage((read("train.py", text.encode()),))


def machine(**values: object) -> Mapping[str, Any]:
    return {**describe(), "torch": None, "gpus": [], "variables": {}, **values}


def test_a_snapshot_reads_back_and_equals_itself(tmp_path: Path) -> None:
    assert env("snapshot", "-o", "here.json", cwd=tmp_path).returncode == 0
    side = read_side(tmp_path / "here.json")
    assert side.packages["libcst"] == describe()["packages"]["libcst"]
    assert side.whole
    ran = env("diff", "here.json", "here.json", cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (0, "no difference\n")


def test_a_snapshot_holds_no_secret_and_no_path(tmp_path: Path) -> None:
    told = {
        "WANDB_API_KEY": "s3cret",
        "CUDA_HOME": "/home/somebody/cuda",
        "TORCH_TOKEN": "s3cret",
        "NCCL_DEBUG": "INFO",
    }
    assert variables(told) == {"NCCL_DEBUG": "INFO"}
    ran = subprocess.run(
        [*LIGHTLINT, "env", "snapshot"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, **told},
        check=True,
    )
    assert "s3cret" not in ran.stdout
    assert "somebody" not in ran.stdout
    assert str(tmp_path) not in ran.stdout


def test_the_probe_needs_nothing_but_python(tmp_path: Path) -> None:
    import lightlint.environment.describing.probe as probe

    ran = run([sys.executable, "-I", "-S", str(Path(probe.__file__))], tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["torch"] is None


@pytest.mark.parametrize(
    ("first", "second", "body", "subject", "words"),
    [
        pytest.param(
            "torch==2.0.1\npytorch-lightning==1.9.5\nnumpy==1.26.4",
            "torch==2.8.0\npytorch-lightning==2.6.0\nnumpy==2.3.0",
            "\n    def validation_epoch_end(self, outputs):\n        self.log('val', torch.stack(outputs).mean())\n",
            "pytorch-lightning",
            "`validation_epoch_end`",
            id="a hook that Lightning 2 refuses",
        ),
        pytest.param(
            "torch==2.0.1\npytorch-lightning==1.9.5\ntqdm==4.60",
            "torch==2.0.1\npytorch-lightning==2.1.0\ntqdm==4.66",
            "\n\ntrainer = pl.Trainer(gpus=1)\n",
            "pytorch-lightning",
            "`gpus`",
            id="an argument that the Trainer lost",
        ),
        pytest.param(
            "torch==2.0.1\nnumpy==1.26.4\npytorch-lightning==2.1.0",
            "torch==2.0.1\nnumpy==2.1.0\npytorch-lightning==2.1.0",
            "",
            "numpy",
            "built against numpy 1",
            id="numpy 2 beside an old torch",
        ),
        pytest.param(
            "torch==2.8.0\npytorch-lightning==2.6.0\ntorchvision==0.23.0",
            "torch==2.8.0\npytorch-lightning==2.6.0\ntorchvision==0.15.2",
            "\n\nimport torchvision\n",
            "torchvision",
            "another torch",
            id="a torchvision of another torch",
        ),
        pytest.param(
            "torch==2.8.0\npytorch-lightning==2.6.0\ntimm==1.0.20",
            "torch==2.8.0\npytorch-lightning==2.6.0\ntqdm==4.66",
            "\n\nimport timm\n",
            "timm",
            "ModuleNotFoundError",
            id="a package that is missing",
        ),
    ],
)
def test_the_true_cause_comes_first(
    tmp_path: Path, first: str, second: str, body: str, subject: str, words: str
) -> None:
    rows = differing(tmp_path, first, second, MODULE + body)
    assert rows[0]["subject"] == subject
    assert words in rows[0]["why"]


def test_what_the_code_does_not_use_comes_last_and_breaks_nothing(tmp_path: Path) -> None:
    rows = differing(tmp_path, "torch==2.8.0\nrich==13.0.0\n", "torch==2.7.0\nrich==14.0.0\n", "import torch\n")
    assert [row["subject"] for row in rows] == ["torch", "rich"]
    assert rows[1]["why"] == ""


def test_an_import_inside_try_is_not_required(tmp_path: Path) -> None:
    code = "try:\n    import timm\nexcept ImportError:\n    timm = None\nimport torch\n"
    assert usage(code).required == {"torch"}
    rows = differing(tmp_path, "torch==2.8.0\ntimm==1.0.20", "torch==2.8.0\ntqdm==4.66", code)
    assert all(row["weight"] < 80 for row in rows)


@pytest.mark.parametrize(
    ("first", "second", "code", "subject"),
    [
        ({"gpus": [{"name": "T4", "memory_mib": 15360, "driver": "1"}]}, {}, "model.cuda()\n", "gpus"),
        ({"usable_cores": 16}, {"usable_cores": 2}, "DataLoader(d, num_workers=8)\n", "usable cores"),
        ({"start_method": "fork"}, {"start_method": "spawn"}, "DataLoader(d, num_workers=2)\n", "start method"),
        ({"python": "3.13.0"}, {"python": "3.9.1"}, "match x:\n    case 1:\n        pass\n", "python"),
        ({"shared_memory_mib": 8192}, {"shared_memory_mib": 64}, "DataLoader(d, num_workers=8)\n", "shared memory"),
    ],
)
def test_machines_differ_in_what_the_code_asks_for(
    first: Mapping[str, object], second: Mapping[str, object], code: str, subject: str
) -> None:
    from lightlint.environment.diff import diff

    sides = [Side(name, {}, whole=True, machine=machine(**values)) for name, values in (("a", first), ("b", second))]
    rows = diff(sides[0], sides[1], usage(code), (), load({}, file=None, isolated=True))
    assert rows[0].subject == subject
    assert rows[0].why


def test_a_notebook_and_a_lock_file_describe_environments(tmp_path: Path) -> None:
    cells = [
        {
            "cell_type": "code",
            "metadata": {},
            "outputs": [],
            "execution_count": None,
            "source": "!pip install torch==2.1.0 timm",
        }
    ]
    book = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "colab.ipynb").write_text(json.dumps(book))
    (tmp_path / "uv.lock").write_text('version = 1\n\n[[package]]\nname = "torch"\nversion = "2.8.0"\n')
    notebook, lock = read_side(tmp_path / "colab.ipynb"), read_side(tmp_path / "uv.lock")
    assert (notebook.packages["torch"], notebook.whole) == ("2.1.0", False)
    assert (lock.packages["torch"], lock.whole) == ("2.8.0", True)


@pytest.mark.parametrize("text", ["", "{}", "[1, 2]", '{"schema": 99, "packages": {}}', "{broken"])
def test_a_file_that_describes_no_environment_is_one_clear_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "what.json").write_text(text)
    with pytest.raises(SideError, match=r"what\.json"):
        read_side(tmp_path / "what.json")
    ran = env("diff", "what.json", "what.json", cwd=tmp_path)
    assert (ran.returncode, ran.stderr.count("\n"), ran.stdout) == (2, 1, "")


def test_check_tells_pins_that_are_not_kept(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch>=2.6\n")
    (tmp_path / "train.py").write_text("import torch\n")
    (tmp_path / "there.txt").write_text("torch==2.4.0\ntqdm==4.66\n")
    ran = env("check", "train.py", "--against", "there.txt", cwd=tmp_path)
    assert ran.returncode == 1
    assert "requirements.txt asks for torch>=2.6" in ran.stdout


def test_pairs_that_go_together_are_silent() -> None:
    good = Side(
        "good", {"torch": "2.8.0", "torchvision": "0.23.0", "torchaudio": "2.8.0", "numpy": "2.3.0"}, whole=True
    )
    assert list(ill_matched(good)) == []


def test_code_is_read_from_directories(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import timm\nfrom . import other\nimport os\n")
    found = usage_of([str(tmp_path)], load({}, file=None, isolated=True))
    assert list(found.imports) == ["timm"]


@pytest.mark.parametrize("text", ["import torch\n", "name: training\ndependencies:\n  - torch\n", "# nothing\n"])
def test_what_lists_no_requirements_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "what.txt").write_text(text)
    ran = env("diff", "what.txt", "what.txt", cwd=tmp_path)
    assert (ran.returncode, ran.stderr.count("\n"), ran.stdout) == (2, 1, "")


def test_requirements_are_read_as_pip_writes_and_reads_them(tmp_path: Path) -> None:
    lines = (
        "-e git+https://x.org/a.git#egg=a",
        "torch==2.8.0 \\",
        "  --hash=sha256:0",
        "timm @ file:///a.whl",
        "x[y]>=1; z",
        "./b",
    )
    (tmp_path / "requirements.txt").write_text("\n".join(lines))
    assert read_side(tmp_path / "requirements.txt").packages["torch"] == "2.8.0"


def test_a_program_that_is_no_python_makes_no_snapshot(tmp_path: Path) -> None:
    ran = env("snapshot", "--python", "echo", cwd=tmp_path)
    assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", "lightlint: echo: is no Python\n")
