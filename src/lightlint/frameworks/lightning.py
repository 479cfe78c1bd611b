"""What Lightning gives a LightningModule: attributes, methods and batches."""

from __future__ import annotations

import ast

from lightlint.engine.arguments import Arguments
from lightlint.engine.events import Clipped, Collective, HyperparametersSaved, Logged, MetricUsed, Misused, Unattached
from lightlint.engine.execution import annotation_of
from lightlint.engine.machine import Machine
from lightlint.engine.misuse import is_caught
from lightlint.models import objects, tensors
from lightlint.models.data import loaders
from lightlint.models.ranks.groups import RANK_NAMES, rank_value
from lightlint.models.registry import LIGHTNING, attributes, methods
from lightlint.models.training import modules, optim
from lightlint.values.core import (
    NONE,
    Class,
    Constant,
    Function,
    Library,
    Mapping,
    NotYet,
    Sequence,
    Unknown,
    Value,
    is_constant,
    written,
)
from lightlint.values.training import Instance, Loader, Module, Optimizer, tensors_in

_HOOKS = frozenset(
    [
        "setup",
        "teardown",
        "configure_optimizers",
        "training_step",
        "validation_step",
        "test_step",
        "predict_step",
        "configure_callbacks",
        "lr_scheduler_step",
        "configure_model",
        "configure_sharded_model",
        "prepare_data",
        "train_dataloader",
        "val_dataloader",
        "test_dataloader",
        "predict_dataloader",
        "training_step_end",
        "validation_step_end",
        "test_step_end",
        "training_epoch_end",
        "validation_epoch_end",
    ]
)


def counter(machine: Machine, name: str) -> Unknown:
    """A number of Lightning's that goes up with the turns of its loops."""
    counted = [loop for loop in machine.loops if name != "current_epoch" or loop.kind == "epoch"]
    turns = tuple(loop.turn for loop in counted)
    return Unknown(("counter", name, turns), frozenset({"index", "count"}), plain=True)


@attributes(LIGHTNING)
def module_attribute(machine: Machine, module: Value, name: str, node: ast.AST) -> Value | None:
    """An attribute that LightningModule gives."""
    assert isinstance(module, Module)
    if name in ("trainer", "_trainer", "logger") and is_being_made(machine, module) and module.trainer is None:
        return not_attached(machine, module, name, node)
    if name == "trainer":
        if module.trainer is None:
            module.trainer = machine.instance(Library("lightning.Trainer"), "trainer", node)
            module.trainer.open_arguments = True
        return module.trainer
    if name == "hparams":
        found = objects.namespace(machine, node, {})
        module.attributes["hparams"] = found
        return found
    if name in ("current_epoch", "global_step"):
        return counter(machine, name)
    if name in RANK_NAMES:
        return rank_value(machine, name)
    if name == "automatic_optimization":
        return Constant(True)
    if name in ("logger", "loggers", "fabric", "dtype", "example_input_array", "strict_loading"):
        return Unknown(("of module", module.number, name), hint=name)
    return None


def is_being_made(machine: Machine, holder: Instance) -> bool:
    """Whether the `__init__` of an object is running."""
    owners = holder.cls.lineage() if isinstance(holder.cls, Class) and holder.cls.sees_all() else []
    return any(each.function.name == "__init__" and each.function.owner in owners for each in machine.calls)


def not_attached(machine: Machine, holder: Instance, name: str, node: ast.AST) -> Value:
    """What `__init__` gets that asks for what a Trainer brings."""
    if not is_caught(machine, "RuntimeError", "AttributeError"):
        machine.emit(Unattached(machine.where(node), holder, name))
    return NotYet(name, holder)


@methods(LIGHTNING)
def module_method(machine: Machine, module: Value, name: str, given: Arguments, node: ast.AST) -> Value:
    """A method of a LightningModule."""
    assert isinstance(module, Module)
    found = _own_method(machine, module, name, given, node)
    return found if found is not None else modules.call_method(machine, module, name, given, node)


def _own_method(machine: Machine, module: Module, name: str, given: Arguments, node: ast.AST) -> Value | None:
    """A method that LightningModule gives; None for one that it does not."""
    if name in ("log", "log_dict"):
        return _log(machine, module, name, given, node)
    if name == "save_hyperparameters":
        return save_hyperparameters(machine, module, given, node)
    if name == "optimizers":
        held = module.optimizers
        if held is None:
            return Unknown(hint="optimizers")
        if not is_constant(given.get(0, "use_pl_optimizer"), False):
            held = [_counted(machine, each, node) if isinstance(each, Optimizer) else each for each in held]
        return _one_or_all(module, held, name)
    if name == "lr_schedulers":
        return _one_or_all(module, module.schedules, name)
    if name == "manual_backward":
        tensors.backward(machine, given.get(0, "loss") or NONE, node, name, keep=tensors.keeps_graph(given.behind(1)))
        return NONE
    if name == "all_gather":
        machine.emit(Collective(machine.where(node), "self.all_gather", given.values()))
        flows = not is_constant(given.get(2, "sync_grads") or Constant(False), False)
        return tensors.derive(machine, node, *given.values(), graph=flows, how="" if flows else "all_gather")
    if name in ("clip_gradients", "configure_gradient_clipping"):
        optimizer = given.get(0, "optimizer")
        held_parameters = optimizer.parameters if isinstance(optimizer, Optimizer) else []
        machine.emit(Clipped(machine.where(node), held_parameters, not held_parameters))
        return NONE
    if name == "optimizer_step":
        for value in given.values():
            if isinstance(value, Instance) and value.kind == "closure":
                optimizer = next((each for each in given.values() if isinstance(each, Optimizer)), None)
                if optimizer is not None:
                    optim.step(machine, optimizer, value, node, "lightning")
                else:
                    objects.call_object(machine, value, Arguments(), node)
        return NONE
    if name == "optimizer_zero_grad":
        for value in given.values():
            if isinstance(value, Optimizer):
                optim.optimizer_method(machine, value, "zero_grad", Arguments(), node)
        return NONE
    if name.endswith("_dataloader") and machine.hooks[-1] == "configure_optimizers" and not is_caught(machine):
        machine.emit(Misused(machine.where(node), module, name))
    if name in ("toggle_optimizer", "untoggle_optimizer", "print") or name in _HOOKS or name.startswith("on_"):
        return NONE
    return None


