"""What is kept between processes beside the bytecode, and that nothing depends on it."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lightlint.memo.compiled import kept_code, save
from lightlint.memo.kept import derived, read

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
    return {path.suffixes[-2]: path for path in folder.glob("bytecode/**/kept.*.bin")}


def test_code_is_kept_and_a_damaged_file_is_as_none(tmp_path: Path) -> None:
    first = lightlint(tmp_path)
    assert (first[0], first[2]) == (1, "")
    kept = tables(tmp_path)
    assert kept.keys() == {".command", ".lint", ".needs", ".gate", ".pages", ".asked", ".releases", ".caps"}
    written = {name: path.read_bytes() for name, path in kept.items()}
    assert lightlint(tmp_path) == first
    assert {name: path.read_bytes() for name, path in kept.items()} == written

    for damage in (
        lambda whole: b"",
        lambda whole: whole[:-1],
        lambda whole: b"\0" * 40,
        lambda whole: whole[:200] + bytes([whole[200] ^ 1]) + whole[201:],
    ):
        damaged = {name: damage(whole) for name, whole in written.items()}
        for name, path in kept.items():
            path.write_bytes(damaged[name])
        assert lightlint(tmp_path) == first
        assert [name for name, path in kept.items() if path.read_bytes() == damaged[name]] == [], "it is made anew"


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


PATTERNS: list[tuple[Any, int]] = [
    (r"(?P<word>\w+)\s*=\s*(?:\d+|(?P=word))", 0),
    (r"^\.\s*a[^b]*?(?<!x)$", re.M | re.X),
    (rb"\x00(ab|cd)+", re.I),
]
TEXTS: list[Any] = ["x = x", "y=12;", ".aqq\n. a", b"\0ABcd", ""]


def found(pattern: re.Pattern[Any], text: Any) -> object:
    if isinstance(text, bytes) != isinstance(pattern.pattern, bytes):
        return None
    return [(each.span(), each.groups(), each.groupdict()) for each in pattern.finditer(text)]


def test_patterns_are_what_they_are_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))
    plain = [re.compile(*each) for each in PATTERNS]
    for name in ("test-patterns", "test-patterns", "test-others"):
        monkeypatch.setattr("lightlint.memo.compiled._tables", {})  # as in a new process
        re.purge()
        with kept_code(name):
            kept = [re.compile(*each) for each in PATTERNS]
        save()
        assert kept == plain
        assert [found(one, text) for one in kept for text in TEXTS] == [
            found(one, text) for one in plain for text in TEXTS
        ]
        with pytest.raises(re.error, match="unterminated"), kept_code(name):
            re.compile("(a")
        assert vars(re)["_compiler"].compile.__module__ == "re._compiler"
    codes, patterns = read("test-patterns") or ({}, {})
    assert (len(codes), len(patterns)) == (0, len(PATTERNS))


def test_what_is_derived_follows_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))
    files = [tmp_path / "a.md", tmp_path / "b.md"]
    for file in files:
        file.write_text(file.name)
    made: list[str] = []

    def joined() -> str:
        made.append("".join(file.read_text() for file in files))
        return made[-1]

    assert [derived("test", files, joined) for _ in range(2)] == ["a.mdb.md"] * 2
    assert len(made) == 1
    files[1].write_text("longer")
    assert [derived("test", files, joined) for _ in range(2)] == ["a.mdlonger"] * 2
    assert derived("test", files[:1], lambda: 1) == 1, "of other files"
    assert len(made) == 2
