"""Data: loaders, data sets, samplers and what they draw; metrics."""

from __future__ import annotations

import ast

from lightlint.engine.arguments import Arguments
from lightlint.engine.calls import call
from lightlint.engine.events import BatchDrawn, Collective, EpochSet, LoaderMade, MetricUsed, SplitDrawn, WorkerAsked
from lightlint.engine.execution import Raised
from lightlint.engine.machine import WORKER, Machine
from lightlint.models import tensors
from lightlint.models.data import collating, graphs, workers
from lightlint.models.names.parameters import parameters_of
from lightlint.models.registry import function, methods
from lightlint.values.core import (
    NONE,
    Bound,
    Class,
    Constant,
    Function,
    Library,
    Mapping,
    Sequence,
    Unknown,
    Value,
    is_constant,
    text_of,
)
from lightlint.values.training import Instance, Loader, Tensor

OF_ONE_PROCESS = "of one process"
"""The trait of the number of batches that each process of several goes through."""
_OF_LOADERS = {
    "batch_sampler",
    "batch_size",
    "check_worker_number_rationality",
    "collate_fn",
    "dataset",
    "drop_last",
    "generator",
    "multiprocessing_context",
    "sampler",
    "worker_init_fn",
}
"""What a `DataLoader` has that may be called, or have methods."""
_OWN_SYNC = {"sync_on_compute", "process_group", "compute_with_cache", "distributed_available_fn"}


def set_up_loader(machine: Machine, loader: Loader, given: Arguments, node: ast.AST) -> None:
    """What `DataLoader(...)` does."""
    given.names = given.names or parameters_of("torch.utils.data.DataLoader")  # others take the same
    loader.arguments = given.by_name()
    loader.open_arguments = not given.exact
    loader.data = loader.arguments.get("dataset")
    sampler, batches = loader.arguments.get("sampler"), loader.arguments.get("batch_sampler")
    if isinstance(batches, Instance) and batches.name == "BatchSampler" and not isinstance(batches.cls, Class):
        sampler = batches.argument("sampler", 0)
    loader.sampler = None if is_constant(sampler, None) else sampler
    machine.emit(LoaderMade(machine.where(node), loader))
    workers.work(machine, loader, node)


def length(loader: Instance) -> Value:
    """`len(loader)`: how many batches."""
    if isinstance(loader, Loader) and graphs.gives_one_batch(loader):
        return Constant(1)
    managed = loader.attributes.get("#managed")
    mine = isinstance(managed, Instance) and managed.kind == "accelerator"
    traits = frozenset({"batches", OF_ONE_PROCESS}) if mine else frozenset({"batches"})
    return Unknown(("length", loader.number), traits, plain=True)


def sample_count(data: Instance) -> Unknown:
    """`len(data set)`."""
    base = data.arguments.get("dataset")
    key = ("length", data.number)
    if data.name in ("DistributedSampler", "RandomSampler", "SequentialSampler") and isinstance(base, Instance):
        key = ("sampled", base.number)
    return Unknown(key, frozenset({"samples"}), plain=True)


def batch(machine: Machine, loader: Loader, node: ast.AST) -> Value:
    """One batch: a tuple of tensors where the data set is a TensorDataset, else a tensor that stands for what comes."""
    machine.emit(BatchDrawn(machine.where(node), loader))
    data = loader.data
    held = data.arguments.get("tensors") if isinstance(data, Instance) else None
    plain = isinstance(held, Sequence) and "collate_fn" not in loader.arguments and not held.more
    if plain and isinstance(held, Sequence):
        rows: list[Value] = []
        for index in range(len(held.items)):
            tensor = _batch_tensor(machine, loader, loader.device or "cpu", node)
            tensor.part = index
            source = held.items[index]
            tensor.form = source.form if isinstance(source, Tensor) else None
            tensor.rank = source.rank if isinstance(source, Tensor) else None
            tensor.rows_first = not is_constant(loader.arguments.get("batch_size", Constant(1)), 1, None)
            tensor.rows_of = loader if isinstance(source, Tensor) and len(source.sizes) == 2 else None
            rows.append(tensor)
        return Sequence(rows, "tuple")
    made = loader.attributes.get(workers.BATCH)
    if isinstance(made, Mapping):
        return _of_tokens(machine, loader, made, node)
    drawn = _batch_tensor(machine, loader, loader.device, node)
    collating.shape(machine, loader, drawn, node)
    return drawn


def _of_tokens(machine: Machine, loader: Loader, made: Mapping, node: ast.AST) -> Mapping:
    """A batch of what a tokenizer makes of each sample, or of the samples of a batch."""
    batch = Mapping(more=made.more)
    for key, each in made.items.items():
        batch.items[key] = each
        if isinstance(each, Tensor):
            tensor = tensors.derive(machine, node, each, keep=True)
            tensor.device, tensor.batch_of, tensor.shaped_from = loader.device, loader, each
            batch.items[key] = tensor
        elif isinstance(each, Unknown) and each.made_by is not None:
            batch.items[key] = tensor = _batch_tensor(machine, loader, loader.device, node)
            tensor.part = key
    batch.encoding = made.encoding
    return batch


def _batch_tensor(machine: Machine, loader: Loader, device: str | None, node: ast.AST) -> Tensor:
    made = machine.tensor(node)
    made.batch_of = loader
    made.role, made.device, made.leaf = "batch", device, False
    return made


