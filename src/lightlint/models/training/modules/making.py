"""How a module comes to be, and what moves it and sets its mode."""

from __future__ import annotations

import ast

from lightlint.engine.arguments import Arguments
from lightlint.engine.calls import call
from lightlint.engine.containers import listed
from lightlint.engine.events import (
    Collective,
    GroupStarted,
    ModeSet,
)
from lightlint.engine.machine import Machine
from lightlint.models import tensors
from lightlint.models.names.kinds import AFFINE, BY_MODE, WITHOUT_PARAMETERS, wrapper_of
from lightlint.models.names.tables import LOSSES
from lightlint.models.ranks import sharding
from lightlint.models.tensors.losses import reduction_of
from lightlint.values.core import (
    FALSE,
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
)
from lightlint.values.training import Module, Tensor


def parameter(machine: Machine, owner: Module | None, node: ast.AST | None) -> Tensor:
    """A new parameter."""
    made = machine.tensor(node)
    made.parameter, made.requires_grad, made.owner = True, True, owner
    made.device = owner.device if owner is not None else "cpu"
    made.parameters = frozenset([made])
    made.serial = machine.serial(made.site)
    return made


def opaque(machine: Machine, node: ast.AST | None, path: str = "?") -> Module:
    """A module whose layers are out of sight: one parameter stands for all of its own."""
    made = machine.new(Module, Library(path), node)
    leave_open(machine, made, node)
    return made


def leave_open(machine: Machine, module: Module, node: ast.AST | None) -> None:
    """Let a module have layers out of sight."""
    module.opaque = module.initialised = True
    module.own = [*module.own, parameter(machine, module, node)]


def by_mode(module: Module) -> bool:
    """Whether it computes something else in eval mode, or may."""
    return any(acts_by_mode(each) is not False for each in module.modules())


def acts_by_mode(layer: Module) -> bool | None:
    """Whether a layer by itself, without its parts, computes something else in eval mode; None where that is not known."""
    if not isinstance(layer.cls, Library) or not BY_MODE.search(layer.name):
        return None if layer.opaque else False
    if "Norm" in layer.name:
        return _keeps_statistics(layer)
    if "Dropout" in layer.name:
        return _drops(layer, "p", 0, by_default=True)
    if layer.cls.path.startswith("torch.nn.") and (place := _RECURRENT.get(layer.name)) is not None:
        dropout = _drops(layer, "dropout", place, by_default=False)
        return False if dropout is False or _is_one(layer) else None
    return None


_RECURRENT = {"LSTM": 5, "GRU": 5, "RNN": 6, "LSTMCell": 9, "GRUCell": 9, "RNNCell": 9}
"""Where the dropout between the layers of recurrent ones stands among their arguments; a cell takes none."""


def _drops(layer: Module, name: str, place: int, *, by_default: bool) -> bool | None:
    rate = layer.argument(name, place)
    if rate is None:
        return None if layer.open_arguments else by_default
    return not is_constant(rate, 0, 0.0) if isinstance(rate, Constant) else None


def _is_one(layer: Module) -> bool:
    """Whether a recurrent layer is one alone: it drops what goes from layer to layer."""
    count = layer.argument("num_layers", 2)
    return is_constant(count, 1) if count is not None else not layer.open_arguments


def _keeps_statistics(layer: Module) -> bool | None:
    """Whether a layer normalises by what it saw before in eval mode: instance norm does where it is told to."""
    kept = layer.argument("track_running_stats", 4)
    if kept is None:
        return None if layer.open_arguments else "InstanceNorm" not in layer.name
    return is_constant(kept, True) if isinstance(kept, Constant) else None


