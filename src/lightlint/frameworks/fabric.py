"""Fabric and Accelerator: what they set up, and their methods."""

from __future__ import annotations

import ast

from lightlint.engine.arguments import Arguments
from lightlint.engine.calls import call
from lightlint.engine.events import Clipped, Collective, GroupStarted, Restored
from lightlint.engine.events.huggingface import ManagedBackward
from lightlint.engine.machine import Machine
from lightlint.models import tensors
from lightlint.models.ranks.groups import FIRST_NAMES, RANK_NAMES, only_first, rank_value, world_size
from lightlint.models.registry import FunctionModel, attributes, function, methods
from lightlint.models.training import modules
from lightlint.values.core import (
    GATHERED,
    NONE,
    TRUE,
    Bound,
    Constant,
    Device,
    Function,
    Library,
    Mapping,
    Method,
    Partial,
    Sequence,
    Unknown,
    Value,
    is_constant,
)
from lightlint.values.training import Instance, Loader, Module, Optimizer, Schedule, Tensor, tensors_in

PREPARED = "#prepared"
"""Under which name a schedule keeps the Accelerator that takes its steps."""
_COLLECTIVES = frozenset(
    [
        "barrier",
        "broadcast",
        "all_reduce",
        "all_gather",
        "wait_for_everyone",
        "gather",
        "gather_for_metrics",
        "reduce",
        "save_state",
        "save_model",
        "load_state",
        "get_state_dict",
        "pad_across_processes",
    ]
)
_CONTEXTS = frozenset(
    [
        "rank_zero_first",
        "no_backward_sync",
        "autocast",
        "init_module",
        "init_tensor",
        "accumulate",
        "main_process_first",
        "local_main_process_first",
        "no_sync",
        "profile",
        "split_between_processes",
    ]
)


@attributes("fabric", "accelerator")
def attribute(machine: Machine, value: Value, name: str, node: ast.AST) -> Value | None:
    """An attribute of a Fabric or an Accelerator; None for a method."""
    if name in RANK_NAMES or name in FIRST_NAMES:
        return rank_value(machine, name)
    if name == "device":
        return Device("cuda")
    if name in ("world_size", "num_processes"):
        return world_size()
    if name == "gradient_accumulation_steps":
        assert isinstance(value, Instance)
        return value.arguments.get(name) or Unknown(("of", value.key, name), hint=name, plain=True)
    if name == "mixed_precision":
        assert isinstance(value, Instance)
        told = value.arguments.get(name)
        settled = told is not None and not is_constant(told, None)
        return told if settled else Unknown(("of", value.key, name), hint=name, plain=True)
    if name == "sync_gradients":
        turns = tuple(loop.turn for loop in machine.loops)
        return Unknown(("sync gradients", turns), frozenset({"periodic"}), plain=True)
    if name in ("state", "logger", "loggers", "strategy", "trackers", "distributed_type"):
        return Unknown(("of", value.key, name), hint=name)
    return None


@methods("fabric", "accelerator")
def call_method(machine: Machine, value: Value, name: str, given: Arguments, node: ast.AST) -> Value:
    """A method of a Fabric or an Accelerator."""
    assert isinstance(value, Instance)
    if name in (
        "setup",
        "setup_module",
        "setup_optimizers",
        "setup_dataloaders",
        "prepare",
        "prepare_model",
        "prepare_data_loader",
        "prepare_optimizer",
        "prepare_scheduler",
    ):
        done = [_set_up(machine, value, each, node) for each in given.positional]
        return done[0] if len(done) == 1 else Sequence(done, "tuple")
    if name == "backward":
        if value.kind == "accelerator":
            machine.emit(ManagedBackward(machine.where(node), value, given.get(0, "loss") or NONE))
        tensors.backward(
            machine, given.get(0, "loss") or NONE, node, value.kind, keep=tensors.keeps_graph(given.behind(1))
        )
        return NONE
    if name in _COLLECTIVES:
        alone = value.kind == "accelerator" and name in _OF_ENGINES and not _has_engine(value)
        machine.emit(Collective(machine.where(node), f"{value.kind}.{name}", given.values(), alone))
        first = given.positional[0] if given.positional else NONE
        if name == "gather":
            return _gathered(machine, first, node)
        if name == "get_state_dict":
            return Mapping(more=True)
        return tensors.derive(machine, node, first) if isinstance(first, Tensor) else first
    if name in ("clip_grad_norm_", "clip_grad_value_", "clip_gradients"):
        clipped = given.positional[0] if given.positional else None
        held = clipped.parameters() if isinstance(clipped, Module) else tensors_in(clipped)
        machine.emit(Clipped(machine.where(node), held, not held))
        return Unknown()
    if name in ("unwrap_model", "to_device"):
        first = given.positional[-1] if given.positional else NONE
        if name == "unwrap_model":
            return first.wraps if isinstance(first, Module) and isinstance(first.wraps, Module) else first
        for tensor in tensors_in(first):
            tensor.device = "cuda"
        return first
    if name in _ON_SOME:
        return _on_some(value, name, given)
    if name in _CONTEXTS:
        made = machine.instance(Library(f"{value.kind}.{name}"), "context", node)
        if (
            name in ("no_sync", "no_backward_sync")
            and given.positional
            and is_constant(given.get(1, "enabled") or TRUE, True)
        ):
            made.attributes["of"] = given.positional[0]
        return made
    state = given.get(1, "state") if name == "load" else None
    if isinstance(state, Mapping):
        _restore(machine, state, node)
        return Unknown()
    if name == "launch":
        machine.distributed = True
        machine.emit(GroupStarted(machine.where(node), "launch"))
        target = given.positional[0] if given.positional else None
        if isinstance(target, (Function, Bound)):
            return call(machine, target, given.behind(1).with_first(value), node)
        return NONE
    return (
        NONE
        if name in ("print", "seed_everything", "log", "log_dict", "init_trackers", "end_training", "save", "call")
        else Unknown()
    )


