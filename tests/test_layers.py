"""What imports what: the layers, and the modules that a run without need for them must not load."""

from __future__ import annotations

import re
import shutil
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from checkout import ROOT, run, run_module

HEAVY = {"libcst", "rich", "torch", "lightning", "pytorch_lightning", "numpy", "flake8", "pathspec", "asyncio"}

PLAIN = "import json\n\n\ndef load(path):\n    return json.loads(path.read_text())\n"
FAULTY = """\
import torch


def train(model, loader, optimizer):
    for batch in loader:
        optimizer.zero_grad()
        model(batch).mean().backward()
        optimizer.step()
        torch.cuda.empty_cache()
"""


def imported(cwd: Path, *command: str) -> tuple[set[str], str]:
    """The top-level packages that a Python command imports, and what it writes."""
    done = run([sys.executable, "-X", "importtime", *command], cwd)
    names = re.findall(r"^import time:.*\|\s*(\w[\w.]*)$", done.stderr, re.MULTILINE)
    assert names, done.stderr
    return {name.partition(".")[0] for name in names}, done.stdout


def test_layers_hold() -> None:
    linter = shutil.which("lint-imports", path=str(Path(sys.executable).parent))
    if linter is None:
        pytest.skip("import-linter is not installed")
    done = run([linter, "--no-cache", "--config", ROOT / "pyproject.toml"], ROOT)
    assert done.returncode == 0, done.stdout
    assert "0 broken" in done.stdout


def test_modules_import_one_another_in_no_circle() -> None:
    """Imports for type checkers only are counted, too."""
    grimp = pytest.importorskip("grimp")
    graph = grimp.build_graph("lightlint", exclude_type_checking_imports=False, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert len(imports) > 100
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_version_imports_next_to_nothing(tmp_path: Path) -> None:
    packages, said = imported(tmp_path, "-m", "lightlint", "--version")
    assert said.startswith("lightlint ")
    assert not packages & (HEAVY | {"argparse", "tomllib", "json"})


@pytest.mark.parametrize("output_format", ["full", "concise", "json"])
def test_file_without_torch_is_never_parsed(tmp_path: Path, output_format: str) -> None:
    (tmp_path / "plain.py").write_text(PLAIN)
    packages, _ = imported(tmp_path, "-m", "lightlint", "plain.py", "--output-format", output_format)
    assert not packages & HEAVY


def test_rule_list_imports_no_check(tmp_path: Path) -> None:
    packages, said = imported(tmp_path, "-m", "lightlint", "rule", "--all")
    assert "LL501" in said
    assert not packages & HEAVY


def test_finding_needs_libcst_and_no_more(tmp_path: Path) -> None:
    (tmp_path / "faulty.py").write_text(FAULTY)
    packages, said = imported(tmp_path, "-m", "lightlint", "faulty.py", "--output-format", "concise")
    assert "LL501" in said
    assert packages & HEAVY == {"libcst"}


def test_flake8_door_imports_no_libcst_before_a_file_needs_it(tmp_path: Path) -> None:
    lint = "import ast, sys; from lightlint.doors.flake8 import Plugin; "
    lint += "text = open(sys.argv[1]).read(); "
    lint += "print(len(list(Plugin(ast.parse(text), sys.argv[1], text.splitlines(True)).run())))"
    for name, text, found, heavy in (("plain.py", PLAIN, "0\n", set()), ("faulty.py", FAULTY, "1\n", {"libcst"})):
        (tmp_path / name).write_text(text)
        packages, said = imported(tmp_path, "-c", lint, name)
        assert said == found
        assert packages & HEAVY == heavy


def test_module_runs_as_command(tmp_path: Path) -> None:
    done = run_module("lightlint", "--version", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
