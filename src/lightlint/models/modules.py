"""Modules: making, calling, moving and setting the mode of what `torch.nn` and the program build."""

from __future__ import annotations

import ast
from collections.abc import Hashable
from typing import cast

from lightlint.engine.arguments import Arguments
from lightlint.engine.calls import call
from lightlint.engine.containers import listed
from lightlint.engine.events import (
    Cleared,
    Collective,
    Forward,
    GradientsSwitched,
    GroupStarted,
    Halved,
    LoadResultUsed,
    ModeSet,
    Normalised,
    ShardsGathered,
    StateLoaded,
    StateTaken,
    Unwrapped,
)
from lightlint.engine.machine import Machine
from lightlint.models import forms, passes, sharding, tensors
from lightlint.models.kinds import AFFINE, BY_MODE, WITHOUT_PARAMETERS, wrapper_of
from lightlint.models.registry import attributes, methods
from lightlint.models.tables import ACTIVATIONS, BY_ROW, LOSSES
from lightlint.values.core import (
    FALSE,
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
from lightlint.values.training import Instance, Module, Tensor, tensors_in


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
    made.opaque = True
    made.own = [parameter(machine, made, node)]
    return made


def by_mode(module: Module) -> bool:
    """Whether it computes something else in eval mode, or may."""
    return any(
        each.opaque or (isinstance(each.cls, Library) and bool(BY_MODE.search(each.name))) for each in module.modules()
    )


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
        reduction = given.keywords.get("reduction")
        older = {"size_average", "reduce"} & given.keywords.keys()
        plain = reduction is None and given.double_star is None and not older
        module.reduction = text_of(reduction) or ("mean" if plain else None)


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


def call_module(machine: Machine, module: Module, given: Arguments, node: ast.AST) -> Value:
    """A forward pass."""
    last = module.name
    module.calls += 1
    if isinstance(module.cls, Library) and last in LOSSES:
        tensors.mix(machine, node, last, *module.buffers.values(), given.get(0, "input"))
        found = tensors.loss(machine, last, given, node, module.reduction or "unknown", module.site)
        found.guessed = module.assumed
        return found
    outermost = not machine.forwards
    synchronised = module.wrapper in ("ddp", "fabric", "accelerate", "fsdp")
    machine.forwards.append(module)
    machine.inside_ddp += synchronised
    try:
        result = _forward(machine, module, given, node)
    finally:
        machine.forwards.pop()
        machine.inside_ddp -= synchronised
    if isinstance(result, Tensor) and (module.opaque or module.assumed):
        result.guessed = True
    if last in BY_ROW and isinstance(result, Tensor):
        _go_by_row(machine, module, result, given.get(0, "input"), node)
    if outermost:
        graph = frozenset(each for tensor in tensors_in(result) for each in tensor.graph)
        trained = [each for each in module.parameters() if each.requires_grad]
        where = machine.where(node)
        held = next((each for each in machine.held_back if each.attributes.get("of") is module), None)
        grad, changes = machine.grad[-1], by_mode(module)
        training = module.unwrapped().training
        inputs = [tensor for value in given.values() for tensor in tensors_in(value)]
        machine.emit(Forward(where, module, result, grad, training, graph, trained, changes, held, inputs))
    return result


def _go_by_row(machine: Machine, module: Module, result: Tensor, given: Value | None, node: ast.AST) -> None:
    """What a layer that gives a row for each row does with those of a batch."""
    rows = given.rows_of if isinstance(given, Tensor) else None
    if rows is not None and isinstance(module.cls, Library):
        result.rows_of = rows
        if module.name == "BatchNorm1d" and module.training:
            machine.emit(Normalised(machine.where(node), module, rows))


def _forward(machine: Machine, module: Module, given: Arguments, node: ast.AST) -> Value:
    if isinstance(module.cls, Class):
        own = module.cls.find("forward")
        if isinstance(own, Function):
            return passes.forward(machine, module, own, given, node)
        if "torch.nn.Sequential" not in module.libraries():
            return layer(machine, module, given, node)
    return library_forward(machine, module, given, node)


def library_forward(machine: Machine, module: Module, given: Arguments, node: ast.AST) -> Value:
    """What the `forward` of a library's class does, also as a base of the program's."""
    last = module.name
    if module.wraps is not None:
        if isinstance(module.wraps, Module) and module.wraps.device == "cuda" and module.wrapper != "compiled":
            given = _moved(machine, given, node)  # DDP, DataParallel, Fabric and Accelerate move the inputs themselves
        return call(machine, module.wraps, given, node)
    if isinstance(module.items, list) and (last == "Sequential" or "torch.nn.Sequential" in module.libraries()):
        value: Value = given.positional[0] if given.positional else Unknown()
        for part in module.items:
            value = call(machine, part, Arguments([value]), node)
        return tensors.derive(machine, node, value) if module.more_items else value
    if last in ACTIVATIONS:
        return tensors.activated(machine, last, given.get(0, "input"), node)
    if last in ("Flatten", "Unflatten", "Identity", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d"):
        return tensors.derive(machine, node, given.get(0, "input"), keep=True)
    return layer(machine, module, given, node)


def _moved(machine: Machine, given: Arguments, node: ast.AST) -> Arguments:
    def moved(value: Value) -> Value:
        if isinstance(value, Tensor) and value.device == "cpu":
            made = tensors.derive(machine, node, value, keep=True)
            made.device = "cuda"
            return made
        if isinstance(value, Sequence):
            return Sequence([moved(each) for each in value.items], value.kind, more=value.more)
        return value

    keywords = {key: moved(value) for key, value in given.keywords.items()}
    return Arguments([moved(each) for each in given.positional], keywords, given.star, given.double_star)


def layer(machine: Machine, module: Module, given: Arguments, node: ast.AST) -> Value:
    """A call of a layer of a library, or of a module out of sight."""
    own = module.parameters() if module.opaque else module.own
    values = given.values()
    inputs = [tensor for value in values for tensor in tensors_in(value)]
    if own:
        tensors.mix(machine, node, module.name, *inputs, *own[:1])
    made = tensors.derive(machine, node, *values, *own)
    if machine.grad[-1] and any(each.requires_grad for each in own):
        around = next((m for m in machine.forwards if isinstance(m, Module) and m.within_ddp is not None), None)
        if around is not None and not machine.inside_ddp:
            for graph in made.graph.difference(*(tensor.graph for tensor in inputs)):
                graph.bypassed = around
    if own and module.device is not None:
        made.device, made.sure_device = module.device, False
    made.escaped = made.escaped or module.escaped
    made.layer = module.name
    made.cuts = tensors.without_given_gradients(made.cuts)  # a step along them: meant to be constants
    if module.name == "Linear":
        size = module.arguments.get("out_features") or module.arguments.get("#1")
        made.form = forms.COLUMN if is_constant(size, 1) else None
        made.dense, made.rank = True, inputs[0].rank if inputs else None
    if module.name in ("LSTM", "GRU", "RNN", "MultiheadAttention", "LSTMCell"):
        state = tensors.derive(machine, node, made)
        pair = Sequence([state, tensors.derive(machine, node, made)], "tuple") if module.name == "LSTM" else state
        return Sequence([made, pair], "tuple")
    return made


def attribute(machine: Machine, module: Module, name: str, node: ast.AST) -> Value | None:
    """What a library's class gives a module; None for what only its methods give."""
    if name == "training":
        return Constant(module.training)
    if isinstance(module.items, dict) and name in module.items:
        return module.items[name]
    if name == "module" and module.wraps is not None:
        if isinstance(module.wraps, Module) and module.wrapper == "ddp":
            machine.emit(Unwrapped(machine.where(node), module, module.wraps))
        return module.wraps
    if name in ("weight", "bias", "in_proj_weight") and module.own:
        return module.own[0]
    if name in module.buffers:
        return module.buffers[name]
    if name == "device":
        return tensors.device_value(module.device)
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
        return module.arguments.get("p") or module.arguments.get("#0") or Constant(0.5)
    return None


def part_of(machine: Machine, module: Module, name: str, node: ast.AST) -> Module:
    """An attribute of a module out of sight: a module that shares its one parameter."""
    made = machine.new(Module, Library(f"{module.cls.path if isinstance(module.cls, Library) else '?'}.{name}"), node)
    made.opaque, made.device, made.training, made.own = True, module.device, module.training, list(module.own)
    made.within_ddp, made.escaped, made.assumed = module.within_ddp, module.escaped, module.assumed
    module.attributes[name] = made
    return made


@methods("module")
def call_method(machine: Machine, module: Value, name: str, given: Arguments, node: ast.AST) -> Value:
    """A method that `nn.Module` and its library classes have."""
    assert isinstance(module, Module)
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
    rows = [
        Sequence([Unknown(("parameter name", parameter.made), plain=True), parameter], "tuple")
        for parameter in module.parameters()
    ]
    return Sequence(rows, "generator", more=not (rows and module.sees_all()), site=machine.site(node))


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
        if dtype in ("torch.float16", "torch.half"):
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


def load_result(machine: Machine, loaded: StateLoaded, node: ast.AST) -> Instance:
    """What `load_state_dict` returns."""
    result = machine.instance(Library("torch.nn.modules.module._IncompatibleKeys"), "load result", node)
    result.loaded = loaded  # type: ignore[attr-defined]
    return result


def note_replaced(machine: Machine, result: Instance, before: Value | None, node: ast.AST) -> None:
    """Write down that a name of the object loaded into is given what `load_state_dict` returned."""
    if result.kind == "load result" and before is result.loaded.object:  # type: ignore[attr-defined]
        note_use(machine, result, "=", node)


@attributes("load result")
def result_attribute(machine: Machine, result: Value, name: str, node: ast.AST) -> Value | None:
    """An attribute of what `load_state_dict` returns: a named tuple of two lists of keys."""
    if name not in ("missing_keys", "unexpected_keys", "count", "index", "_asdict", "_replace", "_fields"):
        note_use(machine, result, name, node)
    return Unknown(hint=name)


def note_use(machine: Machine, result: Value, name: str, node: ast.AST) -> None:
    """Write down that what `load_state_dict` returned is used as the model."""
    machine.emit(LoadResultUsed(machine.where(node), result.loaded, name))  # type: ignore[attr-defined]


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
        return NONE
    if name == "pop":
        key = given.get(0, "key")
        return items.pop(key.value, Unknown()) if isinstance(key, Constant) else Unknown()
    if name == "items":
        return Sequence([Sequence([Constant(key), value], "tuple") for key, value in items.items()])
    return Sequence([*items.values()] if name == "values" else [Constant(key) for key in items])


_METHODS = {
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
