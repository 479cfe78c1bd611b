"""Versions in sentences, badges and tables of a README: the weakest evidence, which only keeps rules silent."""

from __future__ import annotations

import json
from functools import reduce
from operator import or_
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from versions_anew import forget_versions

from lightlint.cli.main import run_command
from lightlint.facts.versions.pins.formats.prose import readme_pins
from lightlint.facts.versions.pins.formats.prose.paragraphs import paragraphs
from lightlint.facts.versions.pins.pin import Kind
from lightlint.facts.versions.targets import target_of
from lightlint.facts.versions.versions import Range, Version, parse_range
from lightlint.sources.notebook import read_notebook


def told(text: str, name: str = "torch") -> Range | None:
    """The versions around all that a README says of a package."""
    ranges = [parse_range(pin.specifier) for pin in readme_pins(Path("README.md"), text) if pin.name == name]
    return reduce(or_, ranges) if ranges else None


@pytest.mark.parametrize(
    ("text", "versions"),
    [
        ("We wrote the models with python 3.6, PyTorch version 1.7.1, CUDA 11.0 and torchvision 0.8.2.", "==1.7.1"),
        ("Make sure that you're using pytorch version 1.7.1 since newer ones (1.8.1) give other numbers.", "==1.7.1"),
        ("Please use PyTorch 1.7.1 because we cannot reproduce the results with pytorch 1.8.1.", ">=1.7.1,<=1.8.1"),
        ("The code was tested on PyTorch 1.4 / 1.7 and Python 3.7.", ">=1.4,<1.8"),
        ("## Requirements\n- Pytorch with cuda (tested on 1.13)", ">=1.13,<1.14"),
        ("- [PyTorch](www.pytorch.org) (e.g. 1.10.0)", "==1.10.0"),
        ("We used 1.11.0 for pytorch and 1.6.4 for pytorch lightning; others are untested.", "==1.11.0"),
        ("It was trained with version 1.11.0 for PyTorch.", "==1.11.0"),
        ("It was trained with 0.6.0 for PyTorch 1.11.0.", "==1.11.0"),
        ("(we use /torch 1.6.0 /torchvision 0.7.0 /timm 0.3.2 /cuda 10.1 for training and evaluation.", "==1.6.0"),
        ("This needs PyTorch version >= 1.8.0. Best is 1.10.0", "==1.10.0"),
        ("- PyTorch >= 1.4 (recommended: 1.7.1)", "==1.7.1"),
        ("- PyTorch 1.0+, tested on 1.2.0", "==1.2.0"),
        ("This needs PyTorch >= 1.6. The best BLEU is 1.10.0", ">=1.6"),
        ("Settings for the above: 8 NVIDIA V100 GPUs, CUDA 10.1/CuDNN 7.6.5, PyTorch 1.7.0.", "==1.7.0"),
        ("It has been tested under PyTorch 1.4, 1.5 and 1.7.", ">=1.4,<1.8"),
        ("Tested with PyTorch 1.4 to 1.9", ">=1.4,<1.10"),
        ("The code was written with PyTorch 1.12.1 and was not tested with other versions.", "==1.12.1"),
        ("This\nhas been developed and tested with PyTorch\n1.6.0 on one V100.", "==1.6.0"),
        ("![torch](https://img.shields.io/badge/PyTorch-1.8-ee4c2c?logo=pytorch)", "1.8"),
        ("<img src='https://img.shields.io/badge/pytorch-%3E%3D1.13-red.svg'/>", ">=1.13"),
        ("[![](https://img.shields.io/badge/PyTorch_2.0+-ee4c2c)](https://pytorch.org)", ">=2.0"),
        ("![](https://img.shields.io/badge/pytorch-v1.6%20%7C%201.7-blue)", ">=1.6,<1.8"),
        ("![](https://img.shields.io/static/v1?label=PyTorch&message=1.9&color=red)", "1.9"),
        ("3. Install [PyTorch 1.0](https://pytorch.org/get-started)", "1.0"),
        ("3. Install [PyTorch 1.0][torch]\n\n[torch]: https://pytorch.org", "1.0"),
        ("Requirements:\n* PyTorch >= 1.0\n* numpy", ">=1.0"),
        ("Requirements:\n* PyTorch ≥ 1.4, < 1.9\n", ">=1.4,<1.9"),
        ("| package | version |\n|---|---|\n| torch | 1.8.1 |\n", "==1.8.1"),
        ("| **PyTorch** | `1.8` |\n", "1.8"),
        ("You need `pytorch==1.6` and a GPU.", "1.6"),
        ("##What to have\n- python2.7, pytorch 0.3.*, numpy, argparse", "0.3"),
        ("- numpy, scipy, PyTorch 1.2, and matplotlib", "1.2"),
        ("##Requirements\nAll of it is for PyTorch 1.2 alone, as it stands.", "1.2"),
        ("# 1. Installation\n##### 1.2 Pytorch(1.0.0) which can be installed so: x\nFor most users", "==1.0.0"),
        ("# x\n## Setup for PyTorch 0.4.1\n```\npip install x\n```", "==0.4.1"),
        ("## Environment\nUbuntu 18.04, Python 3.7, PyTorch 1.5+", ">=1.5"),
        ("## Dependencies\n\nPython 3, PyTorch (1.3.1 or later), scipy", ">=1.3.1"),
        ("Setup\n-----\nAny Linux, torch 1.x\n", "1.*"),
        ("<h2>Installation</h2>\n<ul><li>64-bit Python 3.8 and <b>PyTorch 1.9.0</b> (or later)</li></ul>", ">=1.9.0"),
        ("## Requirements\n```\nPython >= 3.5.5, PyTorch == 0.3.1, torchvision == 0.2.0\n```\n", "==0.3.1"),
        ("The experiments were developed for version 1.10 of PyTorch.", "1.10"),
        ("PyTorch 1.8 以上 需要", ">=1.8"),
        ("```\npython 3.7\npytorch 1.2.0\n```", "==1.2.0"),
        ("- pytorch1.6.0+cu101", "==1.6.0"),
        ("* PyTorch 0.4 or 0.5", ">=0.4,<0.6"),
        ("Works with torch 1.7.1. PyTorch 2.0 features are planned.", ">=1.7.1,<2.1"),
        ("#### Install\n* V100 (32G): CUDA 10.1 + PyTorch 1.6.0 + torchvision 0.7.0", "==1.6.0"),
        ("The code was tested with Python 3.7 and PyTorch 1.0.0rc1.", "==1.0.0"),
        ("- You will need [Pytorch1.0](https://pytorch.org/get-started/locally/)", ">=1.0,<1.1"),
        ("You will also need PyTorch 1.4 and a GPU.", ">=1.4,<1.5"),
        ("Requires PyTorch 1.7 + and CUDA", ">=1.7"),
        ("## Enviroment\n - Python3\n - [Pytorch](http://pytorch.org/) before 0.4 (newer ones: see issue 3)", "<0.4"),
        ("Works with PyTorch earlier than 1.5.", "<1.5"),
        ("You need PyTorch version prior to 1.8", "<1.8"),
        ("Requirements:\n* PyTorch 1.7 +\n", ">=1.7"),
        ("# Net\n## **Note!** The code is expected to reproduce the results with **PyTorch 1.3 and CUDA 10**\n", "1.3"),
        ("Test on: python3.6 + pytorch1.0 + cuda9", "1.0"),
        ("It ran with `torch.__version__ == 1.4.0`.", "==1.4.0"),
        (
            "## Needs\n<table><tr><td>Torch</td><td>1.2.0</td></tr><tr><td>CUDA</td><td>10</td></tr></table> are used",
            "==1.2.0",
        ),
        ("```\npytorch                   1.8.0           py3.8_cuda10.2_cudnn7.6.5_0    pytorch\n```", "==1.8.0"),
        (
            "```\n[conda] pytorch                   1.8.0           py3.8_cuda10.2_cudnn7.6.5_0    pytorch\n```",
            "==1.8.0",
        ),
        ("    [pip3] torch==1.8.0\n    [pip3] torchvision==0.9.0\n", "==1.8.0"),
        ("```\ntorch      1.8\n```", "1.8"),
        ("```\nCollecting environment information...\nPyTorch version: 1.11.0\nIs debug build: False\n```", "==1.11.0"),
        ("    Packages:\n        numpy: 1.19.5\n        pyTorch_version: 1.9.0\n", "==1.9.0"),
        ("Our results come from the [PyTorch 20.06-py3 NGC container](https://a.b/c).\n", ">=1.6.0a0,<=1.6.0"),
        ("We run in NVIDIA's PyTorch container (20.06).\n", ">=1.6.0a0,<=1.6.0"),
        ("- pytorch\uff1a1.3\n- python\uff1a3.6\n", "1.3"),
        ("Python2.7, PyTorch0.3.1\n", "==0.3.1"),
        ("torch>=1.7.0,<=1.9.0 ; transformers>=3.0,<4\n", ">=1.7.0,<=1.9.0"),
        ("We will be working with PyTorch version 0.4.0.", "==0.4.0"),
        ("We train it with torch 1.4 on one GPU.", "1.4"),
        ("# Finetuning (Benchmark of nets)\n\nIt is tested with torch 1.4.\n", "1.4"),
        ("# Net\n## Benchmarks\n### Requirements\n```\ntorch<=1.11\n```\n", "<=1.11"),
    ],
)
def test_what_is_needed_or_was_used_is_read(text: str, versions: str):
    found, expected = told(text), parse_range(versions)
    assert found is not None
    assert (found.lower, found.upper and found.upper.minor) == (expected.lower, expected.upper and expected.upper.minor)


