"""What every module has"""

from __future__ import annotations

import ast
from collections.abc import Hashable
from typing import cast

from lightlint.engine.arguments import Arguments
from lightlint.engine.calls import call
from lightlint.engine.containers import listed
from lightlint.engine.events import (
    Cleared,
    GradientsSwitched,
    Halved,
    ParametersChanged,
    ShardsGathered,
    StateLoaded,
    StateTaken,
)
from lightlint.engine.machine import Machine
from lightlint.models import tensors
from lightlint.models.names.classes import class_of
from lightlint.models.ranks import sharding
from lightlint.models.registry import OF_PRETRAINED, methods
from lightlint.models.training.modules.calling import call_module, layer
from lightlint.models.training.modules.making import move, set_mode
from lightlint.models.training.modules.states import load_result
from lightlint.values.core import (
    NONE,
    Constant,
    Library,
    Mapping,
    Sequence,
    Unknown,
    Value,
    is_constant,
    number_of,
    text_of,
)
from lightlint.values.training import Instance, Module, Tensor


def _as_text(device: Value) -> Value:
    return Constant(device.value) if isinstance(device, Constant) else Unknown(device.key, plain=True)


def attribute(machine: Machine, module: Module, name: str, node: ast.AST) -> Value | None:
    """What a library's class gives a module; None for what only its methods give."""
    if name == "training":
        return Constant(module.training)
    if isinstance(module.items, dict) and name in module.items:
        return module.items[name]
    if name == "module" and module.wraps is not None:
        return module.wraps
    if name in ("weight", "bias", "in_proj_weight") and module.own:
        return module.own[0]
    if name in module.buffers:
        return module.buffers[name]
    if name == "device":
        known = tensors.device_value(module.device)
        in_sight = isinstance(module.cls, Library) or module.cls.sees_all()
        return known if in_sight else _as_text(known)  # a base out of sight may keep a text under that name
    if name == "_modules":
        held = Mapping(more=True)
        held.items = cast("dict[Hashable, Value]", module.attributes)  # what is put into it is registered
        return held
    if name in (
        "out_features",
        "in_features",
        "embedding_dim",
        "num_features",
        "hidden_size",
        "out_channels",
        "in_channels",
    ):
        return Unknown(("dimension", module.number, name), plain=True)
    if name == "config":
        return Unknown(("config", module.number), hint="config")
    if name == "p" and "Dropout" in module.name and not module.open_arguments:
        return module.argument("p", 0) or Constant(0.5)
    return None


def part_of(machine: Machine, module: Module, name: str, node: ast.AST) -> Module:
    """An attribute of a module out of sight: a module that shares its one parameter."""
    made = machine.new(Module, Library(f"{module.cls.path if isinstance(module.cls, Library) else '?'}.{name}"), node)
    made.opaque, made.device, made.training, made.own = True, module.device, module.training, list(module.own)
    made.within_ddp, made.escaped, made.assumed = module.within_ddp, module.escaped, module.assumed
    made.whole = module
    module.attributes[name] = made
    return made


@methods("module")
def call_method(machine: Machine, module: Value, name: str, given: Arguments, node: ast.AST) -> Value:
    """A method that `nn.Module` and its library classes have."""
    assert isinstance(module, Module)
    special = (
        OF_PRETRAINED[name](machine, module, name, given, node) if module.opaque and name in OF_PRETRAINED else None
    )
    if special is not None:
        return special
    simple = _METHODS.get(name)
    if simple is not None:
        return simple(machine, module, name, given, node)
    if name in ("append", "extend", "insert") and isinstance(module.items, list):
        items = given.positional[-1:] if name != "extend" else listed(machine, given.positional[0], node)[0]
        module.items += items
        return module
    if isinstance(module.items, dict) and name in ("items", "values", "keys", "update", "pop"):
        return _dict_method(module, name, given)
    if name in ("double", "float", "bfloat16", "share_memory", "compile", "type", "to_empty", "xpu", "ipu"):
        return module
    if name == "_get_name" and class_of(module) is not None:
        return Constant(module.name)
    if name == "size":  # what its name alone says is a model is a tensor then
        return Unknown((name, module.key, number_of(given.get(0, "dim"))), plain=True)
    if module.opaque and not name.startswith(
        ("get_", "set_", "resize", "gradient_checkpoint", "enable_", "print_", "num_", "save", "push")
    ):
        return layer(machine, module, given, node)
    return Unknown()


