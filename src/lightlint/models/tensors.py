"""Tensors: what operations make of graph, device, role and reduction."""

from __future__ import annotations

import ast
from typing import Any, cast

from lightlint.engine.arguments import Arguments
from lightlint.engine.events import (
    Backward,
    Cleared,
    Clipped,
    CudaUsed,
    DevicesMixed,
    GarbageRead,
    GradientsSwitched,
    LeafChanged,
    LossComputed,
    PaddingRead,
    ParametersChanged,
    ReadEarly,
    ShardsGathered,
    Spread,
    Summed,
    TensorMoved,
    WeightSet,
)
from lightlint.engine.machine import WORKER, Machine
from lightlint.models import forms, layouts
from lightlint.models.tables import (
    ACTIVATIONS,
    FLAT,
    KEEPS_ROLE,
    LOSSES,
    NUMBERS,
    OUTPUTS,
    SAVES_NOTHING,
    TUPLES,
    WITHOUT_GRAPH,
)
from lightlint.values.core import (
    NO_TRAITS,
    NONE,
    ON_SOME,
    OWN_DATA,
    Constant,
    Cut,
    Library,
    Method,
    Sequence,
    Site,
    Unknown,
    Value,
    is_constant,
    number_of,
    text_of,
    traits_of,
)
from lightlint.values.training import Graph, Instance, Module, Tensor, tensors_in

PREDICTED = frozenset({"predicted"})  # parameters had a part in it, with or without a graph


def derive(
    machine: Machine,
    node: ast.AST | None,
    *values: Value | None,
    keep: bool = False,
    graph: bool = True,
    how: str = "",
    saves: bool = True,
) -> Tensor:
    """A tensor computed from others.

    `keep` hands on role and reduction, `graph` whether gradients flow, `how` where not; `saves`: see `Graph`.
    """
    sources = [tensor for value in values for tensor in tensors_in(value)]
    if machine.pending:
        note_early(machine, sources, node)
    made = machine.tensor(node)
    made.leaf = False
    if not sources:
        made.sure_device = True
        return made
    made.traits = traits_of(*sources)
    for tensor in sources:
        if tensor.parameter:
            made.traits |= PREDICTED
        elif tensor.role == "batch":
            made.traits |= OWN_DATA
        if tensor.uninitialised and tensor.parameter and machine.forwards and not tensor.escaped:
            machine.emit(GarbageRead(machine.where(node), tensor))
    if graph and machine.grad[-1]:
        _record(machine, made, sources, node, saves=saves)
    elif graph:
        for tensor in sources:
            tensor.blind |= tensor.parameter
    _note_cuts(machine, made, sources, how, node)
    devices = [tensor.device for tensor in sources if not tensor.scalar] or [t.device for t in sources[:1]]
    made.device = "cuda" if "cuda" in devices else None if None in devices else devices[0] if devices else None
    made.sure_device = all(tensor.sure_device or tensor.role == "batch" for tensor in sources if tensor.device == "cpu")
    made.escaped = any(tensor.escaped for tensor in sources)
    made.mixed = any(tensor.mixed for tensor in sources)
    made.gradient_touched = any(tensor.gradient_touched for tensor in sources)
    made.scalar = all(tensor.scalar for tensor in sources)
    for tensor in sources:
        if tensor.device == "cpu" and made.device == "cpu" and tensor.role != "batch":
            made.origin, made.stored_at = tensor.origin or tensor.site, tensor.stored_at
            break
    if keep:
        first = sources[0]
        made.role, made.reduction, made.scaled, made.activation = (
            first.role,
            first.reduction,
            first.scaled,
            first.activation,
        )
        made.metric, made.unscaled_loss, made.criterion = first.metric, first.unscaled_loss, first.criterion
        made.scaler = first.scaler
        made.form, made.dtype, made.layer = first.form, first.dtype, first.layer
    return made


def note_early(machine: Machine, tensors: list[Tensor], node: ast.AST | None) -> None:
    """Write down that values are asked for which a collective in the background has not filled yet."""
    for tensor in tensors:
        _, event, work = machine.pending.pop(id(tensor), (None, None, None))
        if event is not None and not (tensor.escaped or (work is not None and work.escaped)):
            machine.emit(ReadEarly(machine.where(node), event, tensor))