@pytest.mark.parametrize(
    "text",
    [
        "PyTorch 2.0 features: `torch.compile` makes it twice as fast.",
        "## News\n* 2023-03-20: runs with PyTorch 2.0\n",
        "## Changelog\n- PyTorch 1.1 is now required\n",
        "# What's new\n\n## v2\n\nTested with PyTorch 2.1.\n",
        "**May 9, 2019**: PyTorch version updated from 1.0.1 to 1.1.0",
        "- [x] Support pytorch 1.10",
        "- PyTorch 2.0 support",
        "If you use pytorch 1.1 or higher, install tensorboard.",
        "It does not work with PyTorch 1.8.",
        "If your PyTorch is older than 1.5, install another branch.",
        "It works, but PyTorch before 1.4 is not supported.",
        "In the original paper PyTorch 0.4.1 was used.",
        "Faster with `torch.compile()` (only supported from PyTorch 2.0).",
        "We use PyTorch Geometric 2.0 and PyTorch3D 0.6.",
        "We use [a port](https://github.com/someone/thing.pytorch/releases/tag/1.8) of it.",
        "python -m torch.distributed.launch --lr 0.3 --scale 1.8 is used\n",
        "Based on PyTorch, CUDA 10.1 and Python 3.7.",
        "Requires torch 10.4",
        "* [PyTorch 20.06-py3 NGC container](https://a.b/c) or newer\n",
        "We used torchtext 0.6.0 for PyTorch.",
        "We trained with torchtext version 0.6.0 for PyTorch.",
        "We used a rate of 0.01 for PyTorch and used 0.02 for Lightning.",
        "```python\nx = torch.ones(1.8)  # torch 1.8 is used\n```",
        "![PyTorch](https://example.org/badge/PyTorch-1.8.svg)",
        "## Results with PyTorch 1.3\n",
        "## Benchmarks\n```\ntorch      1.8.0\n```\n",
    ],
)
def test_news_and_other_things_are_no_evidence(text: str):
    assert told(text) is None


