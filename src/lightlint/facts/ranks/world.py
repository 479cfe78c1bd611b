"""Whether code runs on one rank or on several, as far as the text of the project says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from functools import cached_property
from pathlib import Path

from lightlint.facts.code.names import UNKNOWN
from lightlint.facts.project.mentions import occurs
from lightlint.facts.project.project import Project
from lightlint.facts.project.roots import nearest_with
from lightlint.facts.project.summary import CallSummary, ModuleSummary
from lightlint.values.canonical import canonical


class Ranks(IntEnum):
    """How many ranks run some code: surely one, possibly several, several as configured."""

    ONE = 0
    MAYBE = 1
    MANY = 2


TRAINER = "lightning.Trainer"
FABRIC = "lightning.fabric.Fabric"
_SEVERAL = ("ddp", "fsdp", "deepspeed", "hpu_parallel", "xla", "horovod", "bagua", "colossalai", "ddp2", "tpu_spawn")
_NO_DDP = {"tpu", "hpu", "ipu"}
_DDP = "lightning.strategies.DDPStrategy"
_RAW = {"torch.distributed.init_process_group", "torch.nn.parallel.DistributedDataParallel"}
_COPYING = ("spawn", "fork", "notebook")  # strategies that start the ranks inside `fit`, with a copy of what is there
_INSTANTIATE = {"hydra.utils.instantiate", "hydra.utils.call"}


def trainer_ranks(arguments: Mapping[str, object], starred: bool, *, default_all: bool = True) -> Ranks:
    """How many ranks a Trainer or Fabric with these arguments runs.

    Args:
        arguments: constants by argument name, `UNKNOWN` for what is no constant.
        starred: whether further arguments are out of sight.
        default_all: whether no `devices` means every device there is (Lightning 2.0 and newer) or one.
    """
    nodes = arguments.get("num_nodes", 1)
    devices = _devices(arguments, default_all=default_all)
    strategy = arguments.get("strategy", arguments.get("distributed_backend"))
    several = isinstance(strategy, str) and strategy.startswith(_SEVERAL)
    if (isinstance(nodes, int) and nodes > 1) or devices is Ranks.MANY:
        return Ranks.MANY
    if starred or nodes is UNKNOWN:
        return Ranks.MANY if several and devices is not Ranks.ONE else Ranks.MAYBE
    if several and devices is Ranks.MAYBE:
        return Ranks.MANY
    return devices


def _devices(arguments: Mapping[str, object], *, default_all: bool) -> Ranks:
    values = [arguments[name] for name in ("devices", "gpus", "num_processes", "tpu_cores") if name in arguments]
    if not values:
        on_cpu = arguments.get("accelerator") == "cpu"
        return Ranks.MAYBE if default_all and not on_cpu else Ranks.ONE
    counts = [_count(value) for value in values]
    if arguments.get("accelerator") == "cpu" and "auto" in values:
        return Ranks.ONE
    return max(counts)


def _count(value: object) -> Ranks:
    if isinstance(value, (list, tuple)):
        return Ranks.MANY if len(value) > 1 else Ranks.ONE
    if isinstance(value, str):
        parts = [part for part in value.split(",") if part.strip()]
        if len(parts) > 1:
            return Ranks.MANY
        return _count(int(value)) if value.lstrip("-").isdigit() else Ranks.MAYBE
    if isinstance(value, int):
        return Ranks.MAYBE if value < 0 else Ranks.MANY if value > 1 else Ranks.ONE
    return Ranks.ONE if value is None else Ranks.MAYBE


def _is_open(call: CallSummary) -> bool:
    """Whether how many devices a Trainer takes is said elsewhere: in a dict, a file of settings, an option."""
    counts = ("devices", "gpus", "num_processes", "tpu_cores", "num_nodes")
    return call.starred or any(call.arguments.get(name) is UNKNOWN for name in counts)


def _is_cli(summary: ModuleSummary) -> bool:
    """Whether a file starts a LightningCLI, or derives from it."""
    bases = {base for each in summary.classes.values() for base in each.bases}
    return any(name.startswith("lightning.") and name.endswith(".LightningCLI") for name in summary.called | bases)


def _starts(summary: ModuleSummary) -> bool:
    return _is_cli(summary) or not summary.called.isdisjoint(_INSTANTIATE)


_MOST_FILES = 12  # to be read for what may not concern the file at hand


class World:
    """How many ranks run the code of one file."""

    def __init__(self, project: Project, path: Path, own: ModuleSummary, setting: object, *, default_all: bool) -> None:
        self._project = project
        self._path = path
        self._own = own
        self._setting = setting
        self._default_all = default_all

    @cached_property
    def lightning(self) -> Ranks:
        """For Lightning code: from the Trainers of this file, else of the files that import it, else one where all of the
        project have one device, else possibly several."""
        if isinstance(self._setting, bool):
            return Ranks.MANY if self._setting else Ranks.ONE
        calls = self.trainers
        if not calls:
            return Ranks.ONE if self._has_single_trainers else Ranks.MAYBE
        ranks = max(trainer_ranks(call.arguments, call.starred, default_all=self._default_all) for call in calls)
        return max(ranks, Ranks.MAYBE) if self._runs_cli else ranks

    @cached_property
    def _has_single_trainers(self) -> bool:
        """Whether the project has Trainers, not seen to run this file of Lightning code, and each of them runs one rank."""
        if not any(name.startswith("lightning") for name in map(canonical, self._own.imported)):
            return False
        paths = self._project.mentioning("Trainer", "Fabric")
        if len(paths) > _MOST_FILES or self._project.mentioning("LightningCLI", "instantiate"):
            return False
        calls = [call for path in paths for call in self._trainers(self._summary(path).calls)]
        ranks = [trainer_ranks(call.arguments, call.starred, default_all=self._default_all) for call in calls]
        return bool(ranks) and all(each is Ranks.ONE for each in ranks)

    @property
    def is_untold(self) -> bool:
        """Whether no setting and no Trainer in sight says how many ranks run Lightning code, or that all devices there are do:
        no more than a note then."""
        return self.lightning is Ranks.MAYBE and all(map(_is_open, self._visible))

    @cached_property
    def is_run_alone(self) -> bool:
        """Whether all that the project says of this program, or of its programs, is how to start one process, which starts no
        others: what goes wrong on several ranks costs nobody who runs it so."""
        told = isinstance(self._setting, bool) or (self.trainers and self.lightning is not Ranks.ONE)
        return not told and self._project.is_run_alone(self._path) and not self._spawns

    @property
    def _spawns(self) -> bool:
        """Whether a program of the project starts ranks itself."""
        group = "init_process_group"
        by_hand = rf"(?s){group}.*\bProcess\(|\bProcess\(.*{group}"
        return occurs(self._project, "spawn", r"\.spawn\(") or occurs(self._project, group, by_hand)

    @property
    def may_be_run_elsewhere(self) -> bool:
        """Whether no Trainer is in sight and the project is a folder of a repository, whose other folders may have some."""
        root = self._project.root
        return self.is_untold and not self.trainers and nearest_with((".git",), root) not in (None, root)

    @property
    def is_copied(self) -> bool:
        """Whether a Trainer in sight starts its ranks inside `fit`: the script around it runs once, each rank gets a copy."""
        strategies = [str(call.arguments.get("strategy")) for call in self.trainers]
        return any(word in strategy for strategy in strategies for word in _COPYING)

    @cached_property
    def ddp(self) -> str:
        """The argument with which a Trainer in sight surely wraps its module in DDP, on several ranks; empty for none."""
        found = (self._ddp(call) for call in self.trainers if call.name == TRAINER)
        return next((each for each in found if each), "")

    def _ddp(self, call: CallSummary) -> str:
        strategy, accelerator = call.arguments.get("strategy") or "auto", call.arguments.get("accelerator")
        several = trainer_ranks(call.arguments, call.starred, default_all=self._default_all) is Ranks.MANY
        if not several or accelerator in _NO_DDP:
            return ""
        if isinstance(strategy, str) and strategy.startswith("ddp"):
            return f'strategy="{strategy}"'
        if strategy is UNKNOWN:
            return "strategy=DDPStrategy(...)" if _DDP in self.called else ""
        counts = ((name, call.arguments.get(name)) for name in ("devices", "gpus", "num_nodes"))
        many = (f"{name}={value!r}".replace("'", '"') for name, value in counts if value not in (None, 1, UNKNOWN))
        return next(many, "") if strategy == "auto" and not call.starred else ""

    @cached_property
    def raw(self) -> Ranks:
        """For plain PyTorch code: several where this file, or one that imports it, sets up a process group."""
        if isinstance(self._setting, bool):
            return Ranks.MANY if self._setting else Ranks.ONE
        if self._own.called & _RAW:
            return Ranks.MANY
        users = self._project.users(self._path, "init_process_group", "DistributedDataParallel")
        return Ranks.MANY if any(self._project.summary(path).called & _RAW for path in users) else Ranks.ONE

    @cached_property
    def trainers(self) -> tuple[CallSummary, ...]:
        """The Trainers and Fabrics that run this file's code: its own or those of its importers, and those in YAML files."""
        return (*self._visible, *self._configured)

    @cached_property
    def _visible(self) -> tuple[CallSummary, ...]:
        own = self._trainers(self._own.calls)
        return tuple(own or [each for summary in self._entries for each in self._trainers(summary.calls)])

    @cached_property
    def _configured(self) -> tuple[CallSummary, ...]:
        """The Trainers that stand in YAML files which name a class of this file, or lie beside what starts its training."""
        if not self._project.mentioning("LightningCLI", "instantiate"):
            return ()
        if not self._own.classes and not self._starters:
            return ()
        configs = self._project.configs
        naming = [
            config
            for name, found in configs.naming.items()
            if name.rpartition(".")[2] in self._own.classes and self._defines(name)
            for config in found
        ]
        beside = [each for path in self._starters for each in configs.near(path)]
        return configs.of(naming) or tuple(beside)

    def _defines(self, name: str) -> bool:
        """Whether a dotted class name of a YAML file stands for a class of this file."""
        known = self._project.find_class(name, self._project.root)
        if known is not None:
            return known[1] == self._path
        module = f".{self._project.module_name(self._path)}"
        return f".{name.rpartition('.')[0]}".endswith(module)

    @cached_property
    def _runs_cli(self) -> bool:
        """Whether a LightningCLI, whose Trainer is out of sight, runs this file's code."""
        return any(_is_cli(self._summary(path)) for path in self._starters)

    @cached_property
    def _starters(self) -> tuple[Path, ...]:
        """This file and its importers, as far as they start a LightningCLI or let Hydra make objects."""
        if not self._project.mentioning("LightningCLI", "instantiate"):
            return ()
        candidates = (self._path, *self._project.users(self._path, "LightningCLI", "instantiate"))
        return tuple(path for path in candidates if _starts(self._summary(path)))

    def _summary(self, path: Path) -> ModuleSummary:
        return self._own if path == self._path else self._project.summary(path)

    @cached_property
    def called(self) -> frozenset[str]:
        """Names of everything that this file, and the files that import it and set up ranks, call."""
        return self._own.called | self.called_by_users

    @cached_property
    def called_by_users(self) -> frozenset[str]:
        """Names of everything that the files which import this one and set up ranks call."""
        starters = (self._project.summary(path) for path in self._starters if path != self._path)
        return frozenset[str]().union(*(summary.called for summary in (*self._entries, *starters)))

    @cached_property
    def called_by_makers(self) -> frozenset[str]:
        """Names of everything that files call which make what YAML files name, where Trainers in these run this file's code."""
        if self._visible or not self._configured:
            return frozenset()
        makers = map(self._summary, self._project.mentioning("LightningCLI", "instantiate"))
        return frozenset[str]().union(*(each.called for each in makers if _starts(each)))

    @cached_property
    def _entries(self) -> tuple[ModuleSummary, ...]:
        words = ("Trainer", "Fabric", "LightningCLI", "init_process_group", "DistributedDataParallel")
        return tuple(self._project.summary(path) for path in self._project.users(self._path, *words))

    def _trainers(self, calls: Sequence[CallSummary]) -> list[CallSummary]:
        return [call for call in calls if call.name in {TRAINER, FABRIC}]
