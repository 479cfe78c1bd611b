from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import libcst as cst

from lightlint.check import Check
from lightlint.facts.hooks import TRAINING_STEP, Hook, Owner
from lightlint.facts.mentions import occurs

_MAY_STEP = re.compile(r"step|update|optim", re.IGNORECASE)
_ASKED = r"(?<!self)\.optimizers\s*\("  # of a module, by a callback of another file
_HARMLESS = {"optimizers", "toggle_optimizer", "untoggle_optimizer", "toggled_optimizer", "configure_optimizers", "training_step"}  # fmt: skip


class ManualNoOptimizerStep(Check):
    def visit_FunctionDef(self, function: cst.FunctionDef) -> None:
        node = self.tree.class_of(function)
        if node is None or self.hooks.of(function) != Hook(Owner.MODULE, TRAINING_STEP):
            return
        facts = self.facts.optimization
        family = facts.family(node)
        if not family or not facts.is_manual(node) or facts.subclasses(node):
            return
        calls = [call for each in family for call in self.tree.within(each, cst.Call)]
        mentions = any(each.attr.value == "step" for part in family for each in self.tree.within(part, cst.Attribute))
        if mentions:
            return
        calls = [call for call in calls if not self._is_own(call, family)]
        if facts.backwards(node) and not any(map(self._may_step, calls)) and not self._is_known_elsewhere():
            self.report(
                function.name,
                f"`{node.name.value}` optimizes by hand, but nothing in it steps an optimizer: no weight changes",
            )

    def _is_own(self, call: cst.Call, family: Sequence[cst.ClassDef]) -> bool:
        """Whether a call runs a method of the classes that are looked through: its body tells, not its name."""
        callee = self.hooks.callee(call)
        return callee is not None and any(self.tree.contains(each, callee) for each in family)

    def _may_step(self, call: cst.Call) -> bool:
        """Whether a call may step an optimizer: by its name, or because it gets one."""
        method = self.names.method(call)
        name = self.names.of(call.func) or ""
        if name.startswith("torch."):
            return False
        if method in _HARMLESS:
            return False
        if _MAY_STEP.search(method):
            return True
        return method not in {"clip_gradients", "append"} and any(
            self.facts.optimization.from_optimizers(arg.value) for arg in call.args
        )

    def _is_known_elsewhere(self) -> bool:
        """Whether code around the class may step its optimizers: a callback, a subclass of another file."""
        asks = [call for call in self.tree.all(cst.Call) if self.names.method(call) == "optimizers"]
        outside = any(not self.values.is_optimizers(call) for call in asks)
        source = self.facts.source
        called = occurs(self.facts.project, "optimizers", _ASKED, Path(source.filename).absolute())
        return outside or called or bool(self.facts.project.users(self.facts.path, TRAINING_STEP))
