"""The generator of the Lightning data: against released wheels, and on small wheels made here."""

from __future__ import annotations

import tomllib
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from timeline import generate
from timeline.history import ContradictionError, Lifetime, lifetime, signatures
from timeline.merge import Merged, merge
from timeline.release import read
from timeline.wheel import Wheel

from lightlint.facts.releases.api import FIRST
from lightlint.facts.versions.versions import Version

pytestmark = pytest.mark.slow
RELEASED = ("1.5.0", "1.9.5", "2.6.0")


def wheel(folder: Path, version: str, files: Mapping[str, str]) -> Path:
    """Writes a wheel of the Lightning package that holds some modules."""
    path = folder / f"pytorch_lightning-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(f"pytorch_lightning/{name}", text)
    return path


def package(
    trainer: str = "def __init__(self, *, devices=1): ...",
    module: str = "def setup(self, stage): ...",
    callback: str = "def setup(self, trainer, pl_module, stage): ...",
    data: str = "def prepare_data(self): ...",
) -> dict[str, str]:
    """A package in the shape of Lightning's: classes over several modules, with re-exports."""

    def body(text: str) -> str:
        return "".join(f"    {line}\n" for line in text.splitlines()) or "    pass\n"

    return {
        "__init__.py": "from pytorch_lightning.core import LightningModule, LightningDataModule\n"
        "from .trainer import Trainer\nfrom pytorch_lightning.callbacks import *\n",
        "callbacks/__init__.py": "from .callback import Callback\n",
        "callbacks/callback.py": f"class Callback:\n{body(callback)}",
        "core/__init__.py": "try:\n    from .module import LightningModule\nexcept ImportError:\n    raise\n"
        "from .module import LightningDataModule\n",
        "core/hooks.py": f"class ModelHooks:\n{body(module)}",
        "core/module.py": "import torch\nfrom pytorch_lightning.core import hooks as h\n"
        "class LightningModule(h.ModelHooks, torch.nn.Module):\n"
        "    def log(self, name, value, sync_dist=False): ...\n"
        f"class LightningDataModule:\n{body(data)}",
        "trainer.py": f"class Trainer:\n{body(trainer)}    def fit(self, model, ckpt_path=None): ...\n",
    }


EMPTY = """\
# by hand: what is written here stays
first_version = "1.0.0"
last_version = "1.0.0"
[trainer_init]
keyword_only_since = "1.0.0"
[trainer_init.current]
devices = "1.0.0"

[trainer_init.removed]
gpus = { added = "1.0.0", removed = "1.8.0", replacement = "devices", note = "say {how}", autofix = "unsafe" }  # a remark
[trainer_call_kwargs.removed]
[trainer_call_kwargs.added]
fit = { ckpt_path = "1.5.0" }
[trainer_methods.removed]
[log_kwargs.removed]
[log_kwargs.added]
""" + "".join(
    f"[{section}.removed]\n[{section}.added]\n[{section}.signature]\n{signature}\n[{section}.signature_history]\n"
    for section, signature in (
        ("lightning_module", 'setup = ["stage"]'),
        ("callback", 'setup = ["trainer", "pl_module", "stage"]'),
        ("lightning_data_module", "prepare_data = []"),
    )
)  # fmt: skip


def merged(folder: Path, text: str, **packages: Mapping[str, str]) -> Merged:
    """Merges wheels into a data file: `v1_5_0=files` is the wheel of 1.5.0."""
    paths = [wheel(folder, name.strip("v").replace("_", "."), files) for name, files in packages.items()]
    return merge(text, generate.read_wheels(paths))


# ---- released wheels


@pytest.fixture(scope="session")
def released(request: pytest.FixtureRequest) -> list[Path]:
    """Three released wheels, fetched once and kept in pytest's cache."""
    folder = request.config.cache.mkdir("lightning-wheels")
    try:
        return [generate.fetch(version, folder) for version in RELEASED]
    except generate.UnreachableError as error:
        pytest.skip(f"the wheels of Lightning cannot be fetched: {error}")


def test_the_shipped_data_is_what_released_wheels_make_of_it(released: list[Path]):
    text = generate.DATA.read_text("utf-8")
    made = merge(text, generate.read_wheels(released))
    assert (made.news, made.contradictions) == ([], [])
    assert made.text == text


def test_released_wheels_find_what_was_taken_out_of_the_data_again(released: list[Path]):
    text = generate.DATA.read_text("utf-8")
    lines = text.splitlines(keepends=True)
    gone = (
        "on_exception = ",
        "lr_scheduler_step = ",
        "barebones = ",
        "training_epoch_end = ",
        "replace_sampler_ddp = ",
    )
    made = merge("".join(line for line in lines if not line.startswith(gone)), generate.read_wheels(released))
    old, new = tomllib.loads(text), tomllib.loads(made.text)
    assert new["lightning_module"]["removed"]["training_epoch_end"]["removed"] == "2.6.0"
    assert new["trainer_init"]["removed"]["replace_sampler_ddp"]["removed"] == "2.6.0"
    assert new["trainer_init"]["current"]["barebones"] == "2.6.0"
    assert new["lightning_module"]["signature"] == old["lightning_module"]["signature"]
    assert new["callback"]["signature"] == old["callback"]["signature"]
    assert [since for since, _ in new["lightning_module"]["signature_history"]["lr_scheduler_step"]] == [
        "1.9.5",
        "2.6.0",
    ]


