from __future__ import annotations

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.lightning.hooks import TRAINING_STEP, Owner
from lightlint.facts.lightning.overrides import owner_of
from lightlint.facts.project.mentions import is_called, is_made, is_mentioned, is_mentioned_elsewhere
from lightlint.facts.releases.compat import is_versioned, removal_tier
from lightlint.facts.versions.versions import Version
from lightlint.finding import Tier
from lightlint.fixes.edits import remove_parameter


class OptimizerIdxArg(Check):
    def visit_FunctionDef(self, function: cst.FunctionDef) -> None:
        if function.name.value != TRAINING_STEP or owner_of(self.facts, function) is not Owner.MODULE:
            return
        params = (*function.params.posonly_params, *function.params.params, *function.params.kwonly_params)
        found = next((each for each in params if each.name.value == "optimizer_idx"), None)
        tier = removal_tier(self.facts.lightning, Version("2.0"))
        if found is None or tier is None or is_versioned(self.facts, function):
            return
        if self._is_not_fit(function):
            tier = Tier.NOTE
        target = self.facts.lightning.version.minor
        message = f"`fit` refuses a `training_step` that has `optimizer_idx` since Lightning 2.0 (target: {target})"
        self.report(found, message, tier=tier, repair=self._repair(function, found))

    def _is_not_fit(self, function: cst.FunctionDef) -> bool:
        """Whether other files use the class, and nothing in the project fits a module: it is loaded to be asked."""
        node, project, source = self.tree.class_of(function), self.facts.project, self.facts.source
        used = node is not None and is_mentioned_elsewhere(project, source, node.name.value)
        if node is not None and self._is_replaced(node):
            return True
        return used and not is_mentioned(project, source, "fit") and not is_mentioned(project, source, "LightningCLI")

    def _is_replaced(self, node: cst.ClassDef) -> bool:
        """Whether classes of this file that derive from one have steps of their own, and it is made by nobody."""
        below = [each for each in self.tree.all(cst.ClassDef) if node in self.classes.line(each)[1:]]
        own = all(TRAINING_STEP in self.classes.methods(each) for each in below)
        return bool(below) and own and not is_made(self.facts.project, self.facts.source, node.name.value)

    def _repair(self, function: cst.FunctionDef, found: cst.Param) -> Repair | None:
        """Drop the parameter where neither the body nor a caller knows of it."""
        used = any(each.value == "optimizer_idx" for each in self.tree.within(function.body, cst.Name))
        if used or is_called(self.facts.project, self.facts.source, TRAINING_STEP):
            return None
        return Repair(
            "drop the parameter `optimizer_idx`", remove_parameter(self.code, function, found), writes="lightning>=2.0"
        )
