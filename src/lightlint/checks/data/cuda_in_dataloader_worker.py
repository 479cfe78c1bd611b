from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.bindings import Kind
from lightlint.facts.classes import DATASET
from lightlint.facts.workers import LOADER, Method

_READS = ("__getitem__", "__getitems__", "__iter__")


class CudaInDataloaderWorker(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if self.names.call(call) != LOADER:
            return
        method = self.facts.workers.method(call)
        if method.pickles or method is Method.UNKNOWN:
            return
        count = self.facts.workers.count(call)
        if not isinstance(count, int) or count < 1:
            return
        for function in self._functions(call):
            for inner in self.tree.within(function.body, cst.Call):
                if self._uses_cuda(inner):
                    self.report(
                        inner, "a worker that was forked cannot use CUDA, and this runs in the loader's workers"
                    )

    def _functions(self, loader: cst.Call) -> list[cst.FunctionDef]:
        """The functions of this file that run in a loader's workers: of the data set, and `collate_fn`."""
        dataset = self.names.argument(loader, "dataset", 0)
        origins = self.values.origins(dataset.value) if dataset is not None else ()
        nodes = [node for each in origins if (node := self.classes.local(each.name)) is not None]
        nodes = [node for node in nodes if self.classes.is_a(node, DATASET)]
        starts = [
            method for node in nodes for each in _READS if (method := self.classes.method(node, each)) is not None
        ]
        collate = self.names.argument(loader, "collate_fn", 6)
        if collate is not None and isinstance(collate.value, cst.Name):
            sites = [each.site for each in self.names.bindings.lookup(collate.value)]
            starts += [site for site in sites if isinstance(site, cst.FunctionDef) and len(sites) == 1]
        return list(dict.fromkeys(function for start in starts for function in self.hooks.reachable(start)))

    def _uses_cuda(self, call: cst.Call) -> bool:
        method = self.names.method(call)
        if not isinstance(call.func, cst.Attribute):
            return False
        if method == "cuda" and (self.names.of(call.func) or "").partition(".")[0] != "torch":
            return True
        given = call.args[0].value if method == "to" and call.args else None
        device = self.names.argument(call, "device")
        if device is not None and (self.names.call(call) or "").startswith("torch.") and method != "device":
            given = device.value
        return given is not None and self._is_cuda(given)

    def _is_cuda(self, value: cst.CSTNode | None, depth: int = 0) -> bool:
        """Whether a value surely is a CUDA device where there is one."""
        text = self.names.constant(value)
        if isinstance(text, str):
            return text.startswith("cuda")
        match value:
            case cst.Call() if self.names.call(value) == "torch.device" and value.args:
                return self._is_cuda(value.args[0].value, depth)
            case cst.IfExp():
                return self._is_cuda(value.body, depth) or self._is_cuda(value.orelse, depth)
            case cst.Name() if depth < 3:
                found = self.names.bindings.lookup(value)
                plain = len(found) == 1 and found[0].kind is Kind.ASSIGN and not found[0].path
                return plain and self._is_cuda(found[0].value, depth + 1)
        return False