def note_cuts(machine: Machine, made: Value, first: Value | None, how: str, node: ast.AST) -> None:
    """Let a tensor made of a value's numbers remember where these lost their graph: at the latest here."""
    _note_cuts(machine, made, tensors_in(first), how, node)
    if isinstance(first, Unknown):
        made.cuts |= first.cuts


def _note_cuts(machine: Machine, made: Value, sources: list[Tensor], how: str, node: ast.AST | None) -> None:
    """Hand on where sources lost their graphs, and that they do here where a name says `how`."""
    cuts = {cut for tensor in sources for cut in tensor.cuts if how != "detach" or cut.how != "autograd.grad"}
    reached = frozenset(each for tensor in sources for each in tensor.parameters) if how and machine.grad[-1] else None
    if reached:
        cuts.add(Cut(how, machine.site(node), machine.clock, reached))
    if cuts:
        made.cuts = frozenset(cuts)


def without_given_gradients(cuts: frozenset[Cut]) -> frozenset[Cut]:
    """All but those by which `torch.autograd.grad` gave gradients as constants."""
    return frozenset(cut for cut in cuts if cut.how != "autograd.grad")


def _record(machine: Machine, made: Tensor, sources: list[Tensor], node: ast.AST | None, *, saves: bool) -> None:
    graphs: set[Graph] = set()
    parameters: set[Tensor] = set()
    sums: set[Any] = set()
    fresh = False
    for tensor in sources:
        sums |= tensor.sums
        if tensor.parameter or (tensor.leaf and tensor.requires_grad):
            if tensor.requires_grad:
                parameters.add(tensor)
                fresh = True
        else:
            graphs |= tensor.graph
            parameters |= tensor.parameters
            fresh |= saves and bool(tensor.graph) and not any(graph.saves for graph in tensor.graph)
    if fresh:
        outermost = machine.forwards[0] if machine.forwards else None
        training = outermost.training if isinstance(outermost, Module) else None
        graphs.add(Graph(machine.site(node), machine.clock, training, saves=saves))
    made.graph, made.parameters = frozenset(graphs), frozenset(parameters)
    made.requires_grad = bool(graphs or parameters)
    made.sums = frozenset(sums) if made.requires_grad else frozenset()


def mix(machine: Machine, node: ast.AST, operation: str, *values: Value | None) -> None:
    """Write down that tensors of two devices meet."""
    held = [t for value in values for t in tensors_in(value) if not t.scalar and not t.escaped]
    on_cpu = [tensor for tensor in held if tensor.device == "cpu"]
    on_gpu = [tensor for tensor in held if tensor.device == "cuda"]
    if on_cpu and on_gpu:
        machine.emit(DevicesMixed(machine.where(node), on_cpu[0], on_gpu[0], operation))


def device_of(value: Value | None) -> str | None:
    """The device a value names: "cpu", "cuda", "meta", None for unknown. A device chosen at run time counts as a GPU."""
    text = text_of(value)
    if text is not None:
        kind = text.partition(":")[0]
        return kind if kind in ("cpu", "meta") else "cuda"
    if number_of(value) is not None:
        return "cuda"
    if isinstance(value, Unknown) and value.traits & {"rank"}:
        return "cuda"
    if (
        isinstance(value, Unknown)
        and value.key is not None
        and any(w in value.hint for w in ("device", "dev", "gpu", "cuda"))
    ):
        return "cuda"
    return None


def names_cuda(value: Value | None) -> bool:
    """Whether a value surely names a GPU."""
    return (text_of(value) or "").partition(":")[0] == "cuda"


def device_value(device: str | None) -> Value:
    """A device as a value."""
    return Constant(device) if device is not None else Unknown(("device",), plain=True)


