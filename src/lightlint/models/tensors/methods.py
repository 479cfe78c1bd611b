"""Methods and attributes of tensors."""

from __future__ import annotations

import ast
import re

from lightlint.engine.arguments import Arguments
from lightlint.engine.events import (
    ClassesBlended,
    Cleared,
    Clipped,
    CudaUsed,
    GradientsSwitched,
    LeafChanged,
    NumberTaken,
    ParametersChanged,
    ShardsGathered,
    TensorMoved,
    WeightSet,
)
from lightlint.engine.machine import WORKER, Machine
from lightlint.models.names.tables import (
    ACTIVATIONS,
    NUMBERS,
    OUTPUTS,
)
from lightlint.models.numbers import angles, gradients, halves
from lightlint.models.sequences import masks, pooled
from lightlint.models.tensors import axes, draws, forms, layouts, precision
from lightlint.models.tensors.arithmetic import note_sum, turns_to_batch
from lightlint.models.tensors.computed import activated, computed, note_single, plain
from lightlint.models.tensors.derivation import PREDICTED, derive, detached, device_of, device_value, mix, number_in
from lightlint.models.tensors.losses import backward, keeps_graph
from lightlint.models.tensors.parts import part, part_of_guess
from lightlint.values.core import (
    BLENDED,
    NO_TRAITS,
    NONE,
    OF_TOKENS,
    ON_SOME,
    Constant,
    Library,
    Method,
    Sequence,
    Unknown,
    Value,
    is_constant,
    names_cuda,
    names_integers,
    number_of,
    text_of,
    traits_of,
)
from lightlint.values.training import ANY_PART, Instance, Tensor, tensors_in

_RECURRENT = {"RNN", "LSTM", "GRU"}


_RESHAPES = frozenset(["squeeze_", "unsqueeze_", "transpose_", "t_", "swapaxes_", "swapdims_", "resize_", "resize_as_"])
# what gives every element of a tensor another value, whatever it was
_OVERWRITES = frozenset(
    ["fill_", "zero_", "copy_", "set_", "normal_", "uniform_", "random_", "bernoulli_", "exponential_", "log_normal_"]
)
_SHAPING = frozenset(["unsqueeze", "squeeze", "permute", "transpose", "flatten", "reshape", "view", "contiguous"])


_GRADIENT = ("grad", "_grad")


_DENOISERS = re.compile(r"UNet\w*Model|\w*Transformer\w*Model")
"""Networks of Diffusers whose output is called `sample`."""


def attribute(machine: Machine, tensor: Tensor, name: str, node: ast.AST) -> Value:
    """An attribute of a tensor."""
    if name == "data":
        if tensor.gradient_of is not None:
            return tensor
        if tensor.parameter:
            return _memory(machine, tensor, node)
        if tensor.packed:
            held = derive(machine, node, tensor, keep=True, saves=False)
            held.packed = False
            return held
        made = derive(machine, node, tensor, graph=False, keep=True, how=name)
        made.shaped_from = tensor
        made.escaped |= tensor.layer in _RECURRENT  # of a packed sequence, perhaps: what it holds
        return made
    if name in _GRADIENT:
        tensor.gradient_touched, tensor.gradient_read = True, machine.clock
        for parameter in tensor.parameters:
            parameter.gradient_touched = True
        gradient = derive(machine, node, graph=False)
        gradient.device, gradient.gradient_of, gradient.gradient_touched = tensor.device, tensor, True
        return gradient
    if name == "device":
        return device_value(tensor.device)
    if name == "is_cuda" and tensor.device in ("cuda", "cpu"):
        return Constant(tensor.device == "cuda")
    if name == "requires_grad":
        tensor.told_frozen |= not tensor.requires_grad
        return Constant(tensor.requires_grad) if not tensor.escaped else Unknown()
    if name == "dtype" and tensor.stored and not tensor.escaped:
        return Constant(f"torch.{tensor.stored}")
    if name == "shape":
        return shape_of(machine, tensor, node)
    if name in ("T", "mT", "H", "real", "imag"):
        made = derive(machine, node, tensor, keep=True, saves=False)
        if name not in ("real", "imag"):
            forms.forget(made)
        return made
    if name in ("dtype", "ndim", "is_cuda", "is_leaf", "names", "layout", "grad_fn"):
        return Unknown(("tensor", tensor.made, name), plain=name == "ndim")
    if tensor.guessed and (name in OUTPUTS or (name == "sample" and _DENOISERS.fullmatch(tensor.layer))):
        found = part_of_guess(machine, tensor, derive(machine, node, tensor, keep=True, saves=False), node)
        pooled.part(found, tensor, name)
        found.role = "loss" if name == "loss" else found.role
        found.traits |= OF_TOKENS if tensor.of_tokens and name == "loss" else NO_TRAITS
        return found
    return Method(tensor, name)


