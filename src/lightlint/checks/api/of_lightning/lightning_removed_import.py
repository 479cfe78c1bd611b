from __future__ import annotations

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.code.bindings import Kind, dotted_name
from lightlint.facts.releases.api import RemovedName, lightning_api
from lightlint.facts.releases.compat import is_versioned, removal_tier
from lightlint.fixes.edits import replace

_WRITES = "lightning>=1.7"  # all modules below came with it in place of the old ones
_OLD, _NEW = "pytorch_lightning", "lightning.pytorch"
_KEPT = {  # names that the module in place of a removed one still has in 2.6
    "core.lightning": {"LightningModule"},
    "callbacks.base": {"Callback"},
    "loggers.base": {"DummyLogger", "rank_zero_experiment"},
    "profiler": {"SimpleProfiler", "AdvancedProfiler", "PyTorchProfiler", "XLAProfiler", "PassThroughProfiler"},
}


class LightningRemovedImport(Check):
    def visit_Import(self, statement: cst.Import) -> None:
        for alias in statement.names:
            self._judge(alias.name, dotted_name(alias.name))

    def visit_ImportFrom(self, statement: cst.ImportFrom) -> None:
        module = dotted_name(statement.module)
        if statement.relative or statement.module is None:
            return
        if self._entry(module):
            self._judge(statement.module, module)
        elif not isinstance(statement.names, cst.ImportStar):
            for alias in statement.names:
                self._judge(alias, f"{module}.{dotted_name(alias.name)}")

    def visit_Attribute(self, attribute: cst.Attribute) -> None:
        """`pl.metrics.Accuracy`: the attribute that names the removed module itself."""
        root: cst.CSTNode = attribute
        while isinstance(root, cst.Attribute):
            root = root.value
        above = self.tree.parent(attribute)
        if not isinstance(root, cst.Name) or isinstance(above, (cst.ImportAlias, cst.ImportFrom)):
            return
        if any(isinstance(each, (cst.Import, cst.ImportFrom)) for each in self.tree.ancestors(attribute)):
            return
        found = self.names.bindings.lookup(root)
        if len(found) == 1 and found[0].kind is Kind.IMPORT:
            full = f"{found[0].dotted}.{dotted_name(attribute).partition('.')[2]}"
            entry = self._entry(full)
            if entry and entry.name.removeprefix(_OLD) == "." + full.partition(".")[2].removeprefix("pytorch."):
                self._judge(attribute, full)

    def _entry(self, full: str) -> RemovedName | None:
        """The removed module or name that a full import path leads to."""
        if full.startswith(f"{_NEW}."):
            full = _OLD + full.removeprefix(_NEW)
        removed = lightning_api().imports_removed
        return next((each for name, each in removed.items() if full == name or full.startswith(f"{name}.")), None)

    def _judge(self, node: cst.BaseExpression | cst.ImportAlias, full: str) -> None:
        entry = self._entry(full)
        tier = removal_tier(self.facts.lightning, entry.removed) if entry else None
        if entry is None or tier is None or is_versioned(self.facts, node) or self._is_for_checkers(node):
            return
        target = self.facts.lightning.version.minor
        package = _NEW if full.startswith(f"{_NEW}.") else _OLD
        name = entry.name.replace(_OLD, package, 1)
        message = f"`{name}` is gone since Lightning {entry.removed.minor} (target: {target})"
        self.report(node, message, tier=tier, repair=self._repair(node, full, name, entry, package))

    def _is_for_checkers(self, node: cst.CSTNode) -> bool:
        """Whether only type checkers look: under `TYPE_CHECKING`, or in an annotation that is never evaluated."""
        above = list(self.tree.ancestors(node))
        tests = [each.test for each in above if isinstance(each, cst.If)]
        if any(
            (self.names.of(name) or name.value).endswith("TYPE_CHECKING")
            for test in tests
            for name in self.tree.within(test, cst.Name)
        ):
            return True
        future = "annotations" in self.facts.bindings.by_scope.get(self.tree.module, {})
        return future and any(isinstance(each, cst.Annotation) for each in above)

    def _repair(
        self, node: cst.BaseExpression | cst.ImportAlias, full: str, name: str, entry: RemovedName, package: str
    ) -> Repair | None:
        """Name the module that holds the same names today."""
        statement = self.tree.parent(node)
        kept = _KEPT.get(entry.name.removeprefix(f"{_OLD}."), set())
        if full != name or not isinstance(statement, cst.ImportFrom) or not isinstance(node, (cst.Attribute, cst.Name)):
            return None
        aliases = [] if isinstance(statement.names, cst.ImportStar) else statement.names
        if not aliases or not all(dotted_name(each.name) in kept for each in aliases):
            return None
        new = entry.replacement.replace(_OLD, package, 1)
        return Repair(f"import from `{new}`", replace(self.code, node, new), writes=_WRITES)