def set_up(machine: Machine, module: Module, last: str, given: Arguments, node: ast.AST) -> None:
    """What the `__init__` of a library's module class does."""
    if last == "Sequential":
        _fill_sequential(module, given)
    elif last in ("ModuleList", "ParameterList"):
        _fill_list(machine, module, given, node)
    elif last in ("ModuleDict", "ParameterDict"):
        content = given.get(0, "modules")
        module.items = dict(content.items) if isinstance(content, Mapping) else {}
        module.more_items = content is not None and (not isinstance(content, Mapping) or content.more)
    elif wrapper_of(last):
        wrap(machine, module, given.get(0, "module"), wrapper_of(last), node)
    elif isinstance(module.cls, Library) and last not in LOSSES and _has_parameters(last, given):
        if "device" in given.keywords:
            module.device = tensors.device_of(given.keywords["device"])
        module.own = [parameter(machine, module, node)]
    if last in LOSSES:
        for name in ("weight", "pos_weight"):
            weight = given.get(0 if name == "weight" and last != "BCEWithLogitsLoss" else -1, name)
            if isinstance(weight, Tensor):
                module.buffers[name] = tensors.copy(machine, weight, node)
                module.buffers[name].buffer = True
        module.reduction = reduction_of(given)


def _has_parameters(last: str, given: Arguments) -> bool:
    """Whether a layer of torch made so may have parameters of its own."""
    if last in AFFINE:
        name, place, default = AFFINE[last]
        told = given.get(place, name)
        return default if told is None and given.exact else not is_constant(told, False)
    return last not in WITHOUT_PARAMETERS


def _fill_sequential(module: Module, given: Arguments) -> None:
    first = given.positional[0] if len(given.positional) == 1 else None
    if isinstance(first, Mapping):
        module.items = [*first.items.values()]
        module.attributes.update({key: value for key, value in first.items.items() if isinstance(key, str)})
        module.more_items = first.more
    elif isinstance(first, Sequence):
        module.items, module.more_items = list(first.items), first.more
    else:
        module.items = list(given.positional)
    if given.star is not None:
        module.items = [*module.items, *(given.star.items if isinstance(given.star, Sequence) else [])]
        module.more_items = True


def _fill_list(machine: Machine, module: Module, given: Arguments, node: ast.AST) -> None:
    content = given.get(0, "modules")
    if content is None:
        module.items, module.more_items = [], not given.exact
        return
    items, known = listed(machine, content, node)
    module.items, module.more_items = items, not known


def wrap(machine: Machine, wrapper: Module, inner: Value | None, kind: str, node: ast.AST) -> None:
    """Put a module into a wrapper."""
    if isinstance(inner, Unknown):  # whatever is wrapped is a module
        inner = machine.models.told(machine, inner, "parameters", node) or inner
    wrapper.wraps, wrapper.wrapper = inner, kind
    wrapper.device = inner.device if isinstance(inner, Module) else None
    if kind == "fsdp":
        machine.distributed = True
        if isinstance(inner, Module) and is_constant(wrapper.arguments.get("use_orig_params", FALSE), False):
            sharding.shard(machine, inner, "FSDP", node)
    if kind == "ddp":
        machine.distributed = True
        wrapper.process = machine.process
        machine.emit(GroupStarted(machine.where(node), "DistributedDataParallel"))
        machine.emit(Collective(machine.where(node), "DistributedDataParallel", [], machine.group_ended))
        if isinstance(inner, Module):
            for each in inner.modules():
                each.within_ddp = wrapper
            wrapper.reduced = frozenset(each for each in inner.parameters() if each.requires_grad)


def move(module: Module, device: str | None) -> None:
    """Move a module with its parameters and buffers."""
    for each in module.modules():
        each.device = device
        for buffer in each.buffers.values():
            buffer.device = device
    for each_parameter in module.parameters():
        each_parameter.device = device


def set_mode(machine: Machine, module: Module, training: bool, node: ast.AST) -> None:
    """`train(mode)`: of all below, through their own `train` where they have one."""
    for each in module.modules():
        each.training = training
        own = each.cls.find("train") if each is not module and isinstance(each.cls, Class) else None
        if isinstance(own, Function) and not machine.entered[id(own.node)]:
            call(machine, Bound(each, own), Arguments([Constant(training)]), node)
    machine.emit(ModeSet(machine.where(node), module, training))
