"""Trainers in YAML files: what is read of them, and for which code they hold."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

import pytest
from file_facts import facts_in
from hypothesis import given
from hypothesis import strategies as st

from lightlint.cli.main import run_command
from lightlint.facts.code.unknown import UNKNOWN
from lightlint.facts.project.yaml_text import read_yaml
from lightlint.facts.ranks.world import Ranks, World

MODEL = """
    import lightning as L

    class Net(L.LightningModule):
        pass
"""
CLI = """
    from lightning.pytorch.cli import LightningCLI
    from net import Net

    LightningCLI(Net)
"""
HYDRA = """
    import hydra

    def main(cfg):
        trainer = hydra.utils.instantiate(cfg.trainer)
        trainer.fit(hydra.utils.instantiate(cfg.model))
"""


def world(folder: Path, files: dict[str, str], asked: str = "net.py") -> World:
    folder.mkdir(exist_ok=True)
    return facts_in(folder, files, asked).world


def ranks(folder: Path, files: dict[str, str], asked: str = "net.py") -> Ranks:
    return world(folder, files, asked).lightning


# ---- LightningCLI


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("devices: 2", Ranks.MANY),
        ("devices: [0, 1]", Ranks.MANY),
        ("num_nodes: 4", Ranks.MANY),
        ("strategy: ddp", Ranks.MANY),
        ("devices: 1", Ranks.MAYBE),
        ("devices: auto", Ranks.MAYBE),
        ("devices: ${devices}", Ranks.MAYBE),
        ("max_epochs: 3", Ranks.MAYBE),
        ("devices: &n 2", Ranks.MAYBE),
        ("num_episodes: 5\n  devices: 2", Ranks.MAYBE),
    ],
)
def test_a_cli_config_can_show_several_ranks_and_never_one(tmp_path: Path, settings: str, expected: Ranks):
    files = {"net.py": MODEL, "main.py": CLI, "config.yaml": f"trainer:\n  {settings}\n"}
    assert ranks(tmp_path, files) is expected


def test_a_visible_trainer_on_one_device_says_nothing_for_the_cli(tmp_path: Path):
    smoke = "import lightning as L\nfrom net import Net\nL.Trainer(devices=1, accelerator='cpu').fit(Net())\n"
    assert ranks(tmp_path / "a", {"net.py": MODEL, "smoke.py": smoke}) is Ranks.ONE
    assert ranks(tmp_path / "b", {"net.py": MODEL, "smoke.py": smoke, "main.py": CLI}) is Ranks.MAYBE


def test_no_trainer_in_sight_is_untold_unless_a_config_says_several(tmp_path: Path):
    files = {"net.py": MODEL, "main.py": CLI}
    assert world(tmp_path / "a", files).is_untold
    assert world(tmp_path / "b", {**files, "c.yaml": "trainer:\n  devices: 1\n"}).is_untold
    assert not world(tmp_path / "c", {**files, "c.yaml": "trainer:\n  devices: 8\n"}).is_untold


def test_a_cli_of_its_own_class_counts(tmp_path: Path):
    own = CLI.replace("LightningCLI(Net)", "class Cli(LightningCLI): ...\n    Cli(Net)")
    assert (
        ranks(tmp_path, {"net.py": MODEL, "main.py": own, "conf/x.yml": "fit:\n  trainer:\n    devices: 2\n"})
        is Ranks.MANY
    )


def test_settings_of_the_config_are_those_of_the_trainer(tmp_path: Path):
    config = "trainer:\n  devices: 2\n  use_distributed_sampler: false\n  callbacks:\n  - class_path: a.B\n    init_args:\n      monitor: x\n"
    facts = facts_in(tmp_path, {"net.py": MODEL, "main.py": CLI, "config.yaml": config}, "net.py")
    [trainer] = facts.world.trainers
    assert trainer.starred
    assert trainer.arguments["use_distributed_sampler"] is False


# ---- Hydra


def test_hydra_configs_hold_for_the_classes_they_name(tmp_path: Path):
    files = {
        "src/pkg/__init__.py": "",
        "src/pkg/net.py": MODEL,
        "src/pkg/other.py": MODEL.replace("Net", "Other"),
        "src/train.py": HYDRA,
        "configs/model/net.yaml": "_target_: pkg.net.Net\nlr: 0.1\n",
        "configs/trainer/default.yaml": "_target_: lightning.pytorch.Trainer\ndevices: 1\n",
        "configs/trainer/ddp.yaml": "defaults:\n  - default\n\nstrategy: ddp  # several\ndevices: 4\n",
    }
    assert ranks(tmp_path, files, "src/pkg/net.py") is Ranks.MANY
    assert facts_in(tmp_path, files, "src/pkg/other.py").world.is_untold


def test_configs_of_another_program_say_nothing(tmp_path: Path):
    files = {
        "one/net.py": MODEL,
        "one/main.py": CLI,
        "two/net.py": MODEL,
        "two/main.py": CLI,
        "two/config.yaml": "trainer:\n  devices: 8\n",
    }
    assert ranks(tmp_path, files, "one/net.py") is Ranks.MAYBE
    assert ranks(tmp_path, files, "two/net.py") is Ranks.MANY


def test_without_cli_or_instantiate_no_config_counts(tmp_path: Path):
    files = {"net.py": MODEL, "configs/a.yaml": "model:\n  _target_: net.Net\ntrainer:\n  devices: 8\n"}
    facts = facts_in(tmp_path, files, "net.py")
    assert facts.world.is_untold
    assert facts.world.trainers == ()


# ---- YAML


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("", None),
        ("a: 1 # one\nb: 'x # y'\n", {"a": 1, "b": "x # y"}),
        ("a:\n  b: true\n  c:\n", {"a": {"b": True, "c": None}}),
        ("a:\n- 1\n- b: 2\n  c: 3\n-\n  d: ~\n", {"a": [1, {"b": 2, "c": 3}, {"d": None}]}),
        ("a: [0, 1]\nb: []\n", {"a": [0, 1], "b": []}),
        ("a: 1e3\nb: -2\nc: .5\nd: 010\n", {"a": "1e3", "b": -2, "c": 0.5, "d": "010"}),
        ("a: |\n  text: no key\nb: 2\n", {"a": UNKNOWN, "b": 2}),
        ("a: !tag x\nb: ${c}\nd: {e: 1}\n", {"a": UNKNOWN, "b": UNKNOWN, "d": UNKNOWN}),
        ("a: one\n  two\nb: 3\n", {"a": UNKNOWN, "b": 3}),
        ("<<: *base\na: 1\n", UNKNOWN),
        ("a: 1\n---\nb: 2\n", UNKNOWN),
        ("{% if x %}\na: 1\n", UNKNOWN),
        ("a:\n    b: 1\n  c: 2\n", UNKNOWN),
    ],
)
def test_what_is_read_of_yaml(text: str, content: object):
    assert read_yaml(text) == content


@given(st.text(alphabet="ab:-# \n\t'\"[]{}|>&*$1.,~", max_size=60))
def test_no_text_ends_the_reader(text: str):
    assert read_yaml(text) is UNKNOWN or isinstance(read_yaml(text), (dict, list, str, int, float, bool, type(None)))


keys = st.from_regex(r"[a-z]{1,6}", fullmatch=True)
leaves = st.none() | st.booleans() | st.integers(-99, 99)
contents = st.recursive(leaves, lambda inner: st.dictionaries(keys, inner, min_size=1, max_size=3), max_leaves=8)


def written(content: object, indent: int = 0) -> str:
    if not isinstance(content, dict):
        return "null" if content is None else str(content)
    lines = []
    for key, value in content.items():
        if isinstance(value, dict):
            lines.append(" " * indent + f"{key}:\n" + written(value, indent + 2))
        else:
            lines.append(" " * indent + f"{key}: {written(value)}")
    return "\n".join(lines)


@given(st.dictionaries(keys, contents, min_size=1, max_size=4))
def test_nested_tables_are_read_as_they_were_written(content: dict[str, object]):
    assert read_yaml(written(content)) == content


# ---- what a program reads of a file beside it


READING = """
    import lightning as L
    {imported}
    from lightning.pytorch.callbacks import ModelCheckpoint

    {read}
    L.Trainer(callbacks=[ModelCheckpoint(**settings["checkpoint"])], **settings["trainer"])
