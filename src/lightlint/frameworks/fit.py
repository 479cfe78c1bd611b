"""`Trainer.fit` as a program: two epochs of two batches, each hook in the order in which Lightning calls it."""

from __future__ import annotations

import ast
from contextlib import AbstractContextManager
from functools import cached_property

from lightlint.engine.arguments import Arguments
from lightlint.engine.calls import call
from lightlint.engine.events import (
    BatchSkipped,
    Cleared,
    ClosureDone,
    Configured,
    EvaluationGiven,
    FitStarted,
    MetricUsed,
    Scheduled,
    ScheduleStepped,
    StepReturned,
    Where,
)
from lightlint.engine.frames import Loop
from lightlint.engine.machine import Machine
from lightlint.frameworks.company import accompany
from lightlint.frameworks.lightning import batch_of
from lightlint.frameworks.loops import INDEX, batch_index, driven
from lightlint.frameworks.supply import PHASE, Supply, callbacks_of, give_loaders, hook, set_up_data
from lightlint.models import tensors
from lightlint.models.objects import Closure
from lightlint.models.training import modules, optim
from lightlint.values.core import (
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
from lightlint.values.training import Instance, Loader, Module, Optimizer, Schedule, Tensor


class Fit:
    """One training of one module by one Trainer."""

    def __init__(self, machine: Machine, module: Module, trainer: Instance, node: ast.AST) -> None:
        self.machine, self.module, self.trainer, self.node = machine, module, trainer, node
        self.device = _device(trainer)
        self.callbacks = [each for each in _items(trainer.arguments.get("callbacks")) if isinstance(each, Instance)]
        self.held_out: list[Value] = []  # what its validation draws from

    def has(self, name: str) -> bool:
        """Whether the program's module overrides a hook."""
        return isinstance(self.module.cls, Class) and isinstance(self.module.cls.find(name), Function)

    def is_automatic(self) -> bool | None:
        """Whether Lightning optimizes, None where the program does not say."""
        flag = self.machine.models.attribute(self.machine, self.module, "automatic_optimization", self.node)
        said = "automatic_optimization" in self.module.attributes
        of_trainer = self.trainer.arguments.get("automatic_optimization")  # where Lightning took it before 1.3
        if not said and (self.sets_mode or is_constant(of_trainer, False)):
            return None
        return self.machine.truth(flag) if said else self.machine.truth(flag) is not False

    @cached_property
    def sets_mode(self) -> bool:
        """Whether a method of the module says who optimizes, which the program may call where it is out of sight."""
        lineage = self.module.cls.lineage() if isinstance(self.module.cls, Class) else []
        nodes = (node for each in lineage if isinstance(each, Class) for node in ast.walk(each.node))
        targets = (target for node in nodes if isinstance(node, ast.Assign) for target in node.targets)
        return any(isinstance(each, ast.Attribute) and each.attr == "automatic_optimization" for each in targets)

    def own(self, name: str, *args: Value) -> Value | None:
        """A hook of the module."""
        return hook(self.machine, self.module, name, list(args), self.node)

    def all(self, name: str, *args: Value) -> Value | None:
        """A hook of the callbacks, then of the module, with what the module's gives."""
        for callback in self.callbacks:
            hook(self.machine, callback, name, [self.trainer, self.module, *args], self.node)
        return self.own(name, *args)

    def step(self, name: str, *args: Value) -> Value | None:
        """A step of the module, under the autocast that the Trainer's precision asks for."""
        asked = self.trainer.arguments.get("precision")
        dtype = _AUTOCAST.get(str(asked.value)) if isinstance(asked, Constant) else None
        if dtype is None or self.device != "cuda":
            return self.own(name, *args)
        context = self.machine.instance(Library("torch.amp.autocast"), "autocast", self.node)
        context.arguments = {"device_type": Constant("cuda"), "dtype": Constant(f"torch.{dtype}")}
        self.machine.autocasts.append(context)
        try:
            return self.own(name, *args)
        finally:
            self.machine.autocasts.remove(context)

    def loop(self, kind: str, bound: Value | None) -> AbstractContextManager[Loop]:
        """A loop of Lightning's own."""
        return driven(self.machine, kind, bound, self.node)


def _device(trainer: Instance) -> str:
    """The kind of device a Trainer moves its module to: a GPU where it does not say another."""
    cores = trainer.arguments.get("tpu_cores")  # before Lightning 2.0
    if cores is not None and not is_constant(cores, None, 0):
        return "xla"
    return _DEVICES.get(text_of(trainer.arguments.get("accelerator")) or "", "cuda")


_DEVICES = {"cpu": "cpu", "tpu": "xla", "mps": "mps", "hpu": "hpu"}
_AUTOCAST = {"16": "float16", "16-mixed": "float16", "bf16": "bfloat16", "bf16-mixed": "bfloat16"}
"""The dtype that a Trainer's precision lets autocast use."""


def fit(machine: Machine, module: Module, trainer: Instance, supply: Supply, node: ast.AST) -> None:
    """`trainer.fit(module, ...)`."""
    if not isinstance(module.cls, Class):
        machine.escape(module)
        accompany(machine, trainer, module, supply, node)
        return
    machine.made.add(id(module.cls.node))
    run = Fit(machine, module, trainer, node)
    module.trainer = trainer
    trainer.attributes["#module"] = module
    where = machine.where(node)
    in_eval = [each for each in module.modules() if not each.training]
    callbacks = callbacks_of(trainer)
    machine.emit(FitStarted(where, module, trainer, module.training, modules.by_mode(module), in_eval, callbacks))
    modules.move(module, run.device)
    machine.phases.append("setup")
    try:
        sources = _prepare(run, supply)
        guesses, assumptions = machine.guesses, machine.assumptions
        returned = run.own("configure_optimizers") or NONE
        guesses, assumptions = machine.guesses - guesses, machine.assumptions - assumptions
        returned_at = machine.returned_at
        optimizers, schedules = configured(returned)
        module.optimizers = list(optimizers) or None
        module.schedules = [each.schedule for each in schedules]
        module.configured = _in_sight(returned)
        automatic = run.is_automatic()
        made = Configured(machine.where(node), module, trainer, returned, returned_at, optimizers, schedules, automatic)
        made.whole, made.guesses, made.assumptions = module.configured, guesses, assumptions
        machine.emit(made)
        if run.has("validation_step"):
            _supply(run, supply)
        machine.phases[-1] = "train"
        by_lightning = not run.sets_mode if automatic is None else automatic
        _train(run, sources, optimizers, schedules, by_lightning)
    finally:
        machine.phases.pop()
    modules.move(module, "cpu")  # where `fit` leaves it (Strategy.teardown)


def _prepare(run: Fit, supply: Supply) -> list[Value]:
    sources, data = supply.sources, supply.data
    set_up_data(run.machine, run.trainer, supply, run.node)
    if data is not None:
        drawn = hook(run.machine, data, "train_dataloader", [], run.node)
        sources = [drawn] if drawn is not None else []
    run.own("prepare_data")
    run.all("setup", Constant("fit"))
    run.own("configure_model")
    modules.move(run.module, run.device)
    if not any(isinstance(each, (Loader, Sequence, Mapping)) for each in sources):
        drawn = run.own("train_dataloader")
        sources = [drawn] if drawn is not None else sources
    return sources


def configured(value: Value) -> tuple[list[Optimizer], list[Scheduled]]:
    """The optimizers and schedules in what `configure_optimizers` gives back."""
    optimizers: list[Optimizer] = []
    schedules: list[Scheduled] = []

    def add_schedule(each: Value | None, beside: Mapping | None) -> None:
        if isinstance(each, Schedule):
            schedules.append(Scheduled(each, "epoch", None, beside))
        elif isinstance(each, Mapping) and isinstance(schedule := each.items.get("scheduler"), Schedule):
            given = each.items.get("interval")
            interval = text_of(given) if given is not None else None if each.more else "epoch"
            schedules.append(Scheduled(schedule, interval, each, beside))
        elif isinstance(each, Sequence):
            for item in each.items:
                add_schedule(item, beside)

    def add(each: Value) -> None:
        if isinstance(each, Optimizer):
            optimizers.append(each)
        elif isinstance(each, Mapping):
            held = each.items.get("optimizer")
            if isinstance(held, Optimizer):
                optimizers.append(held)
            add_schedule(each.items.get("lr_scheduler"), each)

    if isinstance(value, Sequence):
        if len(value.items) == 2 and all(isinstance(each, Sequence) for each in value.items):
            for each in _items(value.items[0]):
                add(each)
            add_schedule(value.items[1], None)
        else:
            for each in value.items:
                add(each)
    else:
        add(value)
    return optimizers, schedules


def _in_sight(value: Value) -> bool:
    """Whether all optimizers and schedules in what `configure_optimizers` gives back are in sight."""
    if isinstance(value, (Sequence, Mapping)):
        held = value.items if isinstance(value, Sequence) else [value.items.get(each) for each in _CONFIGURED]
        return not value.more and not value.escaped and all(each is None or _in_sight(each) for each in held)
    return isinstance(value, (Optimizer, Schedule))


_CONFIGURED = ("optimizer", "lr_scheduler", "scheduler")


def _train(
    run: Fit,
    sources: list[Value],
    optimizers: list[Optimizer],
    schedules: list[Scheduled],
    automatic: bool,
) -> None:
    epochs = run.trainer.arguments.get("max_epochs") or Unknown(("trainer", "max_epochs"), plain=True)
    batches = Unknown(("trainer", "batches"), frozenset({"batches"}), plain=True)
    run.all("on_fit_start")
    run.all("on_train_start")
    with run.loop("epoch", epochs) as epoch:
        for epoch.turn in (1, 2):
            run.all("on_train_epoch_start")
            with run.loop("batch", batches) as inner:
                inner.over = _loader_in(sources)
                for inner.turn in (1, 2):
                    _step(run, sources, optimizers, schedules, automatic)
            _validate(run)
            run.own("training_epoch_end", Unknown(hint="outputs"))  # before Lightning 2.0
            run.all("on_train_epoch_end")
            _step_schedules(run, schedules, "epoch", automatic)
    run.all("on_train_end")
    run.all("on_fit_end")


def _step(
    run: Fit,
    sources: list[Value],
    optimizers: list[Optimizer],
    schedules: list[Scheduled],
    automatic: bool,
) -> None:
    machine, node = run.machine, run.node
    batch, index = batch_of(machine, sources, run.device, node), batch_index(machine)
    if is_constant(run.all("on_train_batch_start", batch, index), -1):
        machine.emit(BatchSkipped(machine.where(node), run.module, machine.returned_at))
        return
    if automatic and optimizers:
        _optimize(run, batch, index, optimizers)
        _step_schedules(run, schedules, "step", automatic)
    else:
        result = _training_step(run, batch, index, automatic)
        if automatic:
            _backward(run, result)
    run.all("on_train_batch_end", NONE, batch, index)


def _training_step(run: Fit, batch: Value, index: Value, automatic: bool) -> Value:
    machine = run.machine
    result = run.step("training_step", batch, index, Constant(0))
    own = run.module.cls.find("training_step") if isinstance(run.module.cls, Class) else None
    if result is None or not isinstance(own, Function):
        return NONE
    where = _at(machine, own)
    if machine.returned_at is not None:
        where = where._replace(site=machine.returned_at)
    surely = automatic and run.is_automatic() is True  # the step may have asked
    machine.emit(StepReturned(where, run.module, result, surely, machine.returned_at is not None))
    return result


def _backward(run: Fit, result: Value) -> None:
    loss = result.items.get("loss") if isinstance(result, Mapping) else result
    if isinstance(loss, Tensor):
        run.all("on_before_backward", loss)
        tensors.backward(run.machine, loss, run.node, "lightning")
        run.all("on_after_backward")


def _optimize(run: Fit, batch: Value, index: Value, optimizers: list[Optimizer]) -> None:
    machine, node, optimizer = run.machine, run.node, optimizers[0]

    def act() -> Value:
        result = _training_step(run, batch, index, automatic=True)
        run.all("on_before_zero_grad", optimizer)
        machine.emit(Cleared(machine.where(node), list(optimizer.parameters), optimizer, implicit=True))
        _backward(run, result)
        run.all("on_before_optimizer_step", optimizer)
        return result

    closure = machine.instance(Library("lightning.loops.Closure"), "closure", node)
    once = Closure(act)
    closure.attributes["run"] = once
    own = run.module.cls.find("optimizer_step") if isinstance(run.module.cls, Class) else None
    custom = optim.lookup_step(optimizer)
    if isinstance(own, Function):
        epoch = Unknown(("counter", "epoch", machine.loops[0].turn if machine.loops else 0), INDEX, plain=True)
        hook(machine, run.module, "optimizer_step", [epoch, index, optimizer, *_number(own), closure], node)
        machine.emit(ClosureDone(_at(machine, own), closure, own, once.called))
    elif custom is not None:
        args = custom.node.args
        by_name = any(each.arg == "closure" for each in (*args.args, *args.kwonlyargs))  # as Lightning gives it
        given = Arguments([], {"closure": closure}) if by_name else Arguments([closure])
        call(machine, Bound(optimizer, custom), given, node)
        machine.emit(ClosureDone(_at(machine, custom), closure, custom, once.called))
    else:
        optim.step(machine, optimizer, closure, node, "lightning")
    once.run(machine)


def _number(hook: Function) -> list[Value]:
    """What Lightning 1 gave `optimizer_step` ahead of the closure: the number of the optimizer."""
    names = [each.arg for each in hook.node.args.args]
    return [Constant(0)] if any("closure" in name for name in names[5:]) else []


def _at(machine: Machine, function: Function) -> Where:
    """The place of a function of the program."""
    outside, machine.file = machine.file, function.file
    try:
        return machine.where(function.node)
    finally:
        machine.file = outside


def _step_schedules(run: Fit, schedules: list[Scheduled], interval: str, automatic: bool) -> None:
    for each in schedules if automatic else []:
        if each.interval != interval:
            continue
        schedule = each.schedule
        if run.has("lr_scheduler_step"):
            run.own("lr_scheduler_step", schedule, *_told(run, each))
        else:
            schedule.steps += 1
            run.machine.emit(ScheduleStepped(run.machine.where(run.node), schedule, [], implicit=True))


def _told(run: Fit, scheduled: Scheduled) -> list[Value]:
    """What Lightning gives `lr_scheduler_step` behind a schedule: a metric for `ReduceLROnPlateau`, and None for all others of
    torch's (`_update_learning_rates`); Lightning 1 gave the number of the optimizer ahead of it."""
    holder, cls = scheduled.holder, scheduled.schedule.cls
    told = holder is None or not (holder.more or "reduce_on_plateau" in holder.items)
    waits = not told or not isinstance(cls, Library) or cls.last == "ReduceLROnPlateau"
    metric: Value = Unknown(("metric",)) if waits else NONE
    own = run.module.cls.find("lr_scheduler_step") if isinstance(run.module.cls, Class) else None
    names = [each.arg for each in own.node.args.args] if isinstance(own, Function) else []
    return [Constant(0), metric] if "optimizer_idx" in names else [metric]


def _supply(run: Fit, supply: Supply) -> None:
    """Give the Trainer the loaders of an evaluation."""
    loaders = give_loaders(run.machine, run.trainer, run.module, supply, run.node)
    run.held_out = loaders.items if isinstance(loaders, Sequence) else [loaders] if loaders is not None else []
    run.machine.emit(
        EvaluationGiven(run.machine.where(run.node), run.module, supply.entry, loaders, supply.open, supply.assumed)
    )


def _validate(run: Fit) -> None:
    if run.has("validation_step"):
        _evaluate(run, "validation", "val")


def _evaluate(run: Fit, stage: str, phase: str) -> None:
    machine = run.machine
    machine.phases.append(phase)
    machine.grad.append(False)
    modes = [(each, each.training) for each in run.module.modules()]
    for each, _ in modes:
        each.training = False
    try:
        run.all(f"on_{stage}_start")
        run.all(f"on_{stage}_epoch_start")
        with run.loop("batch", Unknown(("trainer", stage, "batches"), frozenset({"batches"}), plain=True)) as loop:
            loop.over = _loader_in(run.held_out)
            for loop.turn in (1, 2):
                batch, index = batch_of(machine, run.held_out, run.device, run.node), batch_index(machine)
                run.all(f"on_{stage}_batch_start", batch, index)
                result = run.step(f"{stage}_step", batch, index, Constant(0)) or NONE
                run.all(f"on_{stage}_batch_end", result, batch, index)
        if stage != "predict":
            run.own(f"{stage}_epoch_end", Unknown(hint="outputs"))  # before Lightning 2.0
        run.all(f"on_{stage}_epoch_end")
        run.all(f"on_{stage}_end")
    finally:
        for each, training in modes:
            each.training = training
        machine.grad.pop()
        machine.phases.pop()


def evaluate(machine: Machine, module: Module, trainer: Instance, supply: Supply, node: ast.AST) -> None:
    """`trainer.validate`, `test` and `predict`."""
    if not isinstance(module.cls, Class):
        accompany(machine, trainer, module, supply, node)
        return
    run = Fit(machine, module, trainer, node)
    module.trainer = trainer
    set_up_data(machine, trainer, supply, node)
    run.own("setup", Constant(supply.entry))
    modules.move(module, run.device)
    stage = _STAGES[supply.entry]
    if run.has(f"{stage}_step"):
        _supply(run, supply)
        _evaluate(run, stage, PHASE[supply.entry])
    modules.move(module, "cpu")


_STAGES = {"validate": "validation", "test": "test", "predict": "predict"}


def test(machine: Machine, module: Module, trainer: Instance, node: ast.AST) -> None:
    """`trainer.test` and `trainer.predict`, where there is something to do for them."""
    run = Fit(machine, module, trainer, node)
    if run.has("test_step"):
        for each in machine.objects:
            if each.kind == "metric":  # validation has left nothing in it
                machine.emit(MetricUsed(machine.where(node), each, "reset"))
        modules.move(module, run.device)
        _supply(run, Supply("test", assumed=True))
        _evaluate(run, "test", "test")
        modules.move(module, "cpu")
    if run.has("predict_step"):
        modules.move(module, run.device)
        _supply(run, Supply("predict", assumed=True))
        _evaluate(run, "predict", "predict")
        modules.move(module, "cpu")


def _loader_in(values: list[Value]) -> Loader | None:
    """The loader that some values are, if they are one."""
    return values[0] if len(values) == 1 and isinstance(values[0], Loader) else None


def _items(value: Value | None) -> list[Value]:
    return value.items if isinstance(value, Sequence) else [value] if value is not None else []
