"""What is no tidy Python file, through the real command line: a clear line or a clean result, the right status, no byte lost."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from forked import forked

LOOP = """\
import torch

torch.manual_seed(0)


def train(model, loader, optimizer):
    for batch in loader:
        optimizer.zero_grad()
        model(batch).mean().backward()
        optimizer.step()
        torch.autograd.set_detect_anomaly(True)
"""
CALL = "        torch.autograd.set_detect_anomaly(True)\n"
DEEPER = 20_000


def lightlint(*arguments: str | bytes, cwd: Path, data: bytes = b"") -> tuple[int, bytes, bytes]:
    """Status, standard output and error of `lightlint --select LL803`; a crash of the process fails the test."""
    options = ("--isolated", "--select", "LL803", "--unsafe-fixes", "--output-format", "concise")
    ran = forked("lightlint", *options, *arguments, cwd=cwd, environment=os.environ, data=data)
    assert ran.returncode in {0, 1, 2}, (ran.returncode, ran.stderr)
    assert b"Traceback" not in ran.stderr
    return ran.returncode, ran.stdout, ran.stderr


def said(out: bytes) -> list[str]:
    """The findings of a concise report."""
    return [line for line in out.decode().splitlines() if re.match(r".*?:\d+:\d+: LL\d{3} ", line)]


CLEAN = {
    "empty": b"",
    "byte order mark alone": b"\xef\xbb\xbf",
    "one comment without a line end": b"# torch.autograd.set_detect_anomaly",
    "form feeds and blanks": b"\f\n \t\n\f",
    "a line continued at the end of the file": b"x = 1 \\\n",
    "a template of Jinja's": b"{% if cookiecutter.gpu %}\nimport torch\n{% endif %}\ntorch.autograd.set_detect_anomaly(True)\n",
    "a template with names to fill in": b"class {{cookiecutter.name}}Trainer:\n    torch.autograd.set_detect_anomaly(True)\n",
}
LINTED = {
    "latin-1 cookie": b"# -*- coding: latin-1 -*-\nname = '\xe9t\xe9'\n" + LOOP.encode(),
    "byte order mark and CRLF": b"\xef\xbb\xbf" + LOOP.replace("\n", "\r\n").encode(),
    "CR alone": LOOP.replace("\n", "\r").encode(),
    "no line end": LOOP.rstrip().encode(),
    "form feed": LOOP.replace("\n\n\n", "\n\f\n\n").encode(),
    "tabs": LOOP.replace("        ", "\t\t").replace("    ", "\t").encode(),
    "template strings of 3.14": (LOOP + "query = t'{table}'\n").encode(),
    "except without brackets of 3.14": (LOOP + "try:\n    pass\nexcept OSError, ValueError:\n    pass\n").encode(),
    "type parameters of 3.12": (LOOP + "def first[T](items: list[T]) -> T: ...\ntype Row = list[int]\n").encode(),
    "3,000 lines": ("".join(f"x{row} = {row}\n" for row in range(3_000)) + LOOP).encode(),
    "a line of 20,000 characters": (LOOP + f"numbers = [{'1.5, ' * 4_000}]\n").encode(),
    "2,000 opening brackets in strings": (LOOP + "vocabulary = [\n" + "    '(', '[',\n" * 1_000 + "]\n").encode(),
    "300 brackets": (LOOP + "x = " + "(" * 300 + "1" + ")" * 300 + "\n").encode(),
    "900 terms": (LOOP + "x = " + " + ".join(["a"] * 900) + "\n").encode(),
    "900 alternatives": (LOOP + "x = " + " or ".join(["a"] * 900) + "\n").encode(),
    "900 branches": (LOOP + "if a:\n    pass\n" + "elif b:\n    pass\n" * 900).encode(),
}
LONG = {
    "30,000 lines": ("".join(f"x{row} = {row}\n" for row in range(30_000)) + LOOP).encode(),
    "a line of 200,000 characters": (LOOP + f"numbers = [{'1.5, ' * 40_000}]\n").encode(),
}
REFUSED = {
    "binary": (bytes(range(256)) * 8, "holds NUL bytes"),
    "UTF-16": (LOOP.encode("utf-16"), "holds NUL bytes"),
    "latin-1 without cookie": (b"name = '\xe9t\xe9'\n", "row 1 is not valid utf-8"),
    "unknown cookie": (b"# coding: klingon\n", "unknown encoding: klingon"),
    "bytes that are no cookie's text": (b"# coding: hex\n", "encoding"),
    "syntax error": ((LOOP + "def broken(:\n").encode(), "syntax error"),
    "unclosed string": ((LOOP + 'text = """\n').encode(), "syntax error"),
    "merge conflict": (("<<<<<<< ours\n" + LOOP).encode(), "syntax error"),
    "200 levels of indentation": (
        (LOOP + "".join(" " * deep + "if a:\n" for deep in range(200)) + " " * 200 + "a\n").encode(),
        "syntax error",
    ),
    "brackets": ((LOOP + "x = " + "(" * DEEPER + ")" * DEEPER + "\n").encode(), "nested too deeply"),
    "sum": ((LOOP + "x = " + "+".join(["a"] * DEEPER) + "\n").encode(), "nested too deeply"),
    "sum over lines": ((LOOP + "x = (\n" + "\n+ ".join(["a"] * DEEPER) + "\n)\n").encode(), "nested too deeply"),
    "sum over continued lines": ((LOOP + "x = " + " \\\n+ ".join(["a"] * DEEPER) + "\n").encode(), "nested too deeply"),
    "alternatives": ((LOOP + "x = " + " or ".join(["a"] * DEEPER) + "\n").encode(), "nested too deeply"),
    "attributes": ((LOOP + "x = a" + ".b" * DEEPER + "\n").encode(), "nested too deeply"),
    "calls": ((LOOP + "x = a" + "()" * DEEPER + "\n").encode(), "nested too deeply"),
    "subscripts": ((LOOP + "x = a" + "[f(0, 1)]" * DEEPER + "\n").encode(), "nested too deeply"),
    "signs": ((LOOP + "x = " + "-" * DEEPER + "1\n").encode(), "nested too deeply"),
    "negations": ((LOOP + "x = " + "not " * DEEPER + "a\n").encode(), "nested too deeply"),
    "lambdas": ((LOOP + "x = " + "lambda: " * DEEPER + "1\n").encode(), "nested too deeply"),
    "conditional expressions": ((LOOP + "x = " + "a if b else " * DEEPER + "c\n").encode(), "nested too deeply"),
    "adjacent strings": ((LOOP + "x = " + "'a' " * DEEPER + "\n").encode(), "nested too deeply"),
    "branches": ((LOOP + "if a:\n    pass\n" + "elif b:\n    pass\n" * DEEPER).encode(), "nested too deeply"),
}


