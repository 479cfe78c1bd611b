"""The fifteen programs of fixtures/seeds through the real command line: what is found in each, in which tier, with which fix."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from checkout import ROOT
from forked import run_forked

SEEDS = ROOT / "fixtures" / "seeds"


@dataclass(frozen=True)
class Said:
    """One finding that must be there: `rule` in `file`, as a `tier`, with a fix of some `fix` applicability or none."""

    file: str
    rule: str
    tier: str
    fix: str | None = None


# Beside these, only the notes of _TRUE_OF_MANY are allowed, and only where they are true.
_TRUE_OF_MANY = {"loader-without-workers", "loader-without-distributed-sampler"}
SAID: dict[str, list[Said]] = {
    "s01_model_moved": [
        Said("forked.ipynb", "model-moved-before-fit", "warning", "safe"),
        Said("one_process.py", "model-moved-before-fit", "warning", "safe"),
        Said("two_ranks.py", "model-moved-before-fit", "warning", "safe"),
    ],
    "s02_batch_of_5000": [
        Said("one_device.py", "loader-without-workers", "note"),
        Said("two_devices.py", "loader-without-workers", "note"),
        Said("two_devices.py", "unseeded-data-per-rank", "warning"),
    ],
    "s03_lightning_upgraded": [
        Said("notebook.ipynb", "unpinned-install", "note"),
        Said("notebook.ipynb", "trainer-removed-arg", "error"),
        Said("notebook.ipynb", "trainer-removed-arg", "error", "safe"),
        Said("pinned_new/train.py", "trainer-removed-arg", "error"),
        Said("pinned_new/train.py", "trainer-removed-arg", "error", "unsafe"),
    ],
    "s04_keras": [],
    "s05_full_batch": [],
    "s06_pool_lambda": [
        Said("load.ipynb", "unpicklable-worker-callable", "error"),
        Said("load.py", "unpicklable-worker-callable", "error"),
        Said("load.py", "main-guard-missing", "note"),
    ],
    "s07_batch_of_128": [Said("train.py", "loader-without-workers", "note")],
    "s08_empty_cache": [Said("emptied.py", "empty-cache-in-loop", "warning", "safe")],
    "s09_accumulation": [
        Said("train.ipynb", "accumulation-index-unbound", "error", "unsafe"),
        Said("train.ipynb", "accumulation-tail-dropped", "warning"),
        Said("train.py", "accumulation-index-unbound", "error", "safe"),
        Said("train.py", "accumulation-tail-dropped", "warning"),
    ],
    "s10_shrinking_weights": [
        Said("every_rank.py", "param-data-mutation-in-step", "error"),
        Said("one_rank.py", "param-data-mutation-in-step", "error"),
    ],
    "s11_same_data_on_every_rank": [
        Said("fabric.py", "loader-without-distributed-sampler", "error"),
        Said("injected.py", "loader-without-distributed-sampler", "note"),
        Said("injected.py", "unseeded-data-per-rank", "warning"),
        Said("raw_ddp.py", "loader-without-distributed-sampler", "error"),
        Said("sampler_off.py", "loader-without-distributed-sampler", "error"),
    ],
    "s12_swallowed_error": [
        Said("one_device.py", "training-step-swallows-exception", "warning", "unsafe"),
        Said("two_ranks.py", "training-step-swallows-exception", "error", "unsafe"),
    ],
    "s13_log_file": [
        Said("locked.py", "file-write-on-every-rank", "warning", "safe"),
        Said("locked.py", "thread-lock-across-processes", "warning"),
        Said("unlocked.py", "file-write-on-every-rank", "warning", "safe"),
    ],
    "s14_bigger_on_rank_0": [Said("train.py", "rank-dependent-forward", "warning")],
    "s15_other_order_per_rank": [Said("train.py", "rank-dependent-forward", "warning")],
}


def lightlint(folder: Path, *arguments: str) -> str:
    ran = run_forked("lightlint", "--isolated", "--notes", *arguments, ".", cwd=folder)
    assert (ran.returncode in {0, 1}, ran.stderr) == (True, "")
    return ran.stdout


@pytest.fixture
def seed(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A seed as a project of its own: pins and ranks are looked for in its folder only."""
    copied = tmp_path / request.param
    shutil.copytree(SEEDS / request.param, copied, ignore=shutil.ignore_patterns("expected.txt"))
    return copied


def _unexplained(said: Sequence[Said], name: str) -> list[Said]:
    """What is said beyond the table: everything but notes that are true of many a correct program, too."""
    left = [each for each in said if each not in SAID[name]]
    return [each for each in left if not (each.tier == "note" and each.rule in _TRUE_OF_MANY)]


@pytest.mark.parametrize("seed", SAID, indirect=True)
def test_what_is_said_of_a_seed(seed: Path) -> None:
    found = json.loads(lightlint(seed, "--output-format", "json"))
    said = [
        Said(each["filename"], each["name"], each["severity"], (each["fix"] or {}).get("applicability"))
        for each in found
    ]
    assert [each for each in SAID[seed.name] if each not in said] == []
    assert _unexplained(said, seed.name) == []
    loud = [each for each in said if each.tier != "note"]
    assert len(loud) == len(set(loud)), "one fault is told once"


@pytest.mark.parametrize("seed", SAID, indirect=True)
def test_a_seed_reads_as_expected(seed: Path, pytestconfig: pytest.Config) -> None:
    expected = SEEDS / seed.name / "expected.txt"
    printed = lightlint(seed, "--output-format", "concise", "--quiet")
    if pytestconfig.getoption("--update"):
        expected.write_text(printed)
    assert printed == expected.read_text()


def test_every_seed_has_its_row() -> None:
    assert {path.name for path in SEEDS.iterdir() if path.is_dir()} == set(SAID)
    assert len(SAID) == 15


@pytest.mark.parametrize("seed", ["s04_keras", "s05_full_batch"], indirect=True)
def test_negative_controls_are_silent(seed: Path) -> None:
    assert lightlint(seed, "--output-format", "concise", "--quiet") == ""