def binary(machine: Machine, symbol: str, left: Value, right: Value, node: ast.AST) -> Value | None:
    """An operator with a tensor on a side; None where there is none."""
    first, second = isinstance(left, Tensor), isinstance(right, Tensor)
    if not (first or second) or isinstance(left, Sequence) or isinstance(right, Sequence):
        return None
    if symbol in ("==", "!=", "<", "<=", ">", ">=", "in", "not in", "is", "is not"):
        _meet(machine, symbol, left, right, node)
        return derive(machine, node, left, right, graph=False, how="comparison")
    mix(machine, node, symbol, left, right)
    made = derive(machine, node, left, right, saves=symbol not in ("+", "-", "%"))
    _weigh(symbol, made, left, right)
    if symbol == "@":
        layouts.product(made, left, right)
    if isinstance(node, (ast.BinOp, ast.AugAssign)):
        _meet(machine, symbol, left, right, node)
    if symbol in ("+", "-"):
        _note_sum(machine, made, left, right, node)
    if isinstance(left, Tensor) and isinstance(right, Tensor):
        _combine(symbol, made, left, right)
    else:
        tensor, other = (left, right) if isinstance(left, Tensor) else (right, left)
        assert isinstance(tensor, Tensor)
        _scale(machine, symbol, made, tensor, other)
        made.mixed |= isinstance(other, Unknown) and not other.plain
        if made.mixed:
            made.cuts -= without_given_gradients(made.cuts)  # it may be a tensor with a graph of its own
    return made


def _meet(machine: Machine, symbol: str, left: Value | None, right: Value | None, node: ast.AST) -> None:
    if isinstance(left, Tensor) and isinstance(right, Tensor) and forms.differ(left, right):
        machine.emit(Spread(machine.where(node), symbol, left, right))


def _weigh(symbol: str, made: Tensor, left: Value, right: Value) -> None:
    """Gradients given back that only weigh something, or change a weight, are meant to be constants."""
    pair = [each for each in (left, right) if isinstance(each, Tensor)]
    given = any(cut.how == "autograd.grad" for cut in made.cuts)
    if given and any(each.parameter or (symbol in ("*", "/") and each.requires_grad) for each in pair):
        made.cuts = without_given_gradients(made.cuts)
    known = {each.form for each in pair}
    made.form = known.pop() if len(known) == 1 else forms.ROW if known == {forms.ROW, None} else None


def _note_sum(machine: Machine, made: Tensor, left: Value, right: Value, node: ast.AST) -> None:
    if not made.requires_grad:
        return
    here, turns = machine.site(node), _turns_to_batch(machine)
    before = next((t for t in (left, right) if isinstance(t, Tensor) and any(site == here for site, _ in t.sums)), None)
    if before is not None:
        consumed = any(graph.consumed for graph in before.graph)
        machine.emit(Summed(machine.where(node), made, before, consumed, (here, turns) not in before.sums))
    made.sums |= {(here, turns)}


def _turns_to_batch(machine: Machine) -> tuple[int, ...]:
    """The turns of the loops down to the innermost one over batches."""
    last = max((index for index, loop in enumerate(machine.loops) if loop.kind == "batch"), default=-1)
    return tuple(loop.turn for loop in machine.loops[: last + 1])


def _scale(machine: Machine, symbol: str, made: Tensor, tensor: Tensor, other: Value) -> None:
    if symbol in ("*", "/"):
        made.role, made.reduction = (tensor.role if tensor.role == "loss" else None), tensor.reduction
        made.criterion = tensor.criterion
        made.scaled = tensor.scaled | {other.key if other.key is not None else ("?", machine.clock)}
        if symbol == "*" and "batch-size" in other.traits:
            made.reduction = "sum"
    elif symbol in ("+", "-"):
        made.role = tensor.role if tensor.role == "loss" else None
        made.reduction, made.scaled, made.criterion = tensor.reduction, tensor.scaled, tensor.criterion


def _combine(symbol: str, made: Tensor, left: Tensor, right: Tensor) -> None:
    roles = (left.role, right.role)
    if "loss" not in roles:
        return
    made.role, made.criterion = "loss", left.criterion or right.criterion
    made.reduction = left.reduction if left.reduction == right.reduction else left.reduction or right.reduction
    made.scaled = left.scaled | right.scaled if symbol in ("*", "/") else left.scaled & right.scaled


