from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.lightning.hooks import Owner
from lightlint.facts.releases.api import lightning_api
from lightlint.facts.releases.compat import is_versioned

# properties without a setter, read off the classes of Lightning 2.6
_READ_ONLY = {
    Owner.MODULE: {
        "current_epoch", "device", "device_mesh", "global_rank", "global_step", "hparams", "hparams_initial",
        "local_rank", "logger", "loggers", "on_gpu",
    },
    Owner.DATA_MODULE: {"hparams", "hparams_initial"},
    Owner.CALLBACK: {"state_key"},
}  # fmt: skip
# since when those of a module cannot be set that its oldest release in the table has already
_EARLY = {"current_epoch": "1.0", "device": "0.7.6", "global_step": "1.0", "on_gpu": "0.8"}


class ReservedAttribute(Check):
    def visit_Assign(self, assign: cst.Assign) -> None:
        for target in assign.targets:
            parts: list[cst.BaseExpression] = [target.target]
            if isinstance(target.target, (cst.Tuple, cst.List)):
                parts = [each.value for each in target.target.elements]
            for part in parts:
                self._judge(part)

    def visit_AnnAssign(self, assign: cst.AnnAssign) -> None:
        if assign.value is not None:
            self._judge(assign.target)

    def visit_AugAssign(self, assign: cst.AugAssign) -> None:
        self._judge(assign.target)

    def _judge(self, target: cst.BaseExpression) -> None:
        if not isinstance(target, cst.Attribute) or not self.classes.is_self(target.value):
            return
        node, name = self.tree.enclosing_class(target), target.attr.value
        owner = self.hooks.owner(node)
        if node is None or owner is None or name not in _READ_ONLY[owner] or self._has_own(node, name):
            return
        added = self._added(owner, name)
        if added is not None and self.facts.lightning.may_be_below(added):
            return
        if not is_versioned(self.facts, target):
            self.report(target, f"`{name}` of a {owner} is a property without a setter")

    def _added(self, owner: Owner, name: str) -> str | None:
        """The release since which the property is there and cannot be set."""
        if name == "hparams":
            return "1.3" if owner is Owner.MODULE else "1.4"
        api = lightning_api()
        added = {Owner.MODULE: api.lightning_module, Owner.DATA_MODULE: api.datamodule, Owner.CALLBACK: api.callback}
        version = added[owner].added.get(name)
        return str(version) if version else _EARLY.get(name) if owner is Owner.MODULE else None

    def _has_own(self, node: cst.ClassDef, name: str) -> bool:
        """Whether a class of the project makes something else of the name: a property of its own, a class attribute."""
        if not self.classes.complete(node) or self.classes.has_method(node, name):
            return True
        for body in self.classes.line(node):
            for assign in self.tree.own(body, cst.Assign):
                if any(isinstance(each.target, cst.Name) and each.target.value == name for each in assign.targets):
                    return True
            for note in self.tree.own(body, cst.AnnAssign):
                if isinstance(note.target, cst.Name) and note.target.value == name and note.value is not None:
                    return True
        above = [self.facts.project.find_class(each, self.facts.path.parent) for each in self.classes.ancestors(node)]
        return any(found is not None and name in found[0].constants for found in above)
