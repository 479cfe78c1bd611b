"""Python's standard library, and small libraries used like it."""

from __future__ import annotations

import ast
from collections.abc import Hashable
from dataclasses import replace

from lightlint.engine.arguments import Arguments
from lightlint.engine.containers import key_of, listed, made
from lightlint.engine.events import EnvironmentSet, MadeFromCheckpoint, StateLoaded
from lightlint.engine.execution import Raised
from lightlint.engine.frames import Iteration
from lightlint.engine.machine import Machine
from lightlint.models import objects, tensors
from lightlint.models.data import iterables
from lightlint.models.python.containers import mapping_method
from lightlint.models.ranks import groups
from lightlint.models.registry import function, methods
from lightlint.values.core import (
    CHANCES,
    NONE,
    Class,
    Constant,
    Function,
    Library,
    Mapping,
    Partial,
    Sequence,
    Site,
    Unknown,
    Value,
    is_constant,
    text_of,
)
from lightlint.values.training import Instance, Iterator, Module, Tensor


@function("functools.partial")
def _partial(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    if not given.positional:
        return Unknown()
    said: dict[Hashable, Site] = dict.fromkeys(given.keywords, machine.site(node)) | given.said
    found = Partial(given.positional[0], given.positional[1:], dict(given.keywords), said)
    found.open = not given.exact
    return found


@function("functools.wraps", "functools.lru_cache", "functools.cache")
def _identity_decorator(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    if given.positional and isinstance(given.positional[0], Function) and not given.keywords:
        named = getattr(getattr(node, "func", None), "attr", getattr(getattr(node, "func", None), "id", ""))
        if named != "wraps":
            return given.positional[0]
    return machine.instance(Library("functools.wraps"), "decorator", node)


@function("builtins.dict.fromkeys")
def _from_keys(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    given_keys = given.get(0, "iterable")
    keys, known = listed(machine, given_keys, node) if given_keys is not None else ([], False)
    value = given.get(1, "value") or NONE
    found = Mapping({key_of(each, ("?", number)): value for number, each in enumerate(keys)}, more=not known)
    found.made_over = given_keys
    return found


@function("copy.deepcopy", "copy.copy")
def _copy(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    value = given.get(0, "x")
    shallow = isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) == "copy"
    if value is None:
        return Unknown()
    if shallow and isinstance(value, Mapping):
        return mapping_method(machine, value, "copy", Arguments(), node)
    if not shallow and _holds_generator(value):
        raise Raised(Library("builtins.TypeError"))  # nothing copies one
    return value if shallow and not isinstance(value, (Sequence, Mapping)) else copied(machine, value, node, {})


def _holds_generator(value: Value) -> bool:
    """Whether a value is a generator, or a container with one in it."""
    if isinstance(value, Sequence):
        return value.kind == "generator" or any(map(_holds_generator, value.items))
    return isinstance(value, Mapping) and any(map(_holds_generator, value.items.values()))


def copied(machine: Machine, value: Value, node: ast.AST, seen: dict[int, Value], depth: int = 0) -> Value:
    """A deep copy."""
    if id(value) in seen:
        return seen[id(value)]
    if isinstance(value, Tensor):
        seen[id(value)] = twin = tensors.copy(machine, value, node)
        return twin
    if isinstance(value, Sequence):
        return Sequence(
            [copied(machine, each, node, seen, depth + 1) for each in value.items], value.kind, more=value.more
        )
    if isinstance(value, Mapping):
        items = {key: copied(machine, each, node, seen, depth + 1) for key, each in value.items.items()}
        return Mapping(items, more=value.more)
    if isinstance(value, Iterator):
        return Unknown()  # one that goes on by itself
    if not isinstance(value, Instance) or depth > 8:
        return value
    made_object = (
        machine.instance(value.cls, value.kind, node)
        if type(value) is Instance
        else machine.new(type(value), value.cls, node)
    )
    seen[id(value)] = made_object
    for name, held in vars(value).items():
        if name in ("number", "key", "site", "made", "serial", "cls", "kind"):
            continue
        if isinstance(held, Value) and name not in ("trainer", "within_ddp", "managed_by"):
            setattr(made_object, name, copied(machine, held, node, seen, depth + 1))
        elif isinstance(held, list):
            copies = [
                copied(machine, each, node, seen, depth + 1) if isinstance(each, Value) else each for each in held
            ]
            setattr(made_object, name, copies)
        elif isinstance(held, dict):
            pairs = {
                key: copied(machine, each, node, seen, depth + 1) if isinstance(each, Value) else each
                for key, each in held.items()
            }
            setattr(made_object, name, pairs)
        else:
            setattr(made_object, name, held)
    return made_object


@function("itertools.islice")
def _islice(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    source = iterables.iterate(machine, given.positional[0] if given.positional else Unknown(), node)
    stop = given.positional[1] if len(given.positional) == 2 else Unknown(plain=True)
    return iterables.iterator(machine, replace(source, bound=stop), node, "islice")


@function("itertools.count")
def _count(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    return iterables.range_of(machine, given.positional[:1] or [Constant(0)], node, endless=True)


@function("itertools.cycle")
def _cycle(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    source = iterables.iterate(machine, given.positional[0] if given.positional else Unknown(), node)
    endless = iterables.iterator(machine, replace(source, bound=None), node, "cycle")
    endless.source.over = endless
    return endless


@function("itertools.chain.from_iterable", "itertools.tee")
def _through(_: Machine, given: Arguments, __: ast.AST) -> Value:
    return given.positional[0] if given.positional else Unknown()


@function(
    "tqdm.tqdm",
    "tqdm.auto.tqdm",
    "tqdm.notebook.tqdm",
    "tqdm.std.tqdm",
    "tqdm.rich.tqdm",
    "tqdm.tqdm_notebook",
    "rich.progress.track",
    "fastprogress.progress_bar",
    "fastprogress.master_bar",
    "fastprogress.fastprogress.progress_bar",
    "fastprogress.fastprogress.master_bar",
    "alive_progress.alive_it",
    "progressbar.progressbar",
)
def _progress(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    value = given.get(0, "iterable") or given.keywords.get("sequence")
    if value is None or is_constant(value, None):
        return _shown(machine.instance(Library("tqdm.tqdm"), "context", node), given)
    return _shown(iterables.iterator(machine, iterables.iterate(machine, value, node), node, "progress"), given)


@function("tqdm.trange", "tqdm.auto.trange", "tqdm.notebook.trange", "tqdm.tnrange")
def _trange(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    return _shown(iterables.range_of(machine, given.positional, node), given)


def _shown(bar: Instance, given: Arguments) -> Instance:
    """A bar of tqdm, which counts nothing where it is told to show nothing."""
    if "disable" in given.keywords:
        bar.arguments["disable"] = given.keywords["disable"]
    return bar


@function("itertools.chain")
def _chain(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    found = Sequence([], "generator")
    for value in given.positional:
        if isinstance(value, Sequence):
            found.items += value.items
            found.more |= value.more
        else:
            items, known = listed(machine, value, node)
            found.items += items
            found.more |= not known
    found.more |= given.star is not None
    return found


@function("itertools.product")
def _product(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    rows = [iterables.iterate(machine, value, node) for value in given.positional]
    if not rows:
        return Unknown()
    lead = next((row for row in rows if row.kind == "batch"), rows[-1])

    def pull(turn: int) -> Value | None:
        items = [row.pull(min(turn, row.turns - 1)) for row in rows]
        present = [item for item in items if item is not None]
        return Sequence(present, "tuple") if len(present) == len(items) and turn < 2 else None

    return iterables.iterator(machine, Iteration(pull, lead.kind, 2, False, None, lead.over), node, "product")


@function(
    "contextlib.nullcontext",
    "contextlib.suppress",
    "contextlib.closing",
    "contextlib.redirect_stdout",
)
def _context(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    context = machine.instance(Library("contextlib.nullcontext"), "context", node)
    if given.positional:
        context.attributes["value"] = given.positional[0]
    return context


@function(
    "omegaconf.OmegaConf.create",
    "omegaconf.OmegaConf.load",
    "omegaconf.OmegaConf.merge",
)
def _configuration(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    first = given.get(0, "obj")
    if isinstance(first, Mapping):
        return objects.namespace(
            machine, node, {key: value for key, value in first.items.items() if isinstance(key, str)}
        )
    return Unknown(("configuration", getattr(node, "lineno", 0)), hint="cfg")


@function("collections.defaultdict")
def _defaultdict(_: Machine, given: Arguments, __: ast.AST) -> Value:
    found = Mapping(more=True)
    found.default = given.get(0, "default_factory")
    return found


@function("collections.OrderedDict")
def _ordered(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    first = given.get(0, "")
    if isinstance(first, Mapping):
        return mapping_method(machine, first, "copy", Arguments(), node)
    found = Mapping(dict(given.keywords.items()))
    if first is not None:
        rows, known = listed(machine, first, node)
        found.more = not known
        for number, row in enumerate(rows):
            if isinstance(row, Sequence) and len(row.items) == 2:
                found.items[key_of(row.items[0], ("?", number))] = row.items[1]
    return found


@function("collections.deque")
def _deque(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    first = given.get(0, "iterable")
    items = first.items if isinstance(first, Sequence) else []
    return made(machine, Sequence(items, "deque", more=bool(getattr(first, "more", False))), node)


@function("math.ceil", "math.floor", "math.trunc")
def _whole(_: Machine, given: Arguments, __: ast.AST) -> Value:
    first = given.get(0, "x") or Unknown()
    return (
        Constant(int(first.value)) if isinstance(first, Constant) and isinstance(first.value, (int, float)) else first
    )


@function("os.environ.get", "os.getenv")
def _environment(machine: Machine, given: Arguments, __: ast.AST) -> Value:
    return groups.from_environment(machine, given.get(0, "key"))


@function("os.environ.setdefault", "os.putenv")
def _set_variable(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    name = given.get(0, "key")
    machine.emit(EnvironmentSet(machine.where(node), text_of(name)))
    return groups.from_environment(machine, name)


@function("os.environ.update")
def _set_variables(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    table = given.get(0, "other")
    told = table.items if isinstance(table, Mapping) else ()
    for name in (*told, *given.keywords):
        machine.emit(EnvironmentSet(machine.where(node), name if isinstance(name, str) else None))
    return NONE


@function("shutil.rmtree", "sys.path.append", "sys.path.insert", "random.seed", "numpy.random.seed")
def _nothing(_: Machine, __: Arguments, ___: ast.AST) -> Value:
    return NONE


@function("sys.exit", "os._exit")
def _exit(_: Machine, __: Arguments, ___: ast.AST) -> Value:
    raise Raised(Library("builtins.SystemExit"))


@methods("distribution")
def distribution_method(machine: Machine, value: Value, name: str, given: Arguments, node: ast.AST) -> Value:
    """A method of `torch.distributions.Distribution`: `sample` carries no gradient, `rsample` does."""
    assert isinstance(value, Instance)
    held = list(value.arguments.values())
    made = tensors.derive(machine, node, *held, *given.values(), graph=name != "sample")
    if name == "log_prob":
        made.traits |= CHANCES
    if name == "sample":  # what was drawn is no network's number
        made.traits -= tensors.PREDICTED
    return made


@methods("iterator")
def iterator_method(machine: Machine, value: Value, name: str, _: Arguments, __: ast.AST) -> Value:
    """A method of a progress bar and its like."""
    return Unknown() if name != "close" else NONE


def class_method(machine: Machine, cls: Class, name: str, given: Arguments, node: ast.AST) -> Value:
    """A class method that a library gives a class of the program."""
    if name in ("load_from_checkpoint", "from_pretrained"):
        if name == "load_from_checkpoint":
            machine.emit(MadeFromCheckpoint(machine.where(node), cls, given))
        found = objects.make(machine, cls, Arguments(star=Unknown(), double_star=Unknown()), node)
        if isinstance(found, Module) and name == "from_pretrained":
            for each in found.modules():
                each.training = False
        elif isinstance(found, Module):
            machine.emit(StateLoaded(machine.where(node), found, Unknown()))
        return found
    return Unknown()