def attribute(machine: Machine, tensor: Tensor, name: str, node: ast.AST) -> Value:
    """An attribute of a tensor."""
    if name == "data":
        if tensor.parameter or tensor.gradient_of is not None:
            return tensor
        return derive(machine, node, tensor, graph=False, keep=True, how=name)
    if name == "grad":
        tensor.gradient_touched, tensor.gradient_read = True, machine.clock
        for parameter in tensor.parameters:
            parameter.gradient_touched = True
        gradient = derive(machine, node, graph=False)
        gradient.device, gradient.gradient_of = tensor.device, tensor
        return gradient
    if name == "device":
        return device_value(tensor.device)
    if name == "requires_grad":
        return Constant(tensor.requires_grad) if not tensor.escaped else Unknown()
    if name == "shape":
        return shape_of(machine, tensor, node)
    if name in ("T", "mT", "H", "real", "imag"):
        return derive(machine, node, tensor, keep=True, saves=False)
    if name in ("dtype", "ndim", "is_cuda", "is_leaf", "names", "layout", "grad_fn"):
        return Unknown(("tensor", tensor.made, name), plain=name == "ndim")
    if tensor.guessed and name in OUTPUTS:
        found = _part_of_guess(machine, tensor, derive(machine, node, tensor, keep=True, saves=False), node)
        found.role = "loss" if name == "loss" else found.role
        return found
    return Method(tensor, name)


def shape_of(machine: Machine, tensor: Tensor, node: ast.AST) -> Instance:
    """`tensor.shape`."""
    shape = machine.instance(Library("torch.Size"), "shape", node)
    shape.attributes["tensor"] = tensor
    return shape


def size(tensor: Tensor, dimension: object) -> Unknown:
    """The length of a dimension; that of the first is the batch size where it may be one."""
    first = dimension in (0, None) and tensor.role in ("batch", "label", "logits", None) and not tensor.parameter
    return Unknown(("size", tensor.made, dimension), frozenset({"batch-size"} if first else ()), plain=True)


def reduce(name: str, made: Tensor, source: Value | None, given: Arguments) -> None:
    """What `mean` and `sum` make of a tensor."""
    whole = not given.positional and not {"dim", "axis"} & set(given.keywords) and given.exact
    if isinstance(source, Tensor) and whole:
        made.reduction = "mean" if "mean" in name else "sum"
        made.role = "loss" if made.requires_grad or source.role == "loss" else None
        made.scaled, made.scalar, made.criterion = source.scaled, True, source.criterion


def keeps_graph(given: Arguments) -> bool:
    """Whether a backward pass is told to keep its graph, or may be."""
    words = ("retain_graph", "create_graph", "retain_variables")  # the last is the first's name before torch 0.5
    told = [*(given.keywords.get(word) for word in words), *given.positional[1:2]]
    return not given.exact or any(each is not None and not is_constant(each, False, None) for each in told)


def backward(machine: Machine, value: Value, node: ast.AST, via: str, *, keep: bool = False) -> None:
    """A backward pass from a value; `keep` leaves its graph as it is."""
    sources = tensors_in(value)
    parameters: dict[int, Tensor] = {}
    freed = any(graph.consumed and graph.saves and not graph.escaped for tensor in sources for graph in tensor.graph)
    for tensor in sources:
        for graph in tensor.graph:
            graph.go_backward(keep=keep)
        parameters.update({each.made: each for each in tensor.parameters if each.requires_grad})
    reached = [parameters[key] for key in sorted(parameters)]
    graphs = frozenset(graph for tensor in sources for graph in tensor.graph)
    loss = sources[0] if sources else None
    perhaps = [each for each in machine.lent if each.requires_grad and each.made not in parameters]
    held = list(machine.held_back)
    machine.emit(Backward(machine.where(node), reached, loss, via, freed, keep, graphs, perhaps, held))