def _parameters(machine: Machine, module: Module, name: str, _: Arguments, node: ast.AST) -> Value:
    if name == "buffers":
        return Sequence([buffer for each in module.modules() for buffer in each.buffers.values()], "generator")
    found = module.parameters()  # a module without any gets its layers where nobody looks
    return Sequence(found, "parameters", more=not (found and module.sees_all()), site=machine.site(node))


def _named_parameters(machine: Machine, module: Module, _: str, __: Arguments, node: ast.AST) -> Value:
    whole = module.sees_all()
    names = module.parameter_names() if whole and not _is_renamed(module) else {}
    rows = [
        Sequence([_name(parameter, names.get(id(parameter), ())), parameter], "tuple")
        for parameter in module.parameters()
    ]
    return Sequence(rows, "generator", more=not (rows and whole), site=machine.site(node))


def _name(parameter: Tensor, names: tuple[str, ...]) -> Value:
    """The name of a parameter: one of several where it stands for those of a layer."""
    if len(names) == 1:
        return Constant(names[0])
    name = Unknown(("parameter name", parameter.made), plain=True)
    name.among = tuple(map(Constant, names))
    return name


def _is_renamed(module: Module) -> bool:
    """Whether a wrapper gives parameters names of its own."""
    return any(each.wraps is not None and each.wrapper not in ("ddp", "data-parallel") for each in module.modules())


def _modules(_: Machine, module: Module, name: str, __: Arguments, ___: ast.AST) -> Value:
    found: list[Instance] = [*(module.children() if "children" in name else module.modules())]
    found += [each for each in module.attributes.values() if isinstance(each, Instance) and each.kind == "metric"]
    if name.startswith("named"):
        rows: list[Value] = [
            Sequence([Unknown(("module name", each.number), plain=True), each], "tuple") for each in found
        ]
        return Sequence(rows, "generator", more=not module.sees_all())
    return Sequence(found, "generator", more=not module.sees_all())


def _to(machine: Machine, module: Module, name: str, given: Arguments, node: ast.AST) -> Value:
    target = given.get(0, "device")
    if name == "to":
        dtype = next((text_of(each) for each in given.values() if (text_of(each) or "").startswith("torch.")), None)
        if dtype == "torch.float16":
            machine.emit(Halved(machine.where(node), module, module.parameters()))
        if target is None or (text_of(target) or "").startswith("torch."):
            return module
    device = (
        name if name in ("cuda", "cpu") else target.device if isinstance(target, Tensor) else tensors.device_of(target)
    )
    move(module, device)
    return module


def _half(machine: Machine, module: Module, _: str, __: Arguments, node: ast.AST) -> Value:
    machine.emit(Halved(machine.where(node), module, module.parameters()))
    return module


def _mode(machine: Machine, module: Module, name: str, given: Arguments, node: ast.AST) -> Value:
    training = name == "train"
    value = given.get(0, "mode") if training else None
    if value is not None:
        training = machine.decide(value, node)
    set_mode(machine, module, training, node)
    return module


def _zero_grad(machine: Machine, module: Module, _: str, __: Arguments, node: ast.AST) -> Value:
    machine.emit(Cleared(machine.where(node), module.parameters(), module))
    return NONE


def _require(machine: Machine, module: Module, name: str, given: Arguments, node: ast.AST) -> Value:
    wanted = name != "freeze" and not is_constant(given.get(0, "requires_grad"), False)
    if name != "requires_grad_":
        set_mode(machine, module, name == "unfreeze", node)
    for each in module.parameters():
        each.requires_grad = wanted
    machine.emit(GradientsSwitched(machine.where(node), module.parameters(), wanted, module))
    return module


