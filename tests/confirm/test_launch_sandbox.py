"""The sandbox: the run sees its own writes, the project stays as it is."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from launched import Place, place

from lightlint.confirm.launch.system import sandbox

__all__ = ["place"]

WRITES = """
    import os
    assert open("data.txt").read() == "before"
    open("data.txt", "w").write("after")
    os.makedirs("out", exist_ok=True)
    open("out/new, with: signs.txt", "w").write("new")
    os.remove("gone.txt")
    assert open("data.txt").read() == "after" and not os.path.exists("gone.txt")
"""


@pytest.fixture
def written(place: Place) -> Place:
    place.write("train.py", WRITES)
    place.write("data.txt", "before")
    place.write("gone.txt", "here")
    return place


def test_the_project_stays_as_it_is(written: Place, tmp_path: Path) -> None:
    (tmp_path / "probe").mkdir()
    if sandbox.prepare(written.project, written.project, tmp_path / "probe", tmp_path / "probe" / "x") is sandbox.NONE:
        pytest.skip("no overlays here")
    run = written.report("--", "python", "train.py")["run"]
    assert (run["ended"], run["written"]) == ("finished", ["data.txt", "gone.txt", "out/new, with: signs.txt"])
    assert sorted(path.name for path in written.project.iterdir()) == [
        "data.txt",
        "gone.txt",
        "pyproject.toml",
        "train.py",
    ]
    assert (written.project / "data.txt").read_text() == "before"
    assert written.left() == []


def test_without_a_sandbox_what_was_written_is_told(written: Place) -> None:
    run = written.report("--no-sandbox", "--", "python", "train.py")["run"]
    assert run["written"] == ["data.txt", "out/new, with: signs.txt"]
    assert (written.project / "data.txt").read_text() == "after"


@pytest.mark.parametrize("folder", [Path("/"), Path.home(), Path("/tmp")])
def test_folders_that_are_no_project_are_not_covered(folder: Path, tmp_path: Path) -> None:
    home = Path("/tmp/lightlint-confirm-x") if folder == Path("/tmp") else tmp_path
    assert sandbox.prepare(folder, folder, home, tmp_path / "overlay") is sandbox.NONE


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="mounts")
def test_a_folder_with_mounts_below_is_not_covered(tmp_path: Path) -> None:
    assert (
        sandbox.prepare(Path("/proc/sys").parent.parent / "dev", tmp_path, tmp_path / "home", tmp_path / "o")
        is sandbox.NONE
    )


def test_files_of_others_are_not_covered_in_a_namespace_of_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "file").write_text("")
    monkeypatch.setattr(sandbox, "_may_mount", lambda: False)
    monkeypatch.setattr("os.getuid", lambda: 1)
    assert sandbox.prepare(tmp_path / "project", tmp_path / "project", tmp_path / "h", tmp_path / "o") is sandbox.NONE
