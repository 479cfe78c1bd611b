"""What the Lightning API had and lost, release by release, and what its hooks take: `data/lightning-api.toml`, typed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from lightlint.facts.versions.tables import table
from lightlint.facts.versions.versions import Version

FIRST = Version("1.0.0")
"""The oldest release the data knows: what is added in it may be older."""


@dataclass(frozen=True, slots=True)
class RemovedName:
    """An argument, hook, method or import that is gone since `removed`.

    `replacement` is the new name, empty where there is none to put in its place; `note` is prose; `effect` says what
    happens on use; `autofix` is "safe", "safe-if-bool", "unsafe" or "none". `owner` is the method or class of an
    argument.
    """

    name: str
    removed: Version
    added: Version = FIRST
    replacement: str = ""
    note: str = ""
    effect: str = ""
    autofix: str = "none"
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a hook; `kind` is "", "*" or "**"."""

    name: str
    required: bool
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters (without self) that a hook has since a release."""

    since: Version
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True, slots=True)
class ValueChange:
    """An argument's value, default or meaning that changed: `facts` holds what the data says besides versions."""

    name: str
    removed: Version | None = None
    since: Version | None = None
    deprecated: Version | None = None
    discouraged_since: Version | None = None
    values: tuple[Any, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClassApi:
    """LightningModule, Callback or LightningDataModule: names gone, names added, and the parameters of hooks."""

    removed: Mapping[str, RemovedName]
    added: Mapping[str, Version]
    signatures: Mapping[str, tuple[Signature, ...]]

    def signature(self, hook: str, version: Version) -> tuple[Parameter, ...] | None:
        """What a hook takes in a release; None where it does not exist (yet, any more, or known)."""
        gone = self.removed.get(hook)
        if gone and gone.removed <= version:
            return None
        fitting = [signature for signature in self.signatures.get(hook, ()) if signature.since <= version]
        return fitting[-1].parameters if fitting else None


@dataclass(frozen=True, slots=True)
class LightningApi:
    """Everything in the data file; `trainer_current` gives None for an argument that no release has yet."""

    first_version: Version
    last_version: Version
    keyword_only_since: Version
    trainer_current: Mapping[str, Version | None]
    trainer_removed: Mapping[str, RemovedName]
    value_changes: Mapping[str, ValueChange]
    lightning_module: ClassApi
    callback: ClassApi
    datamodule: ClassApi
    call_kwargs_removed: tuple[RemovedName, ...]
    call_kwargs_added: Mapping[str, Mapping[str, Version]]
    trainer_methods_removed: Mapping[str, RemovedName]
    callback_arguments_removed: tuple[RemovedName, ...]
    required_since: Mapping[tuple[str, str], Version]
    log_kwargs_removed: Mapping[str, RemovedName]
    log_kwargs_added: Mapping[str, Version]
    imports_removed: Mapping[str, RemovedName]
    log_forbidden: frozenset[str]
    log_epoch_only: frozenset[str]
    log_default_on_step: frozenset[str]
    log_default_on_epoch: frozenset[str]
    optimizer_keys: frozenset[str]
    scheduler_keys: frozenset[str]
    scheduler_intervals: frozenset[str]
    precisions: tuple[str | int, ...]


@cache
def lightning_api() -> LightningApi:
    """The facts, read once when first asked for."""
    data = table("lightning-api")
    trainer, log, optimizers = data["trainer_init"], data["self_log"], data["configure_optimizers"]
    arguments = data["callback_init"]["removed"].values()
    return LightningApi(
        first_version=Version(data["first_version"]),
        last_version=Version(data["last_version"]),
        keyword_only_since=Version(trainer["keyword_only_since"]),
        trainer_current={
            name: None if added == "unreleased" else Version(added) for name, added in trainer["current"].items()
        },
        trainer_removed=_removed(trainer["removed"]),
        value_changes={name: _value_change(name, entry) for name, entry in trainer["value_changes"].items()},
        lightning_module=_class_api(data["lightning_module"]),
        callback=_class_api(data["callback"]),
        datamodule=_class_api(data["lightning_data_module"]),
        call_kwargs_removed=tuple(
            _removed_name(entry["name"], entry) for entry in data["trainer_call_kwargs"]["removed"].values()
        ),
        call_kwargs_added={method: _versions(names) for method, names in data["trainer_call_kwargs"]["added"].items()},
        trainer_methods_removed=_removed(data["trainer_methods"]["removed"]),
        callback_arguments_removed=tuple(
            _removed_name(entry["name"], entry) for entry in arguments if "removed" in entry
        ),
        required_since={
            (entry["class"], entry["name"]): Version(entry["required_since"])
            for entry in arguments
            if "required_since" in entry
        },
        log_kwargs_removed=_removed(data["log_kwargs"]["removed"]),
        log_kwargs_added=_versions(data["log_kwargs"]["added"]),
        imports_removed={entry["name"]: _removed_name(entry["name"], entry) for entry in data["imports"]["removed"]},
        log_forbidden=frozenset(log["forbidden"]),
        log_epoch_only=frozenset(log["epoch_only"]),
        log_default_on_step=frozenset(log["default_on_step"]),
        log_default_on_epoch=frozenset(log["default_on_epoch"]),
        optimizer_keys=frozenset(optimizers["optimizer_dict_keys"]),
        scheduler_keys=frozenset(optimizers["lr_scheduler_dict_keys"]),
        scheduler_intervals=frozenset(optimizers["interval_values"]),
        precisions=tuple(data["precision"]["valid_2x"]),
    )


def _versions(entries: Mapping[str, str]) -> dict[str, Version]:
    return {name: Version(text) for name, text in entries.items()}


def _removed(entries: Mapping[str, Mapping[str, str]]) -> dict[str, RemovedName]:
    return {name: _removed_name(name, entry) for name, entry in entries.items()}


def _removed_name(name: str, entry: Mapping[str, str]) -> RemovedName:
    texts = {key: entry[key] for key in ("replacement", "note", "effect", "autofix") if key in entry}
    return RemovedName(
        name,
        removed=Version(entry["removed"]),
        added=Version(entry["added"]) if "added" in entry else FIRST,
        owner=entry.get("method") or entry.get("class", ""),
        **texts,
    )


def _value_change(name: str, entry: Mapping[str, Any]) -> ValueChange:
    keys = ("removed", "since", "deprecated", "discouraged_since")
    versions = {key: Version(entry[key]) for key in keys if key in entry}
    rest = {key: value for key, value in entry.items() if key not in {*keys, "values"}}
    return ValueChange(name, values=tuple(entry.get("values", ())), facts=rest, **versions)


def _class_api(data: Mapping[str, Any]) -> ClassApi:
    added = _versions(data.get("added", {}))
    signatures: dict[str, tuple[Signature, ...]] = {
        hook: (Signature(added.get(hook, FIRST), _parameters(names)),) for hook, names in data["signature"].items()
    }
    for hook, history in data["signature_history"].items():
        signatures[hook] = tuple(Signature(Version(since), _parameters(names)) for since, names in history)
    return ClassApi(_removed(data["removed"]), added, signatures)


def _parameters(names: list[str]) -> tuple[Parameter, ...]:
    """`x?` has a default, `*x` and `**x` take the rest."""
    made = []
    for name in names:
        kind = "*" * (len(name) - len(name.lstrip("*")))
        made.append(Parameter(name.strip("*?"), required=not kind and not name.endswith("?"), kind=kind))
    return tuple(made)