OLD = {  # what the project says of versions, a line that only an older Python reads, and whether it is right there
    "print for Python 2.7": ("Runs on Python 2.7.", "print loss\n", True),
    "print where nothing names Python": ("A network.", "print loss\n", True),
    "print for Python 3": ("Runs on Python 3.9.", "print loss\n", True),
    "print for Python 3 beside what only that reads": (
        "Runs on Python 3.9.",
        "print(loss, end='')\nprint loss\n",
        False,
    ),
    "print for both": ("Runs on Python 2.7 and 3.6.", "print loss\n", False),
    "async for Python 3.6": ("## Requirements\n\n* Python 3.6", "loss.cuda(async=True)\n", True),
    "async for Python 3.6 or later": ("* Python 3.6+", "loss.cuda(async=True)\n", False),
    "async for an old torch, which no Python from 3.7 on runs": (
        "Python >= 3.5.5, PyTorch == 0.4",
        "loss.cuda(async=True)\n",
        True,
    ),
    "async for a torch of Python 3.7": ("Python >= 3.5.5, PyTorch == 1.1", "loss.cuda(async=True)\n", False),
    "async for Python 3.7 and an old torch": ("Python >= 3.7, PyTorch == 0.4", "loss.cuda(async=True)\n", False),
    "async for an old torch": ("pip install torch==0.4.1", "loss.cuda(async=True)\n", True),
    "async for Python 2 and 3": ("Runs with PyTorch >=0.4 on python 2,3.", "loss.cuda(async=True)\n", True),
    "async for any Python": ("A network.", "loss.cuda(async=True)\n", True),
    "mixed tabs for Python 2": ("Python 2.7", "if x:\n        y = 1\n\tz = 2\n", True),
    "mixed tabs for any Python": ("A network.", "if x:\n        y = 1\n\tz = 2\n", False),
    "no Python at all": ("Runs on Python 2.7.", "loss = (1\n", False),
}