@pytest.mark.parametrize(
    ("text", "name", "versions"),
    [
        ("![](https://img.shields.io/badge/pytorch_lightning-1.5+-792ee5)", "pytorch-lightning", ">=1.5"),
        ("![](https://img.shields.io/badge/-Lightning_1.9-792ee5)", "lightning", "1.9"),
        ("It is written with PyTorch Lightning 1.4.9 and torch 1.9.", "pytorch-lightning", "==1.4.9"),
        ("It is written with PyTorch Lightning 1.4.9 and torch 1.9.", "torch", "1.9"),
        ("Requires torch 1.7.1 and torchvision 0.8.2.", "torchvision", "==0.8.2"),
        ("## Requirements\nPyTorch 1.0.2 or above\nPython 3.6\nCUDA 10.0\n", "python", "3.6"),
        ("```\npython=3.7.0\npytorch=1.8.1\ntqdm=4.61.2\n```", "python", "==3.7.0"),
        ("| Library | Version |\n|:---:|:---:|\n| `Python` | `3.7` |\n| `torch` | `1.7.1` |\n", "python", "3.7"),
        ("It needs Python 3 (3.6.9).", "python", "==3.6.9"),
        ("```\npython                3.7.12         hb7a2778_100_cpython    conda-forge\n```", "python", "==3.7.12"),
        ("```\npytorch-lightning     1.5.2          pyhd8ed1ab_0    conda-forge\n```", "pytorch-lightning", "==1.5.2"),
    ],
)
def test_each_package_is_told_apart(text: str, name: str, versions: str):
    assert told(text, name) == parse_range(versions)


