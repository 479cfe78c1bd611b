"""Rules on whole notebooks, through the command line: findings are counted in cells and show the magics."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from forked import run_forked
from rulebook import notebook

FIXTURES = Path(__file__).parents[1] / "fixtures" / "unpinned_install"


def lightlint(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run_forked("lightlint", "--isolated", *arguments, cwd=FIXTURES)


def test_bad_notebook_is_told_by_cell_and_row() -> None:
    result = lightlint("--notes", "--output-format", "json", "bad.ipynb")
    assert result.returncode == 1
    found = [
        (each["code"], each["cell"], each["location"]["row"], each["message"]) for each in json.loads(result.stdout)
    ]
    rest = "whatever the rest of the environment was made for"
    version = "the shell takes the unquoted `>=1.0` for a redirection: `torchmetrics` gets no version"
    index = "this loop never changes `i`: with the value it had before, every batch steps or none does"
    assert [each for each in found if each[0] in {"LL103", "LL801"}] == [
        ("LL801", 2, 2, f"replaces `torch` by the newest version, {rest}"),
        ("LL801", 2, 4, version),
        ("LL103", 6, 3, index),
    ]


def test_magics_are_shown_as_the_notebook_has_them() -> None:
    shown = lightlint("--select", "LL801", "bad.ipynb").stdout
    assert "4 | !pip install -q einops && pip install torchmetrics>=1.0\n" in shown
    assert "| ^" + "^" * len("!pip install -q einops && pip install torchmetrics>=1.") in shown


def test_good_notebook_is_clean() -> None:
    result = lightlint("good.ipynb")
    assert result.returncode == 0, result.stdout


def test_comment_behind_a_command_suppresses(tmp_path: Path) -> None:
    path = tmp_path / "course.ipynb"
    path.write_text(
        notebook("!pip install torch  # noqa: LL801\n", "!pip install lightning # lightlint: ignore[LL801] newest\n")
    )
    result = lightlint("--select", "LL801,LL002", str(path))
    assert result.returncode == 0, result.stdout


def test_what_a_broken_cell_computes_anew_is_not_what_it_was(tmp_path: Path) -> None:
    path = tmp_path / "course.ipynb"
    cells = [
        "import torch\nfrom torch import nn\nmodel = nn.Linear(4, 1)\nx = torch.randn(8, 4)\nloss = model(x).pow(2).mean()\n",
        "loss.backward()\n",
        "scores = model(x)\nloss = <YOUR CODE: the loss of the scores>\n",
        "loss.backward()\n",
    ]
    path.write_text(notebook(*cells))
    assert lightlint("--select", "LL108", "--output-format", "concise", str(path)).stdout.count("LL108") == 0
    path.write_text(notebook(cells[0], cells[1], cells[3]))
    assert lightlint("--select", "LL108", "--output-format", "concise", str(path)).stdout.count("LL108") == 1


def test_comments_in_front_of_a_magic_run_in_colab(tmp_path: Path) -> None:
    text = notebook("# the newest\n%%capture\nprint(1)\n")
    (tmp_path / "jupyter.ipynb").write_text(text)
    (tmp_path / "colab.ipynb").write_text(json.dumps(json.loads(text) | {"metadata": {"colab": {"provenance": []}}}))
    for name, status in (("jupyter.ipynb", 1), ("colab.ipynb", 0)):
        assert lightlint("--select", "LL819", str(tmp_path / name)).returncode == status
