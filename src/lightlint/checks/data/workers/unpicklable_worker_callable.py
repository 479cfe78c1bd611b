from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import AttributeSet, Called
from lightlint.facts.code.names import UNKNOWN
from lightlint.facts.data.workers import LOADER, Method, Starter
from lightlint.facts.objects.classes import CALLBACK, DATA_MODULE, DATASET, MODULE
from lightlint.facts.objects.pickling import Obstacle
from lightlint.facts.project.mentions import runs_where_processes_spawn
from lightlint.facts.project.options import project_default
from lightlint.finding import Tier
from lightlint.frameworks.supply import callbacks_of
from lightlint.values.core import (
    Bound,
    Class,
    Function,
    Library,
    Mapping,
    Partial,
    Sequence,
    Value,
    is_constant,
    number_of,
    text_of,
    written,
)
from lightlint.values.training import Instance, Loader

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path

_TASKS = {"map", "map_async", "imap", "imap_unordered", "starmap", "starmap_async", "apply", "apply_async", "submit"}
_PICKLERS = ("dill", "cloudpickle")
_SAYING = ("multiprocessing.set_start_method", "torch.multiprocessing.set_start_method")
_OWN_PICKLING = ("__getstate__", "__reduce__", "__reduce_ex__")
_DEPTH = 4
_PIN = re.compile(r"pin (?P<file>[^:]+):(?P<row>\d+)")
_CUDA_WHEEL = re.compile(r"\btorch\b.*\+cu\d")
# arguments that reach a process as it starts, with their positions
_SENT: dict[Starter, tuple[tuple[str, int], ...]] = {
    Starter.LOADER: (("dataset", 0), ("collate_fn", 6), ("worker_init_fn", 10)),
    Starter.PROCESS: (("target", 1), ("args", 3)),
    Starter.POOL: (("initializer", 1), ("initargs", 2)),
    Starter.EXECUTOR: (("initializer", 2), ("initargs", 3)),
    Starter.SPAWN: (("fn", 0), ("args", 1)),
}

_ANY_METHOD = "workers start by spawn or forkserver (macOS, Windows, Python 3.14)"