def call_method(machine: Machine, tensor: Value, name: str, given: Arguments, node: ast.AST) -> Value:
    """A method of a tensor."""
    assert isinstance(tensor, Tensor)
    if name == "backward":
        backward(machine, tensor, node, "backward", keep=keeps_graph(given))
        return NONE
    if name in ("item", "tolist"):
        return number_in(machine, tensor, name, node)
    if name in ("detach", "numpy", "detach_"):
        return _detached(machine, tensor, name, node)
    if name == "size":
        dimension = given.get(0, "dim")
        return shape_of(machine, tensor, node) if dimension is None else size(tensor, number_of(dimension))
    if name in NUMBERS:
        return size(tensor, 0) if name == "__len__" else _plain(tensor, name, given)
    if name == "type" and given.exact and not given.positional and not given.keywords:
        return Unknown((name, tensor.made), plain=True)
    if name in ("to", "cuda", "cpu", "type_as"):
        return _moved(machine, tensor, name, given, node)
    if name == "requires_grad_":
        tensor.requires_grad = not is_constant(given.get(0, "requires_grad"), False)
        _note_switch(machine, tensor, node)
        if tensor.requires_grad and not tensor.graph:
            tensor.parameters, tensor.leaf = frozenset([tensor]), True
        return tensor
    if name.startswith("new_"):
        fresh = machine.tensor(node)
        fresh.device = device_of(given.keywords["device"]) if "device" in given.keywords else tensor.device
        return fresh
    if tensor.role == "batch" and name in ("items", "keys", "values", "get"):
        return _as_mapping(machine, tensor, name, given, node)
    if name == "zero_" and tensor.gradient_of is not None:
        of = tensor.gradient_of
        machine.emit(Cleared(machine.where(node), [of] if of.parameter else [*of.parameters], None))
        return tensor
    if name in ACTIVATIONS and not name.endswith("_"):
        return activated(machine, name, tensor, node)
    if name.endswith("_") and not name.startswith("__"):
        tensor.traits = tensor.traits | ON_SOME if machine.split_ranks else tensor.traits - ON_SOME
        return _in_place(machine, tensor, name, given, node)
    if name in ("register_hook", "retain_grad"):
        return NONE
    if name == "full_tensor" and tensor.owner is not None and tensor.owner.sharded == "fully_shard":
        machine.emit(ShardsGathered(machine.where(node), name))
    found = computed(machine, name, given.with_first(tensor), node)
    layouts.note(machine, found, name, given.with_first(tensor), node)
    return found


def _plain(tensor: Tensor, name: str, given: Arguments) -> Unknown:
    """A number or flag that a function tells of a tensor: by the same arguments, of which there are none, the same."""
    alone = given.exact and not given.positional and not given.keywords
    return Unknown((name, tensor.made) if alone else None, plain=True)


_PAIRS = frozenset({"topk", "sort", "kthvalue", "mode", "cummax", "cummin"})
_DTYPES = frozenset({"float", "double", "half", "bfloat16", "type"})