def _state_dict(machine: Machine, module: Module, _: str, __: Arguments, node: ast.AST) -> Value:
    state = Mapping(more=True, source=module)
    if sharding.is_whole(module):
        machine.emit(ShardsGathered(machine.where(node), "state_dict"))
    where = machine.where(node)
    state.made, state.depth = where.time, len(machine.loops)
    machine.emit(StateTaken(where, module, state))
    return state


def _load_state_dict(machine: Machine, module: Module, _: str, given: Arguments, node: ast.AST) -> Value:
    loaded = machine.emit(StateLoaded(machine.where(node), module, given.get(0, "state_dict") or NONE))
    for each in module.parameters():
        each.uninitialised = False
    return load_result(machine, loaded, node)


def _register(machine: Machine, module: Module, name: str, given: Arguments, _: ast.AST) -> Value:
    key = text_of(given.get(0, "name"))
    value = given.get(1, "tensor") or given.get(1, "module") or given.get(1, "param") or Unknown()
    if key is None:
        key = f"?{len(module.attributes)}"
    module.attributes[key] = value
    if name in ("add_module", "register_module") and isinstance(module.items, list):
        module.items.append(value)
    if name == "register_buffer" and isinstance(value, Tensor):
        value.buffer = True
        module.buffers[key] = value
    return NONE


def _apply(machine: Machine, module: Module, _: str, given: Arguments, node: ast.AST) -> Value:
    function = given.get(0, "fn")
    for each in module.modules()[:6] if function is not None else []:
        call(machine, cast(Value, function), Arguments([each]), node)
    return module


def _call(machine: Machine, module: Module, _: str, given: Arguments, node: ast.AST) -> Value:
    return call_module(machine, module, given, node)


def _generate(machine: Machine, _: Module, __: str, given: Arguments, node: ast.AST) -> Value:
    return tensors.derive(machine, node, *given.values(), graph=False)


def _context(machine: Machine, module: Module, name: str, __: Arguments, node: ast.AST) -> Value:
    made = machine.instance(Library("?." + name), "context", node)
    made.attributes["of"] = module
    return made


def _nothing(_: Machine, __: Module, ___: str, ____: Arguments, _____: ast.AST) -> Value:
    return Unknown()


def _dict_method(module: Module, name: str, given: Arguments) -> Value:
    items = cast("dict[object, Value]", module.items)
    if name == "update":
        change = given.get(0, "modules")
        if isinstance(change, Mapping):
            items.update(change.items)
        module.more_items |= not isinstance(change, Mapping) or change.more
        return NONE
    if name == "pop":
        key = given.get(0, "key")
        return items.pop(key.value, Unknown()) if isinstance(key, Constant) else Unknown()
    if name == "items":
        rows = [Sequence([Constant(key), value], "tuple") for key, value in items.items()]
        return Sequence(rows, more=module.more_items)
    shown = [*items.values()] if name == "values" else [Constant(key) for key in items]
    return Sequence(shown, more=module.more_items)


def _average(machine: Machine, module: Module, name: str, _: Arguments, node: ast.AST) -> Value:
    """`update_parameters` of torch's average."""
    if module.wrapper == "averaged":
        machine.emit(ParametersChanged(machine.where(node), module.parameters(), name))
    return NONE if module.wrapper == "averaged" else Unknown()


_METHODS = {
    "update_parameters": _average,
    "parameters": _parameters,
    "buffers": _parameters,
    "named_parameters": _named_parameters,
    "children": _modules,
    "modules": _modules,
    "named_children": _modules,
    "named_modules": _modules,
    "to": _to,
    "cuda": _to,
    "cpu": _to,
    "half": _half,
    "train": _mode,
    "eval": _mode,
    "zero_grad": _zero_grad,
    "requires_grad_": _require,
    "freeze": _require,
    "unfreeze": _require,
    "state_dict": _state_dict,
    "load_state_dict": _load_state_dict,
    "register_buffer": _register,
    "register_parameter": _register,
    "add_module": _register,
    "register_module": _register,
    "apply": _apply,
    "forward": _call,
    "__call__": _call,
    "generate": _generate,
    "no_sync": _context,
    "register_forward_hook": _nothing,
    "register_forward_pre_hook": _nothing,
    "register_full_backward_hook": _nothing,
    "register_load_state_dict_post_hook": _nothing,
}
