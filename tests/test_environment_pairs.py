"""Programs that run in one of two real environments only: `lightlint env diff` of their snapshots names the true cause.

The snapshots were taken, and the programs run, by `tests/ecosystem/env_pairs.py --update`; here nothing is installed.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from checkout import ROOT

sys.path.insert(0, str(ROOT / "tests" / "ecosystem"))
from env_pairs import PAIRS, first_row, read_pair

FOLDERS = sorted(path.parent for path in PAIRS.glob("*/pair.toml"))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
@pytest.mark.parametrize("sides", [("a.json", "b.json"), ("b.json", "a.json")], ids=["a, b", "b, a"])
def test_the_first_row_names_the_true_cause(folder: Path, sides: tuple[str, str]) -> None:
    pair = read_pair(folder)
    row = first_row(pair, *map(Path, sides))
    assert row["subject"] == pair.cause
    assert pair.why in row["why"]
    assert "None" not in row["why"]
    assert (pair.code.name in "".join(row["places"])) or not row["places"]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_snapshot_of_a_real_environment_names_no_path_and_no_user(folder: Path) -> None:
    for name in ("a.json", "b.json"):
        text = (folder / name).read_text()
        assert json.loads(text)["packages"]
        assert not re.search(r"/(?:home|root|tmp|usr|work|Users)\b|@[\w-]+\.", text)


def test_there_are_at_least_five_pairs() -> None:
    assert len(FOLDERS) >= 5