minors = st.tuples(st.integers(0, 2), st.integers(0, 15)).map("{0[0]}.{0[1]}".format)
names = st.sampled_from(
    ["PyTorch", "pytorch", "torch", "**PyTorch**", "`torch`", "[PyTorch](https://pytorch.org/)", "PyTorch version"]
)
frames = st.sampled_from(
    [
        "The code was tested with Python 3.7, {} and CUDA 10.2.",
        "Our implementation needs {}.",
        "> Please install {}, then run `train.py`.",
        "## Requirements\nLinux, {}\n",
        "Prerequisites\n=============\n\n* Python 3.6, {}, tqdm 4.62\n",
        "<p>This repository is built on {} and runs on one GPU</p>",
    ]
)


@given(frames, names, st.lists(minors, min_size=1, max_size=3), st.sampled_from([", ", " / ", " or ", " and "]))
def test_all_versions_of_a_sentence_lie_in_what_is_read(frame: str, name: str, versions: list[str], between: str):
    found = told(frame.format(f"{name} {between.join(versions)}"))
    assert found is not None
    assert all(Version(version) in found for version in versions)
    assert found.lower == min(map(Version, versions))


@given(st.text(alphabet="pytorch lightning\n#-*|>[](){}<>=.0129+~`!&/,;:'_shields.io/badge/", max_size=120))
def test_no_prose_breaks_the_reader(text: str):
    rows = len(text.splitlines())
    assert all(1 <= pin.row <= rows for pin in readme_pins(Path("README.md"), text))
    assert [each.row for each in paragraphs(text)] == sorted(each.row for each in paragraphs(text))


@pytest.fixture
def target(tmp_path: Path):
    """What files of a project make of the torch or Lightning of its train.py."""
    (tmp_path / ".git").mkdir()

    def of(files: dict[str, str], package: str = "torch"):
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text, "utf-8")
        forget_versions()
        return target_of(package, tmp_path / "train.py", tmp_path)

    return of


def test_prose_speaks_only_where_nothing_else_does(target):
    prose = "The code was tested with PyTorch 1.7.1 and Lightning 1.2.\n"
    alone = target({"README.md": prose, "requirements.txt": "torch\n"})
    assert (str(alone.version), alone.source, alone.hearsay) == ("1.7.1", "pin README.md:1", True)
    assert target({}, "lightning").version.minor == "1.2"
    declared = target({"requirements.txt": "torch>=1.5\n"})
    assert (declared.lower, declared.upper, declared.hearsay) == (Version("1.5"), None, False)
    assert target({"README.md": f"{prose}\n    pip install torch==1.9.0", "requirements.txt": ""}).version == Version(
        "1.9.0"
    )


@pytest.mark.parametrize(
    "kept",
    [
        "wandb/run-20200904_10/files/requirements.txt",
        "out/wandb/run-1/requirements.txt",
        "mlruns/0/3f/artifacts/model/requirements.txt",
    ],
)
def test_records_of_runs_are_hearsay_too(target, kept):
    """What a tracker noted of the machine that a run was made on."""
    old = target({kept: "torch==1.6.0\npytorch-lightning==0.9.0\n", "requirements.txt": "torch\n"})
    assert (str(old.version), old.hearsay) == ("1.6.0", True)
    assert target({}, "lightning").version == Version("0.9.0")
    assert target({"requirements.txt": "torch>=2.0\n"}).lower == Version("2.0")


