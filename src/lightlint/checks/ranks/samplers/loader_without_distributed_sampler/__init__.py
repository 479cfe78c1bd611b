from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.checks.ranks.samplers.loader_without_distributed_sampler.streams import (
    gone_over_at,
    is_whole_stream,
    takes_shares,
)
from lightlint.engine.events import BatchDrawn, Called, Event, FitStarted, Forward, GroupStarted, LoaderMade
from lightlint.explore.questions.queries import exchanging, in_sight, may_be_alone
from lightlint.facts.code.names import UNKNOWN
from lightlint.facts.data.loading import Driver
from lightlint.facts.lightning.hooks import LOADERS
from lightlint.facts.ranks.world import FABRIC, Ranks
from lightlint.finding import Tier
from lightlint.models.names.huggingface import ROWS
from lightlint.values.core import NONE, Class, Function, Sequence, Value, is_constant, traits_of
from lightlint.values.training import Instance

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path

_SHARDING = ("accelerate.", "deepspeed.", "transformers.", "horovod.", "ray.", "colossalai.", "webdataset.", "litdata.")
_SHARING_BATCHES = ("tensor", "_tensor", "pipelin", "rpc", "device_mesh")  # ranks that need the same batch
_MODEL_PARALLEL = tuple(f"torch.distributed.{name}" for name in _SHARING_BATCHES)
_ALONE = re.compile(
    r"distributed|ddp|world|rank|gpu|is_initialized|multi|parallel|num_(?:devices|nodes)", re.IGNORECASE
)
_RUNS = ("fit", "validate", "test")
_PLAIN_SAMPLERS = {"Sampler", "object", "Generic", "Iterable", "Sized"}


_RAW = "no `DistributedSampler` in this loader: every rank trains on all of its data"
_RAW_ROWS = "nothing gives each rank its own rows of this data set: every rank trains on all of it"
_LEFT_ALONE = "no sampler here and none from the Trainer: every rank trains on all of this loader's data"
_SHARES = re.compile(r"rank|world|replica|shard|split", re.IGNORECASE)


