"""Objects: making them, their attributes and methods, calling them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from copy import copy

from lightlint.engine.arguments import Arguments
from lightlint.engine.calls import call, call_unknown
from lightlint.engine.events import (
    AttributeRead,
    AttributeSet,
    Called,
    EpochSet,
    GroupStarted,
    LightningAsked,
    MetricUsed,
    PartReplaced,
    WrapperAsked,
)
from lightlint.engine.events.huggingface import EmbeddingsResized
from lightlint.engine.execution import Raised, annotation_of
from lightlint.engine.machine import WORKER, Machine
from lightlint.engine.misuse import is_caught
from lightlint.models import tensors
from lightlint.models.data import iterables, loaders
from lightlint.models.data.pictures import transforms
from lightlint.models.names.classes import class_of
from lightlint.models.names.kinds import kind_of, kind_of_class
from lightlint.models.names.parameters import parameters_of
from lightlint.models.names.tables import MODULE_METHODS, WRAPPER_ATTRIBUTES
from lightlint.models.ranks.groups import FIRST_NAMES, RANK_NAMES, rank_value
from lightlint.models.registry import ATTRIBUTES, CALLS, LIGHTNING, MAKERS, METHODS, is_lightning
from lightlint.models.training import modules, optim
from lightlint.values.core import (
    NONE,
    ON_SOME,
    Bound,
    Class,
    Constant,
    Function,
    Library,
    Mapping,
    Method,
    Scope,
    Sequence,
    Super,
    Traits,
    Unknown,
    Value,
    is_constant,
    number_of,
    text_of,
    unless_told,
)
from lightlint.values.training import Instance, Loader, Module, Optimizer, Schedule, Tensor

_TYPES: dict[str, type[Instance]] = {"module": Module, "optimizer": Optimizer, "schedule": Schedule, "loader": Loader}
_DATA_CLASSES = ("dataclass", "define", "attrs", "frozen", "s", "dataclasses")


def _new(machine: Machine, cls: Class | Library, node: ast.AST) -> Instance:
    kind = kind_of_class(cls)
    typed = _TYPES.get(kind)
    return machine.new(typed, cls, node) if typed is not None else machine.instance(cls, kind, node)


def make_library(machine: Machine, library: Library, given: Arguments, node: ast.AST) -> Instance:
    """An instance of a library's class."""
    made = _new(machine, library, node)
    initialise(machine, made, library.last, given, node)
    return made


def initialise(machine: Machine, made: Instance, last: str, given: Arguments, node: ast.AST) -> None:
    """What the `__init__` of a library's class does to an object."""
    made.initialised = True
    given.names = given.names or next(filter(None, map(parameters_of, made.libraries())), ())
    if not isinstance(made, Loader):
        made.arguments = given.by_name()
    made.open_arguments = not given.exact
    if isinstance(made, Module):
        modules.set_up(machine, made, last, given, node)
    elif isinstance(made, Optimizer):
        optim.set_up_optimizer(machine, made, given, node)
    elif isinstance(made, Schedule):
        optim.set_up_schedule(machine, made, last, given, node)
    elif isinstance(made, Loader):
        loaders.set_up_loader(machine, made, given, node)
    elif made.kind == "data set":
        loaders.set_up_data(made, last, given)
        if last == "TensorDataset":
            iterables.note_paired(machine, given.positional, node)
    elif made.kind == "sampler":
        loaders.set_up_sampler(made, given)
    elif made.kind in ("trainer", "fabric"):
        _note_ranks(machine, made, given, node)
    elif made.kind == "accelerator":
        machine.distributed = True
        if machine.sources.has_engine(machine.file):
            made.arguments.setdefault("deepspeed_plugin", Unknown(hint="plugin"))
        machine.emit(GroupStarted(machine.where(node), "Accelerator"))
    elif made.kind == "path":
        _name_path(made, given.positional)
    elif made.kind in MAKERS:
        MAKERS[made.kind](machine, made, given, node)
    elif made.kind == "unknown":
        for value in given.values():
            machine.escape(value)


def _note_ranks(machine: Machine, made: Instance, given: Arguments, node: ast.AST) -> None:
    strategy, devices, nodes = (made.arguments.get(name) for name in ("strategy", "devices", "num_nodes"))
    count = number_of(devices)
    several = (count is not None and (count > 1 or count == -1)) or (number_of(nodes) or 1) > 1
    named = text_of(strategy)
    if several or (named is not None and any(word in named for word in ("ddp", "fsdp", "deepspeed"))):
        machine.distributed = True
        machine.emit(GroupStarted(machine.where(node), made.name, given))