@pytest.mark.parametrize(
    "shown",
    [
        "Successfully installed tokenizers-0.13.3 transformers-4.28.1",
        "Requirement already satisfied: transformers in /usr/lib/python3/dist-packages (4.28.1)",
        "Requirement already satisfied: transformers>=4.0 in /opt/lib (from peft) (4.28.1+local)",
        "# !pip install 'transformers==4.28.1' tqdm",
        "Transformers: 4.28.1, of 2023-04-20",
    ],
)
def test_outputs_of_a_notebook_are_hearsay_too(tmp_path, shown):
    """What pip said when its install cell was run."""
    output = {"output_type": "stream", "name": "stdout", "text": [f"{shown}\n"]}
    cell = {
        "cell_type": "code",
        "metadata": {},
        "source": ["!pip install transformers peft\n", "print(transformers.__version__)"],
    }
    cell["outputs"] = [output]
    book = {"cells": [cell], "metadata": {"language_info": {"name": "python"}}, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / ".git").mkdir()
    source = read_notebook("train.ipynb", json.dumps(book).encode())
    forget_versions()
    told = target_of("transformers", tmp_path / "train.ipynb", tmp_path, pip_lines=source.says_of_versions)
    assert (str(told.version), told.hearsay) == ("4.28.1", True)


@pytest.mark.parametrize(
    ("notebook", "beside", "version"),
    [
        ("notebooks/look.ipynb", {}, "1.10"),
        ("look.ipynb", {}, "1.10"),
        ("look.ipynb", {"README.md": "## Requirements\n\n- Python 3.8\n"}, "2.4"),
        ("other/look.ipynb", {"other/train.py": ""}, None),
        (".ipynb_checkpoints/look.ipynb", {}, None),
    ],
)
def test_scripts_are_of_the_days_of_the_notebooks_beside_them(target, notebook, beside, version):
    """The Python that a notebook was run with; nothing newer of torch runs there."""
    cell = {"cell_type": "code", "metadata": {}, "source": ["import torch\n"], "outputs": []}
    ran = {"language_info": {"name": "python", "version": "3.6.9"}}
    torch = target({notebook: json.dumps({"cells": [cell], "metadata": ran, "nbformat": 4}), **beside})
    assert (torch.source == "newest") is (version is None)
    assert version is None or (torch.version.minor == version and torch.hearsay)


def test_a_python_that_the_torch_of_a_project_does_not_run_with_is_of_earlier_days(target):
    cell = {"cell_type": "code", "metadata": {}, "source": ["import torch\n"], "outputs": []}
    ran = {"language_info": {"name": "python", "version": "3.6.9"}}
    look = {"look.ipynb": json.dumps({"cells": [cell], "metadata": ran, "nbformat": 4})}
    assert target({**look, "requirements.txt": "torch==1.8.1\n"}, "peft").version.minor == "0.3"
    assert target({"requirements.txt": "torch==2.3.0\n"}, "peft").source == "newest"


@pytest.mark.parametrize(
    ("asked", "said", "last"),
    [
        ("torch>=1.7.1", "The code was tested with PyTorch 1.7.1.", "1.7.1"),
        ("torch>=1.7.1", "![x](https://img.shields.io/badge/pytorch-v1.7.1-orange.svg)", "1.7.1"),
        ("torch>=1.7", "The code was tested with PyTorch 1.7.", "1.7.1"),
        ("torch>=1.7.1", "The code was tested with PyTorch 1.9.0.", None),
        ("torch>=1.7.1", "It needs PyTorch 1.7.1 or later.", None),
        ("torch>=1.7.1,<2", "The code was tested with PyTorch 1.7.1.", "1.13.1"),
    ],
)
def test_what_is_said_of_the_oldest_version_asked_for_is_what_was_used(target, asked: str, said: str, last: str | None):
    found = target({"README.md": f"{said}\n", "requirements.txt": f"{asked}\n"})
    assert found.lower is not None
    assert found.lower.release[:2] == (1, 7)
    assert (str(found.version) if found.upper is not None else None, found.hearsay) == (last, last in ("1.7.1",))


