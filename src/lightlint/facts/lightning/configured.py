"""What `configure_optimizers` returns: optimizers, schedulers and their settings, out of every shape Lightning takes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.names import UNKNOWN
from lightlint.facts.lightning.contents import Contents, Entries
from lightlint.facts.lightning.hooks import Hook, Owner
from lightlint.facts.objects.classes import OPTIMIZER
from lightlint.facts.ranks.world import FABRIC
from lightlint.facts.values.values import Origin

if TYPE_CHECKING:
    from lightlint.facts.linked import Linked

CONFIGURE = Hook(Owner.MODULE, "configure_optimizers")
SCHEDULERS = "torch.optim.lr_scheduler."
PLATEAU = SCHEDULERS + "ReduceLROnPlateau"
_BASES = (SCHEDULERS + "LRScheduler", SCHEDULERS + "_LRScheduler", PLATEAU)
_NOT_SCHEDULERS = {SCHEDULERS + name for name in ("Optimizer", "Tensor", "Counter")}
_DEPTH = 5


class Part(StrEnum):
    """What a part of a return value is, as far as is sure."""

    OPTIMIZER = "optimizer"
    SCHEDULER = "scheduler"
    DICT = "dict"
    LIST = "list"
    TUPLE = "tuple"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Scheduler:
    """A scheduler handed to Lightning: as written, where it comes from, and the dicts around it where there are any.

    Of `origins` those without a name are out of sight. `config` is the dict that holds the scheduler, `beside` the one that holds the optimizer.
    """

    written: cst.BaseExpression
    origins: tuple[Origin, ...]
    config: Entries | None
    beside: Entries | None


@dataclass(frozen=True, slots=True)
class Returned:
    """One value that a `configure_optimizers` can return. `optimizers` is None where their number is out of sight."""

    statement: cst.Return
    value: cst.BaseExpression
    part: Part
    parts: tuple[Part, ...]
    optimizers: tuple[cst.BaseExpression, ...] | None
    dicts: tuple[Entries, ...]
    schedulers: tuple[Scheduler, ...]
    configs: tuple[Entries, ...]


class Configured:
    """The return values of the `configure_optimizers` methods of one file."""

    def __init__(self, facts: Linked) -> None:
        self._facts = facts
        self._tree = facts.tree
        self._names = facts.names
        self._contents = Contents(facts.tree, facts.names)

    def of_class(self, node: cst.ClassDef) -> tuple[Returned, ...]:
        """What the method that a class has or inherits in this file returns."""
        method = self._facts.classes.method(node, CONFIGURE.name)
        return self.of(method) if method is not None else ()

    def of(self, method: cst.FunctionDef) -> tuple[Returned, ...]:
        """What one method returns."""
        found: list[Returned] = []
        for statement in self._tree.own(method, cst.Return):
            if statement.value is not None:
                found.extend(self._read(statement, value) for value in self._sources(statement.value))
        return tuple(found)

    @cached_property
    def methods(self) -> tuple[tuple[cst.ClassDef, cst.FunctionDef], ...]:
        """The `configure_optimizers` methods of this file with their classes."""
        pairs = [(self._tree.class_of(each), each) for each in self._tree.all(cst.FunctionDef)]
        return tuple(
            (node, each) for node, each in pairs if node is not None and self._facts.hooks.of(each) == CONFIGURE
        )

    @cached_property
    def is_free(self) -> bool:
        """Whether others than the Trainer may take what is returned: a call in this file, a subclass's, or Fabric's loop."""
        calls = any(self._names.method(call) == CONFIGURE.name for call in self._tree.all(cst.Call))
        return calls or self._runs_by_hand

    @cached_property
    def is_looped(self) -> bool:
        """Whether a loop of others' may take what is returned: a call on an object in this file, or Fabric's."""
        calls = [call for call in self._tree.all(cst.Call) if self._names.method(call) == CONFIGURE.name]
        receivers = [call.func.value for call in calls if isinstance(call.func, cst.Attribute)]
        own = (self._facts.classes.is_self(each) or self._names.call(each) == "builtins.super" for each in receivers)
        return not all(own) or self._runs_by_hand

    @cached_property
    def _runs_by_hand(self) -> bool:
        """Whether a Fabric, whose loop calls the hooks itself, may run this file's modules."""
        here = any(self._names.call(call) == FABRIC for call in self._tree.all(cst.Call))
        project, path = self._facts.project, self._facts.path
        return here or bool(project.users(path, "Fabric") or project.imports_one_with(path, "Fabric"))

    def is_scheduler(self, name: str) -> bool:
        """Whether a canonical name is that of a torch scheduler, or of a class made from one."""
        last = name.removeprefix(SCHEDULERS)
        is_torch = name.startswith(SCHEDULERS) and last[:1].isupper() and name not in _NOT_SCHEDULERS
        return is_torch or self._facts.classes.name_is_a(name, *_BASES)

    def is_plateau(self, origin: Origin) -> bool:
        """Whether a scheduler is a `ReduceLROnPlateau`."""
        return self._facts.classes.name_is_a(origin.name, PLATEAU)

    def part(self, expression: cst.BaseExpression) -> Part:
        """What an expression is; unknown unless all it can be is of one kind."""
        kinds = {self._part_of(source) for source in self._sources(expression)}
        return kinds.pop() if len(kinds) == 1 else Part.UNKNOWN

    def _part_of(self, source: cst.BaseExpression) -> Part:
        match source:
            case cst.Dict():
                return Part.DICT
            case cst.List() | cst.ListComp():
                return Part.LIST
            case cst.Tuple():
                return Part.TUPLE
            case cst.Call() if self._names.call(source) == "builtins.dict":
                return Part.DICT
        origins = self._facts.values.origins(source)
        if origins and all(self._facts.classes.name_is_a(each.name, OPTIMIZER) for each in origins):
            return Part.OPTIMIZER
        return Part.SCHEDULER if origins and all(self.is_scheduler(each.name) for each in origins) else Part.UNKNOWN

    def _sources(self, expression: cst.BaseExpression, depth: int = 0) -> list[cst.BaseExpression]:
        """Where a value comes from, through local names and helper methods that are not hooks."""
        found: list[cst.BaseExpression] = []
        for source in self._facts.reaching.sources(expression):
            held = self._of_table(source) if isinstance(source, cst.Call) and depth < _DEPTH else []
            if held:
                found += [inner for each in held for inner in self._sources(each, depth + 1)]
                continue
            callee = self._facts.hooks.callee(source) if isinstance(source, cst.Call) else None
            returns = self._tree.own(callee, cst.Return) if callee is not None and depth < _DEPTH else []
            if callee is not None and returns and self._facts.hooks.of(callee) is None:
                for each in returns:
                    found.extend(self._sources(each.value, depth + 1) if each.value else [source])
            else:
                found.append(source)
        return found

    def _of_table(self, call: cst.Call) -> list[cst.BaseExpression]:
        """What `MAKERS["plateau"](optimizer)` gives: what each of the lambdas of a dict gives that the key may choose."""
        func = call.func
        index = func.slice[0].slice if isinstance(func, cst.Subscript) and len(func.slice) == 1 else None
        table = self._facts.dicts.held(func.value) if isinstance(func, cst.Subscript) else None
        if not isinstance(index, cst.Index) or table is None or table.perhaps != frozenset():
            return []
        key = self._names.constant(index.value)
        node = self._facts.classes.self_class(index.value.value) if isinstance(index.value, cst.Attribute) else None
        if node is not None and isinstance(index.value, cst.Attribute):
            family = (node, *self._facts.hooks.subclasses.get(node, ()))
            keys = {self._facts.classes.constant(each, index.value.attr.value, UNKNOWN) for each in family}
            key = keys.pop() if len(keys) == 1 else UNKNOWN
        made = [table.values[key]] if isinstance(key, str) and key in table.values else list(table.values.values())
        lambdas = [each for each in made if isinstance(each, cst.Lambda)]
        return [each.body for each in lambdas] if len(lambdas) == len(made) else []

    def _read(self, statement: cst.Return, value: cst.BaseExpression) -> Returned:
        part = self._part_of(value)
        items = self._contents.items(value) if part in {Part.LIST, Part.TUPLE} else None
        parts = tuple(map(self.part, items)) if items is not None else ()
        optimizers: list[cst.BaseExpression] | None = None
        schedulers: list[tuple[cst.BaseExpression, Entries | None]] = []
        dicts: list[Entries] = []
        if part is Part.OPTIMIZER:
            optimizers = [value]
        elif part is Part.DICT:
            dicts = self._all_entries(value)
        elif items is not None and len(items) == 2 and parts[0] is Part.LIST:
            optimizers = self._items_of(items[0])
            given = self._items_of(items[1]) if parts[1] in {Part.LIST, Part.TUPLE} else [items[1]]
            schedulers = [(each, None) for each in given or ()]
        elif items and all(each is Part.DICT for each in parts):
            dicts = [entries for item in items for entries in self._all_entries(item)]
            optimizers = items
        elif items is not None and Part.UNKNOWN not in parts:
            optimizers = items
        if part is Part.DICT and dicts:
            optimizers = [value]
        for entries in dicts:
            if "lr_scheduler" in entries.values:
                schedulers.append((entries.values["lr_scheduler"], entries))
        counted = [value] if parts[:1] != (Part.LIST,) else self._sources(items[0]) if items else []
        if not all(map(self._contents.is_counted, counted)):
            optimizers = None
        read = [self._schedulers(written, beside) for written, beside in schedulers]
        return Returned(
            statement,
            value,
            part,
            parts,
            tuple(optimizers) if optimizers is not None else None,
            tuple(dicts),
            tuple(each for some, _ in read for each in some),
            tuple(config for _, configs in read for config in configs),
        )

    def _schedulers(self, written: cst.BaseExpression, beside: Entries | None) -> tuple[list[Scheduler], list[Entries]]:
        """The schedulers that one place can hold, and the config dicts among them."""
        found: list[Scheduler] = []
        configs: list[Entries] = []
        plain: list[cst.BaseExpression] = []
        for source in self._sources(written):
            if self._part_of(source) is not Part.DICT:
                plain.append(source)
                continue
            for entries in self._contents.entries(source):
                configs.append(entries)
                if "scheduler" in entries.values:
                    inner = entries.values["scheduler"]
                    found.append(Scheduler(inner, self._origins(self._sources(inner)), entries, beside))
        if plain:
            found.append(Scheduler(written, self._origins(plain), None, beside))
        return found, configs

    def _origins(self, sources: list[cst.BaseExpression]) -> tuple[Origin, ...]:
        return tuple(origin for each in sources for origin in self._facts.values.origins(each) or [Origin("")])

    def _items_of(self, expression: cst.BaseExpression) -> list[cst.BaseExpression] | None:
        found = [self._contents.items(source) for source in self._sources(expression)]
        return found[0] if len(found) == 1 else None

    def _all_entries(self, expression: cst.BaseExpression) -> list[Entries]:
        return [entries for source in self._sources(expression) for entries in self._contents.entries(source)]