def make(machine: Machine, cls: Class, given: Arguments, node: ast.AST) -> Instance:
    """An instance of a class of the program."""
    made = _new(machine, cls, node)
    if not _DICTS.isdisjoint(cls.libraries()) and cls.find("__getitem__") is None:
        made.attributes["#items"] = Mapping(more=True)
    init = cls.find("__init__")
    if isinstance(init, Function):
        made.initialised = made.kind not in ("module", "metric")
        call(machine, Bound(made, init), given, node)
        return made
    if _has_fields(cls):
        _fill_fields(machine, made, cls, given, node)
        if made.kind in MAKERS:
            initialise(machine, made, cls.name, given, node)
        return made
    library = next((each.last for each in cls.lineage() if isinstance(each, Library) and kind_of(each.path)), "object")
    initialise(machine, made, library, given, node)
    return made


_DICTS = {"builtins.dict", "collections.OrderedDict", "collections.UserDict"}
OF_ROWS = frozenset(["_asdict", "_replace"])  # methods of named tuples
_LIKE_DICTS = ("dict", "EasyDict", "Dict", "Munch")  # namespaces that have a dict's methods
_OF_DICTS = {"get", "items", "keys", "values", "update", "setdefault", "pop", "clear"}


def _has_fields(cls: Class) -> bool:
    decorated = any(isinstance(each, Library) and each.last in _DATA_CLASSES for each in cls.decorators)
    return decorated or any(
        path.rpartition(".")[2] in ("NamedTuple", "BaseModel", "TypedDict") for path in cls.libraries()
    )


def _fill_fields(machine: Machine, made: Instance, cls: Class, given: Arguments, node: ast.AST) -> None:
    """What a data class's `__init__` does: a default number stays a name, for a run may be given another."""
    for position, (name, annotation, default) in enumerate(cls.all_fields()):
        value = given.get(position, name)
        if value is None and given.star is not None:
            value = machine.models.part(machine, given.star, position - len(given.positional), node)
        if value is None:
            value = _default(machine, cls, name, default, node)
            if (
                given.double_star is not None and made.kind == "object" and isinstance(value, Constant)
            ):  # `Settings(**vars(arguments))`
                value = Unknown(("field", cls.name, name), value.traits, hint=name, plain=True, default=value)
            if isinstance(value, Unknown) and annotation is not None and not value.plain:
                owner = next(
                    (
                        e
                        for e in cls.lineage()
                        if isinstance(e, Class) and name in dict.fromkeys(f[0] for f in e.fields)
                    ),
                    cls,
                )
                scope = _scope_of(machine, owner)
                if scope is not None:
                    value = machine.models.annotated(
                        machine, value, annotation_of(machine, annotation, scope), name, node
                    )
        made.attributes[name] = value
    after = cls.find("__post_init__")
    if isinstance(after, Function):
        call(machine, Bound(made, after), Arguments(), node)


def _scope_of(machine: Machine, cls: Class) -> Scope | None:
    module = machine.modules.get(cls.file)
    return module.scope if module is not None else None


def _default(machine: Machine, cls: Class, name: str, default: ast.expr | None, node: ast.AST) -> Value:
    given = default is not None and machine.sources.gives(cls.name, name)
    written = cls.find(name) if default is not None and not given else None
    if isinstance(written, Instance) and written.kind == "field":
        factory = written.arguments.get("default_factory")
        if factory is not None:
            return call(machine, factory, Arguments(), node)
        written = written.arguments.get("default")
    if written is None:
        return Unknown(("field", cls.name, name), hint=name)
    if isinstance(written, Constant) and number_of(written) is not None:
        return Unknown(("field", cls.name, name), unless_told(written), hint=name, plain=True, default=written)
    return written


