"""`--jobs dask:ADDRESS` on a scheduler and workers of their own: the output is that of one process."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from checkout import run_module

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("distributed") is None, reason="Dask is not installed"),
]
SEEDS = Path(__file__).parents[1] / "fixtures" / "seeds"


def lightlint(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return run_module("lightlint", *arguments, cwd=cwd)


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a scheduler with two workers, which run in another folder than the code is in."""
    program = """
from distributed import LocalCluster
if __name__ == "__main__":
    with LocalCluster("127.0.0.1", n_workers=2, threads_per_worker=2, dashboard_address=None) as cluster:
        print(cluster.scheduler_address, flush=True)
        input()
"""
    folder = tmp_path_factory.mktemp("cluster")
    (folder / "cluster.py").write_text(program)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "cluster.py"], cwd=folder, **pipes) as process:  # type: ignore[call-overload]
        yield process.stdout.readline().strip()
        process.communicate("\n", timeout=60)


@pytest.fixture
def code(tmp_path: Path) -> Path:
    shutil.copytree(SEEDS, tmp_path / "code")
    filler = "# a line that makes the file long\n" * 60_000
    (tmp_path / "code" / "long.py").write_text("import torch\n" + filler + "torch.load('a')\n")
    (tmp_path / "code" / "broken.py").write_text("import torch\nfor torch.load(\n")
    return tmp_path


@pytest.mark.parametrize("options", [("--output-format", "json", "--notes"), ("--notes",), ("--select", "LL5")])
def test_a_cluster_says_what_a_process_says(scheduler: str, code: Path, options: tuple[str, ...]) -> None:
    one = lightlint(*options, "--no-cache", "--jobs", "1", "code", cwd=code)
    many = lightlint(*options, "--no-cache", "--jobs", f"dask:{scheduler}", "code", cwd=code)
    assert (many.stdout, many.stderr, many.returncode) == (one.stdout, one.stderr, one.returncode)
    assert one.returncode == 1


def test_no_scheduler_is_one_line(code: Path) -> None:
    done = lightlint("--no-cache", "--jobs", "dask:tcp://127.0.0.1:9", "code", cwd=code)
    assert done.returncode == 2
    assert re.fullmatch(r"lightlint: --jobs dask: no scheduler at tcp://127.0.0.1:9\n", done.stderr)
