"""What LightningModules and callbacks log: every `self.log` and `self.log_dict` with its keys and its settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from lightlint.facts.classes import Classes
from lightlint.facts.dicts import Dicts
from lightlint.facts.hooks import Hook, Hooks, Owner
from lightlint.facts.names import UNKNOWN, Names
from lightlint.facts.strings import Strings
from lightlint.facts.tree import Tree

_LOGS = {"log", "log_dict"}
_DEPTH = 4
Conditions = Callable[[cst.CSTNode], list[tuple[cst.BaseExpression, bool]]]


@dataclass(frozen=True, slots=True)
class LogCall:
    """One call. `keys` is None where they are out of sight; `hooks` are those it runs in, empty where none is known."""

    call: cst.Call
    keys: frozenset[str] | None
    hooks: frozenset[Hook]


class Logs:
    """The log calls of one file."""

    def __init__(
        self,
        tree: Tree,
        names: Names,
        classes: Classes,
        hooks: Hooks,
        strings: Strings,
        dicts: Dicts,
        conditions: Conditions,
    ) -> None:
        self._tree = tree
        self._names = names
        self._classes = classes
        self._hooks = hooks
        self._strings = strings
        self._dicts = dicts
        self._conditions = conditions

    def of_class(self, node: cst.ClassDef) -> list[LogCall]:
        """The log calls in a class and in the classes above it that lie in this file."""
        bodies = self._classes.line(node)
        return [self._read(call) for body in bodies for call in self._tree.within(body, cst.Call) if self.is_log(call)]

    @cached_property
    def calls(self) -> tuple[LogCall, ...]:
        """Every log call of the file."""
        return tuple(self._read(call) for call in self._tree.all(cst.Call) if self.is_log(call))

    def sure_hooks(self, node: cst.CSTNode, depth: int = 0) -> frozenset[Hook]:
        """The hooks in which code runs without a doubt: that in which it stands, those whose calls of a helper no test guards."""
        function = self._tree.function(node)
        own = self._hooks.of(function) if function is not None else None
        if own is not None:
            return frozenset([own])
        if function is None or depth > _DEPTH or self._conditions(node):
            return frozenset()
        found: set[Hook] = set()
        for _, call in self._hooks.callers.get(function, ()):
            found |= self.sure_hooks(call, depth + 1)
        return frozenset(found)

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

    def keys(self, call: cst.Call) -> frozenset[str] | None:
        """The keys of one log call, None where they are out of sight."""
        if isinstance(call.func, cst.Attribute) and call.func.attr.value == "log":
            name = self._names.argument(call, "name", 0)
            return self._strings.possible(name.value) if name else None
        given = self._names.argument(call, "dictionary", 0)
        entries = given.value if given else None
        if isinstance(entries, cst.Name):
            bound = self._names.bindings.lookup(entries)
            entries = bound[0].value if len(bound) == 1 and not bound[0].path else None
        if not isinstance(entries, cst.Dict):
            return None
        found: set[str] = set()
        for element in entries.elements:
            keys = self._strings.possible(element.key) if isinstance(element, cst.DictElement) else None
            if keys is None:
                return None
            found |= keys
        return frozenset(found)

    def _read(self, call: cst.Call) -> LogCall:
        return LogCall(call, self.keys(call), self._hooks.around(call))