def attribute(machine: Machine, value: Instance, name: str, node: ast.AST) -> Value:
    """An attribute of an object."""
    if machine.phases[-1] == WORKER:
        machine.emit(AttributeRead(machine.where(node), value, name))
    if name in value.attributes:
        held = value.attributes[name]
        return _without(held, ON_SOME) if value.escaped and isinstance(held, Unknown) else held
    if isinstance(value.cls, Class):
        found = value.cls.find(name)
        if found is not None:
            return _from_class(machine, value, found, node)
        if name == "__class__":
            return value.cls
    elif name == "__class__" and (cls := class_of(value)) is not None:
        return cls
    if name in _OF_DICTS and "#items" in value.attributes:
        return Method(value.attributes["#items"], name)
    if name in OF_ROWS and value.row() is not None:
        return Method(value, name)
    if value.kind in ("trainer", "data module") or (isinstance(value, Module) and is_lightning(value)):
        machine.emit(LightningAsked(machine.where(node), value, name))
    specific = _special(machine, value, name, node)
    if specific is not None:
        return specific
    if value.kind == "namespace":
        if name == "__dict__":
            return names_of(machine, value, node)
        if name in ("get", "update") and value.name in _LIKE_DICTS:
            return Method(value, name)
        found = Unknown(("of", value.key, name), hint=name, plain=False)
        value.attributes[name] = found
        return found
    if isinstance(value, Module) and value.opaque and name not in MODULE_METHODS:
        return modules.part_of(machine, value, name, node)
    own = value.cls.find("__getattr__") if isinstance(value.cls, Class) else None
    if isinstance(own, Function):
        try:
            return call(machine, Bound(value, own), Arguments([Constant(name)]), node)
        except Raised:  # what it was filled with is out of sight
            return Unknown(("of", value.key, name), hint=name)
    if name in RANK_NAMES or name in FIRST_NAMES:
        return rank_value(machine, name)
    told = _by_annotation(machine, value, name, node) if isinstance(value.cls, Class) else None
    if told is not None:
        return told
    if value.kind in ("object", "unknown") and isinstance(value.cls, Class):
        known = value.kind == "object" and not value.escaped
        found = Unknown(("of", value.key, name) if known or value.kind == "unknown" else None, hint=name)
        found.method_of = value
        return found
    if isinstance(value, Module) and is_parallel_wrapper(value):
        _ask_wrapper(machine, value, name, node)
    return Method(value, name)


def _ask_wrapper(machine: Machine, wrapper: Module, name: str, node: ast.AST) -> None:
    """Write down that a wrapper is asked for something that it has not and does not pass on."""
    reads = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    reads |= isinstance(node, ast.Call) and len(node.args) == 2 and getattr(node.func, "id", "") == "getattr"
    if reads and not wrappers_have(name) and not is_caught(machine, "AttributeError"):
        machine.emit(WrapperAsked(machine.where(node), wrapper, name))


def is_parallel_wrapper(module: Module) -> bool:
    """Whether it is one of torch's own wrappers that pass on nothing of what is inside."""
    return module.wrapper in ("ddp", "data-parallel") and isinstance(module.cls, Library)


def wrappers_have(name: str) -> bool:
    """Whether DDP and DataParallel have an attribute of their own, or may have."""
    return bool(_OF_MODULES.match(name)) or name in WRAPPER_ATTRIBUTES


_OF_MODULES = re.compile(r"_|(?:named|register)_")


def _without(value: Unknown, traits: Traits) -> Unknown:
    """A value that code out of sight may have set."""
    if not value.traits & traits:
        return value
    made = copy(value)
    made.traits = value.traits - traits
    return made


def _by_annotation(machine: Machine, value: Instance, name: str, node: ast.AST) -> Value | None:
    """An attribute that is given its value out of sight, as the class says what it is."""
    for cls in value.cls.lineage() if isinstance(value.cls, Class) else []:
        scope = _scope_of(machine, cls) if isinstance(cls, Class) else None
        annotation = (
            next((each for field, each, _ in cls.fields if field == name), None) if isinstance(cls, Class) else None
        )
        if annotation is not None and scope is not None:
            found = machine.models.annotated(machine, Unknown(), annotation_of(machine, annotation, scope), name, node)
            if not isinstance(found, Unknown):
                value.attributes[name] = found
                return found
    return None


def _from_class(machine: Machine, value: Instance, found: Value, node: ast.AST) -> Value:
    if not isinstance(found, Function):
        return found
    if "property" in found.flags:
        return call(machine, found, Arguments([value]), node)
    if "staticmethod" in found.flags:
        return found
    if "classmethod" in found.flags and isinstance(value.cls, Class):
        return Bound(value.cls, found)
    return Bound(value, found)


