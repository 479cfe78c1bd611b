"""The flake8 door, through flake8 itself: it must say what the command line says."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest
from checkout import environment_of, run_module
from forked import forked, run_forked
from rulebook import examples

from lightlint.pages import all_pages

pytest.importorskip("flake8")

FAULTY = """\
import torch


def train(model, loader, optimizer):
    for batch in loader:
        optimizer.zero_grad()
        model(batch).mean().backward()
        optimizer.step()
        torch.cuda.empty_cache()
"""
MESSAGE = "`empty_cache()` in each batch hands the allocator's blocks back to the driver"
FORMAT = "%(path)s:%(row)d:%(col)d %(code)s %(text)s"


def flake8(cwd: Path, *arguments: str) -> tuple[int, list[str]]:
    """Exit status and lines of `flake8 --select LL`."""
    done = run_forked("flake8", "--isolated", "--select", "LL", "--format", FORMAT, *arguments, cwd=cwd)
    assert done.stderr == ""
    return done.returncode, [line.removeprefix("./") for line in done.stdout.splitlines()]


def command_line(cwd: Path, *arguments: str) -> list[str]:
    """What `lightlint` finds, errors and warnings only, in the same form."""
    done = run_forked("lightlint", "--output-format", "json", *arguments, cwd=cwd)
    assert done.returncode in (0, 1), done.stderr
    return [
        f"{each['filename']}:{each['location']['row']}:{each['location']['column']} {each['code']} {each['message']}"
        for each in json.loads(done.stdout)
        if each["severity"] != "note"
    ]


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize("each", [20, pytest.param(3, marks=pytest.mark.slow)])
def test_both_doors_say_the_same_of_the_rule_book(each: int, tmp_path: Path) -> None:
    """flake8 sees one file at a time: what a file comes to in another is told at its call, as `lightlint FILE` does."""
    pages = [page for page in all_pages().values() if page.family != "lightlint"][::each]
    turns = defaultdict[int, list[str]](list)  # no two files of one example in one turn
    for page in pages:
        for number, example in enumerate(examples(page)):
            if all(name.endswith(".py") for name in example.files):
                folder = tmp_path / page.name.replace("-", "_") / f"example{number}"
                example.write(folder)
                for turn, name in enumerate(example.files):
                    turns[turn].append(str((folder / name).relative_to(tmp_path)))
    status, said = flake8(tmp_path, ".")
    assert status == 1
    assert sorted(said) == sorted(line for names in turns.values() for line in command_line(tmp_path, *names))
    assert len({line.split()[1] for line in said}) > len(pages) // 2


def test_place_is_the_command_lines(tmp_path: Path) -> None:
    write(tmp_path, "faulty.py", FAULTY)
    assert flake8(tmp_path, "faulty.py") == (1, [f"faulty.py:9:9 LL501 {MESSAGE}"])


@pytest.mark.parametrize(
    ("begin", "end"),
    [("\ufeff", "\n"), ("", "\r\n"), ("\ufeff", "\r\n"), ("\f\n", "\n"), ("# Größe: 10 µm, 数\n", "\n")],
    ids=["bom", "crlf", "bom-crlf", "form-feed", "non-ascii"],
)
def test_text_forms_move_nothing(tmp_path: Path, begin: str, end: str) -> None:
    write(tmp_path, "faulty.py", begin + FAULTY.replace("torch.cuda.", "'é'; torch.cuda.").replace("\n", end))
    _, said = flake8(tmp_path, "faulty.py")
    assert len(said) == 1
    assert said == command_line(tmp_path, "faulty.py")


def test_latin_1_cookie_moves_nothing(tmp_path: Path) -> None:
    text = "# -*- coding: latin-1 -*-\n" + FAULTY.replace("torch.cuda.", "'é'; torch.cuda.")
    (tmp_path / "faulty.py").write_bytes(text.encode("latin-1"))
    _, said = flake8(tmp_path, "faulty.py")
    assert said == command_line(tmp_path, "faulty.py")
    assert said[0].startswith("faulty.py:10:14 ")


def test_standard_input_goes_by_its_display_name(tmp_path: Path) -> None:
    write(tmp_path, "pyproject.toml", '[tool.lightlint.per-file-ignores]\n"quiet.py" = ["LL501"]\n')
    options = ("--isolated", "--select", "LL", "--stdin-display-name")
    said = [
        forked("flake8", *options, name, "-", cwd=tmp_path, environment=environment_of(), data=FAULTY.encode()).stdout
        for name in ("loud.py", "quiet.py")
    ]
    assert said == [f"loud.py:9:9: LL501 {MESSAGE}\n".encode(), b""]


def test_suppressions_of_both_kinds_hold_and_unused_ones_are_told(tmp_path: Path) -> None:
    call = "        torch.cuda.empty_cache()"
    lines = [
        f"{call}  # noqa: LL501",
        f"{call}  # noqa",
        f"{call}  # lightlint: ignore[LL501] fragmentation was measured",
        f"{call}  # lightlint: ignore[empty-cache-in-loop]",
        f"{call}  # noqa: LL401",
        "    done = True  # noqa: LL501",
    ]
    write(tmp_path, "faulty.py", FAULTY.replace(call, "\n".join(lines)))
    status, said = flake8(tmp_path, "faulty.py")
    assert status == 1
    assert [line.split()[:2] for line in said] == [
        ["faulty.py:13:9", "LL501"],
        ["faulty.py:13:35", "LL002"],
        ["faulty.py:14:18", "LL002"],
    ]
    assert said == command_line(tmp_path, "faulty.py")


def test_skipped_file_is_silent(tmp_path: Path) -> None:
    write(tmp_path, "faulty.py", "# lightlint: skip-file\n" + FAULTY)
    assert flake8(tmp_path, "faulty.py") == (0, [])


def test_settings_are_those_of_each_files_project(tmp_path: Path) -> None:
    write(tmp_path, "pyproject.toml", '[tool.lightlint]\nextend-exclude = ["old"]\nnotes = true\n')
    write(tmp_path, "inner/pyproject.toml", '[tool.lightlint]\nignore = ["devices"]\n')
    for name in ("train.py", "inner/train.py", "old/train.py"):
        write(tmp_path, name, FAULTY)
    _, said = flake8(tmp_path, ".")
    assert said == [f"train.py:9:9 LL501 {MESSAGE}"]
    assert said == command_line(tmp_path, ".")
    assert flake8(tmp_path, "old/train.py") == (0, [])


def test_directory_above_the_project_excludes_nothing(tmp_path: Path) -> None:
    project = tmp_path / "dist" / "venv"
    write(project, "train.py", FAULTY)
    assert flake8(project, "train.py")[0] == 1
    assert len(command_line(project, "--force-exclude", "train.py")) == 1


def test_several_processes_find_the_same(tmp_path: Path) -> None:
    for number in range(4):
        write(tmp_path, f"train{number}.py", FAULTY)
    assert flake8(tmp_path, "--jobs", "2", ".") == flake8(tmp_path, "--jobs", "1", ".")
    assert len(flake8(tmp_path, "--jobs", "2", ".")[1]) == 4


def test_classes_of_other_files_are_known(tmp_path: Path) -> None:
    write(tmp_path, "base.py", "import lightning as L\n\n\nclass Base(L.LightningModule):\n    pass\n")
    step = (
        "    def training_step(self, batch, batch_idx):\n        torch.cuda.empty_cache()\n        return self(batch)\n"
    )
    write(tmp_path, "net.py", f"import torch\nfrom base import Base\n\n\nclass Net(Base):\n{step}")
    _, said = flake8(tmp_path, "net.py")
    assert [line.split()[:2] for line in said] == [["net.py:7:9", "LL501"]]


def test_syntax_errors_are_flake8s_to_tell(tmp_path: Path) -> None:
    write(tmp_path, "broken.py", "import torch\ntorch.cuda.empty_cache(\n")
    done = run_module("flake8", "--isolated", "--select", "LL,E9", "broken.py", cwd=tmp_path)
    assert done.stdout.count("\n") == 1
    assert "E999" in done.stdout


@pytest.mark.parametrize("where", [".", "inner"])
def test_wrong_settings_are_one_clear_line(tmp_path: Path, where: str) -> None:
    write(tmp_path, f"{where}/pyproject.toml", '[tool.lightlint]\nselekt = ["LL"]\n')
    write(tmp_path, "inner/train.py", FAULTY)
    done = run_forked("flake8", "--isolated", "--select", "LL", "inner/train.py", cwd=tmp_path)
    assert done.returncode == 1
    assert "unknown key; did you mean `select`?" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
