"""What a tensor made of others inherits"""

from __future__ import annotations

import ast
from typing import Any

from lightlint.engine.choices import holds_draw
from lightlint.engine.events import (
    DevicesMixed,
    GarbageRead,
    NumberTaken,
    ReadEarly,
)
from lightlint.engine.machine import Machine
from lightlint.values.core import (
    GATHERS,
    INTEGERS,
    NO_TRAITS,
    ON_SOME,
    OWN_DATA,
    Cut,
    Device,
    SomeDevice,
    Unknown,
    Value,
    number_of,
    text_of,
    traits_of,
)
from lightlint.values.training import Graph, Module, Tensor, tensors_in

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
    made.answers = frozenset(answer for value in values if value is not None for answer in value.answers)
    if not sources:
        made.sure_device = True
        return made
    made.traits = traits_of(*sources)
    made.only_from = sources[0] if len(sources) == 1 else None
    for tensor in sources:
        if tensor.parameter:
            made.traits |= PREDICTED
        elif tensor.role == "batch":
            made.traits |= OWN_DATA
        if tensor.uninitialised and tensor.parameter and machine.forwards and not tensor.escaped:
            machine.emit(GarbageRead(machine.where(node), tensor))
    if graph and machine.grad[-1]:
        _record(machine, made, sources, node, saves=saves)
    elif graph and machine.forwards:  # not what brings parameters back onto a sphere between two passes
        for tensor in sources:
            tensor.blind |= tensor.parameter
    _note_cuts(machine, made, sources, how, node)
    devices = [tensor.device for tensor in sources if not tensor.scalar] or [t.device for t in sources[:1]]
    made.device = "cuda" if "cuda" in devices else None if None in devices else devices[0] if devices else None
    made.sure_device = made.scalar = True
    for tensor in sources:  # one loop, since no function is called as often
        if tensor.device == "cpu" and not tensor.sure_device and tensor.role != "batch":
            made.sure_device = False
        if tensor.escaped:
            made.escaped = True
        if tensor.filled:
            made.filled = True
        if tensor.mixed:
            made.mixed = True
        if tensor.gradient_touched:
            made.gradient_touched = True
        if not tensor.scalar:
            made.scalar = False
        if tensor.part is not None and tensor.batch_of is not None:
            made.seen |= {(tensor.batch_of, tensor.part)}
        elif tensor.seen:
            made.seen |= tensor.seen
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
        made.divided = first.divided
        made.metric, made.unscaled_loss, made.criterion = first.metric, first.unscaled_loss, first.criterion
        made.scaler, made.batch_of = first.scaler, first.batch_of
        made.terms, made.answer, made.stacked = first.terms, first.answer, first.stacked
        made.form, made.dtype, made.layer, made.packed = first.form, first.dtype, first.layer, first.packed
        made.stored = first.stored
        made.as_given, made.cut_from = first.as_given, first.cut_from
        made.encoding, made.unreduced = first.encoding, first.unreduced
        made.binary, made.cleared = first.binary, first.cleared
        made.mask, made.filling, made.angle = first.mask, first.filling, first.angle
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
        graphs = frozenset(graph for tensor in sources for graph in tensor.graph) if how in GATHERS else frozenset()
        cuts.add(Cut(how, machine.site(node), machine.clock, reached, graphs))
    if cuts:
        made.cuts = frozenset(cuts)


def without_given_gradients(cuts: frozenset[Cut]) -> frozenset[Cut]:
    """All but those by which `torch.autograd.grad` gave gradients as constants."""
    return frozenset(cut for cut in cuts if cut.how != "autograd.grad")


def meant_or_gathered(cuts: frozenset[Cut]) -> frozenset[Cut]:
    """Those that tell of themselves what lost its graph there, whatever it is mixed with later."""
    return frozenset(cut for cut in cuts if cut.how in ("autograd.grad", *GATHERS))


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


def device_value(device: str | None) -> Value:
    """A device as a value."""
    return Device(device) if device is not None else SomeDevice(("device",), plain=True)


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
    if how == "tolist" and tensor.dtype == "int64" and not tensor.scalar:
        traits |= INTEGERS
    machine.emit(NumberTaken(machine.where(node), tensor))
    key = tensor.key if holds_draw(tensor.key) else ("item", tensor.made)
    number = Unknown(key, frozenset(traits), plain=True)
    number.added = tensor.added
    number.named, number.terms, number.order_cut = tensor.named, tensor.terms, tensor.order_cut
    _note_cuts(machine, number, [tensor], how, node)
    return number


def copy(machine: Machine, tensor: Tensor, node: ast.AST) -> Tensor:
    """A deep copy."""
    made = machine.tensor(node)
    kept = {key: value for key, value in vars(tensor).items() if key not in ("made", "site", "key", "parts")}
    vars(made).update(kept)
    made.serial = machine.serial(made.site)
    if tensor.parameter:
        made.parameters = frozenset([made])
    return made


def on_gpu(machine: Machine, tensor: Tensor, node: ast.AST) -> Tensor:
    """A tensor as a framework moves it to the GPU."""
    made = derive(machine, node, tensor, keep=True)
    made.device = "cuda"
    return made


def detached(machine: Machine, tensor: Tensor, name: str, node: ast.AST) -> Tensor:
    """The same numbers without the graph; in place or as a new tensor."""
    if name == "detach_":
        tensor.graph, tensor.parameters, tensor.sums, tensor.requires_grad = (
            frozenset(),
            frozenset(),
            frozenset(),
            False,
        )
        return tensor
    made = derive(machine, node, tensor, graph=False, keep=True, how=name)
    made.shaped_from = tensor
    made.sized_as = tensor.sized_as or tensor
    return made
