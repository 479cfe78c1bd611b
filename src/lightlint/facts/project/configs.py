"""Trainers that stand in YAML files: the `trainer:` tables of LightningCLI and Hydra, and what `instantiate` makes.

What a file says is a choice among several, and a command line may override it: such a Trainer is one with further
arguments out of sight (`starred`), so it can show that several ranks run, never that only one does.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

from lightlint.facts.code.unknown import UNKNOWN
from lightlint.facts.project.summary import CallSummary
from lightlint.facts.project.yaml_text import read_yaml
from lightlint.facts.releases.api import lightning_api
from lightlint.memo.looked import looked
from lightlint.values.canonical import canonical

_SUFFIXES = (".yaml", ".yml")
_FOLDERS = {"conf", "confs", "config", "configs"}
_SKIPPED = {"node_modules", "site-packages", "venv", "build", "dist", "wandb", "mlruns", "lightning_logs", "outputs"}
_MOST_FILES = 1000
_MOST_BYTES = 200_000
_HYDRA = {"_target_", "_convert_", "_recursive_", "_partial_", "defaults"}
_NAMING = ("class_path", "_target_")
_TRAINER = "lightning.Trainer"


@dataclass(frozen=True, slots=True)
class Config:
    """A YAML file: the Trainers it sets up and the arguments it gives to the classes it names."""

    path: Path
    trainers: tuple[CallSummary, ...]
    given: Mapping[str, frozenset[str]]

    @property
    def classes(self) -> Set[str]:
        """The dotted names."""
        return self.given.keys()


class Configs:
    """The YAML files of a project. None is read before one is asked for."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @cached_property
    def files(self) -> tuple[Config, ...]:
        """Those that set up a Trainer or name a class; what cannot be read says nothing."""
        made = (self._read(path) for path in _yaml_files(self._root))
        return tuple(config for config in made if config.trainers or config.classes)

    def state(self) -> str:
        """A digest of all that is in them."""
        digest = blake2b(digest_size=16)
        for path in _yaml_files(self._root):
            digest.update(os.fsencode(path) + b"\0" + self._bytes(path) + b"\0")
        return digest.hexdigest()

    @cached_property
    def naming(self) -> Mapping[str, tuple[Config, ...]]:
        """The files that name a class, by its dotted name."""
        names = {name for config in self.files for name in config.classes}
        return {name: tuple(config for config in self.files if name in config.classes) for name in names}

    @cached_property
    def given(self) -> Mapping[str, frozenset[str]]:
        """The arguments that some file gives to the classes it names, by the last word of their names."""
        found: dict[str, frozenset[str]] = {}
        for config in self.files:
            for name, words in config.given.items():
                last = name.rpartition(".")[2]
                found[last] = found.get(last, frozenset()) | words
        return found

    def near(self, entry: Path) -> tuple[CallSummary, ...]:
        """The Trainers in the YAML files beside or below a file that starts the training, or in the project's own folders."""
        folders = [entry.parent, *(self._root / name for name in sorted(_FOLDERS))]
        return _trainers(each for each in self.files if any(each.path.is_relative_to(folder) for folder in folders))

    def of(self, configs: Sequence[Config]) -> tuple[CallSummary, ...]:
        """The Trainers that go with what some files name: those in the same file, else those of the same set of files."""
        tops = {self._top(each.path.parent) for each in configs}
        own = _trainers(configs)
        return own or _trainers(each for top in sorted(tops) for each in self._by_top[top])

    @cached_property
    def _by_top(self) -> dict[Path, list[Config]]:
        """The files of each set, by the folder that it starts in."""
        found: dict[Path, list[Config]] = defaultdict(list)
        for each in self.files:
            found[self._top(each.path.parent)].append(each)
        return found

    @cached_property
    def _holding(self) -> frozenset[Path]:
        return frozenset(each.path.parent for each in self.files)

    def _top(self, folder: Path) -> Path:
        """The folder in which a set of configuration files starts, at most one below the root."""
        holding = self._holding
        while folder.parent not in (self._root, folder) and (
            folder.parent in holding or folder.parent.name in _FOLDERS
        ):
            folder = folder.parent
        return folder

    def _bytes(self, path: Path) -> bytes:
        looked(path)
        try:
            return path.read_bytes() if path.stat().st_size <= _MOST_BYTES else b""
        except OSError:
            return b""

    def _read(self, path: Path) -> Config:
        data = self._bytes(path)
        content = read_yaml(data.decode("utf-8", "replace")) if b":" in data else UNKNOWN
        grouped = path.parent.name == "trainer" and isinstance(content, dict) and _sets_up_trainer(content, named=True)
        tables = [content] if grouped and isinstance(content, dict) else list(_trainer_tables(content))
        trainers = tuple(CallSummary(_TRAINER, 0, (), _arguments(table), starred=True) for table in tables)
        return Config(path, trainers, _given(content))


def _trainers(configs: Iterable[Config]) -> tuple[CallSummary, ...]:
    return tuple(trainer for config in configs for trainer in config.trainers)


def _yaml_files(root: Path) -> list[Path]:
    found: list[Path] = []
    for folder, folders, names in os.walk(root):
        looked(folder)
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _SKIPPED)
        found += [Path(folder, name) for name in sorted(names) if name.endswith(_SUFFIXES) and not name.startswith(".")]
        if len(found) > _MOST_FILES:
            return found[:_MOST_FILES]
    return found


def _mappings(content: object, key: str = "") -> Iterator[tuple[str, dict[str, object]]]:
    """Every mapping inside of some content, with the key it stands under."""
    if isinstance(content, dict):
        yield key, content
        for name, value in content.items():
            yield from _mappings(value, name)
    elif isinstance(content, list):
        for value in content:
            yield from _mappings(value)


def _trainer_tables(content: object) -> Iterator[dict[str, object]]:
    return (table for key, table in _mappings(content) if _sets_up_trainer(table, named=key == "trainer"))


def _sets_up_trainer(table: Mapping[str, object], *, named: bool) -> bool:
    """Whether a table is the arguments of a Trainer: it says so, or is called so and holds nothing else."""
    target = table.get("_target_")
    if target is not None:
        return isinstance(target, str) and canonical(target) == _TRAINER
    known = lightning_api().trainer_current.keys() | lightning_api().trainer_removed.keys() | _HYDRA
    return named and bool(table.keys() - _HYDRA) and table.keys() <= known


def _arguments(table: Mapping[str, object]) -> dict[str, object]:
    """The settings of a Trainer; what is a table of its own is as unknown as what cannot be read."""
    plain = (type(None), bool, int, float, str, list)
    return {name: value if isinstance(value, plain) else UNKNOWN for name, value in table.items() if name not in _HYDRA}


def _given(content: object) -> dict[str, frozenset[str]]:
    """The arguments of each class that is named, by its dotted name."""
    found: dict[str, frozenset[str]] = {}
    for _, table in _mappings(content):
        for key in _NAMING:
            value = table.get(key)
            if isinstance(value, str) and "." in value:
                inner = table.get("init_args") if key == "class_path" else table
                words = frozenset(inner) - _HYDRA if isinstance(inner, dict) else frozenset()
                found[value] = found.get(value, frozenset()) | words
    return found
