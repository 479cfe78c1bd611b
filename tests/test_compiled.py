"""The code that dataclasses write is kept between processes, and nothing depends on it."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lightlint.compiled import kept_code

PROGRAM = """
import torch

def train(model, loader, optimizer):
    for batch in loader:
        model(batch).mean().backward()
        optimizer.step()
        torch.cuda.empty_cache()
"""


def lightlint(folder: Path, **environment: str) -> tuple[int, str, str]:
    (folder / "train.py").write_text(PROGRAM)
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-m", "lightlint", "--isolated", "--no-cache", "train.py"],
        cwd=folder,
        env={**inherited, "PYTHONPYCACHEPREFIX": str(folder / "bytecode"), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def tables(folder: Path) -> dict[str, Path]:
    return {path.suffixes[-2]: path for path in folder.glob("bytecode/**/compiled.*.bin")}


def test_code_is_kept_and_a_damaged_file_is_as_none(tmp_path: Path) -> None:
    first = lightlint(tmp_path)
    assert (first[0], first[2]) == (1, "")
    kept = tables(tmp_path)
    assert kept.keys() == {".command", ".lint"}
    written = {name: path.read_bytes() for name, path in kept.items()}
    assert lightlint(tmp_path) == first
    assert {name: path.read_bytes() for name, path in kept.items()} == written

    for name, path in kept.items():
        whole = written[name]
        for damaged in (b"", whole[:-1], b"\0" * 40, whole[:200] + bytes([whole[200] ^ 1]) + whole[201:]):
            path.write_bytes(damaged)
            assert lightlint(tmp_path) == first
            assert len(path.read_bytes()) == len(whole), "it is made anew"


def test_nothing_is_written_where_python_writes_no_bytecode(tmp_path: Path) -> None:
    assert lightlint(tmp_path, PYTHONDONTWRITEBYTECODE="1")[0] == 1
    assert tables(tmp_path) == {}


def test_classes_are_what_they_are_without_it() -> None:
    def made() -> type:
        @dataclasses.dataclass(frozen=True, slots=True)
        class Point:
            x: int
            y: list[int] = dataclasses.field(default_factory=list)

        return Point

    plain = made()
    with kept_code("test"), kept_code("inner"):
        first, second = made(), made()
    assert "exec" not in vars(dataclasses)
    for kind in (first, second):
        point = kind(1)
        assert repr(point).endswith("Point(x=1, y=[])")
        assert point == kind(1) != kind(2)
        assert point != plain(1)
        with pytest.raises(dataclasses.FrozenInstanceError):
            point.x = 2
    assert first(1).y is not first(1).y