def _memory(machine: Machine, parameter: Tensor, node: ast.AST) -> Tensor:
    """The `.data` of a parameter: what changes it in place changes the parameter, and gradients know nothing of it."""
    made = machine.tensor(node)
    made.leaf, made.data_of = False, parameter
    made.traits = parameter.traits | PREDICTED
    made.device, made.sure_device, made.escaped = parameter.device, parameter.sure_device, parameter.escaped
    made.dtype, made.form, made.rank, made.scalar = parameter.dtype, parameter.form, parameter.rank, parameter.scalar
    return made


def shape_of(machine: Machine, tensor: Tensor, node: ast.AST) -> Instance:
    """`tensor.shape`."""
    shape = machine.instance(Library("torch.Size"), "shape", node)
    shape.attributes["tensor"] = tensor
    return shape


def size(tensor: Tensor, dimension: object) -> Value:
    """The length of a dimension; that of the first is the batch size where it may be one."""
    if forms.is_single_output(tensor) and (dimension == -1 or (dimension == 1 and tensor.rank == 2)):
        return Constant(1)
    examples = (0, None) if tensor.states_of is None else (1,)
    first = dimension in examples and tensor.role in ("batch", "label", "logits", None) and not tensor.parameter
    return Unknown(
        ("size", (tensor.sized_as or tensor).made, dimension), frozenset({"batch-size"} if first else ()), plain=True
    )


def call_method(machine: Machine, tensor: Value, name: str, given: Arguments, node: ast.AST) -> Value:
    """A method of a tensor."""
    assert isinstance(tensor, Tensor)
    rounds = name in ("long", "int") or (name in ("to", "type") and any(map(names_integers, given.values())))
    if tensor.traits & BLENDED and rounds:
        machine.emit(ClassesBlended(machine.where(node)))
    if name == "backward":
        backward(machine, tensor, node, "backward", keep=keeps_graph(given))
        return NONE
    if name in ("item", "tolist"):
        return number_in(machine, tensor, name, node)
    if name in ("detach", "numpy", "detach_"):
        cut = detached(machine, tensor, name, node)
        if name != "numpy" and isinstance(cut, Tensor):
            cut.places = tensor.places
        return cut
    if name == "size":
        dimension = given.get(0, "dim")
        return shape_of(machine, tensor, node) if dimension is None else size(tensor, number_of(dimension))
    if name in NUMBERS:
        return size(tensor, 0) if name == "__len__" else plain(tensor, name, given)
    if name == "type" and given.exact and not given.positional and not given.keywords:
        return Unknown((name, tensor.made), plain=True)
    if name in ("to", "cuda", "cpu", "type_as"):
        moved = _moved(machine, tensor, name, given, node)
        moved.places = tensor.places
        return moved
    if name == "requires_grad_":
        tensor.requires_grad = not is_constant(given.get(0, "requires_grad"), False)
        _note_switch(machine, tensor, node)
        if tensor.requires_grad and not tensor.graph:
            tensor.parameters, tensor.leaf = frozenset([tensor]), True
        return tensor
    if name.startswith("new_"):
        fresh = machine.tensor(node)
        fresh.device = device_of(given.keywords["device"]) if "device" in given.keywords else tensor.device
        fresh.stored = tensor.stored if "dtype" not in given.keywords else halves.dtype_of(given.keywords["dtype"])
        gradients.note_new(fresh, name)
        return fresh
    if tensor.role == "batch" and name in ("items", "keys", "values", "get"):
        return _as_mapping(machine, tensor, name, given, node)
    if name == "zero_" and tensor.gradient_of is not None:
        of = tensor.gradient_of
        machine.emit(Cleared(machine.where(node), [of] if of.parameter else [*of.parameters], None))
        return tensor
    if name in ACTIVATIONS and not name.endswith("_"):
        note_single(machine, name, tensor, given.get(0, "dim"), node)
        return activated(machine, name, tensor, node, given.get(0, "dim"))
    if name.endswith("_") and not name.startswith("__"):
        tensor.traits = tensor.traits | ON_SOME if machine.split_ranks else tensor.traits - ON_SOME
        return _in_place(machine, tensor, name, given, node)
    if name == "register_hook" and tensor.parameter:
        gradients.note_hook(machine, tensor, given.get(0, "hook"), derive(machine, node, graph=False), node)
    if name in ("register_hook", "retain_grad"):
        return NONE
    if name == "full_tensor" and tensor.owner is not None and tensor.owner.sharded == "fully_shard":
        machine.emit(ShardsGathered(machine.where(node), name))
    whole = given.with_first(tensor)
    found = computed(machine, name, whole, node)
    if name == "type" and isinstance(found, Tensor) and found is not tensor:
        _place_by_type(found, given.get(0, "dtype"))
    if name in _SHAPING and isinstance(found, Tensor) and found is not tensor:
        found.shaped_from = tensor
    if name in ("clone", "detach", "masked_fill", "long") and isinstance(found, Tensor) and found is not tensor:
        found.taken_from = tensor
    gradients.note_filled(found, name, whole)
    layouts.note(machine, found, name, whole, node)
    angles.note(machine, found, name, whole, node)
    draws.note_moved(machine, found, name, whole, node)
    if name in precision.NAMES:
        precision.note(machine, found, name, whole, node, sure=not tensor.mixed)
    if name in pooled.SAME and isinstance(found, Tensor) and found is not tensor:
        found.places = tensor.places
    return found


