"""Functions and methods that compute a tensor of others."""

from __future__ import annotations

import ast

from lightlint.engine.arguments import Arguments
from lightlint.engine.events import NumberAveraged, OneNormalised, RowsNormalised
from lightlint.engine.machine import Machine
from lightlint.models.names.tables import (
    ACTIVATIONS,
    FLAT,
    KEEPS_ROLE,
    NUMBERS,
    SAVES_NOTHING,
    SEVERAL,
    SPLITS,
    TUPLES,
    WITHOUT_GRAPH,
)
from lightlint.models.numbers import halves
from lightlint.models.sequences import attention, cuts, pooled
from lightlint.models.tensors import axes, forms, precision
from lightlint.models.tensors.arithmetic import meet, note_square
from lightlint.models.tensors.derivation import derive, detached, mix
from lightlint.models.tensors.losses import reduce
from lightlint.values.core import (
    Sequence,
    Unknown,
    Value,
    is_constant,
    number_of,
)
from lightlint.values.training import Tensor, tensors_in


def plain(tensor: Tensor, name: str, given: Arguments) -> Unknown:
    """A number or flag that a function tells of a tensor: by the same arguments, of which there are none, the same."""
    alone = given.exact and not given.positional and not given.keywords
    return Unknown((name, tensor.made) if alone else None, plain=True)


_CHOOSING = frozenset({"max", "min", "amax", "amin", "gather", "take_along_dim", "squeeze", "minimum"})
_DTYPES = frozenset({"float", "double", "half", "bfloat16", "type"})


def computed(machine: Machine, name: str, given: Arguments, node: ast.AST) -> Value:
    """What a function of tensors that table says enough of gives."""
    source = given.positional[0] if given.positional else given.keywords.get("input")
    values = given.values()
    axes.reduced(machine, name, source, given, node)
    if name == "square" or (name == "pow" and is_constant(given.get(1, "exponent"), 2, 2.0)):
        note_square(machine, source, node)
    if name in NUMBERS:
        return plain(source, name, given.behind(1)) if isinstance(source, Tensor) else Unknown(plain=True)
    if name in ("detach", "detach_") and isinstance(source, Tensor):
        return detached(machine, source, name, node)
    if name == "where" and len(values) == 1:
        return Sequence([derive(machine, node, source, graph=False, how=name)], "tuple", more=True)
    if name in WITHOUT_GRAPH:
        drawn = name in forms.CASTS and isinstance(source, Tensor) and source.role in ("batch", "label")
        if name in ("eq", "ne"):
            meet(machine, "==" if name == "eq" else "!=", source, given.get(1, "other"), node)
        made = derive(machine, node, *values, graph=False, how=name, keep=drawn)
        if name in FLAT and machine.grad[-1]:
            made.requires_grad = any(each.requires_grad for value in values for each in tensors_in(value))
        forms.note(made, name, given)
        return made
    if name in ("mean", "sum", "nanmean", "nansum"):
        pooled.averaged(machine, name, source, given, node)
        made = derive(machine, node, source, saves=name not in SAVES_NOTHING)
        made.terms = (name, (source,)) if name == "mean" and source is not None else None
        reduce(name, made, source, given.behind(1) if given.positional else given)
        if name == "mean" and given.get(1, "dim") is not None and (added := _sum_of_all(source)) is not None:
            machine.emit(NumberAveraged(machine.where(node), made, added))
        return made
    if name in _DTYPES and isinstance(source, Tensor) and source.parameter:
        return source  # it may have the type already
    if name in KEEPS_ROLE:
        made = derive(machine, node, source, keep=True, saves=name not in SAVES_NOTHING)
        if isinstance(source, Tensor):
            made.scalar = source.scalar and name not in ("repeat", "expand", "unsqueeze")
        forms.note(made, name, given)
        if name in ("chunk", "split", "unbind"):
            other = derive(machine, node, source, keep=True)
            forms.note(other, name, given)
            axes.parted(name, source, made, other)
            return Sequence([made, other], "tuple", more=True)
        return made
    if name not in ("where", "index_put_", "gather"):
        mix(machine, node, name, *given.values())
    made = derive(machine, node, *values, saves=name not in SAVES_NOTHING)
    made.scalar |= name in ("std", "var", "norm") and len(values) == 1
    made.answer = name in _CHOOSING and isinstance(source, Tensor) and source.answer
    forms.note(made, name, given)
    if name in ("stack", "cat", "concat", "vstack", "hstack") and isinstance(source, Sequence):
        made.stacked, made.scalar = tuple(source.items), False
        if name in ("stack", "vstack"):
            cuts.keep_all(made, source.items)
    if name in ("clamp", "clip") and isinstance(source, Tensor):
        made.clipped = source.gradient_of
    if name == "log" and isinstance(source, Tensor) and source.role in ("probabilities", "sigmoid"):
        made.role, made.activation = "log-probabilities", source.activation
    if name in ("exp",) and isinstance(source, Tensor) and source.role == "log-probabilities":
        made.role = "probabilities"
    if name in SEVERAL or name in SPLITS:
        parts = [each for each in values if tensors_in(each)] if name in SEVERAL else [source]
        return Sequence([derive(machine, node, each) for each in parts], "tuple", more=True)
    if name in ("max", "min", "median", "nanmedian") and len(values) > 1 and not isinstance(values[1], Tensor):
        return _tuple(machine, made, source, (1, 1), node)
    return _tuple(machine, made, source, TUPLES[name], node) if name in TUPLES else made