_ON_SOME = ("on_main_process", "on_local_main_process", "on_last_process", "on_process", "on_local_process")
"""Decorators that let a function run in some of the processes, and do nothing in the others."""


def _on_some(value: Instance, name: str, given: Arguments) -> Value:
    held = given.get(0, "function")
    if held is None or is_constant(held, None):
        return Partial(Method(value, name), [], given.keywords, {})
    return only_first(held)


def _restore(machine: Machine, state: Mapping, node: ast.AST) -> None:
    """What was saved comes in the place of numbers and texts, and into the objects that have a state."""
    machine.emit(Restored(machine.where(node), state, dict(state.items)))
    for key, value in state.items.items():
        if isinstance(value, Constant):
            state.items[key] = Unknown(("restored", machine.clock, key), plain=True)


_OF_ENGINES = ("save_state", "save_model", "load_state", "get_state_dict")
"""What all processes do together where an engine shards what is saved, and each for itself elsewhere."""


def _has_engine(accelerator: Instance) -> bool:
    names = ("deepspeed_plugin", "fsdp_plugin", "deepspeed_plugins", "megatron_lm_plugin")
    given = [accelerator.arguments[name] for name in names if name in accelerator.arguments]
    return any(not is_constant(each, None) for each in given)


_OF_UTILS = ("gather", "gather_object", "reduce", "broadcast", "broadcast_object_list", "wait_for_everyone")


def _of_utils(name: str) -> FunctionModel:
    def run(machine: Machine, given: Arguments, node: ast.AST) -> Value:
        machine.emit(Collective(machine.where(node), f"accelerate.utils.{name}", given.values()))
        first = given.get(0, "tensor") or NONE
        return _gathered(machine, first, node) if name == "gather" else Unknown(hint=name)

    return run


for _name in _OF_UTILS:
    for _room in ("", "operations.", "other."):
        function(f"accelerate.utils.{_room}{_name}")(_of_utils(_name))


def _gathered(machine: Machine, value: Value, node: ast.AST) -> Value:
    """What all processes have, with what fills their last batches."""
    if isinstance(value, Sequence):
        return Sequence([_gathered(machine, each, node) for each in value.items], value.kind, more=value.more)
    if not isinstance(value, Tensor):
        return value
    made = tensors.derive(machine, node, value, graph=False, how="gather")
    made.traits |= GATHERED
    return made


def _set_up(machine: Machine, by: Instance, value: Value, node: ast.AST) -> Value:
    """What is set up: modules are moved and wrapped, loaders bring their batches to the device."""
    if isinstance(value, Module):
        modules.move(value, "cuda")
        wrapper = machine.new(Module, Library(f"{by.kind}.Module"), node)
        wrapper.wraps, wrapper.wrapper, wrapper.device = (
            value,
            "fabric" if by.kind == "fabric" else "accelerate",
            "cuda",
        )
        wrapper.managed_by, wrapper.training = by, value.training
        for each in value.modules():
            each.managed_by = by
        for parameter in value.parameters():
            parameter.managed_by = by
        return wrapper
    if isinstance(value, Loader):
        return value.prepared(by)
    if isinstance(value, Optimizer):
        value.arguments["#managed"] = by
    if isinstance(value, Schedule):
        value.attributes[PREPARED] = by
    return value
