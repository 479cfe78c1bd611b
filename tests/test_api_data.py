"""The Lightning data file: every entry loads, and its versions make sense."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import lightlint
from lightlint.facts.releases.api import FIRST, ClassApi, Parameter, lightning_api
from lightlint.facts.versions.versions import Version, releases
from lightlint.pages import find

API = lightning_api()
CLASSES = {"lightning_module": API.lightning_module, "callback": API.callback, "lightning_data_module": API.datamodule}
RAW = tomllib.loads((Path(lightlint.__file__).parent / "data" / "lightning-api.toml").read_text("utf-8"))


def _lost(owner):
    """The names whose use raises `AttributeError`."""
    return {name: removed for name, removed in owner.removed.items() if removed.effect == "AttributeError"}


def all_removed():
    for owner in (API.trainer_removed, API.trainer_methods_removed, API.log_kwargs_removed, API.imports_removed):
        yield from owner.values()
    for owner in CLASSES.values():
        yield from owner.removed.values()
    yield from API.call_kwargs_removed
    yield from API.callback_arguments_removed


def test_every_entry_is_loaded():
    trainer = RAW["trainer_init"]
    assert API.trainer_current.keys() == trainer["current"].keys()
    assert API.trainer_removed.keys() == trainer["removed"].keys()
    assert API.value_changes.keys() == trainer["value_changes"].keys()
    for name, owner in CLASSES.items():
        assert owner.removed.keys() == RAW[name]["removed"].keys()
        assert owner.added.keys() == RAW[name].get("added", {}).keys()
        assert owner.signatures.keys() == RAW[name]["signature"].keys() | RAW[name]["signature_history"].keys()
    assert API.trainer_methods_removed.keys() == RAW["trainer_methods"]["removed"].keys()
    assert len(API.imports_removed) == len(RAW["imports"]["removed"])
    assert len(API.call_kwargs_removed) == len(RAW["trainer_call_kwargs"]["removed"])
    assert len(API.callback_arguments_removed) + len(API.required_since) == len(RAW["callback_init"]["removed"])


def test_removed_names_were_there_before():
    known = set(releases("lightning"))
    for entry in all_removed():
        assert entry.added < entry.removed <= API.last_version, entry.name
        assert entry.removed in known, entry.name
        assert entry.autofix in {"none", "safe", "safe-if-bool", "unsafe"}, entry.name
        assert entry.replacement or entry.autofix == "none", entry.name


def test_nothing_is_both_current_and_removed():
    assert not API.trainer_current.keys() & API.trainer_removed.keys()
    for owner in CLASSES.values():
        assert not owner.added.keys() & owner.removed.keys()


def test_replacements_of_trainer_arguments_are_current():
    replacements = {entry.replacement for entry in API.trainer_removed.values()} - {""}
    assert replacements <= API.trainer_current.keys()


@pytest.mark.parametrize("owner", CLASSES.values(), ids=CLASSES)
def test_signature_histories_are_in_order_and_end_with_the_current_one(owner: ClassApi):
    [raw] = [RAW[name] for name, found in CLASSES.items() if found is owner]
    for hook, history in owner.signatures.items():
        dates = [signature.since for signature in history]
        assert dates == sorted(set(dates)), hook
        assert dates[0] >= FIRST, hook
        if hook in raw["signature"]:
            names = [
                ("*" * len(p.kind)) + p.name + ("" if p.required or p.kind else "?") for p in history[-1].parameters
            ]
            assert names == raw["signature"][hook], hook


def test_signatures_by_version():
    module = API.lightning_module

    def names(version: str) -> list[str]:
        return [p.name for p in module.signature("optimizer_step", Version(version)) or ()]

    assert "optimizer_idx" in names("1.9.5")
    assert names("2.0.0") == ["epoch", "batch_idx", "optimizer", "optimizer_closure"]
    assert module.signature("configure_model", Version("2.0")) is None
    assert module.signature("configure_model", Version("2.1")) == ()
    assert module.signature("training_epoch_end", Version("2.0")) is None
    step = module.signature("training_step", Version("2.6"))
    assert step == (Parameter("args", False, "*"), Parameter("kwargs", False, "**"))


def test_some_facts():
    assert API.trainer_removed["gpus"].replacement == "devices"
    assert API.trainer_removed["gpus"].removed == Version("2.0")
    assert API.trainer_current["suggest_integrations"] is None
    assert API.trainer_current["barebones"] == Version("2.0")
    assert API.lightning_module.removed["training_epoch_end"].replacement == "on_train_epoch_end"
    assert API.datamodule.removed["dims"].effect == "AttributeError"
    assert API.callback.removed["on_init_end"].replacement == "setup"
    assert API.value_changes["strategy_dp"].values == ("dp", "ddp2")
    assert API.required_since[("EarlyStopping", "monitor")] == Version("1.6")
    assert {entry.owner for entry in API.call_kwargs_removed} == {"fit", "validate", "test"}
    assert "setup" in API.log_forbidden
    assert "16-mixed" in API.precisions


def test_releases_know_what_the_data_knows():
    assert releases("lightning")[-1] >= API.last_version
    assert API.keyword_only_since == Version("2.0")


@pytest.mark.parametrize(
    ("rule", "names"),
    [
        ("trainer-removed-arg", API.trainer_removed),
        ("lightning-removed-attribute", API.trainer_methods_removed),
        ("lightning-removed-attribute", _lost(API.lightning_module)),
        ("lightning-removed-attribute", _lost(API.datamodule)),
        (
            "lightning-removed-import",
            {name.rpartition(".")[2]: removed for name, removed in API.imports_removed.items()},
        ),
        ("lightning-removed-arg", {each.name: each for each in API.callback_arguments_removed}),
        ("lightning-removed-arg", API.log_kwargs_removed),
    ],
)
def test_the_gate_of_the_page_knows_every_name(rule, names):
    page = find(rule)
    assert page is not None
    assert names.keys() - page.needs.words() == set()