def _moved(machine: Machine, tensor: Tensor, name: str, given: Arguments, node: ast.AST) -> Tensor:
    target = given.get(0, "device")
    if isinstance(target, Library):
        target = Constant(target.path)  # a dtype that was imported by its name
    device: str | None
    if machine.phases[-1] == WORKER and (name == "cuda" or names_cuda(target)):
        machine.emit(CudaUsed(machine.where(node)))
    if name in ("cuda", "cpu"):
        device = name
    elif isinstance(target, Tensor):
        device = target.device
    elif target is None or (text_of(target) or "").startswith("torch."):
        device = tensor.device
    else:
        device = device_of(target)
    if device == "cpu":
        machine.emit(NumberTaken(machine.where(node), tensor))
    if tensor.parameter and device == tensor.device:
        if not (text_of(target) or "torch.").startswith("torch."):
            machine.emit(TensorMoved(machine.where(node), tensor, device, text_of(target) or ""))
        return tensor  # where it lies already
    if device != "cpu" and (tensor.role != "batch" or text_of(target) is not None):
        named = text_of(target) or ("cuda" if name == "cuda" and target is None else "")
        if number_of(target) is not None:
            named = f"cuda:{number_of(target)}"
        as_other = isinstance(target, Unknown) and target.key == device_value(None).key
        machine.emit(TensorMoved(machine.where(node), tensor, device, named, as_other))
    made = derive(machine, node, tensor, keep=True, saves=False)
    made.device, made.scalar, made.moved_from, made.part = device, tensor.scalar, tensor, tensor.part
    made.placed = target.key if target is not None else name
    made.stays = _names_device_only(name, target, given) and _lies_there(tensor, made)
    made.sure_device |= name == "cpu" or text_of(target) == "cpu"
    made.sure_device &= "default" not in traits_of(target)
    forms.note(made, "to" if name in ("to", "type_as") else "cuda", given.with_first(tensor))
    halves.moved(made, tensor, target)
    made.rows_of = tensor.rows_of
    axes.same(made, tensor)
    axes.sized(made, tensor)
    if tensor.role == "batch":
        made.parts = {}
    return made


def _names_device_only(name: str, target: Value | None, given: Arguments) -> bool:
    """Whether a move says where to, and nothing of another type."""
    if not given.exact or len(given.positional) > 1 or "dtype" in given.keywords:
        return False
    named = target is not None and not isinstance(target, Tensor) and not (text_of(target) or "").startswith("torch.")
    return name in ("cuda", "cpu") or (name == "to" and named)


def _lies_there(tensor: Tensor, moved: Tensor) -> bool:
    """Whether a tensor lies already where it is moved to."""
    if moved.placed is not None and moved.placed == tensor.placed:
        return True
    return moved.device is not None and moved.device == tensor.device and (moved.device != "cpu" or tensor.sure_device)


def _place_by_type(made: Tensor, target: Value | None) -> None:
    """A tensor type, unlike a dtype, names a device: `torch.FloatTensor` the CPU, `torch.cuda.FloatTensor` the GPU."""
    named = target.path if isinstance(target, Library) else text_of(target) or ""
    if named.endswith("Tensor"):
        made.device, made.sure_device = (
            "cuda" if named.startswith("torch.cuda.") else "cpu",
            "default" not in traits_of(target),
        )
    elif not named:
        made.device = None  # what the type is, the program knows


