"""Ranks: process groups, collectives, launchers, and which rank a program runs as."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy

from lightlint.engine.arguments import Arguments
from lightlint.engine.calls import call
from lightlint.engine.events import Collective, GroupMade, GroupStarted
from lightlint.engine.machine import UNNAMED_RANK, Machine
from lightlint.models import tensors
from lightlint.models.names.tables import COLLECTIVES
from lightlint.models.registry import FunctionModel, function, methods
from lightlint.values.core import (
    NONE,
    ON_SOME,
    OWN_DATA,
    SUMMED,
    TRUE,
    Bound,
    Constant,
    Function,
    Library,
    Sequence,
    Unknown,
    Value,
    is_constant,
    text_of,
)
from lightlint.values.training import tensors_in

_ON_ONE = frozenset({"on one rank"})  # the sum over all ranks, on one of them, and the rank's own number on the others
_OF_OBJECTS = frozenset(["broadcast_object_list", "scatter_object_list", "all_gather_object"])
_BRINGING = frozenset(["all_reduce", "broadcast", "all_gather", "scatter", "all_gather_into_tensor"])
_GROUP_AT = {
    "barrier": 0, "monitored_barrier": 0, "reduce": 3, "gather": 3, "scatter": 3, "reduce_scatter": 3, "gather_object": 3,
    "reduce_scatter_tensor": 3, "scatter_object_list": 3, "all_to_all_single": 4,
}  # fmt: skip
_SUMMING = {"all_reduce": 1, "reduce": 2}
"""Collectives that may add up what all ranks have, and where they are told what to do."""
RANK = frozenset({"rank"})
_STARTED = frozenset({"rank that starts others"})
_OF_ALL = frozenset({"rank of all"})  # among the processes of all nodes
RANK_NAMES = frozenset(["rank", "global_rank", "local_rank", "process_index", "local_process_index", "node_rank"])
FIRST_NAMES = frozenset(
    [
        "is_global_zero",
        "is_main_process",
        "is_local_main_process",
        "is_main",
        "is_master",
        "is_rank_zero",
        "is_local_zero",
        "is_world_process_zero",
        "is_local_process_zero",
        "is_last_process",
        "is_first",
    ]
)
_ENVIRONMENT = (
    "RANK",
    "LOCAL_RANK",
    "SLURM_PROCID",
    "SLURM_LOCALID",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_LOCAL_RANK",
)


def rank_value(machine: Machine, name: str) -> Constant:
    """The rank, or whether it is the first, by the name it is asked for."""
    machine.uses_rank = True
    return Constant(machine.rank == 0 if name in FIRST_NAMES else machine.rank and UNNAMED_RANK, RANK)


@function("lightning.utilities.rank_zero_only")
def _rank_zero_only(_: Machine, given: Arguments, __: ast.AST) -> Value:
    """As the decorator does, for another name: the function itself still runs on every rank."""
    return only_first(given.get(0, "fn"))


def only_first(held: Value | None) -> Value:
    """A function that runs on the first rank, and gives None on the others."""
    plain = held.function if isinstance(held, Bound) else held
    if not isinstance(plain, Function):
        return Unknown(hint=held.last if isinstance(held, Library) else "")
    first = copy(plain)
    first.flags = plain.flags | {"rank_zero_only"}
    return Bound(held.receiver, first) if isinstance(held, Bound) else first


def from_environment(machine: Machine, name: Value | None) -> Value:
    """An environment variable."""
    text = text_of(name)
    if text in _ENVIRONMENT:
        rank = rank_value(machine, "rank")
        return _of_all(rank) if text in ("RANK", "SLURM_PROCID") else rank
    return (
        Unknown(("environment", text), plain=False, hint=(text or "").lower()) if text != "WORLD_SIZE" else world_size()
    )


def world_size() -> Unknown:
    """How many ranks there are."""
    return Unknown(("world size",), frozenset({"world"}), plain=True, hint="world_size")


def collective(machine: Machine, name: str, given: Arguments, node: ast.AST) -> Collective:
    """Write a collective down."""
    last = name.rpartition(".")[2]
    group = given.get(_GROUP_AT.get(last, 2), "group")
    if is_constant(group, None) or (isinstance(group, Library) and group.path.endswith(".WORLD")):
        group = None
    return machine.emit(Collective(machine.where(node), name, given.values(), machine.group_ended, given, group))


def brought(machine: Machine, node: ast.AST, index: int = 0) -> Unknown:
    """What a collective gives every rank alike: nothing is known of it."""
    return Unknown(("brought", machine.site(node), index, tuple(loop.turn for loop in machine.loops)), plain=True)


def reduced_at(time: int) -> str:
    """The trait of what comes of the sum that the `reduce` of a time leaves on one rank."""
    return f"reduced at {time}"


def _sums(op: Value | None) -> bool:
    """Whether a collective adds up, as it does unless it is told otherwise."""
    return op is None or (isinstance(op, Library) and op.last == "SUM") or (text_of(op) or "").endswith("SUM")


def _collective(name: str) -> FunctionModel:
    def run(machine: Machine, given: Arguments, node: ast.AST) -> Value:
        event = collective(machine, f"dist.{name}", given, node)
        if name.endswith("barrier"):
            machine.pending.clear()
        if name in ("all_gather", "all_gather_into_tensor"):
            for tensor in tensors_in(given.get(0, _OUTPUTS[name][0])):
                tensors.note_cuts(machine, tensor, given.get(1, _INPUTS[name]), "all_gather", node)
        objects = given.get(0, "object_list")
        if name in _OF_OBJECTS and isinstance(objects, Sequence):
            objects.items[:] = [brought(machine, node, index) for index in range(len(objects.items))]
        for tensor in [each.data_of or each for each in tensors_in(given.get(0, "tensor"))]:
            if name in _SUMMING and _sums(given.get(_SUMMING[name], "op")):
                tensor.traits |= SUMMED
            if name == "reduce" and given.get(3, "group") is None:
                tensor.traits |= _ON_ONE | {reduced_at(event.time)}
            elif name in _BRINGING:
                tensor.traits -= _ON_ONE | OWN_DATA | ON_SOME
        return _in_background(machine, event, node) if is_constant(given.get(-1, "async_op"), True) else NONE

    return run


for _name in COLLECTIVES:
    function(f"torch.distributed.{_name}")(_collective(_name))


_OUTPUTS = {
    "gather": ("gather_list", 1),
    "all_gather": ("tensor_list", 0),
    "all_gather_into_tensor": ("output_tensor", 0),
}
_INPUTS = {"all_gather": "tensor", "all_gather_into_tensor": "input_tensor"}
_OUTPUTS |= dict.fromkeys(("reduce_scatter", "reduce_scatter_tensor", "all_to_all_single"), ("output", 0))
_OUTPUTS |= {"all_to_all": ("output_tensor_list", 0)}


def _in_background(machine: Machine, event: Collective, node: ast.AST) -> Value:
    """The handle of a collective that has written nothing yet."""
    work = machine.instance(Library("torch.distributed.Work"), "work", node)
    keyword, position = _OUTPUTS.get(event.name.rpartition(".")[2], ("tensor", 0))
    for tensor in tensors_in(event.given.get(position, keyword) if event.given is not None else None):
        machine.pending[id(tensor)] = tensor, event, work
    return work


@function("torch.distributed.irecv")
def _receive(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    return _in_background(machine, collective(machine, "dist.irecv", given, node), node)


@methods("work")
def _handle(machine: Machine, work: Value, name: str, _: Arguments, __: ast.AST) -> Value:
    if name != "is_completed":
        for key in [key for key, (_, _, each) in machine.pending.items() if each is work]:
            del machine.pending[key]
    return Unknown(plain=True)


@function("torch.cuda.synchronize", "torch.cuda.current_stream", "torch.accelerator.synchronize")
def _synchronize(machine: Machine, _: Arguments, __: ast.AST) -> Value:
    machine.pending.clear()
    return Unknown()


def _group(name: str) -> FunctionModel:
    def make(machine: Machine, given: Arguments, node: ast.AST) -> Value:
        apart = given.keywords.get("use_local_synchronization")
        if given.exact and (apart is None or is_constant(apart, False)):
            machine.emit(GroupMade(machine.where(node), name, given.get(0, "ranks")))
        if name != "new_group" or not given.exact:
            return Unknown()
        made = machine.instance(Library("torch.distributed.ProcessGroup"), "group", node)
        made.arguments = {"backend": given.get(2, "backend") or NONE}
        return made

    return make


for _name in ("new_group", "new_subgroups", "new_subgroups_by_enumeration", "init_device_mesh"):
    function(f"torch.distributed.{_name}")(_group(_name))
function("torch.distributed.device_mesh.init_device_mesh")(_group("init_device_mesh"))


@function("torch.distributed.get_rank")
def _get_rank(machine: Machine, given: Arguments, __: ast.AST) -> Value:
    return _of_all(rank_value(machine, "rank")) if not given.values() else rank_value(machine, "rank")


def _of_all(rank: Constant) -> Constant:
    """A rank that counts the processes of all nodes."""
    return Constant(rank.value, rank.traits | _OF_ALL)


@function("torch.distributed.get_world_size")
def _get_world_size(_: Machine, __: Arguments, ___: ast.AST) -> Value:
    return world_size()


@function("torch.distributed.is_available")
def _is_available(_: Machine, __: Arguments, ___: ast.AST) -> Value:
    return TRUE


@function("torch.distributed.is_initialized")
def _is_initialized(machine: Machine, _: Arguments, __: ast.AST) -> Value:
    return TRUE if machine.distributed else Unknown(("distributed",), plain=True)


@function("torch.distributed.init_process_group", "deepspeed.init_distributed")
def _init(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    machine.distributed, machine.group_ended = True, False
    machine.emit(GroupStarted(machine.where(node), "init_process_group", given))
    return NONE


@function("torch.distributed.destroy_process_group")
def _destroy(machine: Machine, given: Arguments, _: ast.AST) -> Value:
    machine.group_ended |= not given.values()
    return NONE


@function("torch.cuda.set_device")
def _nothing(_: Machine, __: Arguments, ___: ast.AST) -> Value:
    return NONE


@function("torch.multiprocessing.spawn", "torch.multiprocessing.start_processes")
def _spawn(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    target, args = given.get(0, "fn"), given.get(1, "args")
    machine.distributed = True
    machine.emit(GroupStarted(machine.where(node), "spawn", given))
    if target is None:
        return NONE
    rest = list(args.items) if isinstance(args, Sequence) else []
    star = args if args is not None and not isinstance(args, Sequence) else None
    with _other_processes(machine):
        call(machine, target, Arguments([rank_value(machine, "rank"), *rest], star=star), node)
    return NONE


@function("torch.multiprocessing.Process", "multiprocessing.Process")
def _process(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    target, args = given.keywords.get("target"), given.keywords.get("args")
    items = list(args.items) if isinstance(args, Sequence) else []
    counted = next((index for index, each in enumerate(items) if "index" in each.traits), None)
    if counted is not None:  # `for rank in range(world_size): Process(target=run, args=(rank, ...))`
        items[counted] = rank_value(machine, "rank")
    if target is not None:
        with _other_processes(machine):
            call(machine, target, Arguments(items), node)
    return Unknown()


@contextmanager
def _other_processes(machine: Machine) -> Iterator[None]:
    """What a process starts others for: all of these come there, whichever rank the one has that starts them."""
    before, ended, process = machine.conditions, machine.group_ended, machine.process
    machine.process = machine.clock
    machine.conditions = [
        each._replace(traits=each.traits - RANK | _STARTED) if "rank" in each.traits else each for each in before
    ]
    try:
        yield
    finally:
        machine.conditions, machine.group_ended, machine.process = before, ended, process
