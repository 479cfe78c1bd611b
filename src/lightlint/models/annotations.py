"""What annotations say of values of which nothing else is known."""

from __future__ import annotations

import ast
import re
from weakref import WeakKeyDictionary

from lightlint.engine.arguments import Arguments
from lightlint.engine.execution import Raised
from lightlint.engine.machine import Machine
from lightlint.models.names.kinds import kind_of, kind_of_class
from lightlint.models.training import modules
from lightlint.syntax import walked
from lightlint.values.core import TRUE, Class, Constant, Library, Mapping, Sequence, Unknown, Value
from lightlint.values.training import Instance, Loader, Module, Optimizer, Schedule, Tensor

_PLAIN = ("builtins.int", "builtins.float", "builtins.str", "builtins.bool")


def annotated(machine: Machine, value: Value, annotation: Value, name: str, node: ast.AST) -> Value:
    """A value of which only its annotation is known; itself where that says nothing."""
    if not isinstance(value, Unknown):
        return value
    if isinstance(annotation, Library):
        if annotation.path in _PLAIN:
            return Unknown(value.key, value.traits, hint=value.hint or name, plain=True)
        found = of_library(machine, annotation.path, node)
        return found if found is not None else value
    if isinstance(annotation, Class):
        return assumed(machine, annotation, node) or value
    if isinstance(annotation, Sequence):
        held = [annotated(machine, Unknown(), each, name, node) for each in annotation.items]
        if not any(isinstance(each, Unknown) for each in held):
            return Sequence(held, "list" if annotation.kind == "sequence" else annotation.kind, more=True)
    return value


def of_library(machine: Machine, path: str, node: ast.AST) -> Value | None:
    """Some object of a library's class, made out of sight."""
    if path in ("torch.Tensor", "torch.FloatTensor", "torch.LongTensor"):
        tensor = machine.tensor(node)
        tensor.role, tensor.leaf = "batch", False
        return tensor
    kind = kind_of(path)
    if kind == "module":
        module = modules.opaque(machine, node, path)
        module.assumed = True
        modules.move(module, None)
        return module
    if kind == "optimizer":
        optimizer = machine.new(Optimizer, Library(path), node)
        optimizer.more = optimizer.assumed = True
        return optimizer
    if kind == "schedule":
        schedule = machine.new(Schedule, Library(path), node)
        schedule.assumed = True
        return schedule
    if kind == "loader":
        loader = machine.new(Loader, Library(path), node)
        loader.assumed = loader.open_arguments = True
        return loader
    if kind in ("trainer", "fabric", "accelerator", "scaler", "path", "data set", "sampler"):
        found = machine.instance(Library(path), kind, node)
        found.open_arguments = True
        return found
    return None


def assumed(machine: Machine, cls: Class, node: ast.AST) -> Instance | None:
    """Some instance of a class of the program: it is made with arguments of which nothing is known."""
    if machine.entered[id(cls.node)] or kind_of_class(cls) == "unknown":
        return None
    machine.entered[id(cls.node)] += 1
    before, objects = len(machine.events), len(machine.objects)
    try:
        made: Instance | None = machine.models.make(machine, cls, Arguments(), node)
    except Raised:  # not for who has made it
        made = next((each for each in machine.objects[objects:] if each.cls is cls), None)
        if isinstance(made, Module):
            modules.leave_open(machine, made, node)
    finally:
        machine.entered[id(cls.node)] -= 1
        del machine.events[before:]  # it was made somewhere else, before
    if made is not None:
        _open(made, cls)
    return made


def _open(made: Instance, cls: Class) -> None:
    """Let what a plain object gathers be longer than its constructor leaves it, and what it counts be any number: whoever
    hands it on may have filled it."""
    if made.kind != "object":
        return
    counted = _counted(cls.node)
    for name, value in made.attributes.items():
        if isinstance(value, Mapping) or (isinstance(value, Sequence) and value.kind != "tuple"):
            value.more = True
        elif isinstance(value, Constant) and name in counted:
            made.attributes[name] = Unknown(hint=name, plain=True)


_COUNTED: WeakKeyDictionary[ast.AST, frozenset[str]] = WeakKeyDictionary()


def _counted(cls: ast.AST) -> frozenset[str]:
    """The attributes that a class adds something to: looked up once, for it may be assumed a thousand times."""
    found = _COUNTED.get(cls)
    if found is None:
        targets = (each.target for each in walked(cls) if isinstance(each, ast.AugAssign))
        found = _COUNTED[cls] = frozenset(each.attr for each in targets if isinstance(each, ast.Attribute))
    return found


_BY_NAME: tuple[tuple[str, str], ...] = (
    (r"optim|^opt(_\w)?$|_opt$", "torch.optim.Optimizer"),
    (r"sched", "torch.optim.lr_scheduler.LRScheduler"),
    (r"loader|^dl$|_dl$", "torch.utils.data.DataLoader"),
    (r"crit(?!ic)|loss_f|loss_func|objective", "torch.nn.L1Loss"),
    (
        r"^(model|net|network|policy|module|encoder|decoder|generator|discriminator|backbone|teacher|student|actor|critic"
        r"|classifier|autoencoder|vae|unet)_?\d?$|_(model|net|network)$|^net_?([a-rt-z]|[A-Z])$|^model_",
        "torch.nn.Module",
    ),
    (r"scaler", "torch.amp.GradScaler"),
    (r"^(x|y|batch|inputs?|targets?|labels?|images?|data|xb|yb|src|tgt)$", "torch.Tensor"),
    (r"^trainer$", "lightning.Trainer"),
    (r"^fabric$", "lightning.fabric.Fabric"),
    (r"^accelerator$", "accelerate.Accelerator"),
)
# `make_model` makes one, `d_model` is a number (and `d_opt` a discriminator's optimizer), and `model_path` says where one lies.
_OF_OTHER_KIND = re.compile(
    r"^d_model$|^(?:make|build|create|get|load|save|use|num|n|dim|is|has|log|rebuild|set|which|new|generate)_"
    r"|_(?:names?|paths?|class(?:es)?|cls|k?w?args|types?|config\w*|cfg|conf|opts|options|ids?|files?|filename|dir|directory|folder"
    r"|size|scale|depth|dims?|params?|states?|(?:state_)?dict|urls?|keys?|index|idx|steps?|str|arch|architecture|version|mode|kind"
    r"|freq|frequency|interval|factor|factory|builder|maker|creator|constructor|inputs?|outputs?|out|(?<!loss_)fn|(?<!loss_)func)$"
)


def by_name(machine: Machine, name: str, node: ast.AST) -> Value:
    """A value for a parameter that nobody gives one, by the parameter's name."""
    from lightlint.models.ranks.groups import FIRST_NAMES, RANK_NAMES, rank_value

    if name in RANK_NAMES or name in FIRST_NAMES:
        return rank_value(machine, name)
    for pattern, path in _BY_NAME if _OF_OTHER_KIND.search(name) is None else ():
        if re.search(pattern, name):
            found = of_library(machine, path, node)
            if found is not None:
                if isinstance(found, Tensor):
                    found.device = None
                elif isinstance(found, Instance) and found.kind == "trainer":
                    found.attributes["#by name"] = TRUE  # it may be no Trainer of Lightning's
                return found
    return Unknown(("parameter", name), hint=name)
