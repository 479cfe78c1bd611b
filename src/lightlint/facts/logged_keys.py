"""Which keys a LightningModule and the classes beside it log, where every one of them is in sight."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_IN_SIGHT = ("lightning.", "torch.", "builtins.", "abc.")


class LoggedKeys:
    """The keys logged in one file."""

    def __init__(self, facts: FileFacts) -> None:
        self._facts = facts

    def of_class(self, node: cst.ClassDef) -> frozenset[str] | None:
        """Every key that a module logs; None where one may be out of sight."""
        classes = self._facts.classes
        above = classes.ancestors(node)
        in_sight = all(classes.local(name) or name.startswith(_IN_SIGHT) for name in above)
        if not in_sight or classes.has_method(node, "log") or classes.has_method(node, "log_dict"):
            return None
        bodies = [node, *filter(None, map(classes.local, above))]
        if any(self._leaves_sight(body) for body in bodies):
            return None
        return _joined([call.keys for call in self._facts.logs.of_class(node)], self.beside)

    @cached_property
    def beside(self) -> frozenset[str] | None:
        """Every key that other classes of the file log, such as callbacks; None where one may be out of sight."""
        facts = self._facts
        if "callback_metrics" in facts.source.text or "logged_metrics" in facts.source.text:
            return None
        calls = [call for call in facts.tree.all(cst.Call) if facts.names.method(call) in {"log", "log_dict"}]
        through_modules = [
            call
            for call in calls
            if facts.logs.is_log(call)
            and isinstance(call.func, cst.Attribute)
            and not facts.classes.is_self(call.func.value)
        ]
        return _joined([facts.logs.keys(call) for call in through_modules], frozenset())

    def _leaves_sight(self, body: cst.ClassDef) -> bool:
        """Whether a class hands itself, or its log methods, to code that may log for it."""
        facts = self._facts
        for name in facts.tree.within(body, cst.Name):
            above = facts.tree.parent(name)
            if isinstance(above, cst.Arg) and above.value is name and facts.classes.is_self(name):
                call = facts.tree.parent(above)
                if not (isinstance(call, cst.Call) and facts.names.call(call) == "builtins.super"):
                    return True
        for each in facts.tree.within(body, cst.Attribute):
            if each.attr.value in {"log", "log_dict"} and facts.classes.is_self(each.value):
                above = facts.tree.parent(each)
                if not (isinstance(above, cst.Call) and above.func is each):
                    return True
        return False


def _joined(parts: list[frozenset[str] | None], more: frozenset[str] | None) -> frozenset[str] | None:
    known = [part for part in [*parts, more] if part is not None]
    return frozenset[str]().union(*known) if len(known) == len(parts) + 1 else None