def _special(machine: Machine, value: Instance, name: str, node: ast.AST) -> Value | None:
    if isinstance(value, Module):
        found = modules.attribute(machine, value, name, node)
        if found is None and LIGHTNING in ATTRIBUTES and is_lightning(value):
            found = ATTRIBUTES[LIGHTNING](machine, value, name, node)
        if found is None and value.wrapper in ("fabric", "compiled") and isinstance(value.wraps, Module):
            found = attribute(machine, value.wraps, name, node) if name not in MODULE_METHODS else None
        return found
    if isinstance(value, Optimizer) and name == "param_groups":
        rate = Unknown(("lr", value.number), plain=True)
        group = Mapping({"params": Sequence(value.parameters), "lr": rate}, more=True, source=value)
        return Sequence([group], more=True)
    if isinstance(value, Optimizer) and name == "optimizer":
        return value.wraps or value
    if isinstance(value, Schedule) and name == "optimizer":
        return value.optimizer or Unknown()
    if isinstance(value, Loader):
        if name == "sampler":
            return value.sampler or machine.instance(Library("torch.utils.data.RandomSampler"), "sampler", node)
        if name == "batch_sampler":
            return _batch_sampler(machine, value, node)
        if name == "dataset":
            return value.data or Unknown(("data", value.number))
        if name == "batch_size":
            return Unknown(("batch size", value.number), frozenset({"batch-size"}), plain=True)
    if value.kind == "data set" and name == "dataset":
        return value.arguments.get("dataset") or Unknown()
    if value.kind in ATTRIBUTES:
        return ATTRIBUTES[value.kind](machine, value, name, node)
    if value.kind == "path" and name in ("parent", "stem", "suffix", "name", "parents"):
        return path(machine, node, value, is_text=name in ("stem", "suffix", "name"))
    if value.kind == "distribution" and name in ("mean", "probs", "logits", "loc", "scale", "variance", "stddev"):
        return tensors.derive(machine, node, *value.arguments.values())
    if name == "n" and "disable" in value.arguments:
        return _counted(machine, value)
    return None


def _counted(machine: Machine, bar: Instance) -> Value:
    """How far a bar of tqdm is: nowhere, for ever, where it shows nothing."""
    told = bar.arguments["disable"]
    if machine.truth(told):
        return Constant(0, told.traits)
    key = ("of", bar.key, "n", tuple(loop.turn for loop in machine.loops))
    return Unknown(key, told.traits | frozenset({"count"}), plain=True)


def _batch_sampler(machine: Machine, loader: Loader, node: ast.AST) -> Value:
    """What a loader was given, else what it makes of its own sampler."""
    given = loader.arguments.get("batch_sampler")
    if given is not None and not is_constant(given, None):
        return given
    made = machine.instance(Library("torch.utils.data.BatchSampler"), "sampler", node)
    made.attributes["sampler"] = attribute(machine, loader, "sampler", node)
    return made


_OF_TENSORS = ("data", "grad")


def set_attribute(machine: Machine, value: Instance, name: str, new: Value, node: ast.AST) -> None:
    """`value.name = new`."""
    before = value.attributes.get(name)
    if isinstance(value.cls, Class):
        found = value.cls.find(name)
        if isinstance(found, Function) and "property" in found.flags:
            return
    if isinstance(value, Module):
        if value.whole is not None and name in _OF_TENSORS:
            return  # what is out of sight is a tensor then
        if name == "training":
            value.training = not is_constant(new, False)  # a mode that was kept is that of before: training, as a rule
        if isinstance(before, Module) and isinstance(new, Module):
            machine.emit(PartReplaced(machine.where(node), value, before, new))
        if value.opaque and isinstance(new, Module) and "embed" in name:
            machine.emit(EmbeddingsResized(machine.where(node), value))
        if name == "weight" and isinstance(new, Tensor) and new.parameter and value.own:
            value.own = [new]  # two layers share it
        if isinstance(new, Tensor) and name in value.buffers:
            new.buffer = True
            value.buffers[name] = new
        for each in [new] if isinstance(new, Tensor) else new.items if isinstance(new, Sequence) else []:
            if isinstance(each, Tensor) and not (each.parameter or each.buffer) and each.device == "cpu":
                each.stored_at = machine.site(node)
    if isinstance(value, Optimizer) and name == "param_groups":
        optim.take_groups(machine, value, new, node)
    if value.kind == "sampler" and name == "epoch":
        machine.emit(EpochSet(machine.where(node), value))  # all that `set_epoch` does
    value.attributes[name] = new
    if isinstance(new, Instance):
        modules.note_replaced(machine, new, before, node)
    machine.emit(AttributeSet(machine.where(node), value, name, new, before))


def call_method(machine: Machine, value: Value, name: str, given: Arguments, node: ast.AST) -> Value:
    """A method that a library gives an object."""
    if isinstance(value, Super):
        if name == "forward" and isinstance(value.receiver, Module):
            return modules.library_forward(machine, value.receiver, given, node)
        return call_library_method(machine, value.receiver, name, given, node)
    if isinstance(value, Instance):
        return call_library_method(machine, value, name, given, node)
    if isinstance(value, Unknown) and name in OF_TENSORS and all(map(_is_number, given.values())):
        return tensors.of_unknown(machine, value, name, given, node)
    return call_unknown(machine, Method(value, name), given, node)


