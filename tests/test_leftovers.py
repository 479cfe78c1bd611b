"""An import that a fix left unused goes with it, and stays where anything else may need it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rulebook import notebook

from lightlint.cli.main import run_command

NEW = '[tool.lightlint]\ntarget = { torch = "2.9", lightning = "2.6" }\n'


@pytest.fixture
def repaired(tmp_path: Path, monkeypatch, capsys):
    """What `lightlint --fix --unsafe-fixes` makes of a program beside others."""
    (tmp_path / "pyproject.toml").write_text(NEW)
    monkeypatch.chdir(tmp_path)

    def run(text: str, name: str = "train.py", beside: str = "") -> str:
        (tmp_path / name).write_text(text)
        (tmp_path / "other.py").write_text(beside)
        run_command([name, "--fix", "--unsafe-fixes", "--notes", "--no-cache"])
        capsys.readouterr()
        return (tmp_path / name).read_text()

    return run


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (  # LL506, both uses of one name
            "import torch\nfrom torch.cuda.amp import GradScaler\n\nscalers = [GradScaler(), GradScaler()]\n",
            'import torch\n\nscalers = [torch.amp.GradScaler("cuda"), torch.amp.GradScaler("cuda")]\n',
        ),
        (  # LL721, an alias of a module
            "import torch\nimport torch.distributed as dist\n\nop = dist.reduce_op.SUM\n",
            "import torch\nimport torch.distributed as dist\n\nop = dist.ReduceOp.SUM\n",
        ),
        (  # LL146, one of two names
            "from torch import nn, tensor\n\n\ndef step(net, x, y):\n    loss = nn.functional.mse_loss(net(x), y)\n"
            "    loss = tensor(loss, requires_grad=True)\n    loss.backward()\n",
            "from torch import nn\n\n\ndef step(net, x, y):\n    loss = nn.functional.mse_loss(net(x), y)\n    loss.backward()\n",
        ),
        (  # LL803, the last statement that needs torch
            "import torch\n\ntorch.autograd.set_detect_anomaly(True)\n\nprint(1)\n",
            "print(1)\n",
        ),
    ],
)
def test_what_a_fix_left_goes(repaired, before: str, after: str):
    assert repaired(before) == after
    assert repaired(after) == after


AMP = "import torch\nfrom torch.cuda.amp import GradScaler{}\n\nscaler = GradScaler()\n{}"


@pytest.mark.parametrize(
    ("comment", "rest", "beside", "name"),
    [
        ("", "print(GradScaler.__name__)\n", "", "train.py"),
        ("", '__all__ = ["GradScaler"]\n', "", "train.py"),
        ("", 'def f(scaler: "GradScaler"): ...\n', "", "train.py"),
        ("", "# GradScaler is for others to import\n", "", "train.py"),
        ("  # noqa: F401", "", "", "train.py"),
        ("  # for others", "", "", "train.py"),
        (" as GradScaler", "", "", "train.py"),
        ("", "", "from train import GradScaler\n", "train.py"),
        ("", "", "from .train import (\n    main,\n    GradScaler,\n)\n", "train.py"),
        ("", "", "import train\ntrain.GradScaler()\n", "train.py"),
        ("", "", "from train import *\n", "train.py"),
        ("", "", "", "__init__.py"),
    ],
)
def test_what_something_else_may_need_stays(repaired, comment: str, rest: str, beside: str, name: str):
    after = repaired(AMP.format(comment, rest), name, beside)
    assert 'torch.amp.GradScaler("cuda")' in after
    assert f"from torch.cuda.amp import GradScaler{comment}\n" in after


def test_what_was_unused_before_is_not_touched(repaired):
    text = "import torch\nimport copy\nfrom torch.cuda.amp import GradScaler, autocast\n\nscaler = GradScaler()\n"
    assert repaired(text) == (
        'import torch\nimport copy\nfrom torch.cuda.amp import autocast\n\nscaler = torch.amp.GradScaler("cuda")\n'
    )


def test_an_import_of_the_project_itself_stays(repaired):
    text = "import torch\nfrom settings import net\n\ntorch.cuda.empty_cache\nfor x in [1]:\n    loss = net(x)\n"
    assert "from settings import net\n" in repaired(text)


@pytest.mark.parametrize(
    ("last", "stays"), [("print(scaler)", False), ("GradScaler.__doc__", True), ("%timeit GradScaler()", True)]
)
def test_in_a_notebook_other_cells_count(tmp_path: Path, monkeypatch, capsys, last: str, stays: bool):
    (tmp_path / "pyproject.toml").write_text(NEW)
    monkeypatch.chdir(tmp_path)
    cells = ("import torch\nfrom torch.cuda.amp import GradScaler\n", "scaler = GradScaler()\n", f"{last}\n")
    (tmp_path / "a.ipynb").write_text(notebook(*cells))
    run_command(["a.ipynb", "--fix", "--notes", "--no-cache"])
    capsys.readouterr()
    texts = ["".join(cell["source"]) for cell in json.loads((tmp_path / "a.ipynb").read_text())["cells"]]
    assert 'torch.amp.GradScaler("cuda")' in texts[1]
    assert ("GradScaler" in texts[0]) is stays
    assert texts[0].startswith("import torch\n")


others = st.lists(st.sampled_from(["autocast", "custom_fwd", "custom_bwd as back"]), unique=True, max_size=3)


@given(others, st.integers(0, 3), st.booleans(), st.sampled_from(["\n", "\r\n"]))
def test_however_the_import_is_written_only_the_name_goes(tmp_path_factory, rest, at, on_lines: bool, newline: str):
    names = [*rest[:at], "GradScaler", *rest[at:]]
    listed = "(\n    " + ",\n    ".join(names) + ",\n)" if on_lines else ", ".join(names)
    text = f"import torch\nfrom torch.cuda.amp import {listed}\n\nscaler = GradScaler()\n".replace("\n", newline)
    folder = tmp_path_factory.mktemp("names")
    (folder / "pyproject.toml").write_text(NEW)
    (folder / "train.py").write_bytes(text.encode())
    run_command([str(folder / "train.py"), "--fix", "--notes", "--no-cache", "--output-format", "concise"])
    after = (folder / "train.py").read_bytes().decode()
    compile(after, "train.py", "exec")
    kept = after.split("scaler =")[0]
    assert "GradScaler" not in kept
    assert all(name in kept for name in rest)
    assert f"import torch{newline}" in kept
    assert ("torch.cuda.amp" in kept) is bool(rest)
