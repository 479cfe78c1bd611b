"""Imports: a module of the project is run when somebody first asks for what it holds, a library's is its name."""

from __future__ import annotations

import ast
from contextlib import suppress

from lightlint.engine.execution import LeaveLoop, NextTurn, Raised, Returned, run
from lightlint.engine.machine import Machine
from lightlint.engine.misuse import is_caught
from lightlint.values.canonical import LIGHTNING, canonical
from lightlint.values.core import MODULE_NAME, Constant, Library, Namespace, Promised, Scope, Unknown, Value

_MOST_MODULES = 40


def import_module(machine: Machine, node: ast.Import, scope: Scope) -> None:
    """`import a.b as c`."""
    for alias in node.names:
        file = machine.sources.find(alias.name, machine.file)
        if file is not None:
            promised = Promised(file, alias.name, "", machine.file)
            if alias.asname or "." not in alias.name:
                scope.bind(alias.asname or alias.name, _if_asked(machine, promised, scope))
            else:
                _bind_dotted(machine, alias.name, kept(machine, promised), scope)
        elif alias.asname:
            scope.bind(alias.asname, _library(machine, alias.name))
        else:
            root = alias.name.partition(".")[0]
            if not isinstance(scope.names.get(root), (Namespace, Promised)):
                scope.bind(root, _library(machine, root))


def _bind_dotted(machine: Machine, dotted: str, module: Value, scope: Scope) -> None:
    root, *rest = dotted.split(".")
    holder = kept(machine, scope.names.get(root, Unknown()))
    if not isinstance(holder, Namespace):
        holder = Namespace(root, Scope(machine.file))
        scope.bind(root, holder)
    for name in rest[:-1]:
        below = kept(machine, holder.scope.names.get(name, Unknown()))
        if not isinstance(below, Namespace):
            below = Namespace(name, Scope(machine.file))
            holder.scope.names[name] = below
        holder = below
    holder.scope.names[rest[-1]] = module


def import_from(machine: Machine, node: ast.ImportFrom, scope: Scope) -> None:
    """`from a import b as c`, `from .a import *`."""
    dotted = "." * node.level + (node.module or "")
    file = machine.sources.find(dotted, machine.file)
    for alias in node.names:
        if alias.name != "*":
            promised = Promised(file, dotted, alias.name, machine.file)
            scope.bind(alias.asname or alias.name, _if_asked(machine, promised, scope))
        elif file is not None:
            names = module_of(machine, file, dotted).scope.names
            scope.names.update({name: value for name, value in names.items() if not name.startswith("_")})


def _if_asked(machine: Machine, promised: Promised, scope: Scope) -> Value:
    """What is promised, at once where that costs nothing more, or where something else may hang on the import."""
    sources, file = machine.sources, promised.file or _submodule(machine, promised)
    if file is None or file in machine.modules or scope.outer is not None or sources.registers(file):
        return kept(machine, promised)
    name = promised.name or promised.dotted
    return promised if sources.uses(machine.file, name) else kept(machine, promised)


def kept(machine: Machine, value: Value) -> Value:
    """What an import has promised; another value as it is."""
    if not isinstance(value, Promised):
        return value
    if value.found is None:
        value.found = Unknown(("import", value.dotted, value.name), hint=value.name)  # to who asks in a circle
        value.found = _member(machine, value)
    return value.found


def _member(machine: Machine, promised: Promised) -> Value:
    name = promised.name
    module = module_of(machine, promised.file, promised.dotted) if promised.file is not None else None
    if module is not None and (not name or name in module.scope.names):
        return kept(machine, module.scope.names[name]) if name else module
    file = _submodule(machine, promised)
    if file is not None:
        return module_of(machine, file, name)
    if module is not None or promised.dotted.startswith("."):
        return Unknown(("import", promised.dotted, name), hint=name)
    return machine.models.attribute(machine, _library(machine, promised.dotted), name, ast.alias(name))


def _library(machine: Machine, dotted: str) -> Library:
    package = dotted.partition(".")[0]
    one = package in LIGHTNING and not is_caught(machine, "ImportError", "ModuleNotFoundError")
    return Library(canonical(dotted), package if one else "")


def _submodule(machine: Machine, promised: Promised) -> str | None:
    separator = "" if promised.dotted.endswith(".") else "."
    return machine.sources.find(f"{promised.dotted}{separator}{promised.name}", promised.importer)


def module_of(machine: Machine, file: str, name: str, *, main: bool = False) -> Namespace:
    """A module of the project, run when first asked for; one of too many, or in a circle, as far as it has come."""
    known = machine.modules.get(file)
    if known is not None:
        return known
    scope = Scope(file)
    scope.names["__name__"] = Constant("__main__" if main else name.lstrip(".") or "module", MODULE_NAME)
    scope.names["__file__"] = Unknown(("file", file), plain=True)
    module = machine.modules[file] = Namespace(name, scope)
    tree = machine.sources.tree(file)
    if tree is None or len(machine.modules) > _MOST_MODULES:
        return module
    if main:
        machine.file = file
        run(machine, tree.body, scope)
        return module
    with machine.importing(file), suppress(Raised, Returned, LeaveLoop, NextTurn):
        run(machine, tree.body, scope)
    return module
