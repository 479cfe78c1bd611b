from __future__ import annotations

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.lightning.spelling import distance
from lightlint.finding import Applicability
from lightlint.fixes.edits import rename

_CUDNN = "torch.backends.cudnn"
_CUDNN_FLAGS = (
    "allow_tf32", "benchmark", "benchmark_limit", "depthwise_kernel", "deterministic", "enabled", "fp32_precision",
)  # fmt: skip
# flags of another module, by the names under which they are set in vain
_ELSEWHERE = {
    "torch.backends.cuda.allow_tf32": "torch.backends.cuda.matmul.allow_tf32",
    "torch.backends.cuda.benchmark": "torch.backends.cudnn.benchmark",
    "torch.backends.cuda.deterministic": "torch.backends.cudnn.deterministic",
    "torch.backends.cuda.enabled": "torch.backends.cudnn.enabled",
}


class BackendFlagUnknown(Check):
    def visit_AssignTarget(self, node: cst.AssignTarget) -> None:
        targets = node.target.elements if isinstance(node.target, cst.Tuple | cst.List) else [node]
        for each in targets:
            target = each.target if isinstance(each, cst.AssignTarget) else each.value
            if isinstance(target, cst.Attribute):
                self._judge(target)

    def _judge(self, target: cst.Attribute) -> None:
        module, _, flag = (self.names.of(target) or "").rpartition(".")
        meant = _ELSEWHERE.get(f"{module}.{flag}") or (self._close(flag) if module == _CUDNN else None)
        if meant is None or self._is_read(target):
            return
        repair = None
        if module == _CUDNN:
            repair = Repair(f"write `{meant}`", rename(self.code, target, meant), Applicability.UNSAFE)
        message = f"`{module}` has no flag `{flag}`, so this sets nothing: `{meant}` is meant"
        self.report(target, message, repair=repair)

    def _close(self, flag: str) -> str | None:
        """The one of cuDNN's flags that a name is meant to be; None where it is one of them, or like none."""
        near = [each for each in _CUDNN_FLAGS if distance(flag, each) <= 2]
        return near[0] if len(near) == 1 and flag not in _CUDNN_FLAGS else None

    def _is_read(self, target: cst.Attribute) -> bool:
        """Whether the file reads what it sets there."""
        same = [each for each in self.tree.all(cst.Attribute) if each.attr.value == target.attr.value]
        kinds = cst.AssignTarget | cst.Element  # an element of what is assigned, or of a list that is read
        return any(not isinstance(self.tree.parent(each), kinds) for each in same)
