"""The small programs that entries of a file stand for: what calls what the file only defines."""

from __future__ import annotations

from collections.abc import Callable

from lightlint.engine.arguments import Arguments
from lightlint.engine.calls import call
from lightlint.engine.imports import module_of
from lightlint.engine.machine import Machine
from lightlint.explore.assumed import assumed_arguments, call_with_assumed, has_run, make_with_assumed
from lightlint.frameworks.company import go_along
from lightlint.frameworks.fit import fit, test
from lightlint.frameworks.supply import Supply, hook, set_up_data
from lightlint.models.annotations import by_name
from lightlint.models.data.loaders import batch
from lightlint.models.data.workers import work
from lightlint.models.names.kinds import kind_of_class
from lightlint.models.training.modules import move, set_mode
from lightlint.values.core import Class, Function, Library, Sequence, Unknown, Value
from lightlint.values.training import Loader, Module, tensors_in

MOST_METHODS = 4
Start = Callable[[Machine], None]


def passing(file: str, name: str) -> Start:
    """A module, made and called in training, then in evaluation mode, on a GPU with what it is given."""

    def start(machine: Machine) -> None:
        cls = _named(machine, file, name)
        forward = cls.find("forward") if isinstance(cls, Class) else None
        module = make_with_assumed(machine, cls) if isinstance(cls, Class) else None
        if isinstance(module, Module) and isinstance(cls, Class) and isinstance(forward, Function):
            for training in (True, False):
                set_mode(machine, module, training, cls.node)
                given = assumed_arguments(machine, forward, skip=1)
                if not training:
                    move(module, "cuda")
                    for each in (tensor for value in given.values() for tensor in tensors_in(value)):
                        each.device = "cuda"
                machine.given_back.append(call(machine, module, given, cls.node))

    return start


def main(file: str) -> Start:
    """The file as the main program."""

    def start(machine: Machine) -> None:
        module_of(machine, file, "__main__", main=True)

    return start


def running(file: str, name: str) -> Start:
    """A function, called."""

    def start(machine: Machine) -> None:
        function = _named(machine, file, name)
        if isinstance(function, Function):
            call_with_assumed(machine, function, None)

    return start


def fitting(file: str, name: str) -> Start:
    """A LightningModule, fitted and tested by a Trainer of its own with the callbacks of the file."""

    def start(machine: Machine) -> None:
        cls = _named(machine, file, name)
        if isinstance(cls, Class):
            module = make_with_assumed(machine, cls)
            trainer = machine.instance(Library("lightning.Trainer"), "trainer", cls.node)
            trainer.open_arguments = True
            trainer.arguments["callbacks"] = Sequence(_callbacks(machine, file), more=True)
            if isinstance(module, Module):
                fit(machine, module, trainer, Supply("fit", assumed=True), cls.node)
                test(machine, module, trainer, cls.node)

    return start


def metering(file: str, name: str) -> Start:
    """A metric, given two batches and asked for its value."""

    def start(machine: Machine) -> None:
        cls = _named(machine, file, name)
        made = make_with_assumed(machine, cls) if isinstance(cls, Class) else None
        for method in ("update", "update", "compute"):
            found = cls.find(method) if isinstance(cls, Class) else None
            if isinstance(found, Function):
                call_with_assumed(machine, found, made)

    return start


def hooking(file: str, name: str) -> Start:
    """A callback, whose hooks are called in their order."""

    def start(machine: Machine) -> None:
        cls = _named(machine, file, name)
        if not isinstance(cls, Class):
            return
        callback = make_with_assumed(machine, cls)
        trainer = machine.instance(Library("lightning.Trainer"), "trainer", cls.node)
        module = by_name(machine, "model", cls.node)
        go_along(machine, [callback], [trainer, module], "fit", cls.node)

    return start


def making(file: str, class_name: str, methods: list[str]) -> Start:
    """An object, made, and its methods called in their order."""

    def start(machine: Machine) -> None:
        cls = _named(machine, file, class_name)
        made = make_with_assumed(machine, cls) if isinstance(cls, Class) else None
        for name in methods:
            found = cls.find(name) if isinstance(cls, Class) else None
            if isinstance(found, Function) and "setter" not in found.flags and not has_run(machine, found):
                call_with_assumed(machine, found, made)

    return start


def supplying(file: str, name: str) -> Start:
    """A data module, whose loaders a module out of sight trains with and is evaluated on."""

    def start(machine: Machine) -> None:
        cls = _named(machine, file, name)
        if not isinstance(cls, Class):
            return
        data, module = make_with_assumed(machine, cls), by_name(machine, "model", cls.node)
        assert isinstance(module, Module)
        for entry, phase in (("fit", "train"), ("fit", "val"), ("test", "test")):
            if phase != "val":
                set_up_data(machine, None, Supply(entry, data=data), cls.node)
            found = hook(machine, data, f"{phase}_dataloader", [], cls.node)
            set_mode(machine, module, phase == "train", cls.node)
            machine.phases.append(phase)
            machine.grad.append(phase == "train")
            for each in found.items if isinstance(found, Sequence) else [found]:
                if isinstance(each, Loader):
                    call(machine, module, Arguments([*tensors_in(batch(machine, each, cls.node))[:1]]), cls.node)
            machine.grad.pop()
            machine.phases.pop()

    return start


def loading(file: str, name: str) -> Start:
    """A data set, read by a loader that the file does not show."""

    def start(machine: Machine) -> None:
        cls = _named(machine, file, name)
        if isinstance(cls, Class):
            loader = machine.new(Loader, Library("torch.utils.data.DataLoader"), cls.node)
            loader.assumed, loader.data = True, make_with_assumed(machine, cls)
            loader.arguments = {"dataset": loader.data, "num_workers": Unknown()}
            work(machine, loader, cls.node)

    return start


def running_method(file: str, class_name: str, name: str) -> Start:
    """A method of an object that is made for it."""

    def start(machine: Machine) -> None:
        cls = _named(machine, file, class_name)
        found = cls.find(name) if isinstance(cls, Class) else None
        if isinstance(cls, Class) and isinstance(found, Function) and "setter" not in found.flags:
            made = make_with_assumed(machine, cls)
            if not has_run(machine, found):
                call_with_assumed(machine, found, made)

    return start


def _named(machine: Machine, file: str, name: str) -> Value | None:
    return module_of(machine, file, file).scope.names.get(name)


def _callbacks(machine: Machine, file: str) -> list[Value]:
    """The callbacks that a file defines, which the Trainer that it does not show may be given."""
    here = [each for each in machine.modules[file].scope.names.values() if isinstance(each, Class)]
    of_file = [each for each in here if each.file == file and kind_of_class(each) == "callback"]
    return [make_with_assumed(machine, each) for each in of_file[:MOST_METHODS]]
