"""Which keys a LightningModule and the classes beside it log, where every one of them is in sight."""

from __future__ import annotations

import re
from collections.abc import Set
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.logs import LogCall

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_AFTER = ("test_", "on_test_", "predict_", "on_predict_")
_PER_LOADER = {"validation_step", "on_validation_batch_start", "on_validation_batch_end", "test_step"}
_DERIVED = re.compile(r"(?:/dataloader_idx_\d+|_step|_epoch)$")
_SHOWN = 6
_IN_SIGHT = ("lightning.", "torch.", "builtins.", "abc.")


def spellings_of(key: str) -> set[str]:
    """A key that is asked for, and what may have been logged for Lightning to have it: `loss` for `loss_epoch`."""
    once = _DERIVED.sub("", key)
    return {key, once, _DERIVED.sub("", once)}


def listed(keys: Set[str]) -> str:
    """The first of some keys, as a message shows them."""
    shown = ", ".join(f"`{key}`" for key in sorted(keys)[:_SHOWN]) or "nothing"
    return shown + (", ..." if len(keys) > _SHOWN else "")


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

    def lost(self, node: cst.ClassDef, spellings: set[str]) -> str:
        """Where a module logs a key, if that is nowhere from where callbacks of a fit get it; else empty."""
        calls = self._calls(node, spellings)
        names = {hook.name for call in calls for hook in call.hooks}
        if not calls or not all(call.hooks for call in calls):
            return ""
        if all(name.startswith(_AFTER) for name in names):
            return "in tests only"
        logs = self._facts.logs
        steps = names <= {"validation_step", "test_step"}
        if steps and all(logs.argument(call.call, "on_epoch") is False for call in calls):
            return "for single batches of the validation only (`on_epoch=False`)"
        return ""

    def is_per_loader(self, node: cst.ClassDef, spellings: set[str]) -> bool:
        """Whether a key gets the number of a loader wherever a module logs it, as soon as there are several."""
        calls, logs = self._calls(node, spellings), self._facts.logs
        numbered = all(logs.argument(call.call, "add_dataloader_idx") in (None, True) for call in calls)
        hooks = [{hook.name for hook in call.hooks} for call in calls]
        return bool(calls) and numbered and all(names and names <= _PER_LOADER for names in hooks)

    def _calls(self, node: cst.ClassDef, spellings: set[str]) -> list[LogCall]:
        return [call for call in self._facts.logs.of_class(node) if call.keys and call.keys & spellings]

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
