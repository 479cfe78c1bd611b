"""Names that came and went with versions, memory that a forecast asks for, and packages that do not go together."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from checkout import run_module

from lightlint.environment import memory
from lightlint.environment.code import api
from lightlint.environment.code.usage import Usage
from lightlint.environment.code.uses import uses
from lightlint.environment.describing.packages import distributions, ill_matched
from lightlint.environment.describing.probe import describe
from lightlint.environment.describing.side import Side, SideError
from lightlint.environment.rows import BREAKS, CHANGES, DIFFERS, FAILS
from lightlint.sources.load import read

FORECAST = {"command": "python train.py", "reserved": [9_000 * 2**20, 12_000 * 2**20], "context": 500 * 2**20}


def side(python: str = "3.11.7", gpus: tuple[int, ...] = (), **packages: str) -> Side:
    listed = [{"name": "GPU", "memory_mib": size, "driver": "1", "mig": False} for size in gpus]
    machine: Mapping[str, Any] = {**describe(), "python": python, "gpus": listed, "torch": None, "variables": {}}
    return Side("there", packages, whole=True, machine=machine)


def usage(text: str) -> Usage:
    return Usage((read("train.py", text.encode()),))


def lacking(text: str, where: Side) -> list[str]:
    return [concern.change.name for concern in api.lacking(usage(text), where)]


@pytest.mark.parametrize(
    ("text", "package", "before", "after", "name"),
    [
        ("from transformers import TFBertModel\n", "transformers", "4.57.6", "5.0.0", "transformers.TFBertModel"),
        (
            "import transformers\ntransformers.AutoModelWithLMHead\n",
            "transformers",
            "4.57.6",
            "5.24.0",
            "transformers.AutoModelWithLMHead",
        ),
        (
            "from transformers import top_k_top_p_filtering\n",
            "transformers",
            "4.36.2",
            "4.40.2",
            "transformers.top_k_top_p_filtering",
        ),
        ("from datasets import load_metric\n", "datasets", "2.21.0", "3.0.2", "datasets.load_metric"),
        ("import datasets\ndatasets.Metric\n", "datasets", "2.19.2", "4.0.0", "datasets.Metric"),
        (
            "from accelerate.utils import is_tpu_available\n",
            "accelerate",
            "0.26.1",
            "0.34.2",
            "accelerate.utils.is_tpu_available",
        ),
        ("from torchtext.legacy.data import Field\n", "torchtext", "0.11.2", "0.18.0", "torchtext.legacy"),
        ("from torchtext.data import BucketIterator\n", "torchtext", "0.8.1", "0.9.1", "torchtext.data.BucketIterator"),
    ],
)
def test_names_that_wheels_no_longer_have(text: str, package: str, before: str, after: str, name: str) -> None:
    assert lacking(text, side(**{package: before})) == []
    assert lacking(text, side(**{package: after})) == [name]


@pytest.mark.parametrize(
    "text",
    [
        "import torch\ntorch.nn.RMSNorm(4)\n",
        "import torch.nn as nn\nnn.RMSNorm(4)\n",
        "from torch import nn\nnorm = nn.RMSNorm\n",
        "from torch.nn import RMSNorm as Norm\n",
        "from torch import nn\nif __name__ == '__main__':\n    nn.RMSNorm(4)\n",
    ],
)
def test_a_name_is_known_however_it_is_imported(text: str) -> None:
    assert lacking(text, side(torch="2.3.1")) == ["torch.nn.RMSNorm"]
    assert lacking(text, side(torch="2.4.0+cu121")) == []


@pytest.mark.parametrize(
    "text",
    [
        "from torch import nn\ntry:\n    nn.RMSNorm(4)\nexcept AttributeError:\n    pass\n",
        "from torch import nn\nnorm = nn.RMSNorm(4) if hasattr(nn, 'RMSNorm') else nn.LayerNorm(4)\n",
        "import torch\nif torch.__version__ >= '2.4':\n    torch.nn.RMSNorm(4)\n",
        "import torch\nuse_norm = fast and hasattr(torch.nn, 'RMSNorm')\nif use_norm:\n    torch.nn.RMSNorm(4)\n",
        "import torch\nnorm = torch.nn.RMSNorm(4) if _TORCH_GREATER_EQUAL_2_4 else None\n",
        "from torch import nn\ndef f():\n    if torch_version() < '2.4':\n        return None\n    return nn.RMSNorm(4)\n",
        "class nn:\n    RMSNorm = None\nnn.RMSNorm\n",
        "import torch\ntorch.nn.LayerNorm(4)\n",
    ],
)
def test_a_name_that_is_asked_for_first_or_not_torch_s_is_silent(text: str) -> None:
    assert lacking(text, side(torch="2.0.1")) == []


def test_a_range_of_versions_tells_nothing_of_names() -> None:
    assert lacking("import numpy as np\nnp.Inf\n", Side("pins", {"numpy": ">=2.0"}, whole=False)) == []
    assert lacking("import numpy as np\nnp.Inf\n", Side("pins", {"numpy": "2.0.1"}, whole=False)) == ["numpy.Inf"]


def test_setuptools_brings_distutils_to_pythons_without() -> None:
    text = "from distutils.util import strtobool\n"
    assert lacking(text, side("3.12.1")) == ["distutils"]
    assert lacking(text, side("3.12.1", setuptools="80.0.0")) == []
    assert lacking(text, side("3.11.7")) == []


def test_load_concerns_calls_that_leave_the_default(tmp_path: Path) -> None:
    old, new = side(torch="2.5.1"), side(torch="2.6.0")
    plain = usage("import torch\ntorch.load(path)\n")
    assert [concern.change.name for concern in api.changed(plain, old, new)] == ["torch.load"]
    assert list(api.changed(plain, new, side(torch="2.8.0"))) == []
    for call in ("torch.load(path, weights_only=False)", "torch.load(path, **options)"):
        assert list(api.changed(usage(f"import torch\n{call}\n"), old, new)) == []


def test_uses_lie_at_their_rows() -> None:
    found = list(uses(ast.parse("import torch\n\nx = torch.load(p, map_location='cpu')\n")))
    assert [(use.name, use.row, use.keywords) for use in found] == [
        ("torch", 1, None),
        ("torch.load", 3, frozenset({"map_location"})),
    ]


@pytest.mark.parametrize(
    ("versions", "ill"),
    [
        ({"torch": "2.13.0+cpu", "torchvision": "0.28.0"}, True),
        ({"torch": "2.13.0+cpu", "torchvision": "0.28.0+cpu"}, False),
        ({"torch": "2.13.0+cu130", "torchvision": "0.28.0+cpu"}, True),
        ({"torch": "2.13.0", "torchvision": "0.28.0"}, False),
        ({"torch": "2.13.0+cpu"}, False),
    ],
)
def test_builds_for_the_cpu_and_for_cuda_do_not_go_together(versions: dict[str, str], ill: bool) -> None:
    there = side(**versions)
    intel = Side("there", versions, whole=True, machine={**there.machine, "system": "Linux", "machine": "x86_64"})
    assert bool(list(ill_matched(intel))) is ill


@pytest.mark.parametrize(
    ("gpus", "weight", "words"),
    [
        ((80_000,), DIFFERS, "it fits"),
        ((80_000, 9_000), BREAKS, "out of memory"),
        ((12_000,), CHANGES, "may be too little"),
        ((), FAILS, "takes 9,500 to 12,500 MiB"),
    ],
)
def test_a_forecast_is_held_against_the_smallest_gpu(
    tmp_path: Path, gpus: tuple[int, ...], weight: int, words: str
) -> None:
    (tmp_path / "report.json").write_text(json.dumps(FORECAST))
    row = next(iter(memory.held_against(memory.read_need(tmp_path / "report.json"), side(gpus=gpus))))
    assert row.weight == weight
    assert words in row.why


@pytest.mark.parametrize(
    ("one", "other", "weight", "words"),
    [
        ((80_000,), (40_000,), DIFFERS, "it fits both"),
        ((80_000,), (8_000,), BREAKS, "it does not fit there"),
        ((80_000,), (12_000,), CHANGES, "it may not fit there"),
        ((8_000,), (6_000,), FAILS, "it fits neither"),
        ((80_000,), (), BREAKS, "it does not fit there"),
    ],
)
def test_a_forecast_is_held_against_the_smaller_of_two_machines(
    tmp_path: Path, one: tuple[int, ...], other: tuple[int, ...], weight: int, words: str
) -> None:
    (tmp_path / "report.json").write_text(json.dumps(FORECAST))
    row = next(iter(memory.compared(memory.read_need(tmp_path / "report.json"), side(gpus=one), side(gpus=other))))
    assert row.weight == weight
    assert words in row.why


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no forecast; make one with"),
        ("[]", "no forecast; make one with"),
        ('{"packages": {}}', "no forecast; make one with"),
        (json.dumps({**FORECAST, "reserved": None, "problem": "took no step"}), "holds no forecast: took no step"),
    ],
)
def test_what_is_no_forecast_is_one_clear_line(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "report.json").write_text(text)
    (tmp_path / "train.py").write_text("import os\n")
    ran = run_module("lightlint", "env", "check", "train.py", "--forecast", "report.json", cwd=tmp_path)
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)
    assert words in ran.stderr


def test_requirements_tell_nothing_of_gpus(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text(json.dumps(FORECAST))
    with pytest.raises(SideError, match="take a snapshot there"):
        list(memory.held_against(memory.read_need(tmp_path / "report.json"), Side("pins", {}, whole=False)))


def test_code_that_does_not_exist_is_one_clear_line(tmp_path: Path) -> None:
    ran = run_module("lightlint", "env", "check", "train.py", cwd=tmp_path)
    assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", "lightlint: train.py: no such file or directory\n")


@pytest.mark.parametrize(("version", "gone"), [("4.49.0", []), ("4.50.0", ["transformers.AdamW"])])
def test_what_transformers_gave_up_is_told_by_its_version(version: str, gone: list[str]) -> None:
    assert lacking("from transformers import AdamW\n", side(transformers=version)) == gone


@pytest.mark.parametrize(
    "line", ["from google.colab import drive", "import google.colab.drive", "from google import colab"]
)
def test_a_module_that_only_colab_has_is_told_apart_with_its_cell(line: str) -> None:
    cells = [
        {"cell_type": "code", "metadata": {}, "execution_count": None, "outputs": [], "source": source}
        for source in ("from google.cloud import storage", f"import os\n{line}")
    ]
    book = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}
    code = Usage((read("train.ipynb", json.dumps(book).encode()),))
    assert str(code.imports["google.colab"]) == "train.ipynb:cell 2:2"
    assert code.required >= {"google", "google.colab"}
    assert distributions("google", side()) == ()
    assert distributions("google.colab", side()) == ("google-colab",)