def test_hearsay_keeps_silent_and_proves_nothing(target):
    old = target({"README.md": "It needs PyTorch 1.7.1."})
    assert not old.may_be_at_least("1.8")
    assert not old.surely_at_least("1.8")
    assert not old.surely_below("1.8")
    assert old.always_has("1.7")
    assert not old.always_has("1.8")


OLD_CODE = """\
import torch
from torch.cuda.amp import GradScaler
from torchvision.models import resnet50

scaler = GradScaler()
net = torch.nn.utils.weight_norm(resnet50(pretrained=True).fc)
"""


def test_what_a_run_noted_is_called_so(tmp_path: Path, monkeypatch, capsys):
    noted = tmp_path / "wandb" / "run-20200904_10" / "files" / "requirements.txt"
    noted.parent.mkdir(parents=True)
    noted.write_text("torch==1.6.0\n")
    (tmp_path / ".git").mkdir()
    (tmp_path / "train.py").write_text(OLD_CODE)
    monkeypatch.chdir(tmp_path)
    forget_versions()
    assert run_command(["--show-settings", "train.py"]) == 0
    said = (
        "    from wandb/run-20200904_10/files/requirements.txt:1: torch==1.6.0, what was installed when a run began\n"
    )
    assert said in capsys.readouterr().out


def test_what_a_project_of_a_tracker_pins_is_its_own(tmp_path: Path, monkeypatch, capsys):
    root = tmp_path / "wandb"
    (root / ".git").mkdir(parents=True)
    (root / "requirements.txt").write_text("torch==1.6.0\n")
    (root / "train.py").write_text(OLD_CODE)
    monkeypatch.chdir(root)
    forget_versions()
    assert run_command(["--show-settings", "train.py"]) == 0
    assert "    from requirements.txt:1: torch==1.6.0, what the project declares\n" in capsys.readouterr().out


def test_old_code_beside_a_readme_is_clean(tmp_path: Path, monkeypatch, capsys):
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(OLD_CODE)
    (tmp_path / "README.md").write_text(
        "# Net\n\nDeveloped with python 3.6, PyTorch version 1.7.1 and torchvision 0.8.2.\n"
    )
    forget_versions()
    assert run_command(["train.py", "--notes"]) == 0
    assert capsys.readouterr().out == "No findings in 1 file.\n"
    assert run_command(["--show-settings", "train.py"]) == 0
    shown = capsys.readouterr().out
    assert "    from README.md:3: torch==1.7.1, what a README tells\n" in shown
    (tmp_path / "README.md").write_text("# Net\n\nNews: works with any PyTorch.\n")
    forget_versions()
    assert run_command(["train.py", "--notes", "--output-format", "concise"]) == 0
    assert {"LL506", "LL722"} <= set(capsys.readouterr().out.split())


VOLATILE_CODE = """\
import torch
from torch import nn
from torch.autograd import Variable


def main(loader):
    model = nn.Linear(8, 1)
    criterion = nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(Variable(x)), Variable(y.view(-1)))
        loss.backward()
        optimizer.step()
        print(loss.data[0])
    for x, y in loader:
        print(model(Variable(x, volatile=True)))
"""


def test_code_that_asks_for_volatile_inputs_is_for_torch_before_0_4(tmp_path: Path, monkeypatch, capsys):
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(VOLATILE_CODE)
    forget_versions()
    assert run_command(["train.py", "--notes", "--output-format", "concise"]) == 1
    found = set(capsys.readouterr().out.split())
    assert {"LL728", "LL729"} <= found  # what such code runs into today
    assert not {"LL166", "LL206"} & found
    (tmp_path / "train.py").write_text(
        VOLATILE_CODE.replace(
            "    for x, y in loader:\n        print(model(Variable(x, ",
            "    with torch.no_grad():\n        print(model(Variable(x, ",
        )
    )
    forget_versions()
    run_command(["train.py", "--output-format", "concise"])
    assert "LL166" in capsys.readouterr().out
    (tmp_path / "train.py").write_text(VOLATILE_CODE)
    (tmp_path / "requirements.txt").write_text("torch==1.2.0\n")
    forget_versions()
    run_command(["train.py", "--output-format", "concise"])
    assert "LL166" in capsys.readouterr().out