"""
CHOOSING = "checkpoint:\n  monitor: val_{metric}\n  mode: max\ntrainer:\n  max_epochs: 3\n  {option}\n"


@pytest.mark.parametrize(
    ("imported", "read"),
    [
        ("import yaml", 'with open("conf.yaml") as f:\n        settings = yaml.safe_load(f)'),
        ("import yaml, pathlib", 'settings = yaml.safe_load(pathlib.Path("conf.yaml").read_text())'),
        ("import yaml, pathlib", 'settings = yaml.safe_load((pathlib.Path(__file__).parent / "conf.yaml").open())'),
    ],
)
@pytest.mark.parametrize(
    ("metric", "option", "expected"),
    [("loss", "gpus: 2", {"LL645", "LL701"}), ("acc", "devices: 2", set())],
)
def test_a_program_is_judged_by_the_settings_that_it_reads(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    imported: str,
    read: str,
    metric: str,
    option: str,
    expected: set[str],
) -> None:
    (tmp_path / "train.py").write_text(
        dedent(READING).format(imported=imported, read=dedent(read.replace("\n    ", "\n")))
    )
    (tmp_path / "conf.yaml").write_text(CHOOSING.format(metric=metric, option=option))
    run_command(["--isolated", "--no-cache", "--jobs=1", "--select=LL645,LL701", "--output-format=json", str(tmp_path)])
    assert {each["code"] for each in json.loads(capsys.readouterr().out)} == expected
