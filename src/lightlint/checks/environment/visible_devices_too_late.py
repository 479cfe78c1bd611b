from __future__ import annotations

import libcst as cst

from lightlint.check import Check

_STARTS = {
    f"torch.cuda.{name}"
    for name in (
        "set_device",
        "current_device",
        "get_device_name",
        "get_device_properties",
        "init",
        "mem_get_info",
        "synchronize",
    )
}


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

    def _is_variable(self, target: cst.BaseExpression) -> bool:
        match target:
            case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=key))]):
                return (
                    self.names.of(target.value) == "os.environ" and self.names.constant(key) == "CUDA_VISIBLE_DEVICES"
                )
        return False

    def _uses(self, owner: cst.FunctionDef | cst.Module) -> list[cst.Call]:
        """The calls in a body that surely start CUDA, tests aside."""
        found = [call for call in self.tree.own(owner, cst.Call) if self._starts_cuda(call)]
        if isinstance(owner, cst.Module):
            found = [call for call in found if not self.facts.conditions(call)]
        return found

    def _starts_cuda(self, call: cst.Call) -> bool:
        name, method = self.names.call(call) or "", self.names.method(call)
        if name in _STARTS:
            return True
        if isinstance(call.func, cst.Attribute) and method == "cuda" and not name:
            return True
        device = self.names.argument(call, "device", 0 if method == "to" else None)
        value = self.names.constant(device.value) if device is not None else None
        makes = (name.startswith("torch.") and name != "torch.device") or (method == "to" and not name)
        return makes and isinstance(value, str) and value.startswith("cuda")