class UnpicklableWorkerCallable(Check):
    def visit_Call(self, call: cst.Call) -> None:
        starter = self.facts.workers.starter(call)
        if starter is not None:
            self._start(call, starter)
        elif self.names.method(call) in _TASKS and isinstance(call.func, cst.Attribute):
            self._task(call, call.func)

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        """What a launcher that spawns ranks has to pickle: the module, the data module, the callbacks."""
        if not self.classes.is_a(node, MODULE, DATA_MODULE, CALLBACK):
            return
        met = self.facts.pickling.state(node)
        if met is not None and self._ranks_are_spawned():
            self.report(met.node, f"`ddp_spawn` pickles `{node.name.value}`, and it holds {met.what}")

    def wants_users(self) -> tuple[str, ...]:
        """Where a Lightning class or a data set of this file gets a function of its own: who fits it may spawn its ranks."""
        return ("Trainer",) if any(map(self._makes_functions, self.tree.all(cst.ClassDef))) else ()

    def _makes_functions(self, node: cst.ClassDef) -> bool:
        """Whether a new object has functions made for it, by its class or by another function of this file."""
        init = self.classes.methods(node).get("__init__")
        made = self.tree.within(init.body, cst.Lambda, cst.FunctionDef) if init is not None else []
        called = (
            {self.names.of(each.func) for each in self.tree.within(init.body, cst.Call)} if init is not None else ()
        )
        makers = (each for each in self.tree.module.body if isinstance(each, cst.FunctionDef))
        given = (each for each in makers if self.names.defined(each) in called)
        made = made or [inner for each in given for inner in self.tree.within(each.body, cst.Lambda, cst.FunctionDef)]
        return bool(made) and self.classes.is_a(node, MODULE, DATA_MODULE, CALLBACK, DATASET)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        yield from self._of_loaders(entry)
        for path in entry.paths:
            for fit in path.of(Called):
                trainer = fit.receiver if fit.path == "fit" else None
                strategy = text_of(trainer.arguments.get("strategy")) if trainer is not None else None
                if trainer is not None and strategy is not None and strategy.startswith("ddp_spawn"):
                    yield from _of_ranks(path, fit, trainer)

    def _of_loaders(self, entry: Entry) -> Iterator[Fault]:
        """Loaders that hand their workers what cannot be pickled."""
        context = _start_method(entry)
        for event in entry.calls.get(LOADER, ()):
            workers = event.argument("num_workers", 5)
            given = event.argument("multiprocessing_context", 11)
            method = context if given is None or is_constant(given, None) else text_of(given)
            default = number_of(written(workers))
            if not event.given.exact or workers is None or number_of(workers) == 0 or method in ("fork", None):
                continue
            how = f"workers start by `{method}`" if method else _ANY_METHOD
            for keyword, position in _SENT[Starter.LOADER]:
                met = held_back(event.argument(keyword, position))
                if met is not None:
                    tier = Tier.ERROR if method else self._by_platform()
                    message = f"`{keyword}` {met}, which cannot be pickled where {how}"
                    yield Fault.of(event, message, tier=tier if default else Tier.NOTE, argument=keyword)

    def _task(self, call: cst.Call, func: cst.Attribute) -> None:
        """A function that goes to the workers of a pool through a queue: pickled whatever the start method."""
        pool = self.facts.workers.made(func.value)
        if self.facts.workers.starter(pool) not in {Starter.POOL, Starter.EXECUTOR} or self._pickles_more():
            return
        sent = self.names.argument(call, "func", 0) or self.names.argument(call, "fn", 0)
        met = self.facts.pickling.obstacle(sent.value) if sent else None
        if met is not None and sent is not None:
            self.report(sent.value, f"`{func.attr.value}` pickles its function, which {_is(met)}")

    def _start(self, call: cst.Call, starter: Starter) -> None:
        method = self.facts.workers.method(call)
        count = self.facts.workers.count(call) if starter is Starter.LOADER else 1
        if method in {Method.FORK, Method.UNKNOWN} or count == 0:
            return
        for keyword, position in _SENT[starter]:
            sent = self.names.argument(call, keyword, position)
            met = self.facts.pickling.obstacle(sent.value) if sent else None
            if met is None or sent is None:
                continue
            if method.pickles:
                how, tier = f"workers start by `{method}`", Tier.ERROR
            else:
                how, tier = _ANY_METHOD, self._by_platform()
            place = met.node if isinstance(met.node, cst.Lambda) and self.tree.contains(sent, met.node) else sent.value
            self.report(
                place,
                f"`{keyword}` {_is(met)}, which cannot be pickled where {how}",
                tier=tier if count is not UNKNOWN or self._works_untold(call) else Tier.NOTE,
            )

    def _by_platform(self) -> Tier:
        """Where the platform chooses how workers start it matters to who uses one that spawns them."""
        on_cuda = self._is_pinned_for_cuda()
        spawns = runs_where_processes_spawn(self.facts.project, self.facts.source, on_cuda=on_cuda)
        return Tier.WARNING if spawns else Tier.NOTE

    def _is_pinned_for_cuda(self) -> bool:
        """Whether the line that pins torch asks for a wheel with CUDA: `torch==2.1.0+cu118`."""
        found = _PIN.fullmatch(self.facts.torch.source)
        if found is None:
            return False
        lines = self.facts.project.text(self.facts.project.root / found["file"]).splitlines()
        row = int(found["row"])
        return row <= len(lines) and _CUDA_WHEEL.search(lines[row - 1]) is not None

    def _works_untold(self, loader: cst.Call) -> bool:
        """Whether a loader has workers in a program that is started without arguments."""
        count = self.facts.datasets.workers(loader)
        given = self.facts.workers.given(loader, "num_workers", 5)
        if count is UNKNOWN and len(given.values) == 1 and given.always:
            count = project_default(self.facts, given.values[0])
        return isinstance(count, int) and count > 0

    def _ranks_are_spawned(self) -> bool:
        """Whether every Trainer that may run this file's classes starts its ranks with `ddp_spawn`."""
        trainers = self.facts.world.trainers
        given = [
            [each.arguments.get(name) for name in ("strategy", "accelerator", "distributed_backend")]
            for each in trainers
        ]
        spawns = [any(isinstance(each, str) and each.startswith("ddp_spawn") for each in values) for values in given]
        return bool(spawns) and all(spawns)

    def _pickles_more(self) -> bool:
        """Whether the file brings a pickler that may take functions by value."""
        imports = self.tree.all(cst.Import, cst.ImportFrom)
        return any(name.value in _PICKLERS for each in imports for name in self.tree.within(each, cst.Name))


