from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.facts.classes import DATA_MODULE, MODULE
from lightlint.facts.compat import is_versioned
from lightlint.facts.versions import Version
from lightlint.models.registry import is_lightning
from lightlint.values.core import Class, Value
from lightlint.values.training import Instance

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_NEEDS_TRAINER = {"optimizers", "lr_schedulers", "print", "all_gather", "clip_gradients"}
_NONE_BEFORE = {"trainer", "logger"}


class TrainerAccessInInit(Check):
    def visit_FunctionDef(self, function: cst.FunctionDef) -> None:
        node = self.tree.class_of(function)
        if function.name.value != "__init__" or not self.classes.is_a(node, MODULE, DATA_MODULE):
            return
        for attribute in self.tree.own(function, cst.Attribute):
            message = self._fault(node, attribute) if node and self.classes.is_self(attribute.value) else None
            if message and not is_versioned(self.facts, attribute) and not self._is_guarded(attribute):
                self.report(attribute, message)

    def _fault(self, node: cst.ClassDef, attribute: cst.Attribute) -> str | None:
        name = attribute.attr.value
        is_module = self.classes.is_a(node, MODULE)
        parent = self.tree.parent(attribute)
        used = isinstance(parent, cst.Attribute) and parent.value is attribute
        if name not in _NONE_BEFORE | _NEEDS_TRAINER or self._is_own(node, name):
            return None
        if name in _NEEDS_TRAINER:
            called = isinstance(parent, cst.Call) and parent.func is attribute
            return f"`self.{name}()` in `__init__`, where no Trainer is attached yet" if is_module and called else None
        if name == "trainer" and is_module and self.facts.lightning.surely_at_least(Version("2.0")):
            return "`self.trainer` in `__init__`, where no Trainer is attached yet"
        if used and (is_module or name == "trainer"):
            return f"`self.{name}` is None in `__init__`, where no Trainer is attached yet"
        return None

    def _is_own(self, node: cst.ClassDef, name: str) -> bool:
        """Whether the class gives the name a meaning of its own."""
        known = not self.classes.complete(node) or self.classes.has_method(node, name)
        return known or self.classes.constant(node, name, None) is not None or self._is_assigned(node, name)

    def _is_assigned(self, node: cst.ClassDef, name: str) -> bool:
        return bool(self.classes.attribute_values(node, name))

    def _is_guarded(self, attribute: cst.Attribute) -> bool:
        """Whether a test asks for the Trainer first."""
        words = {"trainer", "_trainer", "fabric", "_fabric", "logger"}
        tests = [test for test, _ in self.facts.conditions(attribute)]
        tests += [each.test for each in self.tree.ancestors(attribute) if isinstance(each, cst.IfExp)]
        return any(
            name.value in words for test in tests if not self.tree.contains(test, attribute)
            for name in self.tree.within(test, cst.Name)
        )  # fmt: skip

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        for name in sorted(_NEEDS_TRAINER):
            for event in entry.calls.get(f".{name}", ()):
                module = event.receiver
                making = [
                    each for each in event.where.calls if each.function.name == "__init__" and each.function.owner
                ]
                own = module is not None and any(each.function.owner in _classes(module) for each in making)
                if module is not None and is_lightning(module) and own and not self.is_versioned(event):
                    yield Fault.of(event, f"`self.{name}()` in `__init__`, where no Trainer is attached yet")


def _classes(value: Instance) -> list[Value]:
    return value.cls.lineage() if isinstance(value.cls, Class) else []