def _as_mapping(machine: Machine, tensor: Tensor, name: str, given: Arguments, node: ast.AST) -> Value:
    if name == "get":
        key = given.get(0, "key")
        return part(machine, tensor, key.value if isinstance(key, Constant) else ANY_PART, node)
    value = part(machine, tensor, ANY_PART, node)
    if name == "values":
        return Sequence([value], more=True)
    return Sequence([Sequence([Unknown(), value], "tuple") if name == "items" else Unknown()], more=True)


def _in_place(machine: Machine, tensor: Tensor, name: str, given: Arguments, node: ast.AST) -> Tensor:
    others = [each for value in given.values() for each in tensors_in(value)]
    changed = tensor.data_of or tensor
    masks.note(machine, tensor, name.removesuffix("_"), given.with_first(tensor), node)
    changed.mask = None
    gradients.note_in_place(machine, tensor, name, given, node)
    halves.note_refused(machine, name, given.with_first(tensor), node)
    changed.uninitialised = tensor.answer = False
    changed.edited = True
    if name in _RESHAPES:
        forms.forget(changed)
    if any(not isinstance(each, Constant) for each in given.values()):
        changed.filled, tensor.terms = True, None  # other numbers than those it was worked out with
    if tensor.leaf and tensor.requires_grad and not tensor.parameter and machine.grad[-1] and name != "requires_grad_":
        machine.emit(LeafChanged(machine.where(node), tensor))
    if changed.parameter:
        changed.changed_by_hand = True
        machine.emit(ParametersChanged(machine.where(node), [changed], name, others))
        if machine.grad[-1]:  # else torch raises, unless it goes through `.data`
            machine.emit(WeightSet(machine.where(node), changed))
    if tensor.gradient_of is not None:
        tensor.gradient_of.gradient_touched = True
        if name in ("clamp_", "clip_"):
            _clip(machine, tensor.gradient_of, given, node)
    if machine.grad[-1]:
        for other in others:
            tensor.graph |= other.graph
            tensor.parameters |= other.parameters
            if name in ("add_", "sub_") and other.requires_grad:
                note_sum(machine, tensor, tensor, other, node)
                tensor.requires_grad, tensor.leaf = True, tensor.leaf and tensor.parameter  # it has a history now
                tensor.sums |= {(machine.site(node), turns_to_batch(machine))}
    if name != "copy_":
        mix(machine, node, name, tensor, *given.positional)
    if name in ACTIVATIONS:
        tensor.role, tensor.activation = ACTIVATIONS[name], (name, machine.site(node))
    elif name in _OVERWRITES and tensor.activation is not None:
        _overwrite(tensor, others)
    return tensor


def _overwrite(tensor: Tensor, others: list[Tensor]) -> None:
    """Every element is another now: what kind of numbers they were says nothing of what they are."""
    copied = others[0] if others and others[0].activation is not None else None
    tensor.role = copied.role if copied is not None else None
    tensor.activation = copied.activation if copied is not None else None


def _clip(machine: Machine, of: Tensor, given: Arguments, node: ast.AST) -> None:
    """The gradients of a parameter are clipped by hand."""
    limits = given.values()
    machine.emit(Clipped(machine.where(node), [of], False, limits[-1] if limits else None))


def set_attribute(machine: Machine, tensor: Tensor, name: str, new: Value, node: ast.AST) -> None:
    """`tensor.name = ...`."""
    if name == "requires_grad":
        tensor.requires_grad = not is_constant(new, False)
        _note_switch(machine, tensor, node)
    elif name in _GRADIENT and is_constant(new, None):
        machine.emit(Cleared(machine.where(node), [tensor] if tensor.parameter else [*tensor.parameters], None))
    elif name in _GRADIENT:
        tensor.gradient_touched = True
        gradients.note_given(machine, tensor, new, node)
        if isinstance(new, Tensor) and new.clipped is tensor:
            _clip(machine, tensor, Arguments([Unknown()]), node)
    elif name == "data":
        tensor.changed_by_hand, tensor.uninitialised = True, False
        if tensor.parameter:
            machine.emit(WeightSet(machine.where(node), tensor))


def _note_switch(machine: Machine, tensor: Tensor, node: ast.AST) -> None:
    if tensor.parameter:
        machine.emit(GradientsSwitched(machine.where(node), [tensor], tensor.requires_grad))