@pytest.mark.parametrize(("readme", "line", "is_right"), OLD.values(), ids=OLD)
def test_what_the_projects_own_python_reads_is_a_note(readme: str, line: str, is_right: bool, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(readme)
    (tmp_path / "file.py").write_text(LOOP + line)
    status, out, _ = lightlint("--notes", "file.py", cwd=tmp_path)
    assert (status, "written for an older Python" in out.decode()) == ((0, True) if is_right else (1, False))


@pytest.mark.parametrize("data", CLEAN.values(), ids=CLEAN)
def test_nothing_to_find(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "file.py").write_bytes(data)
    status, out, err = lightlint("--fix", "file.py", cwd=tmp_path)
    assert (status, said(out), err) == (0, [], b"")
    assert (tmp_path / "file.py").read_bytes() == data
    assert lightlint("-", cwd=tmp_path, data=data) == (0, b"No findings in 1 file.\n", b"")


@pytest.mark.parametrize(
    "data",
    [
        *(pytest.param(data, id=name) for name, data in LINTED.items()),
        *(pytest.param(data, id=name, marks=pytest.mark.slow) for name, data in LONG.items()),
    ],
)
def test_linted_and_repaired_to_the_byte(data: bytes, tmp_path: Path) -> None:
    """The fix takes the call's row out and leaves every other byte where it was."""
    file = tmp_path / "file.py"
    file.write_bytes(data)
    status, out, err = lightlint("file.py", cwd=tmp_path)
    assert (status, len(said(out)), err) == (1, 1, b"")
    assert " LL803 " in out.decode()
    status, out, err = lightlint("--fix", "file.py", cwd=tmp_path)
    assert (status, said(out), err) == (0, [], b"")
    row = re.search(rb"(?:\r\n|\r|\n)[ \t]+torch\.autograd\.set_detect_anomaly\(True\)", data)
    assert row is not None
    left = file.read_bytes()
    line_end = re.match(rb"\r\n|\r|\n", row[0])
    assert line_end is not None
    without = [data[: row.start()] + data[row.end() :], data[: row.start()] + line_end[0] + data[row.end() :]]
    assert left in without
    assert lightlint("--fix", "-", cwd=tmp_path, data=data)[:2] == (0, left)


@pytest.mark.parametrize("case", ["CR alone", "300 brackets", "900 terms"])
def test_an_import_that_is_left_unused_goes(case: str, tmp_path: Path) -> None:
    """However deep the code around it is."""
    data = LINTED[case].replace(b"torch.manual_seed(0)", b"")
    (tmp_path / "file.py").write_bytes(data)
    assert lightlint("--fix", "file.py", cwd=tmp_path)[::2] == (0, b"")
    assert b"import torch" not in (tmp_path / "file.py").read_bytes()


@pytest.mark.parametrize(("data", "why"), REFUSED.values(), ids=REFUSED)
def test_refused_with_one_line(data: bytes, why: str, tmp_path: Path) -> None:
    """A file that cannot be read is an error of its own; the others are linted all the same."""
    (tmp_path / "file.py").write_bytes(data)
    (tmp_path / "other.py").write_text(LOOP)
    status, out, err = lightlint("--fix", ".", cwd=tmp_path)
    (line,) = said(out)
    assert re.match(r"(\./)?file\.py:\d+:\d+: LL000 ", line)
    assert why in line
    assert (status, err) == (1, b"")
    assert (tmp_path / "file.py").read_bytes() == data
    assert (tmp_path / "other.py").read_text() == LOOP.replace(CALL, "")
    status, out, err = lightlint("--fix", "-", cwd=tmp_path, data=data)
    assert (status, out) == (1, data)
    assert why.encode() in err


NOTEBOOKS = {
    "no JSON": (b"{", "not JSON"),
    "binary": (b"\0\1\2", "not JSON"),
    "a list": (b"[]", "not a notebook"),
    "no cells": (b"{}", "not a notebook"),
    "deep JSON": (b"[" * 100_000, "nests too deep"),
}


def test_an_empty_notebook_is_skipped_with_one_line(tmp_path: Path) -> None:
    """Jupyter opens it, as a new one."""
    (tmp_path / "notes.ipynb").write_bytes(b"")
    status, out, err = lightlint("--fix", "notes.ipynb", cwd=tmp_path)
    assert (status, err) == (0, b"lightlint: notes.ipynb: skipped: the notebook is empty\n")
    assert said(out) == []
    assert (tmp_path / "notes.ipynb").read_bytes() == b""


@pytest.mark.parametrize(("data", "why"), NOTEBOOKS.values(), ids=NOTEBOOKS)
def test_notebooks_refused_with_one_line(data: bytes, why: str, tmp_path: Path) -> None:
    (tmp_path / "notes.ipynb").write_bytes(data)
    status, out, err = lightlint("--fix", "notes.ipynb", cwd=tmp_path)
    (line,) = said(out)
    assert line.startswith("notes.ipynb:1:1: LL000 ")
    assert why in line
    assert (status, err) == (1, b"")
    assert (tmp_path / "notes.ipynb").read_bytes() == data
    assert lightlint("--stdin-filename", "notes.ipynb", cwd=tmp_path, data=data)[0] == 1


def test_paths_that_lead_nowhere(tmp_path: Path) -> None:
    (tmp_path / "dangling.py").symlink_to("nowhere.py")
    (tmp_path / "one.py").symlink_to("two.py")
    (tmp_path / "two.py").symlink_to("one.py")
    for name in ("dangling.py", "one.py"):
        status, out, err = lightlint(name, cwd=tmp_path)
        assert (status, len(said(out)), err) == (1, 1, b"")
        assert f"{name}:1:1: LL000 cannot be read: " in out.decode()
    assert lightlint(".", cwd=tmp_path)[0] == 0  # a walk passes links that are no files, as git and ruff do
    status, _, err = lightlint("nowhere.py", cwd=tmp_path)
    assert (status, err) == (2, b"lightlint: nowhere.py: no such file or directory\n")


def test_directories_named_like_files_and_links_in_circles(tmp_path: Path) -> None:
    inner = tmp_path / "package.py"
    inner.mkdir()
    (inner / "train.py").write_text(LOOP)
    (inner / "up").symlink_to("..")
    (inner / "self").symlink_to(".")
    (tmp_path / "link.py").symlink_to("package.py/train.py")
    status, out, err = lightlint(".", cwd=tmp_path)
    assert (status, err) == (1, b"")
    assert len(said(out)) == 1, "a file is linted once, by whatever paths it is reached"


def test_a_fix_goes_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(LOOP)
    (tmp_path / "link.py").symlink_to("train.py")
    assert lightlint("--fix", "link.py", cwd=tmp_path)[0] == 0
    assert (tmp_path / "link.py").is_symlink()
    assert (tmp_path / "train.py").read_text() == LOOP.replace(CALL, "")


def test_a_path_that_is_no_utf8(tmp_path: Path) -> None:
    name = b"n\xff.py"
    path = os.fsencode(tmp_path) + b"/" + name
    try:
        with open(path, "wb") as file:
            file.write(LOOP.encode())
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    status, out, err = lightlint("--fix", name, cwd=tmp_path)
    assert (status, err) == (0, b"")
    with open(path, "rb") as file:
        assert file.read() == LOOP.replace(CALL, "").encode()
    status, out, err = lightlint(".", cwd=tmp_path)
    assert (status, said(out), err) == (0, [], b"")


def test_a_read_only_file_is_not_replaced(tmp_path: Path) -> None:
    """Whoever may write everywhere (root) may write here, too; the mode stays in any case."""
    file = tmp_path / "train.py"
    file.write_text(LOOP)
    file.chmod(0o444)
    status, out, err = lightlint("--fix", "train.py", cwd=tmp_path)
    if os.access(file, os.W_OK):
        assert (status, said(out), err) == (0, [], b"")
        assert file.read_text() == LOOP.replace(CALL, "")
    else:
        assert (status, len(said(out))) == (2, 1)
        assert err == b"lightlint: train.py: cannot be written: the file is read-only\n"
        assert file.read_text() == LOOP
    assert stat.S_IMODE(file.stat().st_mode) == 0o444


def test_a_directory_that_takes_no_file(tmp_path: Path) -> None:
    """The new text needs a new file beside the old one: where that cannot be, the old one stays as it is."""
    folder = tmp_path / "closed"
    folder.mkdir()
    (folder / "train.py").write_text(LOOP)
    folder.chmod(0o555)
    try:
        with tempfile.TemporaryFile(dir=folder):
            pytest.skip("this user may write everywhere")
    except PermissionError:
        status, out, err = lightlint("--fix", "closed/train.py", cwd=tmp_path)
        assert (status, len(said(out))) == (2, 1)
        assert err.startswith(b"lightlint: closed/train.py: cannot be written: ")
        assert (folder / "train.py").read_text() == LOOP
    finally:
        folder.chmod(0o755)
    assert [path.name for path in folder.iterdir()] == ["train.py"]


def test_an_unreadable_file(tmp_path: Path) -> None:
    (tmp_path / "closed.py").write_text(LOOP)
    (tmp_path / "closed.py").chmod(0)
    if os.access(tmp_path / "closed.py", os.R_OK):
        pytest.skip("this user may read everything")
    status, out, err = lightlint(".", cwd=tmp_path)
    assert (status, err) == (1, b"")
    assert "closed.py:1:1: LL000 cannot be read: Permission denied" in out.decode()


def test_a_file_that_vanishes(tmp_path: Path) -> None:
    """Files may go between the walk and the reading: whichever moment it is, nothing breaks."""
    for number in range(300):
        (tmp_path / f"file{number:03}.py").write_text(LOOP)
    command = [sys.executable, "-m", "lightlint", "--isolated", "--select", "LL803", "--output-format", "concise", "."]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        for path in sorted(tmp_path.iterdir(), reverse=True):
            path.unlink()
        out, err = running.communicate(timeout=120)
    assert running.returncode in {0, 1, 2}
    assert b"Traceback" not in err
    rules = {line.split(": ")[1].split(" ")[0] for line in said(out)}
    assert rules <= {"LL803", "LL000"}


def test_a_package_without_its_rules_is_an_error(tmp_path: Path) -> None:
    shutil.copytree(Path(__file__).parents[1] / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "train.py").write_text("import torch\n")
    done = subprocess.run(
        [sys.executable, "-m", "lightlint", "--isolated", "--no-cache", "train.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "the rule book is missing" in done.stderr
    assert len(done.stderr.splitlines()) == 1