def computed(machine: Machine, name: str, given: Arguments, node: ast.AST) -> Value:
    """What a function of tensors that table says enough of gives."""
    source = given.positional[0] if given.positional else given.keywords.get("input")
    values = given.values()
    if name in NUMBERS and isinstance(source, Tensor):
        return _plain(source, name, given.behind(1))
    if name == "detach" and isinstance(source, Tensor):
        return _detached(machine, source, name, node)
    if name in WITHOUT_GRAPH:
        drawn = name in forms.CASTS and isinstance(source, Tensor) and source.role in ("batch", "label")
        if name in ("eq", "ne"):
            _meet(machine, "==" if name == "eq" else "!=", source, given.get(1, "other"), node)
        made = derive(machine, node, *values, graph=False, how=name, keep=drawn)
        if name in FLAT and machine.grad[-1]:
            made.requires_grad = any(each.requires_grad for each in tensors_in(source))
        forms.note(made, name, given)
        return made
    if name in ("mean", "sum", "nanmean", "nansum"):
        made = derive(machine, node, source, saves=name not in SAVES_NOTHING)
        reduce(name, made, source, given.behind(1) if given.positional else given)
        return made
    if name in _DTYPES and isinstance(source, Tensor) and source.parameter:
        return source  # it may have the type already
    if name in KEEPS_ROLE:
        made = derive(machine, node, source, keep=True, saves=name not in SAVES_NOTHING)
        if isinstance(source, Tensor):
            made.scalar = source.scalar and name not in ("repeat", "expand", "unsqueeze")
        forms.note(made, name, given)
        if name in ("chunk", "split", "unbind"):
            return Sequence([made, derive(machine, node, source, keep=True)], "tuple", more=True)
        return made
    if name not in ("where", "index_put_", "gather"):
        mix(machine, node, name, *given.positional)
    made = derive(machine, node, *values, saves=name not in SAVES_NOTHING)
    forms.note(made, name, given)
    if name in ("clamp", "clip") and isinstance(source, Tensor):
        made.clipped = source.gradient_of
    if name == "log" and isinstance(source, Tensor) and source.role in ("probabilities", "sigmoid"):
        made.role, made.activation = "log-probabilities", source.activation
    if name in ("exp",) and isinstance(source, Tensor) and source.role == "log-probabilities":
        made.role = "probabilities"
    if name in TUPLES:
        parts = values if TUPLES[name] == 0 else [source] * TUPLES[name]
        return Sequence([derive(machine, node, each) for each in parts], "tuple", more=TUPLES[name] == 0)
    if name in _PAIRS or (name in ("max", "min", "median", "nanmedian") and len(values) > 1):
        if name not in _PAIRS and isinstance(values[1], Tensor):  # the larger of each two
            return made
        best = derive(machine, node, source, graph=False, how="argmax")
        best.form = made.form
        return Sequence([made, best], "tuple", more=False)
    return made


def activated(machine: Machine, name: str, value: Value | None, node: ast.AST) -> Tensor:
    """What an activation gives."""
    made = derive(machine, node, value)
    made.role = ACTIVATIONS[name]
    made.activation = (name, machine.site(node))
    if isinstance(value, Tensor):
        made.form, made.layer, made.rank = value.form, value.layer, value.rank
    return made


def of_unknown(machine: Machine, value: Unknown, name: str, given: Arguments, node: ast.AST) -> Tensor:
    """What a method of tensors gives for something of which nothing else is known."""
    made = activated(machine, name, value, node) if name in ACTIVATIONS else derive(machine, node)
    made.mixed = True
    forms.note(made, name, given.with_first(value))
    return made


def number_in(machine: Machine, tensor: Tensor, how: str, node: ast.AST) -> Unknown:
    """The number in a tensor, on the host."""
    if machine.pending:
        note_early(machine, [tensor], node)
    traits = set(tensor.traits | (OWN_DATA if tensor.role == "batch" else NO_TRAITS))
    if tensor.escaped:
        traits -= OWN_DATA | ON_SOME  # code out of sight may bring it to all ranks
    if tensor.reduction == "mean":
        traits.add("batch-mean")
    elif tensor.reduction == "sum":
        traits.add("batch-sum")
    number = Unknown(("item", tensor.made), frozenset(traits), plain=True)
    _note_cuts(machine, number, [tensor], how, node)
    return number


def _detached(machine: Machine, tensor: Tensor, name: str, node: ast.AST) -> Tensor:
    if name == "detach_":
        tensor.graph, tensor.parameters, tensor.sums, tensor.requires_grad = (
            frozenset(),
            frozenset(),
            frozenset(),
            False,
        )
        return tensor
    return derive(machine, node, tensor, graph=False, keep=True, how=name)


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
    if tensor.parameter and device == tensor.device:
        if not (text_of(target) or "torch.").startswith("torch."):
            machine.emit(TensorMoved(machine.where(node), tensor, device, text_of(target) or ""))
        return tensor  # where it lies already
    if device != "cpu" and (tensor.role != "batch" or text_of(target) is not None):
        named = text_of(target) or ("cuda" if name == "cuda" and target is None else "")
        if number_of(target) is not None:
            named = f"cuda:{number_of(target)}"
        machine.emit(TensorMoved(machine.where(node), tensor, device, named))
    made = derive(machine, node, tensor, keep=True, saves=False)
    made.device, made.scalar, made.moved_from, made.part = device, tensor.scalar, tensor, tensor.part
    made.sure_device |= name == "cpu" or text_of(target) == "cpu"
    forms.note(made, "to" if name == "to" else "cuda", given.with_first(tensor))
    made.rows_of = tensor.rows_of
    if tensor.role == "batch":
        made.parts = {}
    return made


