from __future__ import annotations

import re

import libcst as cst

from lightlint.check import Check
from lightlint.facts.processes import DATA_PARALLEL, FULLY_SHARDED, PROCESS_GROUP

# words by which a process gets a device of its own
_CHOSEN = re.compile(
    r"set_device|VISIBLE_DEVICES|device_id\b|set_default_device|torch\.cuda\.device\(|cuda\.device\(|local_rank\s*\)\s*$"
    r"|accelerate|deepspeed|horovod|megatron|lightning|ray\b"
)


class MissingSetDevice(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if self.names.call(call) != PROCESS_GROUP or self.names.has_star(call) or not self._is_nccl(call):
            return
        if _CHOSEN.search(self.facts.source.text) or self._is_chosen_elsewhere():
            return
        used = next((each for each in self.tree.all(cst.Call) if self._takes_first_device(each)), None)
        if used is not None:
            short = (self.names.call(used) or "").rpartition(".")[2]
            line = self.facts.source.locate(self.facts.span(used)[0]).row
            self.report(
                call, f"no rank is given a device of its own: `{short}` in line {line} puts all of them on GPU 0"
            )

    def _is_nccl(self, call: cst.Call) -> bool:
        """Whether a process group is nccl's wherever there is CUDA."""
        backend = self.names.argument(call, "backend", 0)
        sources = self.facts.reaching.sources(backend.value) if backend is not None else []
        named = {self.names.constant(each) for each in sources}
        return "nccl" in named and named <= {"nccl", "gloo"}

    def _is_chosen_elsewhere(self) -> bool:
        """Whether a file that imports this one, or that this one imports, may choose the device."""
        project, path = self.facts.project, self.facts.path
        called = self.facts.world.called_by_users
        return any(name.endswith("set_device") for name in called) or project.imports_one_with(path, "set_device")

    def _takes_first_device(self, call: cst.Call) -> bool:
        """Whether a model is wrapped that was moved to CUDA's current device, which is the first unless set."""
        name = self.names.call(call)
        if name in FULLY_SHARDED:
            return True
        if name != DATA_PARALLEL or self.names.argument(call, "device_ids", 1) is not None:
            return False
        given = self.names.argument(call, "module", 0)
        return given is not None and self._is_on_first(given.value)

    def _is_on_first(self, value: cst.BaseExpression, depth: int = 0) -> bool:
        """Whether a module surely was moved to `cuda` without an index last."""
        if depth > 4:
            return False
        match value:
            case cst.Call(func=cst.Attribute(value=receiver, attr=cst.Name(value="cuda")), args=args):
                return not args and isinstance(receiver, cst.BaseExpression)
            case cst.Call(func=cst.Attribute(attr=cst.Name(value="to")), args=[cst.Arg(value=place), *_]):
                return self._is_cuda(place)
            case cst.Call(func=cst.Attribute(value=receiver, attr=cst.Name(value="train" | "float" | "half"))):
                return self._is_on_first(receiver, depth + 1)
            case cst.Call(func=func, args=[cst.Arg(value=first), *_]):
                converts = (self.names.of(func) or "").endswith(".convert_sync_batchnorm")
                return (converts or self.names.of(func) == "torch.compile") and self._is_on_first(first, depth + 1)
            case cst.Name():
                if self._is_moved(value):
                    return True
                found = self.facts.reaching.bindings(value)
                values = [each.value for each in found if not each.path]
                return bool(values) and all(each is not None and self._is_on_first(each, depth + 1) for each in values)
        return False

    def _is_moved(self, name: cst.Name) -> bool:
        """Whether a statement of its own, `model.cuda()`, moves a module before it is wrapped."""
        owner = self.tree.owner(name)
        moves = [
            each
            for each in self.tree.own(owner, cst.Call)
            if isinstance(self.tree.parent(each), cst.Expr)
            and isinstance(each.func, cst.Attribute)
            and self.names.key(each.func.value) == name.value
            and each.func.attr.value in {"cuda", "to"}
        ]
        return len(moves) == 1 and self._is_on_first(moves[0], 4) and self.tree.order(moves[0]) < self.tree.order(name)

    def _is_cuda(self, place: cst.BaseExpression, depth: int = 0) -> bool:
        """Whether a device is `cuda` without an index, or that where there is CUDA at all."""
        if isinstance(place, cst.IfExp):
            return self._is_cuda(place.body, depth) or self._is_cuda(place.orelse, depth)
        if self.names.constant(place) == "cuda":
            return True
        if isinstance(place, cst.Call) and self.names.call(place) == "torch.device" and len(place.args) == 1:
            return self._is_cuda(place.args[0].value, depth)
        if isinstance(place, cst.Name) and depth < 3:
            found = self.names.bindings.lookup(place)
            return bool(found) and all(
                each.value is not None and not each.path and self._is_cuda(each.value, depth + 1) for each in found
            )
        return False
