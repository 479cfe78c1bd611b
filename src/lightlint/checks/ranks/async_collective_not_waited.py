from __future__ import annotations

import re

import libcst as cst

from lightlint.check import Check
from lightlint.facts.rank_tests import COLLECTIVES

_OUTPUT = {  # where a collective writes what it gives; the first argument unless named
    "gather": ("gather_list", 1),
    "all_gather": ("tensor_list", 0),
    "all_gather_into_tensor": ("output_tensor", 0),
    "reduce_scatter": ("output", 0),
    "reduce_scatter_tensor": ("output", 0),
    "all_to_all": ("output_tensor_list", 0),
    "all_to_all_single": ("output", 0),
}
_ALWAYS = {"torch.distributed.isend", "torch.distributed.irecv"}
# what makes sure that a collective has ended without its handle
_WAITS = re.compile(r"^(?:wait\w*|synchronize|barrier|current_stream|wait_stream|monitored_barrier)$")
# what asks nothing of a tensor's values
_SHAPE = {"shape", "size", "numel", "dim", "device", "dtype", "ndim", "is_cuda", "element_size", "stride", "data_ptr"}
_SHAPE |= {"requires_grad", "record_stream", "grad_fn", "is_contiguous", "append", "extend"}


class AsyncCollectiveNotWaited(Check):
    def visit_Call(self, call: cst.Call) -> None:
        name = self.names.call(call) or ""
        result = self._result(call, name)
        if result is None:
            return
        owner = self.tree.owner(call)
        handle = self._handle(call)
        if handle is None:
            return
        waits: list[cst.CSTNode] = [each for each in self.tree.own(owner, cst.Call) if self._waits(each)]
        if handle:
            waits += [
                each for each in self.tree.within(owner, cst.Name) if each.value == handle and not self._binds(each)
            ]
        reads = [each for each in self._uses(owner, result) if self._reads(each) and each is not result]
        unread = [each for each in reads if not self._shares_statement(each, waits)]
        short = name.rpartition(".")[2]
        flow = self.facts.flow(owner)
        ends = [*waits, *self._bindings(owner, result)]
        early = [each for each in unread if flow.reaches(call, [each], avoiding=ends)]
        if early:
            spelled = self.code.text_of(result)
            line = self.facts.source.locate(self.facts.span(early[0])[0]).row
            self.report(call, f"`{spelled}` is used in line {line} before this `{short}` is waited for")

    def _result(self, call: cst.Call, name: str) -> cst.BaseExpression | None:
        """What a call that returns at once fills in later."""
        flag = self.names.argument(call, "async_op")
        known = name in COLLECTIVES or name == "torch.distributed.all_to_all_single"
        started = known and flag is not None and self.names.constant(flag.value) is True
        if not (started or name in _ALWAYS - {"torch.distributed.isend"}):
            return None
        given = self.names.argument(call, *_OUTPUT.get(name.rpartition(".")[2], ("tensor", 0)))
        return given.value if given is not None and self.names.key(given.value) else None

    def _handle(self, call: cst.Call) -> str | None:
        """The name that gets the handle, empty where nothing does, None where it goes elsewhere."""
        above = self.tree.parent(call)
        if isinstance(above, cst.Expr):
            return ""
        if isinstance(above, cst.Assign) and len(above.targets) == 1:
            target = above.targets[0].target
            return target.value if isinstance(target, cst.Name) else None
        return None

    def _waits(self, call: cst.Call) -> bool:
        return bool(_WAITS.match(self.names.method(call)))

    def _binds(self, name: cst.Name) -> bool:
        return isinstance(self.tree.parent(name), cst.AssignTarget)

    def _bindings(self, owner: cst.CSTNode, result: cst.BaseExpression) -> list[cst.CSTNode]:
        """Where the name a tensor is reached by gets another value, loop variables with each iteration."""
        root = self.names.key(result).partition(".")[0].partition("[")[0]
        targets = [each.target for each in self.tree.own(owner, cst.AssignTarget, cst.For)]
        return [n for target in targets for n in self.tree.within(target, cst.Name) if n.value == root]

    def _uses(self, owner: cst.CSTNode, result: cst.BaseExpression) -> list[cst.Name | cst.Attribute]:
        key = self.names.key(result)
        return [each for each in self.tree.own(owner, cst.Name, cst.Attribute) if self.names.key(each) == key]

    def _reads(self, use: cst.Name | cst.Attribute) -> bool:
        """Whether a use surely asks for the values of a tensor: it computes, compares, converts or prints with it."""
        match self.tree.parent(use):
            case cst.BinaryOperation() | cst.ComparisonTarget() | cst.UnaryOperation():
                return True
            case cst.AugAssign():
                return True
            case cst.Comparison(left=left):
                return left is use
            case cst.Attribute(value=base, attr=cst.Name(value=attr)) as above:
                return base is use and attr not in _SHAPE and self._is_called(above)
            case cst.Subscript(value=base) as above:
                return base is use and not isinstance(self.tree.parent(above), (cst.AssignTarget, cst.Del))
            case cst.Arg() as arg:
                return self._is_read_by(self.tree.parent(arg))
        return False

    def _is_called(self, attribute: cst.Attribute) -> bool:
        above = self.tree.parent(attribute)
        return isinstance(above, cst.Call) and above.func is attribute

    def _is_read_by(self, call: cst.CSTNode | None) -> bool:
        name = self.names.call(call) or ""
        if name.startswith("torch.distributed."):
            return False
        return name in {"builtins.print", "builtins.float", "builtins.int", "builtins.bool"} or (
            name.startswith("torch.") and not name.startswith(("torch.cuda.", "torch.utils."))
        )

    def _shares_statement(self, use: cst.CSTNode, waits: list[cst.CSTNode]) -> bool:
        statement = self.tree.statement(use)
        simple = isinstance(statement, cst.BaseSmallStatement)
        return simple and any(self.tree.contains(statement, each) for each in waits if statement is not None)
