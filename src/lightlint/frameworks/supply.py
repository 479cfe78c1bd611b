"""What a run of a Trainer is given to go over, and where it gets the rest from."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from lightlint.engine.arguments import Arguments
from lightlint.engine.calls import call
from lightlint.engine.execution import LeaveLoop, NextTurn, Raised
from lightlint.engine.machine import Machine
from lightlint.values.core import Bound, Class, Constant, Function, Sequence, Unknown, Value, is_constant
from lightlint.values.training import Instance, Loader

_LOADERS = {
    "fit": ("val_dataloaders", 2),
    "validate": ("dataloaders", 1),
    "test": ("dataloaders", 1),
    "predict": ("dataloaders", 1),
}
PHASE = {"fit": "val", "validate": "val", "test": "test", "predict": "predict"}


@dataclass
class Supply:
    """What is handed to `fit`, `validate`, `test` or `predict` besides the module.

    `sources`: all that training may go over. `evaluated`: the loaders of the evaluation. `open`: it may get others. `assumed`: nobody in sight
    calls it.
    """

    entry: str
    sources: list[Value] = field(default_factory=list)
    evaluated: Value | None = None
    data: Instance | None = None
    open: bool = True
    assumed: bool = False


def supplied(entry: str, given: Arguments) -> Supply:
    """What a call hands over."""
    name, position = _LOADERS[entry]
    sources = given.behind(1 if given.positional else 0).values()
    sources = [each for each in sources if each is not given.keywords.get("model")]
    data = next((each for each in sources if isinstance(each, Instance) and each.kind == "data module"), None)
    evaluated = given.get(position, name)
    if evaluated is data:
        evaluated = None
    drawn = given.get(1, "train_dataloaders") or given.keywords.get("train_dataloader")
    if entry == "fit" and isinstance(drawn, Loader):
        sources = [drawn]
    unknown = data is None and "datamodule" in given.keywords
    return Supply(entry, sources, evaluated, data, open=not given.exact or unknown)


def hook(machine: Machine, holder: Instance, name: str, args: list[Value], node: ast.AST) -> Value | None:
    """Call a hook with as many arguments as it takes; None where no class of the program has it."""
    found = holder.cls.find(name) if isinstance(holder.cls, Class) else None
    if not isinstance(found, Function):
        return None
    parameters = found.node.args
    named = [each.arg for each in (*parameters.posonlyargs, *parameters.args)][1:]
    args = [_of_rank(each, name) for each, name in zip(args, [*named, *("" for _ in args)], strict=False)]
    most = len(args) if parameters.vararg else len(named)
    machine.hooks.append(name)
    try:
        return call(machine, Bound(holder, found), Arguments(args[:most]), node)
    except (Raised, LeaveLoop, NextTurn):
        return Unknown()
    finally:
        machine.hooks.pop()


def _of_rank(value: Value, name: str) -> Value:
    """An argument of a hook of which nothing is known, by its name if each rank has its own."""
    unknown = isinstance(value, Unknown) and value.key is None and name in ("batch", "outputs")
    return Unknown(("parameter", name), hint=name) if unknown else value


def set_up_data(machine: Machine, trainer: Instance | None, supply: Supply, node: ast.AST) -> None:
    """Prepare a data module for a run, of a Trainer if that is in sight."""
    if supply.data is not None:
        if trainer is not None:
            trainer.attributes["datamodule"] = supply.data
        hook(machine, supply.data, "prepare_data", [], node)
        hook(machine, supply.data, "setup", [Constant(supply.entry)], node)


def callbacks_of(trainer: Instance) -> list[Instance] | None:
    """The callbacks that a Trainer has, None where some may be out of sight."""
    given = trainer.arguments.get("callbacks")
    settled = not trainer.open_arguments or "#cli" in trainer.attributes
    if given is None or is_constant(given, None):
        return [] if settled else None
    items = given.items if isinstance(given, Sequence) and not given.more else [given]
    found = [each for each in items if isinstance(each, Instance) and each.kind == "callback"]
    return found if settled and not given.escaped and len(found) == len(items) else None


def give_loaders(
    machine: Machine, trainer: Instance, module: Value | None, supply: Supply, node: ast.AST
) -> Value | None:
    """The loaders that a run evaluates on, as `trainer.val_dataloaders` and its like give them; None for none in sight."""
    phase = PHASE[supply.entry]
    found = supply.evaluated
    holder = supply.data or module
    if found is None and isinstance(holder, Instance):
        found = hook(machine, holder, f"{phase}_dataloader", [], node)
    if found is not None and not supply.open:
        trainer.attributes[f"{phase}_dataloaders"] = found
        if isinstance(found, Loader):
            found.giver = f"{phase}_dataloaders"
    else:
        trainer.attributes.pop(f"{phase}_dataloaders", None)
    return found
