"""Losses, what reduces them, and their backward passes."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from lightlint.engine.arguments import Arguments
from lightlint.engine.events import (
    Backward,
    LossComputed,
)
from lightlint.engine.machine import Machine
from lightlint.engine.misuse import is_caught
from lightlint.engine.training_loops import note_backward
from lightlint.models.names.parameters import parameters_of
from lightlint.models.names.tables import (
    LOSSES,
)
from lightlint.models.tensors import forms
from lightlint.models.tensors.derivation import derive, mix, without_given_gradients
from lightlint.values.core import (
    Constant,
    Site,
    Value,
    is_constant,
    text_of,
)
from lightlint.values.training import Tensor, tensors_in


def reduce(name: str, made: Tensor, source: Value | None, given: Arguments) -> None:
    """What `mean` and `sum` make of a tensor."""
    if isinstance(source, Tensor) and source.unreduced is not None:
        source.unreduced.append(name)
    whole = not given.positional and not {"dim", "axis"} & set(given.keywords) and given.exact
    if isinstance(source, Tensor) and whole:
        made.reduction = "mean" if "mean" in name else "sum"
        made.role = "loss" if made.requires_grad or source.role == "loss" else None
        made.scaled, made.scalar, made.criterion = source.scaled, True, source.criterion
        made.divided = source.divided


def leaves_out(given: Mapping[str, Value]) -> bool:
    """Whether a loss is told a class that it leaves out, another than it leaves out anyway."""
    weighs = not is_constant(given.get("weight", Constant(None)), None)  # perhaps by zero
    return weighs or not is_constant(given.get("ignore_index", Constant(-100)), -100)


def reduction_of(given: Arguments) -> str | None:
    """How a loss that is told so makes one number of many, also by the older words for it; None where that is out of sight."""
    told = given.by_name()
    older = [told.get(each) for each in ("size_average", "reduce")]
    if any(each is not None and not is_constant(each, None) for each in older):
        if not all(each is None or isinstance(each, Constant) for each in older):
            return "unknown"
        averages, reduces = (not isinstance(each, Constant) or each.value is None or bool(each.value) for each in older)
        return ("mean" if averages else "sum") if reduces else "none"
    written = told.get("reduction")
    return text_of(written) or ("mean" if written is None and given.exact else None)


def keeps_graph(given: Arguments) -> bool:
    """Whether a backward pass is told to keep its graph, or may be."""
    words = ("retain_graph", "create_graph", "retain_variables")  # the last is the first's name before torch 0.5
    told = [*(given.keywords.get(word) for word in words), *given.positional[1:2]]
    return not given.exact or any(each is not None and not is_constant(each, False, None) for each in told)


def backward(machine: Machine, value: Value, node: ast.AST, via: str, *, keep: bool = False) -> None:
    """A backward pass from a value; `keep` leaves its graph as it is."""
    sources = tensors_in(value)
    parameters: dict[int, Tensor] = {}
    graphs = frozenset(graph for tensor in sources for graph in tensor.graph)
    freed = not machine.unbound and any(each.consumed and each.saves and not each.escaped for each in graphs)
    for tensor in sources:
        for graph in tensor.graph:
            graph.go_backward(keep=keep)
        parameters.update({each.made: each for each in tensor.parameters if each.requires_grad})
    reached = [parameters[key] for key in sorted(parameters)]
    loss = sources[0] if sources else None
    perhaps = [each for each in machine.lent if each.requires_grad and each.made not in parameters]
    held, caught = list(machine.held_back), is_caught(machine, "RuntimeError")
    note_backward(machine)
    machine.emit(Backward(machine.where(node), reached, loss, via, freed, keep, graphs, perhaps, held, caught))


def loss(
    machine: Machine,
    name: str,
    given: Arguments,
    node: ast.AST,
    reduction: str | None = None,
    made_at: Site | None = None,
    log_target: Value | None = None,
    *,
    ignores: bool = False,
) -> Tensor:
    """A loss function, or a criterion that was made somewhere."""
    source, target = given.get(0, "input"), given.get(1, "target")
    given.names = given.names or parameters_of(f"torch.nn.functional.{name}")
    told = given.by_name()
    if reduction is None:
        reduction = reduction_of(given)
    log_target = told.get("log_target", log_target)
    ignores = ignores or leaves_out(told) or not given.exact
    where = machine.where(node)
    event = LossComputed(where, name, LOSSES[name], source, target, reduction, made_at, log_target, ignores)
    machine.emit(event)
    mix(machine, node, name, source, target, *(told.get(each) for each in ("weight", "pos_weight")))
    made = derive(machine, node, *given.values())
    if any(each.requires_grad for each in (source, target) if isinstance(each, Tensor)):
        made.cuts = without_given_gradients(made.cuts)  # what the other side is to come near to
    made.role, made.criterion = "loss", True
    made.reduction = {"mean": "mean", "batchmean": "mean", "sum": "sum"}.get(reduction or "")
    made.scalar, made.factors = reduction != "none", event.factors
    made.unreduced = event.reduced if reduction == "none" else None
    if (
        name in ("cross_entropy", "CrossEntropyLoss", "nll_loss", "NLLLoss")
        and isinstance(target, Tensor)
        and target.role == "batch"
    ):
        target.form = target.form or forms.ROW  # class indices, as far as rules about shapes ask
    return made
