"""Fully sharded models: FSDP and `fully_shard`."""

from __future__ import annotations

import ast

from lightlint.engine.arguments import Arguments
from lightlint.engine.events import Sharded, ShardsGathered
from lightlint.engine.machine import Machine
from lightlint.models.registry import function
from lightlint.values.core import FALSE, Library, Mapping, Unknown, Value, is_constant
from lightlint.values.training import Instance, Module


def shard(machine: Machine, module: Module, how: str, node: ast.AST) -> None:
    """Put shards in the place of a module's parameters."""
    for each in module.modules():
        each.sharded = how
    machine.emit(Sharded(machine.where(node), module, module.parameters(), how))


@function(
    "torch.distributed.fsdp.fully_shard",
    "torch.distributed._composable.fsdp.fully_shard",
    "torch.distributed._composable.fully_shard",
)
def _fully_shard(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    module = given.get(0, "module")
    machine.distributed = True
    if isinstance(module, Module):
        shard(machine, module, "fully_shard", node)
    return module or Unknown()


_FSDP = "torch.distributed.fsdp.FullyShardedDataParallel"
_STATE = "torch.distributed.checkpoint.state_dict"


@function(f"{_FSDP}.set_state_dict_type", f"{_FSDP}.state_dict_type")
def _state_type(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    module, kind = given.get(0, "module"), given.get(1, "state_dict_type")
    if isinstance(module, Module) and kind is not None:
        module.arguments["#state"] = kind
    return machine.instance(Library("?.state_dict_type"), "context", node)


@function(f"{_FSDP}.summon_full_params", f"{_FSDP}.full_optim_state_dict", f"{_FSDP}.optim_state_dict")
def _gather(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    module = given.get(0, "module") or given.get(0, "model")
    if isinstance(module, Module) and is_whole(module):
        machine.emit(ShardsGathered(machine.where(node), f"FSDP.{_called(node)}"))
    return machine.instance(Library("?.gathered"), "context", node)


@function(f"{_STATE}.StateDictOptions")
def _options(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    made = machine.instance(Library(f"{_STATE}.StateDictOptions"), "options", node)
    made.arguments = {"full_state_dict": given.get(0, "full_state_dict") or FALSE}
    return made


@function(f"{_STATE}.get_model_state_dict", f"{_STATE}.get_optimizer_state_dict", f"{_STATE}.get_state_dict")
def _get_state(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    module, options = given.get(0, "model"), given.keywords.get("options")
    whole = isinstance(options, Instance) and is_constant(options.arguments.get("full_state_dict"), True)
    if isinstance(module, Module) and (module.sharded or module.wrapper == "fsdp") and whole:
        machine.emit(ShardsGathered(machine.where(node), _called(node)))
    return Mapping(more=True)


def is_whole(wrapper: Module) -> bool:
    """Whether FSDP surely holds shards, and gives the whole of them as its state."""
    kind = wrapper.arguments.get("#state")
    whole = kind is None or (isinstance(kind, Library) and kind.last[0] == "F")
    return wrapper.wrapper == "fsdp" and whole and shards(wrapper)


def shards(wrapper: Module) -> bool:
    """Whether FSDP surely holds shards."""
    strategy = wrapper.arguments.get("sharding_strategy")
    return strategy is None or (isinstance(strategy, Library) and strategy.last != "NO_SHARD")


def _called(node: ast.AST) -> str:
    """The last word of what is called."""
    func = node.func if isinstance(node, ast.Call) else None
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else "this"
