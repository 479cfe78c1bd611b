"""Imports: a module of the project is run when first imported, a library's is its name."""

from __future__ import annotations

import ast

from lightlint.engine.execution import LeaveLoop, NextTurn, Raised, Returned, run
from lightlint.engine.machine import Machine
from lightlint.values.canonical import canonical
from lightlint.values.core import Constant, Library, Namespace, Scope, Unknown, Value

_MOST_MODULES = 40


def import_module(machine: Machine, node: ast.Import, scope: Scope) -> None:
    """`import a.b as c`."""
    for alias in node.names:
        file = machine.sources.find(alias.name, machine.file)
        if file is not None:
            found = module_of(machine, file, alias.name)
            if alias.asname or "." not in alias.name:
                scope.bind(alias.asname or alias.name, found)
            else:
                _bind_dotted(machine, alias.name, found, scope)
        elif alias.asname:
            scope.bind(alias.asname, Library(canonical(alias.name)))
        else:
            root = alias.name.partition(".")[0]
            if not isinstance(scope.names.get(root), Namespace):
                scope.bind(root, Library(canonical(root)))


def _bind_dotted(machine: Machine, dotted: str, module: Value, scope: Scope) -> None:
    root, *rest = dotted.split(".")
    holder = scope.names.get(root)
    if not isinstance(holder, Namespace):
        holder = Namespace(root, Scope(machine.file))
        scope.bind(root, holder)
    for name in rest[:-1]:
        below = holder.scope.names.get(name)
        if not isinstance(below, Namespace):
            below = Namespace(name, Scope(machine.file))
            holder.scope.names[name] = below
        holder = below
    holder.scope.names[rest[-1]] = module


def import_from(machine: Machine, node: ast.ImportFrom, scope: Scope) -> None:
    """`from a import b as c`, `from .a import *`."""
    dotted = "." * node.level + (node.module or "")
    file = machine.sources.find(dotted, machine.file)
    module = module_of(machine, file, dotted) if file is not None else None
    for alias in node.names:
        if alias.name == "*":
            if module is not None:
                public = {name: value for name, value in module.scope.names.items() if not name.startswith("_")}
                scope.names.update(public)
            continue
        scope.bind(alias.asname or alias.name, _member(machine, module, dotted, alias.name, node.level > 0))


def _member(machine: Machine, module: Namespace | None, dotted: str, name: str, relative: bool) -> Value:
    if module is not None and name in module.scope.names:
        return module.scope.names[name]
    separator = "" if dotted.endswith(".") else "."
    file = machine.sources.find(f"{dotted}{separator}{name}", machine.file)
    if file is not None:
        return module_of(machine, file, name)
    if module is not None or relative:
        return Unknown(("import", dotted, name), hint=name)
    return Library(canonical(f"{dotted}.{name}"))


def module_of(machine: Machine, file: str, name: str, *, main: bool = False) -> Namespace:
    """A module of the project, run when first asked for; one of too many, or in a circle, as far as it has come."""
    known = machine.modules.get(file)
    if known is not None:
        return known
    scope = Scope(file)
    scope.names["__name__"] = Constant("__main__" if main else name.lstrip(".") or "module")
    scope.names["__file__"] = Unknown(("file", file), plain=True)
    module = machine.modules[file] = Namespace(name, scope)
    tree = machine.sources.tree(file)
    if tree is None or len(machine.modules) > _MOST_MODULES:
        return module
    outside = machine.file, machine.loops, machine.conditions, machine.calls
    machine.file, machine.loops, machine.conditions, machine.calls = file, [], [], []
    try:
        run(machine, tree.body, scope)
    except (Raised, Returned, LeaveLoop, NextTurn):
        if main:
            raise
    finally:
        machine.file, machine.loops, machine.conditions, machine.calls = outside
    return module
