"""Which calls are Lightning's `self.log` and `self.log_dict`, and their settings."""

from __future__ import annotations

import libcst as cst

from lightlint.facts.code.names import UNKNOWN, Names
from lightlint.facts.code.tree import Tree
from lightlint.facts.lightning.hooks import Hooks, Owner
from lightlint.facts.objects.classes import Classes
from lightlint.facts.values.dicts import Dicts

_LOGS = {"log", "log_dict"}


class Logs:
    """The log calls of one file."""

    def __init__(self, tree: Tree, names: Names, classes: Classes, hooks: Hooks, dicts: Dicts) -> None:
        self._tree = tree
        self._names = names
        self._classes = classes
        self._hooks = hooks
        self._dicts = dicts

    def argument(self, call: cst.Call, name: str, place: int | None = None) -> object:
        """The constant a log call gives for a setting, in a `**dict` too; None where it gives none, `UNKNOWN` where it is
        out of sight."""
        given = self._dicts.argument(call, name, place)
        if given.value is None:
            return None if given.sure else UNKNOWN
        return self._names.constant(given.value)

    def is_log(self, call: cst.Call) -> bool:
        """Whether a call is Lightning's `log` or `log_dict`: on `self` of a module, a callback or a mixin of one, or on
        `pl_module`."""
        if not isinstance(call.func, cst.Attribute) or call.func.attr.value not in _LOGS:
            return False
        node = self._tree.enclosing_class(call)
        if node is None or self._hooks.role(node) not in {Owner.MODULE, Owner.CALLBACK}:
            return False
        receiver, method = call.func.value, call.func.attr.value
        is_own = self._classes.is_self(receiver) and not self._is_redefined(node, method)
        return is_own or (isinstance(receiver, cst.Name) and receiver.value == "pl_module")

    def _is_redefined(self, node: cst.ClassDef, method: str) -> bool:
        """Whether a class has a method in the place of Lightning's; a mixin gets that of the classes below it."""
        heirs = () if self._hooks.owner(node) else self._hooks.subclasses.get(node, ())
        return method in self._classes.methods(node) or any(self._classes.has_method(each, method) for each in heirs)