OF_TENSORS = frozenset(["softmax", "log_softmax", "sigmoid", "unsqueeze", "view"])
"""Methods that nothing but a tensor has, if they are given numbers."""


def _is_number(value: Value) -> bool:
    return number_of(value) is not None or (isinstance(value, Unknown) and value.plain)


def call_library_method(machine: Machine, value: Value, name: str, given: Arguments, node: ast.AST) -> Value:
    """A method of the library class behind an object."""
    if not isinstance(value, Instance):
        return call_unknown(machine, Method(value, name), given, node)
    if name == "__init__":
        lineage = value.cls.lineage() if isinstance(value.cls, Class) else [value.cls]
        base = next((each for each in lineage if isinstance(each, Library)), None)
        if base is not None and value.kind == "callback":
            machine.emit(Called(machine.where(node), base.path, given))  # it is told there what to watch
        initialise(machine, value, base.last if base is not None else "object", given, node)
        return NONE
    if isinstance(value, Module) and LIGHTNING in METHODS and is_lightning(value):
        return METHODS[LIGHTNING](machine, value, name, given, node)
    model = METHODS.get(value.kind)
    if model is not None:
        return model(machine, value, name, given, node)
    if value.kind in ("callback", "context", "grad mode", "file", "exception", "object", "data module"):
        return NONE if name != "__getattr__" else Unknown()
    return call_unknown(machine, Method(value, name), given, node)


def call_object(machine: Machine, value: Value, given: Arguments, node: ast.AST) -> Value:
    """A call of an object."""
    if isinstance(value, Module):
        return modules.call_module(machine, value, given, node)
    if isinstance(value, Instance):
        own = value.cls.find("__call__") if isinstance(value.cls, Class) else None
        if isinstance(own, Function):
            return call(machine, Bound(value, own), given, node)
        if value.kind in CALLS:
            return CALLS[value.kind](machine, value, given, node)
        if value.kind == "load result":
            modules.note_use(machine, value, "()", node)
            return Unknown()
        if value.kind == "metric":
            machine.emit(MetricUsed(machine.where(node), value, "forward", given.values()))
            result = tensors.derive(machine, node)
            result.metric = value
            return result
        first = given.positional[0] if given.positional else None
        if value.kind == "grad mode" and isinstance(first, Function):
            first.flags.add("enable_grad" if value.name == "enable_grad" else "no_grad")
            return first
        if value.kind == "transform":
            return transforms.transformed(machine, value, given, node)
        if value.kind == "closure":
            run = value.attributes.get("run")
            if isinstance(run, Closure):
                return run.run(machine)
            return Unknown()
        if value.kind in ("context", "decorator", "autocast") and first is not None:
            return first
    return call_unknown(machine, value, given, node)


class Closure(Value):
    """What a framework gives an optimizer to call: it runs once, and remembers that it has."""

    def __init__(self, act: object) -> None:
        self.act = act
        self.called = False

    def run(self, machine: Machine) -> Value:
        """Run what it holds."""
        if self.called:
            return Unknown()
        self.called = True
        assert callable(self.act)
        result = self.act()
        return result if isinstance(result, Value) else NONE


def path(machine: Machine, node: ast.AST, *parts: Value, is_text: bool = False) -> Instance:
    """A path made of parts: what ranks tell apart in a part, they tell apart in the whole. `is_text`: a str says it."""
    made = machine.instance(Library("builtins.str" if is_text else "pathlib.Path"), "path", node)
    _name_path(made, parts)
    return made


def _name_path(made: Instance, parts: Iterable[Value]) -> None:
    parts = [*parts]
    made.traits = frozenset(trait for part in parts for trait in part.traits)
    made.key = (
        "path",
        *(part.key if part.key is not None else ("part", made.number, at) for at, part in enumerate(parts)),
    )


def namespace(machine: Machine, node: ast.AST, values: dict[str, Value]) -> Instance:
    """An object that is only names."""
    made = machine.instance(Library("types.SimpleNamespace"), "namespace", node)
    made.attributes.update(values)
    return made


def names_of(machine: Machine, value: Instance, node: ast.AST) -> Instance:
    """The dict in which a namespace holds its names: what changes one changes the other."""
    names = machine.instance(Library("builtins.dict"), "namespace", node)
    names.attributes, names.key = value.attributes, value.key
    return names