def _of_ranks(path: Path, fit: Called, trainer: Instance) -> Iterator[Fault]:
    """What the module, the data module, the callbacks and the loaders hold that cannot be sent to ranks that are spawned."""
    sent = {id(each): each for each in _sent([*fit.given.values(), *(callbacks_of(trainer) or ())])}
    yield from _of_sent_loaders(fit, [each for each in sent.values() if isinstance(each, Loader)])
    last: dict[tuple[int, str], AttributeSet] = {}
    for event in path.of(AttributeSet):
        if event.time < fit.time:
            last[id(event.object), event.name] = event
        elif held_back(event.value) is not None:
            return  # what a hook makes is made on each rank
    for (owner, _), event in last.items():
        met = _unpicklable(event.value) if owner in sent else None
        cls = sent[owner].cls if met else None
        if met and isinstance(cls, Class) and not any(cls.find(name) is not None for name in _OWN_PICKLING):
            fault = Fault.at(event, f"`ddp_spawn` pickles `{cls.name}`, and it holds {_said(met)}", event.site)
            here = _is_lambda(met) and met.file == event.site[0]  # a lambda is to blame where it is written
            yield replace(fault, site=met.name_site()) if here else fault


def _sent(values: Iterable[Value | None], depth: int = 0) -> Iterator[Instance]:
    """The objects among some values that go to the ranks, those in containers and the data of loaders, too."""
    for each in values if depth <= _DEPTH else ():
        if isinstance(each, (Sequence, Mapping)):
            yield from _sent(each.items.values() if isinstance(each, Mapping) else each.items, depth + 1)
        elif isinstance(each, Instance):
            yield each
            if isinstance(each, Loader):
                yield from _sent([each.data], depth + 1)
            elif each.kind == "data set" and isinstance(each.cls, Library):  # of a part, the whole
                yield from _sent([*each.attributes.values(), *each.arguments.values()], depth + 1)


def _of_sent_loaders(fit: Called, loaders: list[Loader]) -> Iterator[Fault]:
    """Loaders that take functions along which cannot be sent, whether they have workers or not."""
    for each in loaders:
        for keyword in ("collate_fn", "worker_init_fn"):
            met = _unpicklable(each.arguments.get(keyword))
            if met is not None and each.site is not None and not each.assumed:
                here = _is_lambda(met) and met.file == each.site[0]
                message = f"`ddp_spawn` pickles the loader, and its `{keyword}` is {_said(met)}"
                yield replace(Fault.at(fit, message), site=met.name_site() if here else each.site)


def _is(met: Obstacle) -> str:
    return f"{'holds' if met.held else 'is'} {met.what}"


def _start_method(entry: Entry) -> str | None:
    """How the program says that processes start: "" where it does not say, None where that is out of sight."""
    calls = [event for name in _SAYING for event in entry.calls.get(name, ())]
    said = {text_of(event.argument("method", 0)) for event in calls}
    return "" if not said else said.pop() if len(said) == 1 else None


def held_back(value: Value | None) -> str | None:
    """What keeps a value from being pickled, as "is a lambda" or "holds a lambda"; None where nothing in sight does."""
    met = _unpicklable(value)
    return f"{'is' if met is value else 'holds'} {_said(met)}" if met is not None else None


def _said(function: Function) -> str:
    return "a lambda" if _is_lambda(function) else f"the nested function `{function.name}`"


def _is_lambda(function: Function) -> bool:
    return function.name == "<lambda>"


def _unpicklable(value: Value | None, depth: int = 0) -> Function | None:
    """The function that keeps a value from being pickled: it, or one that it holds."""
    if isinstance(value, Function):
        nested = value.scope.function is not None and value.owner is None
        return value if _is_lambda(value) or nested else None
    held: list[Value] = []
    if isinstance(value, Bound):
        held = [value.receiver]
    elif isinstance(value, Partial):
        held = [value.function, *value.args, *value.keywords.values()]
    elif isinstance(value, (Sequence, Mapping)):
        held = [*value.items.values()] if isinstance(value, Mapping) else value.items
    elif isinstance(value, Instance) and not value.escaped:
        own = isinstance(value.cls, Class) and any(value.cls.find(name) is not None for name in _OWN_PICKLING)
        held = [] if own else [*value.attributes.values(), *value.arguments.values()]
    found = (_unpicklable(each, depth + 1) for each in held if depth < _DEPTH)
    return next((met for met in found if met is not None), None)