# ---- wheels made here


def test_names_that_come_and_go(tmp_path: Path):
    made = merged(
        tmp_path,
        EMPTY,
        v1_5_0=package(
            "def __init__(self, gpus=0, devices=1, tracker=None): ...\ntune = None", "def on_epoch_end(self): ..."
        ),
        v2_0_0=package("def __init__(self, *, devices=1, barebones=False): ...", "def on_train_epoch_end(self): ..."),
    )
    data = tomllib.loads(made.text)
    assert data["last_version"] == "2.0.0"
    assert data["trainer_init"]["keyword_only_since"] == "2.0.0"
    assert data["trainer_init"]["current"] == {"devices": "1.0.0", "barebones": "2.0.0"}
    assert data["trainer_init"]["removed"]["tracker"] == {
        "added": "1.0.0", "removed": "2.0.0", "replacement": "", "note": "", "autofix": "none",
    }  # fmt: skip
    assert data["trainer_methods"]["removed"]["tune"] == {"removed": "2.0.0", "replacement": ""}
    module = data["lightning_module"]
    assert module["removed"]["on_epoch_end"] == {
        "added": "1.0.0", "removed": "2.0.0", "replacement": "", "note": "", "effect": "",
    }  # fmt: skip
    assert module["added"]["on_train_epoch_end"] == "2.0.0"
    assert module["signature"]["on_train_epoch_end"] == []
    assert any("tracker" in line and "fill in" in line for line in made.news)


def test_hand_columns_comments_and_dates_that_may_be_right_are_kept(tmp_path: Path):
    made = merged(
        tmp_path,
        EMPTY,
        v1_5_0=package("def __init__(self, *, gpus=0, devices=1): ..."),
        v1_9_5=package("def __init__(self, *, devices=1): ..."),
    )
    [line] = [line for line in EMPTY.splitlines() if line.startswith("gpus")]
    assert line in made.text.splitlines()
    assert made.text.startswith("# by hand: what is written here stays\n")


def test_a_date_that_a_wheel_refutes_is_mended_and_nothing_else_of_the_line(tmp_path: Path):
    made = merged(
        tmp_path,
        EMPTY,
        v1_8_0=package("def __init__(self, *, gpus=0, devices=1): ..."),
        v2_0_0=package("def __init__(self, *, devices=1): ..."),
    )
    [line] = [line for line in EMPTY.splitlines() if line.startswith("gpus")]
    assert line.replace("1.8.0", "2.0.0") in made.text.splitlines()


def test_what_only_a_person_can_settle_is_told_and_left(tmp_path: Path):
    made = merged(tmp_path, EMPTY, v1_9_5=package("def __init__(self, *, gpus=0, devices=1): ..."))
    assert made.contradictions == [
        "[trainer_init.removed] gpus: the data says removed in 1.8.0, the wheel of 1.9.5 has it"
    ]
    assert tomllib.loads(made.text)["trainer_init"]["removed"] == tomllib.loads(EMPTY)["trainer_init"]["removed"]


def test_signatures_that_change(tmp_path: Path):
    made = merged(
        tmp_path,
        EMPTY,
        v1_5_0=package(module="def setup(self, stage=None): ..."),
        v1_9_5=package(module="def setup(self, stage): ..."),
        v2_0_0=package(module="def setup(self, stage, *, again=False, **rest): ..."),
    )
    module = tomllib.loads(made.text)["lightning_module"]
    assert module["signature"]["setup"] == ["stage", "again?", "**rest"]
    assert module["signature_history"]["setup"] == [
        ["1.0.0", ["stage?"]], ["1.9.5", ["stage"]], ["2.0.0", ["stage", "again?", "**rest"]],
    ]  # fmt: skip


def test_a_hook_that_goes_leaves_its_signature_to_older_targets(tmp_path: Path):
    made = merged(tmp_path, EMPTY, v1_5_0=package(), v2_0_0=package(data=""))
    data = tomllib.loads(made.text)["lightning_data_module"]
    assert "prepare_data" not in data["signature"]
    assert data["signature_history"]["prepare_data"] == [["1.0.0", []]]
    assert data["removed"]["prepare_data"]["removed"] == "2.0.0"


def test_twice_is_the_same_as_once(tmp_path: Path):
    packages = {
        "v1_5_0": package(
            "def __init__(self, gpus=0, devices=1, tracker=None): ...\ntune = None", "def on_a(self): ..."
        ),
        "v1_9_5": package("def __init__(self, devices=1): ...", "def on_a(self, x): ...", data="def setup(self): ..."),
        "v2_0_0": package(module="def on_b(self): ..."),
    }
    once = merged(tmp_path, EMPTY, **packages)
    twice = merged(tmp_path, once.text, **packages)
    assert once.text != EMPTY
    assert (twice.text, twice.news, twice.contradictions) == (once.text, [], [])