def _one_or_all(module: Module, held: list[Value], giver: str) -> Value:
    """The one optimizer or schedule, a list of several, None for none."""
    if not held:
        return NotYet(giver, module) if module.configured else NONE
    found = held[0] if len(held) == 1 else Sequence(held)
    if module.configured:
        found.giver = giver
    return found


def _counted(machine: Machine, optimizer: Optimizer, node: ast.AST) -> Optimizer:
    """What `self.optimizers()` gives for an optimizer: it is the same to the program, and Lightning counts its steps."""
    made = machine.new(Optimizer, optimizer.cls, node)
    made.parameters, made.groups, made.arguments = optimizer.parameters, optimizer.groups, optimizer.arguments
    made.more, made.assumed, made.escaped, made.wraps = optimizer.more, optimizer.assumed, optimizer.escaped, optimizer
    made.site, made.serial, made.number, made.key = optimizer.site, optimizer.serial, optimizer.number, optimizer.key
    return made


def _log(machine: Machine, module: Module, name: str, given: Arguments, node: ast.AST) -> Value:
    value = given.get(1, "value") if name == "log" else given.get(0, "dictionary")
    for each in value.items.values() if isinstance(value, Mapping) else [value]:
        if isinstance(each, Instance) and each.kind == "metric":
            machine.emit(MetricUsed(machine.where(node), each, "log"))
    rows: list[tuple[Value | None, Value | None]] = [(given.get(0, "name"), value)]
    if name == "log_dict":
        known = isinstance(value, Mapping) and not value.more
        rows = [] if known else [(None, None)]
        rows += [(Constant(key), each) for key, each in value.items.items()] if isinstance(value, Mapping) else []
    for key, each in rows:
        event = Logged(machine.where(node), module, key, each, dict(given.keywords), name, not given.exact)
        machine.emit(event)
    if is_constant(given.keywords.get("sync_dist"), True):
        machine.emit(Collective(machine.where(node), "self.log(sync_dist=True)", []))
    return NONE


def save_hyperparameters(machine: Machine, holder: Instance, given: Arguments, node: ast.AST) -> Value:
    """The arguments of the `__init__` that runs, as names: a run may be given other numbers."""
    depths = [depth for depth, each in enumerate(machine.calls) if each.function.name == "__init__"]
    values: dict[str, Value] = {}
    promised: set[str] = set()
    if depths:
        function, names = machine.calls[depths[-1]].function, machine.scopes[depths[-1]].names
        parameters = function.node.args
        for each in (*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs)[1:]:
            values[each.arg] = names.get(each.arg, NONE)
            found = _promise(machine, values[each.arg], each, function)
            if found is not None:
                values[each.arg] = found
                promised.add(each.arg)
    keys: dict[str, Value] = {
        name: Unknown(("hyperparameter", holder.number, name), hint=name, default=_usual(each))
        for name, each in values.items()
    }
    saved = objects.namespace(machine, node, keys)
    holder.attributes["hparams"] = saved
    if isinstance(holder, Module):
        machine.emit(HyperparametersSaved(machine.where(node), holder, values, frozenset(promised), given, saved))
    return NONE


def _usual(value: Value) -> Constant | None:
    """What an argument is unless a run says otherwise, where somebody in sight leaves it so."""
    return written(value) if "assumed" not in value.traits else None


def _promise(machine: Machine, value: Value, parameter: ast.arg, function: Function) -> Value | None:
    """The object that an annotation promises of an argument that nobody in sight gives, or that is None unless it is given."""
    assumed = getattr(value, "assumed", False)
    if parameter.annotation is None or not (assumed or is_constant(value, None)):
        return None
    annotation = annotation_of(machine, parameter.annotation, function.scope)
    found = machine.models.annotated(machine, Unknown(), annotation, parameter.arg, parameter)
    return (value if assumed else found) if isinstance(found, Instance) else None


def batch_of(machine: Machine, sources: list[Value], device: str | None, node: ast.AST) -> Value:
    """The batch that a Trainer hands to a step: on the device it trains on."""
    loader = next((each for each in sources if isinstance(each, Loader)), None)
    if loader is not None:
        drawn = loaders.batch(machine, loader, node)
        for tensor in tensors_in(drawn):
            tensor.device = device
        return drawn
    made = machine.tensor(node)
    made.role, made.device, made.leaf = "batch", device, False
    return made
