"""Notebooks run as scripts of their cells."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from launched import Place, place

from lightlint.config.settings import load
from lightlint.confirm.claims import suspicions
from lightlint.confirm.launch.notebook import as_script
from lightlint.confirm.launch.target import CommandError

__all__ = ["place"]


def notebook(path: Path, *cells: str) -> Path:
    made = [
        {"cell_type": kind, "id": str(number), "metadata": {}, "source": text.splitlines(keepends=True)}
        | ({"execution_count": None, "outputs": []} if kind == "code" else {})
        for number, cell in enumerate(cells)
        for kind, text in [("markdown", cell[3:]) if cell.startswith("md:") else ("code", cell)]
    ]
    content = {"cells": made, "metadata": {"language_info": {"name": "python"}}, "nbformat": 4, "nbformat_minor": 5}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_the_script_has_the_rows_of_the_cells_and_no_magics(tmp_path: Path) -> None:
    path = notebook(
        tmp_path / "book.ipynb",
        "%matplotlib inline\n!pip install torch \\\n    numpy\nx = 1",
        "md:text",
        "for _ in range(2):\n    !ls\nfiles = !ls",
        "%%bash\necho hello\n",
    )
    (tmp_path / "made").mkdir()
    text = as_script(path, tmp_path / "made").read_text()
    lines = text.splitlines()
    assert lines[:4] == ["None", "None", "", "x = 1"]
    assert [line.strip() for line in lines[4:7]] == ["for _ in range(2):", "None", "files = None"]
    exec(compile(text, "book.py", "exec"), {})


def test_a_notebook_runs_in_its_folder_with_its_neighbours(place: Place) -> None:
    place.write("books/neighbour.py", "VALUE = 7\n")
    notebook(
        place.project / "books" / "book.ipynb",
        "import os, neighbour",
        "display(neighbour.VALUE)\nprint('cwd', os.path.basename(os.getcwd()), __name__)",
    )
    ran = place.confirm("--no-sandbox", "--", "python", "books/book.ipynb")
    assert "cwd books __main__" in ran.stderr
    assert ran.stdout.startswith("ran python books/book.ipynb: finished")
    assert place.left() == []


def test_a_notebook_is_a_command_of_its_own(place: Place) -> None:
    notebook(place.project / "book.ipynb", "print('it ran')")
    ran = place.confirm("--", "book.ipynb")
    assert "it ran" in ran.stderr
    assert ": finished" in ran.stdout


def test_claims_count_rows_over_all_code_cells(tmp_path: Path) -> None:
    path = notebook(
        tmp_path / "book.ipynb",
        "import torch\nfrom torch.utils.data import DataLoader\n",
        "md:text",
        "a = 1\n\nloader = DataLoader([1, 2], batch_size=2, shuffle=True)\n",
    )
    ran = tmp_path / "book.py"
    found = suspicions(path, load({}, file=None, isolated=True), ran)
    rows = {(each.claim.file, each.claim.first) for each in found if each.claim.name == "loader-without-workers"}
    lines = as_script(path, tmp_path).read_text().splitlines()
    assert rows == {(str(ran), next(row for row, line in enumerate(lines, 1) if "loader =" in line))}


def test_a_cell_that_is_no_python_is_told(tmp_path: Path) -> None:
    path = notebook(tmp_path / "book.ipynb", "x = 1", "def f(:\n")
    with pytest.raises(CommandError, match="cell 2"):
        as_script(path, tmp_path)
