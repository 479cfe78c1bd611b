"""Where a forward pass reads a tensor that a module holds, and whether it meets tensors of another device there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from lightlint.checks.modules.registration.tensor_attribute_not_buffer.weighing import weighs
from lightlint.facts.tensors.tensors import FACTORIES
from lightlint.facts.values.sources import asked_by

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_STEPS = {"forward", "training_step", "validation_step", "test_step", "predict_step"}
_RESHAPING = {"expand", "unsqueeze", "view", "repeat", "reshape", "transpose", "permute"}
_PAIRED = {
    f"torch.nn.functional.{name}"
    for name in (
        "cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "binary_cross_entropy", "huber_loss", "linear",
        "binary_cross_entropy_with_logits", "kl_div", "conv1d", "conv2d", "conv3d", "embedding", "grid_sample", "bilinear",
        "cosine_similarity", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
    )
} | {f"torch.{name}" for name in ("matmul", "mm", "bmm", "mv", "dot", "cdist", "outer", "maximum", "minimum", "mul", "add", "sub", "div")}  # fmt: skip
_ONE_PER_CLASS = {"torch.nn.functional.cross_entropy", "torch.nn.functional.nll_loss"}
_DEVICE = {"is_cuda", "device", "get_device"}
_MOVING = {"to", "cuda", "type_as", "cpu", "tolist", "item", "numpy"}


class TensorUses:
    """Reads of the tensors that the modules of one file hold."""

    def __init__(self, facts: FileFacts) -> None:
        self._facts = facts
        self._tree = facts.tree
        self._names = facts.names

    def in_forward(self, node: cst.ClassDef, name: str) -> list[cst.Attribute]:
        """Reads of the attribute in what a forward pass of a class runs, in its bases, too."""
        reached = self.forward(node)
        return [
            each
            for room in self._facts.classes.line(node)
            for each in self._tree.within(room, cst.Attribute)
            if each.attr.value == name
            and self._facts.classes.self_class(each.value) is room
            and self._tree.function(each) in reached
        ]

    def forward(self, node: cst.ClassDef) -> set[cst.FunctionDef]:
        """The functions of this file that a forward pass of a class runs."""
        starts = [method for each in _STEPS if (method := self._facts.classes.method(node, each)) is not None]
        return {function for start in starts for function in self._facts.hooks.reachable(start)}

    def is_of_one_device(self, use: cst.CSTNode) -> bool:
        """Whether a test has asked first on which device something is, so that this may be for the CPU alone."""
        asked = (each for test, _ in self._facts.conditions(use) for each in asked_by(self._facts, test))
        words = (each for test in asked for each in self._tree.within(test, cst.Attribute))
        return any(each.attr.value in _DEVICE for each in words)

    def is_surely_mixed(self, use: cst.Attribute) -> bool:
        """Whether a read surely meets a tensor of another device, once the module is moved."""
        return self._meets_others(use) or self._is_indexed_elsewhere(use)

    def weighs_classes(self, use: cst.Attribute) -> bool:
        """Whether a read is the `weight` of a classification loss, which surely has a dimension."""
        arg = self._tree.parent(use)
        call = self._tree.parent(arg) if isinstance(arg, cst.Arg) else None
        is_weight = isinstance(arg, cst.Arg) and arg.keyword is not None and arg.keyword.value == "weight"
        return is_weight and self._names.call(call) in _ONE_PER_CLASS and not self._may_be_moved(use)

    def _is_indexed_elsewhere(self, use: cst.Attribute) -> bool:
        """Whether a read is indexed by a tensor made on the device of the others, which a tensor on the CPU refuses."""
        above = self._tree.parent(use)
        index = above.slice[0].slice if isinstance(above, cst.Subscript) and above.value is use else None
        value = index.value if isinstance(index, cst.Index) else None
        found = self._names.bindings.lookup(value) if isinstance(value, cst.Name) else []
        made = found[0].value if len(found) == 1 else None
        if not isinstance(made, cst.Call) or self._names.call(made) not in FACTORIES:
            return False
        device = self._names.argument(made, "device")
        return device is not None and isinstance(device.value, cst.Attribute) and device.value.attr.value == "device"

    def _meets_others(self, use: cst.Attribute) -> bool:
        """Whether a read surely is combined with another tensor: an operand, or an argument of torch, not moved before."""
        statement = self._tree.statement(use)
        if statement is None or self._may_be_moved(use):
            return False
        node: cst.CSTNode = use
        while True:
            above = self._tree.parent(node)
            if isinstance(above, cst.Attribute) and above.attr.value in _RESHAPING:
                call = self._tree.parent(above)
                if call is None:
                    return False
                node = call
            elif isinstance(above, cst.Subscript) and above.value is node and self._is_sliced(above):
                node = above
            else:
                break
        if isinstance(above, cst.BinaryOperation):
            if self._is_moved_later(statement):
                return False
            other = above.right if above.left is node else above.left
            plain = isinstance(other, (cst.Integer, cst.Float)) or self._facts.tensors.is_made_here(other)
            return not plain and not self._is_on_cpu(other)
        if isinstance(above, cst.Assign) and len(above.targets) == 1 and isinstance(above.targets[0].target, cst.Name):
            return self._name_meets_others(above.targets[0].target)
        return self._is_joined(node) or self._is_paired(node) or self._is_weighed(node)

    def _is_on_cpu(self, value: cst.BaseExpression) -> bool:
        """Whether a value comes of something that was taken to the CPU."""
        names = self._tree.within(value, cst.Name)
        sources = [value, *(each.value for name in names for each in self._names.bindings.lookup(name))]
        calls = (call for each in sources if each is not None for call in self._tree.within(each, cst.Call))
        return any(
            self._names.method(each) in ("cpu", "numpy", "from_numpy") or self._is_fetched(each) for each in calls
        )

    def _is_fetched(self, call: cst.Call) -> bool:
        """Whether a call casts to a tensor type of the CPU, as `type(torch.FloatTensor)` does."""
        given = call.args[0].value if self._names.method(call) == "type" and call.args else None
        named = (self._names.of(given) or self._names.constant(given)) if given is not None else None
        return isinstance(named, str) and named.endswith("Tensor") and not named.startswith("torch.cuda.")

    def _is_sliced(self, part: cst.Subscript) -> bool:
        """Whether a subscript only takes slices, so that every dimension stays."""
        return all(isinstance(each.slice, cst.Slice) for each in part.slice)

    def _may_be_moved(self, use: cst.Attribute) -> bool:
        """Whether the statement of a read may move the tensor first."""
        statement = self._tree.statement(use)
        if statement is None or any(self._names.method(c) in _MOVING for c in self._tree.within(statement, cst.Call)):
            return True
        return any(name.value == "device" for name in self._tree.within(statement, cst.Name))

    def _is_paired(self, node: cst.CSTNode) -> bool:
        """Whether a tensor is given to a function of torch beside a first argument that comes from elsewhere."""
        arg = self._tree.parent(node)
        call = self._tree.parent(arg) if isinstance(arg, cst.Arg) else None
        if not isinstance(call, cst.Call) or self._names.call(call) not in _PAIRED:
            return False
        first, statement = call.args[0].value, self._tree.statement(call)
        if statement is None or self._is_moved_later(statement):
            return False
        made_here = self._facts.tensors.is_made_here(first, any_size=True)
        return first is not node and not made_here and not self._is_on_cpu(first)

    def _is_weighed(self, node: cst.CSTNode) -> bool:
        """Whether a tensor is given to a layer, whose weights are on the device of the others."""
        arg = self._tree.parent(node)
        call = self._tree.parent(arg) if isinstance(arg, cst.Arg) else None
        return isinstance(call, cst.Call) and weighs(self._facts, call, node)

    def _is_moved_later(self, statement: cst.CSTNode) -> bool:
        """Whether what a statement makes is moved behind it: it was put together on the CPU."""
        function = self._tree.function(statement)
        if function is None or not isinstance(statement, cst.Assign):
            return False
        bound = {self._names.key(each.target) for each in statement.targets} - {""}
        moves = [c for c in self._tree.own(function, cst.Call) if self._names.method(c) in _MOVING]
        return any(
            name.value in bound
            for move in moves
            if isinstance(move.func, cst.Attribute)
            for name in self._tree.within(move.func.value, cst.Name)
        )

    def _name_meets_others(self, target: cst.Name) -> bool:
        function = self._tree.function(target)
        reads = (
            [n for n in self._tree.own(function, cst.Name) if n.value == target.value and n is not target]
            if function
            else []
        )
        moved = any(isinstance(self._tree.parent(n), cst.Attribute) for n in reads)
        return not moved and len(self._names.bindings.lookup(target)) == 1 and any(self._is_joined(n) for n in reads)

    def _is_joined(self, node: cst.CSTNode) -> bool:
        """Whether a tensor is one of several in `torch.cat([...])` and the like."""
        above = self._tree.parent(node)
        display = self._tree.parent(above) if isinstance(above, cst.Element) else None
        arg = self._tree.parent(display) if isinstance(display, (cst.List, cst.Tuple)) else None
        call = self._tree.parent(arg) if isinstance(arg, cst.Arg) else None
        parts = display.elements if isinstance(display, (cst.List, cst.Tuple)) else ()
        several = len({self._names.key(self._whole(each.value)) or id(each) for each in parts}) > 1
        return several and self._names.call(call) in {"torch.cat", "torch.stack", "torch.concat"}

    def _whole(self, value: cst.BaseExpression) -> cst.BaseExpression:
        """What a value is a part of: two slices of one tensor are on one device."""
        while isinstance(value, cst.Subscript):
            value = value.value
        return value
