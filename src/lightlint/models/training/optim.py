"""Optimizers, schedules and gradient scalers."""

from __future__ import annotations

import ast

from lightlint.engine.arguments import Arguments
from lightlint.engine.calls import call
from lightlint.engine.containers import listed
from lightlint.engine.events import (
    Cleared,
    Clipped,
    OptimizerMade,
    ScheduleMade,
    ScheduleStepped,
    StateLoaded,
    Stepped,
    Unscaled,
)
from lightlint.engine.language import operators
from lightlint.engine.machine import Machine
from lightlint.engine.training_loops import note_step
from lightlint.models import tensors
from lightlint.models.data import iterables
from lightlint.models.names.kinds import SCHEDULE_LENGTHS
from lightlint.models.registry import function, methods
from lightlint.models.training import modules
from lightlint.values.core import (
    NONE,
    TRUE,
    Bound,
    Class,
    Constant,
    Function,
    Library,
    Mapping,
    Partial,
    Sequence,
    Unknown,
    Value,
    is_constant,
    written,
)
from lightlint.values.training import Instance, Iterator, Module, Optimizer, Schedule, Tensor, tensors_in


def set_up_optimizer(machine: Machine, optimizer: Optimizer, given: Arguments, node: ast.AST) -> None:
    """What the `__init__` of an optimizer class does."""
    optimizer.parameters, optimizer.more = _parameters(machine, given.get(0, "params"), node)
    first = given.get(0, "params")
    optimizer.of_one = isinstance(first, Sequence) and first.kind == "parameters" and bool(first.items)
    for each in (given.get(0, "params"), *_group_values(given.get(0, "params"))):
        iterables.use_up(machine, each, node)
    optimizer.more |= not given.exact and not optimizer.parameters
    optimizer.groups = _groups(machine, given.get(0, "params"), node) or [optimizer.parameters]
    optimizer.own_rates = _has_own_rates(given.get(0, "params"))
    _put_lists(given.get(0, "params"), optimizer)
    machine.emit(OptimizerMade(machine.where(node), optimizer))


def take_groups(machine: Machine, optimizer: Optimizer, groups: Value, node: ast.AST) -> None:
    """What an optimizer has whose groups are set, as those of the one that it stands around: `self.param_groups = base.param_groups`."""
    optimizer.parameters, more = _parameters(machine, groups, node)
    optimizer.groups = _groups(machine, groups, node) or [optimizer.parameters]
    optimizer.more |= more


def _has_own_rates(value: Value | None) -> bool:
    """Whether one of an optimizer's groups has a learning rate of its own, or may have one that is out of sight."""
    items = value.items if isinstance(value, Sequence) else []
    if isinstance(value, Unknown) or (isinstance(value, Tensor) and not value.parameter):
        return True  # a method out of sight gave it
    return any(isinstance(each, Mapping) and (each.more or "lr" in each.items) for each in items)


def _group_values(value: Value | None) -> list[Value | None]:
    items = value.items if isinstance(value, Sequence) else []
    return [each.items.get("params") for each in items if isinstance(each, Mapping)]


def _put_lists(value: Value | None, optimizer: Optimizer) -> None:
    """An optimizer puts lists of parameters into the groups that it is given, in the place of generators."""
    groups = [each for each in value.items if isinstance(each, Mapping)] if isinstance(value, Sequence) else []
    for group, parameters in zip(groups, optimizer.groups, strict=False):
        held = group.items.get("params")
        if isinstance(held, Iterator) or (isinstance(held, Sequence) and held.kind in ("generator", "parameters")):
            group.items["params"] = Sequence(parameters, more=not isinstance(held, Sequence) or held.more)


def _groups(machine: Machine, value: Value | None, node: ast.AST) -> list[list[Tensor]]:
    """The parameters of each group, where an optimizer is given groups."""
    return [_parameters(machine, each, node)[0] for each in _group_values(value)]


def _parameters(machine: Machine, value: Value | None, node: ast.AST) -> tuple[list[Tensor], bool]:
    """The parameters in what an optimizer is given, and whether there may be others."""
    if isinstance(value, Iterator):
        items, known = listed(machine, value, node)
        value = Sequence(items, more=not known)
    if isinstance(value, Tensor):
        return [value], False
    if isinstance(value, Mapping):
        return [each for each in value.items.values() if isinstance(each, Tensor)], value.more
    if not isinstance(value, Sequence):
        return [], True
    found: dict[int, Tensor] = {}
    more = value.more
    for item in value.items:
        held: list[Tensor]
        if isinstance(item, Mapping):
            held, inner_more = _parameters(machine, item.items.get("params"), node)
            more |= inner_more
        elif isinstance(item, Tensor):
            held = [item]
        elif isinstance(item, Sequence):  # named parameters, and groups in tuples
            held = tensors_in(item)
            more |= not held
        else:
            held, more = [], True
        found.update({id(each): each for each in held})
    return [*found.values()], more


