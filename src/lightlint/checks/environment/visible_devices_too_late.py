from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.cuda import starts_cuda
from lightlint.facts.cuda_uses import module_using_cuda

_STARTING = ("subprocess.", "multiprocessing.", "torch.multiprocessing.", "os.system", "os.exec", "os.spawn")


class VisibleDevicesTooLate(Check):
    def visit_Assign(self, assign: cst.Assign) -> None:
        if len(assign.targets) != 1 or not self._is_variable(assign.targets[0].target):
            return
        owner = self.tree.owner(assign)
        before = self._uses(self.tree.module) if isinstance(owner, cst.FunctionDef) else []
        before = [use for use in before if self.tree.order(use) < self.tree.order(owner)]
        flow = self.facts.flow(owner)
        own = [use for use in self._uses(owner) if self.tree.order(use) < self.tree.order(assign)]
        if before or any(flow.always_before(assign, [use]) for use in own):
            self.report(
                assign.targets[0].target, "CUDA is in use before this line, and does not read the variable again"
            )
            return
        module = self._imported_before(assign, owner)
        if module:
            self.report(
                assign.targets[0].target,
                f"CUDA is in use since `{module}` was imported, and does not read the variable again",
            )

    def _imported_before(self, assign: cst.Assign, owner: cst.FunctionDef | cst.Module) -> str:
        """The module of the project that started CUDA when this one was imported; empty where processes that this one
        starts may be whom the variable is for."""
        if any((self.names.call(each) or "").startswith(_STARTING) for each in self.tree.all(cst.Call)):
            return ""
        found = module_using_cuda(self.facts, owner, assign)
        if found or isinstance(owner, cst.Module):
            return found
        return module_using_cuda(self.facts, self.tree.module, owner)

    def _is_variable(self, target: cst.BaseExpression) -> bool:
        match target:
            case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=key))]):
                return (
                    self.names.of(target.value) == "os.environ" and self.names.constant(key) == "CUDA_VISIBLE_DEVICES"
                )
        return False

    def _uses(self, owner: cst.FunctionDef | cst.Module) -> list[cst.Call]:
        """The calls in a body that surely start CUDA, tests aside."""
        found = [call for call in self.tree.own(owner, cst.Call) if starts_cuda(self.names, call)]
        if isinstance(owner, cst.Module):
            found = [call for call in found if not self.facts.conditions(call)]
        return found
