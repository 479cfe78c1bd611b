"""Imports that fail in a package that another package imports: the code is told of both."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from checkout import run_module

from lightlint.config.settings import load
from lightlint.environment.code.check import check
from lightlint.environment.code.usage import Usage
from lightlint.environment.describing.side import Side
from lightlint.environment.rows import BREAKS, FAILS
from lightlint.sources.load import read


@pytest.fixture
def checked(tmp_path: Path):
    """Installs packages that need torch into a folder, and checks a program that imports some."""
    site = tmp_path / "site"

    def run(code: str, packages: dict[str, str]) -> tuple[int, list[dict[str, object]]]:
        for name, text in packages.items():
            (site / name).mkdir(parents=True)
            (site / name / "__init__.py").write_text(text)
            facts = site / f"{name}-1.5.dist-info"
            facts.mkdir()
            (facts / "METADATA").write_text(
                f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.5\nRequires-Dist: torch\n"
            )
            (facts / "top_level.txt").write_text(f"{name}\n")
        (tmp_path / "train.py").write_text(code)
        done = run_module(
            "lightlint", "env", "check", "train.py", "--output-format", "json", cwd=tmp_path, PYTHONPATH=str(site)
        )
        assert not done.stderr
        return done.returncode, json.loads(done.stdout)

    return run


VISION = 'def load():\n    raise RuntimeError("operator vision::nms does not exist")\n\n\nload()\n'


def test_a_broken_package_behind_another_is_named_with_it(checked):
    status, rows = checked("import meters\n", {"meters": "import vision\n", "vision": VISION})
    assert status == 1
    assert [(row["subject"], row["first"], row["weight"]) for row in rows] == [("vision", "1.5", BREAKS)]
    why = "`import meters` raises RuntimeError: operator vision::nms does not exist, in `vision`, which it imports"
    assert rows[0]["why"] == why
    assert rows[0]["places"] == ["train.py:1"]


@pytest.mark.parametrize(
    ("packages", "subject", "why"),
    [
        (
            {"meters": "import absent_one\n"},
            "absent-one",
            "No module named 'absent_one', in `absent_one`, which it imports",
        ),
        ({"meters": "1 / 0\n"}, "meters", "`import meters` raises ZeroDivisionError: division by zero"),
        (
            {
                "meters": "try:\n    import vision\nexcept RuntimeError as e:\n    raise ImportError('no') from e\n",
                "vision": VISION,
            },
            "vision",
            "operator vision::nms does not exist, in `vision`",
        ),
    ],
)
def test_what_is_at_fault_is_named(checked, packages: dict[str, str], subject: str, why: str):
    status, rows = checked("import meters\n", packages)
    assert (status, rows[0]["subject"]) == (1, subject)
    assert why in str(rows[0]["why"])


@pytest.mark.parametrize(
    "packages",
    [
        {"meters": "print('loaded')\n"},
        {"meters": "try:\n    import vision\nexcept Exception:\n    vision = None\n", "vision": VISION},
    ],
)
def test_what_works_is_not_told(checked, packages: dict[str, str]):
    assert checked("import meters\n", packages) == (0, [])


def test_an_import_that_code_can_do_without_is_not_tried(checked):
    assert checked("try:\n    import meters\nexcept ImportError:\n    pass\n", {"meters": "1 / 0\n"}) == (0, [])


@pytest.mark.parametrize("module", ["torchmetrics", "lightning", "pytorch_lightning", "timm"])
def test_a_snapshot_tells_of_the_way_to_a_broken_torchvision(module: str):
    installed = {"torch": "2.8.0", "torchvision": "0.15.2", module.replace("_", "-"): "1.0"}
    usage = Usage((read("train.py", f"import {module}\n".encode()),))
    rows = check(Side("there", installed, whole=True), usage, (), load({}, file=None, isolated=True))
    assert [row.subject for row in rows] == ["torchvision"]
    assert rows[0].weight >= FAILS
    assert f"`import {module}` imports it" in rows[0].why
    assert rows[0].places == ("train.py:1",)
