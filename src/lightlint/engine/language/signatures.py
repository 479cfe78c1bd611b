"""Signatures: which calls of functions and classes of the program Python itself refuses."""

from __future__ import annotations

from lightlint.engine.arguments import Arguments, of_partial
from lightlint.values.core import Bound, Class, Function, Library, Partial, Value
from lightlint.values.training import Instance, Module

_SILENT = frozenset(["builtins.object", "torch.nn.Module", "torch.utils.data.Dataset"])
"""Bases that leave it to a class what its objects are made of."""


def refuses(function: Value, given: Arguments) -> bool:
    """Whether a call that the program writes surely raises TypeError, for its arguments do not fit what is called."""
    if isinstance(function, Partial):
        return not function.open and refuses(function.function, of_partial(function, given))
    if isinstance(function, Bound):
        receiver = function.receiver
        of_one_line = isinstance(receiver, Instance) and isinstance(receiver.cls, Class) and _is_one_line(receiver.cls)
        return of_one_line and _misfits(function.function, given, 1)
    if isinstance(function, Function):
        return _misfits(function, given, 0)
    if isinstance(function, Module):
        return _is_refused_by_forward(function, given)
    init = function.find("__init__") if isinstance(function, Class) and _is_plain(function) else None
    return isinstance(init, Function) and _misfits(init, given, 1)


def _is_refused_by_forward(module: Module, given: Arguments) -> bool:
    """Whether a module's own `forward`, which gets what the module is called with, does not take it."""
    cls = module.cls
    if (
        not isinstance(cls, Class)
        or not _is_one_line(cls)
        or cls.find("__call__") is not None
        or "forward" in module.attributes
    ):
        return False
    forward = cls.find("forward")
    return isinstance(forward, Function) and _misfits(forward, given, 1)


def _is_plain(cls: Class) -> bool:
    """Whether what a class is called with goes to its `__init__` as it is: nothing out of sight stands before it."""
    lineage = cls.lineage()
    known = all(isinstance(each, Class) or (isinstance(each, Library) and each.path in _SILENT) for each in lineage)
    own = [each for each in lineage if isinstance(each, Class)]
    bare = not any(each.node.keywords or each.decorators for each in own)
    return known and bare and _is_one_line(cls) and cls.find("__new__") is None


def _is_one_line(cls: Class) -> bool:
    """Whether no class of its lineage has two bases: of several, the order in which Python asks them hangs on them all."""
    return all(len(each.bases) < 2 for each in cls.lineage() if isinstance(each, Class))


def _misfits(function: Function, given: Arguments, before: int) -> bool:
    """Whether a function cannot be called so; `before`: how many arguments come before those given."""
    if getattr(function.node, "decorator_list", ()):
        return False  # which may take other arguments than what they hand on
    parameters = function.node.args
    placed = [each.arg for each in (*parameters.posonlyargs, *parameters.args)]
    count = before + len(given.positional)
    if count > len(placed) and parameters.vararg is None:
        return True
    only_placed = {each.arg for each in parameters.posonlyargs}
    by_name = {*placed, *(each.arg for each in parameters.kwonlyargs)} - only_placed
    if parameters.kwarg is None and not given.keywords.keys() <= by_name:
        return True
    if given.keywords.keys() & set(placed[:count]) - only_placed:
        return True  # one of them twice
    required = placed[count : len(placed) - len(parameters.defaults)]
    named = given.keywords.keys() - only_placed
    missing = {
        each.arg for each, default in zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True) if not default
    }
    return not {*required, *missing} <= named