@function("timm.optim.create_optimizer_v2", "timm.optim.create_optimizer")
def by_name(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    """An optimizer of a name that is given, over the parameters of a model: `create_optimizer_v2(model, opt=name)`."""
    model = next((each for each in given.values() if isinstance(each, Module)), None)
    made = machine.new(Optimizer, Library("torch.optim.Optimizer"), node)
    made.open_arguments = True
    made.parameters, made.more = (model.parameters(), False) if model is not None else ([], True)
    made.groups = [made.parameters]
    machine.emit(OptimizerMade(machine.where(node), made))
    return made


@methods("optimizer")
def optimizer_method(machine: Machine, optimizer: Value, name: str, given: Arguments, node: ast.AST) -> Value:
    """A method of `torch.optim.Optimizer`."""
    assert isinstance(optimizer, Optimizer)
    if name == "zero_grad":
        machine.emit(Cleared(machine.where(node), list(optimizer.parameters), optimizer))
        return NONE
    if name == "step" and optimizer.wraps is not None:
        return step(machine, optimizer.wraps, given.get(0, "closure"), node, "lightning optimizer")
    if name == "step":
        return step(machine, optimizer, given.get(0, "closure"), node)
    if name == "add_param_group":
        group = given.get(0, "param_group")
        added, more = _parameters(machine, Sequence([group]) if group is not None else None, node)
        optimizer.parameters += added
        optimizer.told = True
        optimizer.more |= more
        return NONE
    if name == "state_dict":
        return _state(machine, optimizer, node)
    if name == "load_state_dict":
        return _load(machine, optimizer, given, node)
    return Unknown()


def _load(machine: Machine, value: Instance, given: Arguments, node: ast.AST) -> Value:
    loaded = machine.emit(StateLoaded(machine.where(node), value, given.get(0, "state_dict") or NONE))
    return modules.load_result(machine, loaded, node)


def _state(machine: Machine, optimizer: Optimizer, node: ast.AST) -> Mapping:
    """`state_dict()`: its groups are copies."""
    rate = Unknown(("lr", optimizer.number), plain=True)
    group = Mapping({"lr": rate, "params": Sequence([], more=True)}, more=True)
    group.copied, group.site = optimizer, machine.site(node)
    return Mapping({"param_groups": Sequence([group], more=True)}, more=True, source=optimizer)


def step(
    machine: Machine,
    optimizer: Optimizer,
    closure: Value | None,
    node: ast.AST,
    via: str = "direct",
    scaler: Instance | None = None,
) -> Value:
    """An optimizer step: the closure first, where there is one."""
    result = _closed(machine, closure, node)
    optimizer.steps += 1
    has_closure = closure is not None and not is_constant(closure, None)
    where = machine.where(node)
    note_step(machine, optimizer)
    machine.emit(Stepped(where, optimizer, list(optimizer.parameters), via, scaler, has_closure))
    return result


def _closed(machine: Machine, closure: Value | None, node: ast.AST) -> Value:
    """What a closure gives: torch records gradients in it, within `no_grad` too."""
    machine.grad.append(True)
    try:
        if isinstance(closure, Instance) and closure.kind == "closure":
            return machine.models.call_object(machine, closure, Arguments(), node)
        if isinstance(closure, (Function, Bound, Partial)):
            return call(machine, closure, Arguments(), node)
        return NONE
    finally:
        machine.grad.pop()


def _stays(last: str, given: Arguments) -> bool:
    """Whether a schedule of Hugging Face is, by what is written or by default, one that has no end."""
    name = written(given.get(0, "name")) if last == "get_scheduler" else None
    return name is not None and str(name.value).startswith("constant")


def set_up_schedule(machine: Machine, schedule: Schedule, last: str, given: Arguments, node: ast.AST) -> None:
    """What the `__init__` of a schedule does."""
    schedule.optimizer = given.get(1 if last == "get_scheduler" else 0, "optimizer")
    held = given.get(0, "schedulers") if last == "ChainedScheduler" else None
    if isinstance(held, Sequence):
        schedule.optimizer = next((each.optimizer for each in held.items if isinstance(each, Schedule)), None)
    named = SCHEDULE_LENGTHS.get(last)
    if named is not None:
        schedule.length_name = named[0]
        schedule.length = None if _stays(last, given) else given.get(named[1], named[0])
        if last == "OneCycleLR" and (schedule.length is None or is_constant(schedule.length, None)):
            epochs, steps = given.get(3, "epochs"), given.get(4, "steps_per_epoch")
            schedule.length_name = "steps_per_epoch"
            product = (
                operators.binary(machine, "*", epochs, steps, node)
                if epochs is not None and steps is not None
                else None
            )
            schedule.length = product
    rate = given.get(1, "lr_lambda") if last == "LambdaLR" else None
    if isinstance(rate, Sequence) and len(rate.items) == 1 and not rate.more:
        rate = rate.items[0]  # of the one group
    if isinstance(rate, (Function, Bound, Partial)):
        schedule.factor = call(machine, rate, Arguments([Unknown(("epoch", schedule.number), plain=True)]), node)
        schedule.factor_site = machine.returned_at
        schedule.closed_over = _closed_over(rate)
    machine.emit(ScheduleMade(machine.where(node), schedule))


def _closed_over(function: Value) -> list[Value]:
    """The numbers that a function within another finds there."""
    while isinstance(function, Partial):
        function = function.function
    scope = function.scope if isinstance(function, Function) else None
    if not isinstance(function, Function) or scope is None or scope.function is None:
        return []
    used = {each.id for each in ast.walk(function.node) if isinstance(each, ast.Name)}
    return [each for name, each in scope.names.items() if name in used and isinstance(each, (Unknown, Constant))]


@methods("schedule")
def schedule_method(machine: Machine, schedule: Value, name: str, given: Arguments, node: ast.AST) -> Value:
    """A method of `LRScheduler`."""
    assert isinstance(schedule, Schedule)
    if name == "step":
        schedule.steps += 1
        machine.emit(ScheduleStepped(machine.where(node), schedule, given.values()))
        return NONE
    if name == "state_dict":
        return Mapping(more=True, source=schedule)
    if name == "load_state_dict":
        return _load(machine, schedule, given, node)
    if name == "get_last_lr":
        return Sequence([Unknown(("lr", schedule.number), plain=True)])
    return Unknown()


@methods("scaler")
def scaler_method(machine: Machine, scaler: Value, name: str, given: Arguments, node: ast.AST) -> Value:
    """A method of `GradScaler`."""
    assert isinstance(scaler, Instance)
    first = given.get(0, "outputs") or given.get(0, "optimizer")
    if name == "scale" and first is not None:
        made = tensors.derive(machine, node, first, keep=True)
        made.unscaled_loss = first if isinstance(first, Tensor) else None
        made.scaler = scaler
        return made
    if name == "step" and isinstance(first, Optimizer):
        return step(machine, first, given.get(1, "closure"), node, "scaler", scaler)
    if name == "unscale_" and first is not None:
        machine.emit(Unscaled(machine.where(node), first))
        return NONE
    if name == "state_dict":
        return Mapping(more=True, source=scaler)
    if name == "load_state_dict":
        return _load(machine, scaler, given, node)
    if name == "is_enabled" and not scaler.open_arguments:
        return scaler.arguments.get("enabled", TRUE)
    machine.escape(first)
    return Unknown(("scale", scaler.number), plain=True) if name == "get_scale" else Unknown()


@function("torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad_norm")
def clip_norm(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    """Gradient clipping by the norm of all."""
    return _clip(machine, given, "clip_grad_norm_", node)


@function("torch.nn.utils.clip_grad_value_")
def clip_value(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    """Gradient clipping of each number by itself."""
    return _clip(machine, given, "clip_grad_value_", node)


def _clip(machine: Machine, given: Arguments, by: str, node: ast.AST) -> Value:
    first = given.get(0, "parameters")
    iterables.use_up(machine, first, node)
    if isinstance(first, Iterator):
        items, known = listed(machine, first, node)
        first = Sequence(items, more=not known)
    held = tensors_in(first) if not isinstance(first, Module) else first.parameters()
    more = not held or bool(getattr(first, "more", False))
    limit, summoned = given.get(1, "max_norm") or given.get(1, "clip_value"), bool(machine.summoned)
    machine.emit(Clipped(machine.where(node), held, more, limit, by, summoned))
    norm = machine.tensor(node)
    norm.scalar, norm.leaf = True, False
    return norm


def lookup_step(optimizer: Optimizer) -> Function | None:
    """The program's own `step` of an optimizer."""
    own = optimizer.cls.find("step") if isinstance(optimizer.cls, Class) else None
    return own if isinstance(own, Function) else None