def _as_mapping(machine: Machine, tensor: Tensor, name: str, given: Arguments, node: ast.AST) -> Value:
    if name == "get":
        key = given.get(0, "key")
        return part(machine, tensor, key.value if isinstance(key, Constant) else "?", node)
    value = part(machine, tensor, "?", node)
    if name == "values":
        return Sequence([value], more=True)
    return Sequence([Sequence([Unknown(), value], "tuple") if name == "items" else Unknown()], more=True)


def _in_place(machine: Machine, tensor: Tensor, name: str, given: Arguments, node: ast.AST) -> Tensor:
    others = [each for value in given.values() for each in tensors_in(value)]
    tensor.uninitialised = False
    if tensor.leaf and tensor.requires_grad and not tensor.parameter and machine.grad[-1] and name != "requires_grad_":
        machine.emit(LeafChanged(machine.where(node), tensor))
    if tensor.parameter:
        tensor.changed_by_hand = True
        machine.emit(ParametersChanged(machine.where(node), [tensor], name))
        if machine.grad[-1]:  # else torch raises, unless it goes through `.data`
            machine.emit(WeightSet(machine.where(node), tensor))
    if tensor.gradient_of is not None:
        tensor.gradient_of.gradient_touched = True
        if name in ("clamp_", "clip_"):
            _clip(machine, tensor.gradient_of, given, node)
    if machine.grad[-1]:
        for other in others:
            tensor.graph |= other.graph
            tensor.parameters |= other.parameters
            if name in ("add_", "sub_") and other.requires_grad:
                _note_sum(machine, tensor, tensor, other, node)
                tensor.requires_grad = True
                tensor.sums |= {(machine.site(node), _turns_to_batch(machine))}
    if name != "copy_":
        mix(machine, node, name, tensor, *given.positional)
    if name in ACTIVATIONS:
        tensor.role, tensor.activation = ACTIVATIONS[name], (name, machine.site(node))
    return tensor


def _clip(machine: Machine, of: Tensor, given: Arguments, node: ast.AST) -> None:
    """The gradients of a parameter are clipped by hand."""
    limits = given.values()
    machine.emit(Clipped(machine.where(node), [of], False, limits[-1] if limits else None))


def part(machine: Machine, tensor: Tensor, index: object, node: ast.AST) -> Tensor:
    """A part of a tensor; of a batch the same part is the same tensor each time."""
    if tensor.role != "batch":
        return _part_of_guess(machine, tensor, derive(machine, node, tensor, keep=True), node)
    key = index if isinstance(index, (int, str)) else str(index)
    found = tensor.parts.get(key)
    if found is None:
        found = machine.tensor(node)
        found.role, found.device, found.leaf, found.part, found.escaped = (
            "batch",
            tensor.device,
            False,
            key,
            tensor.escaped,
        )
        tensor.parts[key] = found
    return found


def _part_of_guess(machine: Machine, whole: Tensor, made: Tensor, node: ast.AST) -> Tensor:
    """A part of what a module out of sight gave: a number for the log, perhaps, unless something goes backward through it."""
    made.guessed = whole.guessed
    if made.guessed and made.graph:
        made.graph |= {Graph(machine.site(node), machine.clock, None, guess=True)}
    return made