def test_arguments_of_an_entry_point(tmp_path: Path):
    old, new = package(), package()
    old["trainer.py"] = old["trainer.py"].replace("ckpt_path=None", "train_dataloader=None")
    new["trainer.py"] = new["trainer.py"].replace("ckpt_path=None", "ckpt_path=None, weights_only=None")
    made = merged(tmp_path, EMPTY, v1_4_0=old, v2_6_0=new)
    kwargs = tomllib.loads(made.text)["trainer_call_kwargs"]
    assert kwargs["added"]["fit"] == {"ckpt_path": "1.5.0", "weights_only": "2.6.0"}
    assert kwargs["removed"]["fit_train_dataloader"] == {
        "method": "fit", "name": "train_dataloader", "removed": "2.6.0", "replacement": "",
    }  # fmt: skip


def test_what_a_class_inherits_and_what_is_set_on_a_trainer(tmp_path: Path):
    files = package(
        module="@property\ndef on_gpu(self): ...\n@staticmethod\ndef on_x(a, /, b=1): ...\ndef _hidden(self): ..."
    )
    files["connector.py"] = "class Connector:\n    def attach(self):\n        self.trainer.tuner, other = 1, 2\n"
    with Wheel(wheel(tmp_path, "2.0.0", files)) as opened:
        release = read(opened)
    assert release.members["lightning_module"].names == {"log", "on_gpu", "on_x"}
    assert release.members["lightning_module"].signatures["on_x"] == ("a", "b?")
    assert "on_gpu" not in release.members["lightning_module"].signatures
    assert release.trainer_names == {"tuner", "fit"}


def test_a_file_that_is_no_wheel_of_lightning(tmp_path: Path):
    with pytest.raises(ValueError, match="is no wheel"):
        Wheel(tmp_path / "notes.zip")
    broken = tmp_path / "pytorch_lightning-2.0.0-py3-none-any.whl"
    broken.write_text("not a zip")
    with pytest.raises(ValueError, match="is no wheel"):
        Wheel(broken)
    with (
        Wheel(wheel(tmp_path, "2.0.1", {"__init__.py": ""})) as opened,
        pytest.raises(ValueError, match=r"no .*\.Trainer"),
    ):
        read(opened)


def test_the_command_checks_without_writing_then_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    data = tmp_path / "data.toml"
    data.write_text(EMPTY)
    wheel(tmp_path, "1.5.0", package("def __init__(self, *, devices=1, gpus=None): ..."))
    wheel(tmp_path, "2.0.0", package())
    arguments = ["--wheels", str(tmp_path), "--data", str(data), "1.5.0", "2.0.0"]
    assert generate.main(["--check", *arguments]) == 1
    assert data.read_text() == EMPTY
    assert generate.main(arguments) == 1
    assert data.read_text() != EMPTY
    assert "last_version: 2.0.0" in capsys.readouterr().out
    assert generate.main(["--check", *arguments]) == 0


# ---- the dates

VERSIONS = [Version(f"1.{minor}.{patch}") for minor in range(4) for patch in range(2)]
read_releases = st.lists(st.sampled_from(VERSIONS), min_size=1, unique=True).map(sorted)


@given(read_releases, st.sampled_from(VERSIONS), st.none() | st.sampled_from(VERSIONS))
def test_dates_that_are_true_are_kept_whatever_is_read(releases, added, removed):
    if removed is not None and removed <= added:
        removed = None
    true = Lifetime(added, removed)
    seen = [(version, version >= added and (removed is None or version < removed)) for version in releases]
    assert lifetime(seen, true) == true


@given(read_releases, st.sampled_from(VERSIONS), st.sampled_from(VERSIONS))
def test_made_dates_agree_with_what_was_read(releases, added, known):
    seen = [(version, version >= added) for version in releases]
    try:
        made = lifetime(seen, Lifetime(known))
    except ContradictionError:
        assert not any(present for _, present in seen)
        assert any(version >= known for version in releases)
        return
    assert made.removed is None
    assert all(present == (version >= made.added) for version, present in seen)


histories = st.lists(
    st.tuples(st.sampled_from(VERSIONS), st.sampled_from([("a",), ("a?",), ("a", "b")])), max_size=4
).map(lambda entries: sorted(dict(entries).items()))


@given(read_releases, histories, histories)
def test_made_histories_agree_with_what_was_read(releases, true, known):
    def holds(history, version):
        return [taken for since, taken in history if since <= version][-1:]

    seen = [(version, holds(true, version)[0]) for version in releases if holds(true, version)]
    made = signatures(seen, known, FIRST)
    assert all(holds(made, version) == [taken] for version, taken in seen)
    assert signatures(seen, made, FIRST) == made