def _tuple(machine: Machine, first: Tensor, source: Value | None, numbers: tuple[int, int], node: ast.AST) -> Sequence:
    """Several results beside each other: some with a graph, some, such as the places of the largest, without."""
    with_graph, without = numbers
    found = [first, *(derive(machine, node, source) for _ in range(with_graph - 1))][:with_graph]
    for _ in range(without):
        found.append(derive(machine, node, source, graph=False, how="argmax"))
        found[-1].form = first.form
    return Sequence([*found], "tuple", more=False)


def activated(
    machine: Machine, name: str, value: Value | None, node: ast.AST, dimension: Value | None = None
) -> Tensor:
    """What an activation gives; `dimension`: over which a softmax goes, where that is told."""
    made = derive(machine, node, value)
    made.role = ACTIVATIONS[name]
    made.activation = (name, machine.site(node))
    if isinstance(value, Tensor):
        made.form, made.layer, made.as_given = value.form, value.layer, value.as_given
        axes.same(made, value)
        halves.note(machine, made, name.lower(), Arguments([value]), node)
        axes.sized(made, value)
        attention.note_softmax(machine, made, name, dimension, node)
        made.normed_first = is_constant(dimension, 0) and name.lower().replace("_", "") in _SOFTMAXES
        if made.normed_first and _has_classes(value):
            machine.emit(RowsNormalised(machine.where(node), made))
    return made


_SOFTMAXES = ("softmax", "logsoftmax")


def _has_classes(scores: Tensor) -> bool:
    """Whether a linear layer gave scores for several classes of each example of a batch."""
    rows = scores.rows_first and scores.rank in (None, 2)
    return rows and scores.layer == "Linear" and scores.as_given and not scores.thin and scores.form != "column"


def _sum_of_all(value: Value | None, depth: int = 0) -> Tensor | None:
    """The sum over all elements of a tensor that something is, or a written multiple of."""
    symbol, parts = value.terms if value is not None and value.terms is not None and depth < _DEPTH else ("", ())
    if isinstance(value, Tensor) and value.scalar and value.reduction == "sum" and symbol in ("", "sum"):
        return value
    if symbol not in ("*", "/", "-"):
        return None
    held = [each for each in parts if number_of(each) is None]
    return _sum_of_all(held[0], depth + 1) if len(held) == 1 else None


_DEPTH = 4


def note_single(machine: Machine, name: str, value: Value | None, dim: Value | None, node: ast.AST) -> None:
    """Write down that a softmax goes over the one output of a layer, as that gave it."""
    if forms.is_single_output(value) and name in ("softmax", "log_softmax") and is_constant(dim, -1):
        machine.emit(OneNormalised(machine.where(node), name))


def of_unknown(machine: Machine, value: Unknown, name: str, given: Arguments, node: ast.AST) -> Tensor:
    """What a method of tensors gives for something of which nothing else is known."""
    made = activated(machine, name, value, node) if name in ACTIVATIONS else derive(machine, node)
    made.mixed = True
    forms.note(made, name, given.with_first(value))
    if name in precision.NAMES:
        precision.note(machine, made, name, given.with_first(value), node, sure=False)
    return made