def item(machine: Machine, tensor: Tensor, index: Value, node: ast.AST) -> Value:
    """`tensor[index]`."""
    tensor.uninitialised = False  # a part may be filled
    if tensor.steps is not None and _is_last_step(tensor.steps, index):
        machine.emit(PaddingRead(machine.where(node), tensor))
    if tensor.role == "batch" and isinstance(index, Constant):
        return part(machine, tensor, index.value, node)
    indices = tensors_in(index)
    if tensor.device == "cpu" and not tensor.escaped:
        on_gpu = [each for each in indices if each.device == "cuda" and not each.scalar]
        if on_gpu:
            machine.emit(DevicesMixed(machine.where(node), tensor, on_gpu[0], "index"))
    made = derive(machine, node, tensor, keep=True, saves=bool(indices) or isinstance(index, Unknown))
    made.scalar, made.form, made.layer = False, forms.of_item(tensor, index), ""
    anything = tensor.guessed or tensor.role == "batch"
    if text_of(index) is not None or (anything and isinstance(index, Unknown) and "index" not in index.traits):
        made.escaped = True  # what a module out of sight gives by name may be anything
    return _part_of_guess(machine, tensor, made, node)


def _is_last_step(dimension: int, index: Value) -> bool:
    """Whether an index takes the last of a dimension, and all of the others."""
    places = index.items if isinstance(index, Sequence) and index.kind == "tuple" else [index]
    whole = [i for i, each in enumerate(places) if isinstance(each, Sequence) and each.kind == "slice"]
    whole = [i for i in whole if all(is_constant(part, None) for part in cast(Sequence, places[i]).items)]
    last = [i for i, each in enumerate(places) if is_constant(each, -1)]
    return last == [dimension] and len(whole) == len(places) - 1


def loss(
    machine: Machine,
    name: str,
    given: Arguments,
    node: ast.AST,
    reduction: str | None = None,
    made_at: Site | None = None,
) -> Tensor:
    """A loss function, or a criterion that was made somewhere."""
    source, target = given.get(0, "input"), given.get(1, "target")
    written = given.keywords.get("reduction")
    if {"size_average", "reduce"} & given.keywords.keys():
        reduction = "unknown"  # the older words for it
    if reduction is None:
        reduction = text_of(written) or ("mean" if written is None and given.double_star is None else None)
    machine.emit(LossComputed(machine.where(node), name, LOSSES[name], source, target, reduction, made_at))
    mix(machine, node, name, source, target)
    made = derive(machine, node, *given.values())
    if any(each.requires_grad for each in (source, target) if isinstance(each, Tensor)):
        made.cuts = without_given_gradients(made.cuts)  # what the other side is to come near to
    made.role, made.criterion = "loss", True
    made.reduction = {"mean": "mean", "batchmean": "mean", "sum": "sum"}.get(reduction or "")
    made.scalar = reduction != "none"
    if (
        name in ("cross_entropy", "CrossEntropyLoss", "nll_loss", "NLLLoss")
        and isinstance(target, Tensor)
        and target.role == "batch"
    ):
        target.form = target.form or forms.ROW  # class indices, as far as rules about shapes ask
    return made


def set_attribute(machine: Machine, tensor: Tensor, name: str, new: Value, node: ast.AST) -> None:
    """`tensor.name = ...`."""
    if name == "requires_grad":
        tensor.requires_grad = not is_constant(new, False)
        _note_switch(machine, tensor, node)
    elif name == "grad" and is_constant(new, None):
        machine.emit(Cleared(machine.where(node), [tensor] if tensor.parameter else [*tensor.parameters], None))
    elif name == "grad":
        tensor.gradient_touched = True
        if isinstance(new, Tensor) and new.clipped is tensor:
            _clip(machine, tensor, Arguments([Unknown()]), node)
    elif name == "data":
        tensor.changed_by_hand, tensor.uninitialised = True, False
        if tensor.parameter:
            machine.emit(WeightSet(machine.where(node), tensor))


def _note_switch(machine: Machine, tensor: Tensor, node: ast.AST) -> None:
    if tensor.parameter:
        machine.emit(GradientsSwitched(machine.where(node), [tensor], tensor.requires_grad))


def copy(machine: Machine, tensor: Tensor, node: ast.AST) -> Tensor:
    """A deep copy."""
    made = machine.tensor(node)
    kept = {key: value for key, value in vars(tensor).items() if key not in ("made", "site", "key", "parts")}
    vars(made).update(kept)
    made.serial = machine.serial(made.site)
    if tensor.parameter:
        made.parameters = frozenset([made])
    return made