def set_up_data(data: Instance, last: str, given: Arguments) -> None:
    """What the `__init__` of a data set of a library does."""
    if last == "TensorDataset":
        data.arguments["tensors"] = Sequence(given.positional, "tuple", more=given.star is not None)
    elif given.positional or given.keywords:
        base = given.get(0, "dataset")
        if base is not None:
            data.arguments["dataset"] = base
        chosen = given.get(1, "indices") if last == "Subset" else None
        if chosen is not None:
            data.arguments["indices"] = chosen
        if isinstance(base, Instance) and "tensors" in base.arguments:
            data.arguments["tensors"] = base.arguments["tensors"]


def set_up_sampler(sampler: Instance, given: Arguments) -> None:
    """What the `__init__` of a sampler does."""
    sampler.arguments = given.by_name()
    if sampler.name == "BatchSampler" and "sampler" in sampler.arguments:
        sampler.attributes["sampler"] = sampler.arguments["sampler"]
    sampler.open_arguments = not given.exact


@function("torch.utils.data.random_split")
def random_split(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    """Subsets of a data set: as many as lengths are known, two where they are not."""
    lengths = given.get(1, "lengths")
    known = isinstance(lengths, Sequence) and not lengths.more
    count = len(lengths.items) if isinstance(lengths, Sequence) and known else 2
    base = given.get(0, "dataset")

    def subset() -> Value:
        made = machine.instance(Library("torch.utils.data.Subset"), "data set", node)
        set_up_data(made, "Subset", Arguments([base] if base is not None else []))
        return made

    parts = Sequence([subset() for _ in range(count)], more=not known)
    parts.another = None if known else subset
    seeded = not given.exact or given.get(2, "generator") is not None
    machine.emit(SplitDrawn(machine.where(node), "random_split", [base] if base is not None else [], parts, seeded))
    return parts


@function("torch.utils.data.get_worker_info", "torch.get_worker_info")
def worker_info(machine: Machine, _: Arguments, node: ast.AST) -> Value:
    """`get_worker_info()`."""
    machine.emit(WorkerAsked(machine.where(node)))
    if machine.phases[-1] != WORKER:
        return Unknown(("worker",), hint="worker_info")
    info = machine.instance(Library("torch.utils.data.WorkerInfo"), "namespace", node)
    for word in ("id", "seed"):
        info.attributes[word] = Unknown((f"worker {word}",), frozenset({"worker"}), plain=True)
    if machine.worker_data is not None:
        info.attributes["dataset"] = machine.worker_data
    return info


@methods("loader", "data set", "sampler")
def data_method(machine: Machine, value: Value, name: str, given: Arguments, node: ast.AST) -> Value:
    """A method of a loader, data set or sampler of a library."""
    assert isinstance(value, Instance)
    if name == "set_epoch":
        machine.emit(EpochSet(machine.where(node), value))
        return NONE
    if name == "__len__":
        return length(value) if value.kind == "loader" else sample_count(value)
    if name == "__iter__":
        return machine.models.call_library(machine, Library("builtins.iter"), Arguments([value]), node)
    if name == "__getitem__":
        return sample(machine, value, node)
    if isinstance(value, Loader) and _lacks(value, name):
        raise Raised(Library("builtins.AttributeError"))
    return Unknown()


def _lacks(loader: Loader, name: str) -> bool:
    """Whether a loader of torch's own class, made in sight and had by nobody else, is called by a name that it has not."""
    own = isinstance(loader.cls, Library) and loader.cls.path == "torch.utils.data.DataLoader"
    return own and not (loader.assumed or loader.escaped or name.startswith("_") or name in _OF_LOADERS)


def sample(machine: Machine, data: Instance, node: ast.AST) -> Value:
    """One sample, as training sees it outside of a loader."""
    own = data.cls.find("__getitem__") if isinstance(data.cls, Class) else None
    if isinstance(own, Function) and not machine.entered[id(own.node)]:
        return call(machine, Bound(data, own), Arguments([workers.number()]), node)
    return Unknown()


@methods("metric")
def metric_method(machine: Machine, metric: Value, name: str, given: Arguments, node: ast.AST) -> Value:
    """A method of a torchmetrics metric."""
    assert isinstance(metric, Instance)
    if name in ("to", "cuda", "cpu"):
        return metric
    if name == "add_state":
        key = text_of(given.get(0, "name"))
        states = metric.attributes.setdefault("#states", Sequence([], more=key is None))
        if key is not None and isinstance(states, Sequence):
            states.items.append(Constant(key))
            metric.attributes[key] = given.get(1, "default") or Unknown()
        return NONE
    if name == "clone":
        made = machine.instance(metric.cls, "metric", node)
        made.arguments, made.open_arguments = dict(metric.arguments), metric.open_arguments
        return made
    if name in ("update", "forward", "__call__", "compute", "reset"):
        operation = "forward" if name == "__call__" else name
        machine.emit(MetricUsed(machine.where(node), metric, operation, given.values() if given.exact else []))
        if name == "compute" and not (metric.open_arguments or metric.arguments.keys() & _OWN_SYNC):
            machine.emit(Collective(machine.where(node), "metric.compute", [], machine.group_ended))
        if name in ("compute", "forward", "__call__"):
            value = tensors.derive(machine, node)
            value.metric = metric
            return value
    return NONE