def test_newer_code_is_not_blamed_for_what_a_readme_tells(tmp_path: Path, monkeypatch, capsys):
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(
        "import lightning.pytorch as pl\n\n\nclass Log(pl.Callback):\n"
        "    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):\n        print(batch_idx)\n\n\n"
        'pl.Trainer(precision="16-mixed", max_epochs=3, callbacks=[Log()])\n'
    )
    (tmp_path / "README.md").write_text("We used PyTorch Lightning 1.4 for the first experiments.\n")
    forget_versions()
    assert run_command(["train.py"]) == 0, capsys.readouterr().out


def test_kinds_keep_their_order():
    assert min(Kind) is Kind.PROSE


OLDEST_CODE = """\
import torch.nn.functional as F
from torch.autograd import Variable


def evaluate(net, loader):
    net.eval()
    total = 0.0
    for batch, target in loader:
        output = net(Variable(batch, volatile=True))
        total += F.cross_entropy(output, Variable(target), size_average=False).data[0]
        loss = F.nll_loss(output, Variable(target))
        print(loss.data[0])
    return total
"""


def test_a_page_speaks_of_the_versions_that_it_applies_to(tmp_path: Path, monkeypatch, capsys):
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(OLDEST_CODE)
    for line in ("torch v0.3.1, torchvision v0.2.0", "- PyTorch 0.3.1", "Tested with PyTorch 0.4.0."):
        (tmp_path / "README.md").write_text(f"# Net\n\n## Requirements\n\n{line}\n")
        forget_versions()
        run_command(["train.py", "--notes", "--output-format", "concise"])
        told = set(capsys.readouterr().out.split())
        assert not told & {"LL206", "LL729", "LL730"}, line
    (tmp_path / "README.md").write_text("# Net\n")
    forget_versions()
    run_command(["train.py", "--notes", "--output-format", "concise"])
    assert {"LL728", "LL729", "LL730"} <= set(capsys.readouterr().out.split())


def test_prose_names_hugging_face_packages_and_what_to_go_back_to() -> None:
    assert told("Tested with transformers 4.31 and peft 0.5.", "transformers") == parse_range("4.31")
    assert told("If results differ, please try using Transformers <= 4.29.", "transformers") == parse_range("<=4.29")
    assert told("If you use Transformers 5.1, you will see an error.", "transformers") is None


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("TRAINING.md", "# Environment\n\n* PyTorch 0.3\n"),
        ("old-model.md", "The code is developed on Ubuntu 16.04 with Python 3.6, PyTorch 0.3.1 and apex 0.1.\n"),
        ("README.md", "```bash\npip install -r requirements.txt\n(we use /torch 0.3.1 /cuda 9.0 for training)\n```\n"),
        ("requirments.txt", "pytorch=0.3.1\n"),
        ("floyd.yml", "env: pytorch-0.3\nmachine: gpu\n"),
    ],
)
def test_other_pages_and_misspelt_lists_are_read(name: str, text: str, tmp_path: Path, monkeypatch, capsys) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(OLDEST_CODE)
    (tmp_path / name).write_text(text)
    forget_versions()
    run_command(["train.py", "--output-format", "concise"])
    assert not set(capsys.readouterr().out.split()) & {"LL206", "LL729", "LL730"}


def test_settings_that_a_command_line_wrote_name_its_lightning(tmp_path: Path, monkeypatch, capsys) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "configs").mkdir()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("import pytorch_lightning as pl\n\ntrainer = pl.Trainer(gpus=1)\n")
    for header, found in (("# pytorch_lightning==1.9.2\n", False), ("# pytorch_lightning==2.1.0\n", True)):
        (tmp_path / "configs" / "net.yaml").write_text(f"{header}trainer:\n  max_epochs: 3\n")
        forget_versions()
        run_command(["train.py", "--output-format", "concise"])
        assert ("LL701" in capsys.readouterr().out) is found
