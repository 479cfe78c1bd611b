from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.bindings import Kind
from lightlint.facts.processes import PROCESS_GROUP
from lightlint.finding import Tier

_VARIABLES = {"RANK", "SLURM_PROCID"}
_LOCAL = {"LOCAL_RANK", "local_rank", "torchrun", "nnodes", "num_nodes"}
_NODES = {"nnodes", "num_nodes"}


class DeviceFromGlobalRank(Check):
    def visit_Call(self, call: cst.Call) -> None:
        index = self._index(call)
        if index is None:
            return
        composed = self._is_composed(index)
        if not (composed or self._is_global(index)) or self._is_of_one_node():
            return
        told = composed or any(word in self.facts.source.text for word in _LOCAL)
        self.report(
            index,
            f"`{self.code.text_of(index)}` counts the processes of all nodes: the second node has no such device",
            tier=None if told else Tier.NOTE,
        )

    def _is_of_one_node(self) -> bool:
        """Whether calls of the file say how many nodes there are, and all say one."""
        named = [arg for arg in self.tree.all(cst.Arg) if arg.keyword is not None and arg.keyword.value in _NODES]
        return bool(named) and all(self.names.constant(arg.value) == 1 for arg in named)

    def _index(self, call: cst.Call) -> cst.BaseExpression | None:
        """The device index that a call takes."""
        name = self.names.call(call)
        if name in {"torch.cuda.set_device", "torch.device"}:
            arg = self.names.argument(
                call, "index" if name == "torch.device" else "device", 1 if name == "torch.device" else 0
            )
            if arg is None and name == "torch.device" and call.args:
                return self._text(call.args[0].value)
            return self._text(arg.value) or arg.value if arg is not None else None
        if self.names.method(call) in {"cuda", "to"} and isinstance(call.func, cst.Attribute) and len(call.args) == 1:
            value = call.args[0].value
            return self._text(value) or (value if self.names.method(call) == "cuda" else None)
        return None

    def _text(self, value: cst.BaseExpression) -> cst.BaseExpression | None:
        """The index in a device's name, through the local name that holds it."""
        sources = self.facts.reaching.sources(value)
        return self._formatted(sources[0]) if len(sources) == 1 else None

    def _formatted(self, value: cst.BaseExpression) -> cst.BaseExpression | None:
        """The index in `f"cuda:{index}"`."""
        if isinstance(value, cst.FormattedString) and len(value.parts) == 2:
            head, tail = value.parts
            if isinstance(head, cst.FormattedStringText) and head.value == "cuda:":
                return tail.expression if isinstance(tail, cst.FormattedStringExpression) else None
        return None

    def _is_composed(self, value: cst.BaseExpression) -> bool:
        """Whether a value is `node * processes + local` and joins the process group as the rank: there are several nodes."""
        key = self.names.key(value)
        if not key or not any(self._is_same(value, each) for each in self._joining()):
            return False
        if isinstance(value, cst.Name):
            found = self.names.bindings.lookup(value)
            values = [each.value if each.kind is Kind.ASSIGN and not each.path else None for each in found]
        else:
            given = [(t.target, each.value) for each in self.tree.all(cst.Assign) for t in each.targets]
            values = [made for target, made in given if self.names.key(target) == key]
        known = [each is not None and (_is_sum(each) or self._is_global(each)) for each in values]
        return all(known) and any(_is_sum(each) for each in values)

    def _joining(self) -> list[cst.BaseExpression]:
        """What is given to `init_process_group` as the rank."""
        calls = [each for each in self.tree.all(cst.Call) if self.names.call(each) == PROCESS_GROUP]
        given = [self.names.argument(each, "rank", 4) for each in calls]
        return [arg.value for arg in given if arg is not None]

    def _is_same(self, one: cst.BaseExpression, other: cst.BaseExpression) -> bool:
        if isinstance(one, cst.Name) and isinstance(other, cst.Name):
            return self.names.bindings.lookup(one) == self.names.bindings.lookup(other) and one.value == other.value
        return self.names.key(one) == self.names.key(other)

    def _is_global(self, value: cst.BaseExpression, depth: int = 0) -> bool:
        """Whether a value surely is the rank among all processes of all nodes."""
        match value:
            case cst.Call():
                name = self.names.call(value)
                if name == "builtins.int" and value.args:
                    return self._is_global(value.args[0].value, depth)
                if name == "torch.distributed.get_rank":
                    return not value.args
                first = self.names.constant(value.args[0].value) if value.args else None
                return name in {"os.environ.get", "os.getenv"} and first in _VARIABLES
            case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=key))]):
                return self.names.of(value.value) == "os.environ" and self.names.constant(key) in _VARIABLES
            case cst.Name() if depth < 3:
                found = self.names.bindings.lookup(value)
                return bool(found) and all(
                    each.kind is Kind.ASSIGN and not each.path and each.value is not None
                    and self._is_global(each.value, depth + 1)
                    for each in found
                )  # fmt: skip
        return False


def _is_sum(value: cst.BaseExpression | None) -> bool:
    """Whether a value is a product and something more, as `node_rank * gpus + gpu`."""
    if not isinstance(value, cst.BinaryOperation) or not isinstance(value.operator, cst.Add):
        return False
    sides = [each for each in (value.left, value.right) if isinstance(each, cst.BinaryOperation)]
    return any(isinstance(each.operator, cst.Multiply) for each in sides)
