"""What never runs is not reported, and all else is, wherever it stands."""

from __future__ import annotations

import textwrap
from pathlib import Path

from rulebook import notebook

from lightlint.config.settings import load as load_settings
from lightlint.facts.project.project import Projects
from lightlint.linting.lint import lint
from lightlint.sources.load import load

PROGRAM = """
    import sys

    from torch import nn


    def build(kind, softmax=nn.Softmax()):  # runs
        if False:
            return nn.Softmax()
        if kind == "list":
            return [nn.Softmax() for _ in range(3)]  # runs
        while True:
            if kind:
                return nn.Softmax()  # runs
        nn.Softmax()


    class Head(nn.Module):
        softmax = nn.Softmax()  # runs

        def make(self):
            try:
                return nn.Softmax()  # runs
            finally:
                self.last = nn.Softmax()  # runs
            return nn.Softmax()


    if __name__ == "__main__":
        build("list")
        sys.exit(nn.Softmax())  # runs
        nn.Softmax()
"""
CELLS = ("from torch import nn\nimport sys", "sys.exit()", "nn.Softmax()", "def f():\n    return 1\n    nn.Softmax()")


def rows_told(path: Path) -> list[int]:
    settings = load_settings({"select": ["LL164"]}, isolated=True)
    return [finding.location.row for finding in lint(load(path), settings, Projects()).findings]


def test_only_what_runs_is_told(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(PROGRAM))
    rows = path.read_text().splitlines()
    assert rows_told(path) == [number for number, row in enumerate(rows, 1) if row.endswith("# runs")]


def test_cells_of_a_notebook_run_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "train.ipynb"
    path.write_text(notebook(*CELLS))
    assert rows_told(path) == [1]