class LoaderWithoutDistributedSampler(Check):
    def visit_Call(self, call: cst.Call) -> None:
        loading = self.facts.loading
        driver = loading.training.get(call)
        if driver is None:
            return
        if loading.is_sampled(call) or not loading.is_map_style(call) or self._is_sharded(call, driver):
            return
        if driver is Driver.LIGHTNING:
            self._judge_lightning(call)
        elif self._is_fabric():
            self.report(
                call, "no `setup_dataloaders` gives this loader a sampler: every rank trains on all of its data"
            )
        elif self._is_data_parallel(call):
            self.report(call, _RAW)

    def _judge_lightning(self, call: cst.Call) -> None:
        if self.facts.world.lightning is not Ranks.MANY:
            return
        if self._left_alone():
            self.report(call, _LEFT_ALONE)
        else:
            self.report(call, "Lightning puts a `DistributedSampler` into this loader on each rank", tier=Tier.NOTE)

    def _left_alone(self, *, unless_unknown: bool = True) -> bool:
        """Whether every Trainer in sight is told to leave samplers alone; an unknown value counts where silence is safe."""
        settings = [
            each.arguments.get("use_distributed_sampler", each.arguments.get("replace_sampler_ddp", True))
            for each in self.facts.world.trainers
        ]
        told = [each is False for each in settings]
        if unless_unknown:
            return bool(told) and all(told)
        return any(told) or UNKNOWN in settings or any(each.starred for each in self.facts.world.trainers)

    def _is_fabric(self) -> bool:
        world = self.facts.world
        return world.lightning is Ranks.MANY and any(each.name == FABRIC for each in world.trainers)

    def _is_data_parallel(self, call: cst.Call) -> bool:
        """Whether this file wraps the model for several ranks, with no library around that shares out batches."""
        called = self.facts.world.called
        if any(name.startswith((*_SHARDING, *_MODEL_PARALLEL)) for name in called):
            return False
        several = self.facts.world.raw is Ranks.MANY and self.facts.processes.wraps
        return several and self.facts.processes.per_rank(call)

    def _is_sharded(self, call: cst.Call, driver: Driver) -> bool:
        """Whether the data may be shared out by hand or out of sight, or the loader made where one process trains."""
        data = self.facts.loading.dataset(call)
        if data is None or self._is_alone(call) or self.facts.processes.may_be_share(data):
            return True
        if driver is Driver.LIGHTNING:
            above = self.tree.enclosing_class(call)
            owners = (
                [each for each in self.tree.all(cst.ClassDef) if self.hooks.owner(each)] if above is None else [above]
            )
            return any(self.facts.processes.may_share_in(each, call) for each in owners)
        return not self.facts.processes.is_in_sight(data)

    def _is_alone(self, node: cst.CSTNode, depth: int = 0) -> bool:
        """Whether tests around a node, or around every call of its function, ask for the number of processes."""
        tests = [test for test, _ in self.facts.conditions(node)]
        if any(_ALONE.search(name.value) for test in tests for name in self.tree.within(test, cst.Name)):
            return True
        function = self.tree.function(node)
        calls = self.hooks.calls_of.get(function, ()) if function is not None else ()
        return bool(calls) and depth < 4 and all(self._is_alone(each, depth + 1) for each in calls)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Loaders that every rank goes through whole, for passes that exchange gradients with the others; loaders that
        Lightning cannot give to several ranks."""
        if self.facts.world.lightning is Ranks.MANY and not self._left_alone(unless_unknown=False):
            yield from _with_own_batches(entry)
        shared = {event.site for event in entry.of(LoaderMade) if not _is_whole(event)}
        yield from _of_streams(entry)
        for path in entry.paths:
            if path.fails:  # so nobody trains this way
                continue
            plain = [event for event in path.of(LoaderMade) if event.site not in shared]
            feeding = _feeding(path) if plain else set()
            alone = {turn.loop.over for event in _left_alone(path) for turn in event.where.turns} if plain else set()
            for event in plain:
                if event.loader in feeding and not may_be_alone(event.where):
                    yield Fault.of(event, _RAW_ROWS if _are_rows(event.loader.data) else _RAW)
                elif event.loader in alone:
                    yield Fault.of(event, _LEFT_ALONE)


def _of_streams(entry: Entry) -> Iterator[Fault]:
    """Streams that no rank takes a share of, and that no sampler can be given for: a Trainer leaves them as they are, too. A
    loader that is given one raises, so nobody trains with it."""
    sampled = {
        each.site for each in entry.of(LoaderMade) if not is_constant(each.loader.arguments.get("sampler", NONE), None)
    }
    for path in entry.paths:
        made = (event for event in path.of(LoaderMade) if event.site not in sampled)
        streams = [event for event in made if is_whole_stream(path, event)]
        several = any(event.by == "Trainer" for event in path.of(GroupStarted))
        trained = _feeding(path) if streams else set()
        if several:
            steps = (event for event in path.of(BatchDrawn) if event.where.phase == "train")
            trained |= {event.loader for event in steps}
        for event in streams:
            data = event.loader.data
            site = gone_over_at(data) if isinstance(data, Instance) else None
            site = event.site if _are_rows(data) and several else site  # raw ones are told below
            if event.loader in trained and site is not None and not may_be_alone(event.where):
                place = site if takes_shares(path, event) else event.site  # where it would take one of ranks, too
                yield Fault(place, _RAW_ROWS, None, (event.site,), event.where.places[1:])


def _feeding(path: Path) -> set[Value | None]:
    """What the passes that exchange gradients go over, and the loaders whose batches they are given."""
    passes = exchanging(path)
    turns = {event.where.turns for event in passes}
    given = (event for event in path.of(Forward) if event.training and event.graph and event.where.turns in turns)
    drawn: set[Value | None] = {each.batch_of for event in given for each in event.inputs}
    return drawn | {turn.loop.over for event in passes for turn in event.where.turns}


def _with_own_batches(entry: Entry) -> Iterator[Fault]:
    """Loaders of a Trainer with a batch sampler of another class than torch's: Lightning cannot build it again around its
    own sampler."""
    for path in entry.paths:
        runs = [
            e for e in path.of(Called) if e.path in _RUNS and e.receiver is not None and e.receiver.kind == "trainer"
        ]
        values = [value for run in runs for value in run.given.values()]
        handed = [each for value in values for each in (value.items if isinstance(value, Sequence) else [value])]
        for event in path.of(LoaderMade):
            sampler = event.loader.arguments.get("batch_sampler")
            cls = sampler.cls if isinstance(sampler, Instance) else None
            asked = any(call.function.owner and call.function.name in LOADERS for call in event.where.calls)
            if (asked or event.loader in handed) and isinstance(cls, Class) and cls.sees_all():
                bases = {each.rpartition(".")[2] for each in cls.libraries()}
                lacks = ""
                if bases <= _PLAIN_SAMPLERS and cls.find("batch_size") is None:
                    lacks = "is no `BatchSampler`: Lightning raises"
                elif "BatchSampler" in bases and _takes_no_sampler(cls):
                    lacks = "takes no `sampler`: Lightning, which would put its own into it, raises"
                if lacks:
                    yield Fault.of(event, f"`{cls.name}` {lacks} on several ranks", argument="batch_sampler")


def _takes_no_sampler(cls: Class) -> bool:
    """Whether a class has an `__init__` of its own without a parameter for a sampler."""
    made = cls.find("__init__")
    args = made.node.args if isinstance(made, Function) and not isinstance(made.node, ast.Lambda) else None
    if args is None or args.vararg is not None or args.kwarg is not None:
        return False
    return "sampler" not in {each.arg for each in (*args.posonlyargs, *args.args, *args.kwonlyargs)}


def _left_alone(path: Path) -> list[Event]:
    """What happens in the batches of a Trainer on several ranks that is told to leave samplers alone."""
    told = [
        event.trainer
        for event in path.of(FitStarted)
        if event.training and is_constant(event.trainer.arguments.get("use_distributed_sampler"), False)
    ]
    several = any(event.by == "Trainer" for event in path.of(GroupStarted))
    return [event for event in path.events if event.where.phase == "train"] if len(told) == 1 and several else []


def _is_whole(event: LoaderMade) -> bool:
    """Whether a loader goes through all of a data set, which lies in sight and is the same on all ranks."""
    loader, data = event.loader, event.loader.data
    given = loader.arguments
    if not isinstance(data, Instance) or data.kind not in ("data set", ROWS) or loader.open_arguments:
        return False
    if _are_rows(data) and "#apart" in data.attributes:
        return False
    sampled = any(not is_constant(given.get(name, NONE), None) for name in ("sampler", "batch_sampler"))
    held = traits_of(*data.arguments.values(), *data.attributes.values())
    apart = "rank" in held or "indices" in data.arguments or event.where.depends_on("rank")
    return not sampled and not apart and in_sight([loader, data]) and not _may_share(data) and _is_by_index(data)


def _are_rows(data: Value | None) -> bool:
    """Whether a data set is a table of Datasets, streamed or not, which `split_dataset_by_node` shares out."""
    return isinstance(data, Instance) and data.kind == ROWS


def _is_by_index(data: Instance) -> bool:
    return not any(name.rpartition(".")[2] == "IterableDataset" for name in data.libraries())


def _may_share(data: Instance) -> bool:
    """Whether a class of data sets of the program speaks of ranks."""
    lineage = data.cls.lineage() if isinstance(data.cls, Class) else []
    code = (node for each in lineage if isinstance(each, Class) for node in ast.walk(each.node))
    names = (getattr(node, "id", getattr(node, "attr", getattr(node, "arg", None))) for node in code)
    return any(_SHARES.search(name) for name in names if isinstance(name, str))
