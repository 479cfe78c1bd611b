from __future__ import annotations

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.classes import NN_MODULE
from lightlint.facts.tensors import FACTORIES
from lightlint.finding import Applicability
from lightlint.fixes.edits import Draft, RawEdit

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
_MOVING = {"to", "cuda", "type_as", "cpu", "tolist", "item", "numpy"}


class TensorAttributeNotBuffer(Check):
    def visit_Assign(self, assign: cst.Assign) -> None:
        if len(assign.targets) != 1 or not isinstance(assign.targets[0].target, cst.Attribute):
            return
        target, method = assign.targets[0].target, self.tree.function(assign)
        node, name = self.classes.self_class(target.value), target.attr.value
        if node is None or method is None or method.name.value != "__init__" or name == "example_input_array":
            return
        if not self.classes.is_a(node, NN_MODULE) or not self.facts.tensors.is_made_here(assign.value, any_size=True):
            return
        if len(self.classes.attribute_sources(node, name)) != 1 or self._moves_itself(node, name):
            return
        sized = self.facts.tensors.is_made_here(assign.value)
        uses = self._uses(node, name)
        if any((sized and self._is_surely_mixed(use)) or self._weighs_classes(use) for use in uses):
            self.report(
                target,
                f"`self.{name}` is no buffer: it stays on the CPU when the module is moved",
                repair=self._repair(assign, name),
            )

    def _moves_itself(self, node: cst.ClassDef, name: str) -> bool:
        """Whether the class moves tensors in its own way, or asks for the attribute by name."""
        if any(self.classes.has_method(node, each) for each in ("_apply", "to", "cuda")):
            return True
        texts = [self.names.constant(each) for each in self.tree.within(node, cst.SimpleString)]
        return name in texts

    def _uses(self, node: cst.ClassDef, name: str) -> list[cst.Attribute]:
        """Reads of the attribute in what a forward pass runs."""
        starts = [method for each in _STEPS if (method := self.classes.methods(node).get(each)) is not None]
        reached = {function for start in starts for function in self.hooks.reachable(start)}
        return [
            each
            for each in self.tree.within(node, cst.Attribute)
            if each.attr.value == name
            and self.classes.self_class(each.value) is node
            and self.tree.function(each) in reached
        ]

    def _is_surely_mixed(self, use: cst.Attribute) -> bool:
        return self._meets_others(use) or self._is_indexed_elsewhere(use)

    def _is_indexed_elsewhere(self, use: cst.Attribute) -> bool:
        """Whether a read is indexed by a tensor made on the device of the others, which a tensor on the CPU refuses."""
        above = self.tree.parent(use)
        index = above.slice[0].slice if isinstance(above, cst.Subscript) and above.value is use else None
        value = index.value if isinstance(index, cst.Index) else None
        found = self.names.bindings.lookup(value) if isinstance(value, cst.Name) else []
        made = found[0].value if len(found) == 1 else None
        if not isinstance(made, cst.Call) or self.names.call(made) not in FACTORIES:
            return False
        device = self.names.argument(made, "device")
        return device is not None and isinstance(device.value, cst.Attribute) and device.value.attr.value == "device"

    def _meets_others(self, use: cst.Attribute) -> bool:
        """Whether a read surely is combined with another tensor: an operand, or an argument of torch, not moved before."""
        statement = self.tree.statement(use)
        if statement is None or self._may_be_moved(use):
            return False
        node: cst.CSTNode = use
        while True:
            above = self.tree.parent(node)
            if isinstance(above, cst.Attribute) and above.attr.value in _RESHAPING:
                call = self.tree.parent(above)
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
            return not isinstance(other, (cst.Integer, cst.Float)) and not self.facts.tensors.is_made_here(other)
        if isinstance(above, cst.Assign) and len(above.targets) == 1 and isinstance(above.targets[0].target, cst.Name):
            return self._name_meets_others(above.targets[0].target)
        return self._is_joined(node) or self._is_paired(node)

    def _is_sliced(self, part: cst.Subscript) -> bool:
        """Whether a subscript only takes slices, so that every dimension stays."""
        return all(isinstance(each.slice, cst.Slice) for each in part.slice)

    def _may_be_moved(self, use: cst.Attribute) -> bool:
        """Whether the statement of a read may move the tensor first."""
        statement = self.tree.statement(use)
        if statement is None or any(self.names.method(c) in _MOVING for c in self.tree.within(statement, cst.Call)):
            return True
        return any(name.value == "device" for name in self.tree.within(statement, cst.Name))

    def _weighs_classes(self, use: cst.Attribute) -> bool:
        """Whether a read is the `weight` of a classification loss, which surely has a dimension."""
        arg = self.tree.parent(use)
        call = self.tree.parent(arg) if isinstance(arg, cst.Arg) else None
        is_weight = isinstance(arg, cst.Arg) and arg.keyword is not None and arg.keyword.value == "weight"
        return is_weight and self.names.call(call) in _ONE_PER_CLASS and not self._may_be_moved(use)

    def _is_paired(self, node: cst.CSTNode) -> bool:
        """Whether a tensor is given to a function of torch beside a first argument that comes from elsewhere."""
        arg = self.tree.parent(node)
        call = self.tree.parent(arg) if isinstance(arg, cst.Arg) else None
        if not isinstance(call, cst.Call) or self.names.call(call) not in _PAIRED:
            return False
        first, statement = call.args[0].value, self.tree.statement(call)
        if statement is None or self._is_moved_later(statement):
            return False
        return first is not node and not self.facts.tensors.is_made_here(first, any_size=True)

    def _is_moved_later(self, statement: cst.CSTNode) -> bool:
        """Whether what a statement makes is moved behind it: it was put together on the CPU."""
        function = self.tree.function(statement)
        if function is None or not isinstance(statement, cst.Assign):
            return False
        bound = {self.names.key(each.target) for each in statement.targets} - {""}
        moves = [c for c in self.tree.own(function, cst.Call) if self.names.method(c) in _MOVING]
        return any(
            name.value in bound
            for move in moves
            if isinstance(move.func, cst.Attribute)
            for name in self.tree.within(move.func.value, cst.Name)
        )

    def _name_meets_others(self, target: cst.Name) -> bool:
        function = self.tree.function(target)
        reads = (
            [n for n in self.tree.own(function, cst.Name) if n.value == target.value and n is not target]
            if function
            else []
        )
        moved = any(isinstance(self.tree.parent(n), cst.Attribute) for n in reads)
        return not moved and len(self.names.bindings.lookup(target)) == 1 and any(self._is_joined(n) for n in reads)

    def _is_joined(self, node: cst.CSTNode) -> bool:
        """Whether a tensor is one of several in `torch.cat([...])` and the like."""
        above = self.tree.parent(node)
        display = self.tree.parent(above) if isinstance(above, cst.Element) else None
        arg = self.tree.parent(display) if isinstance(display, (cst.List, cst.Tuple)) else None
        call = self.tree.parent(arg) if isinstance(arg, cst.Arg) else None
        several = isinstance(display, (cst.List, cst.Tuple)) and len(display.elements) > 1
        return several and self.names.call(call) in {"torch.cat", "torch.stack", "torch.concat"}

    def _repair(self, assign: cst.Assign, name: str) -> Repair:
        value = self.code.text_of(assign.value)
        edit = RawEdit(*self.facts.span(assign), f'self.register_buffer("{name}", {value}, persistent=False)')
        return Repair("make it a buffer", Draft((edit,)), Applicability.UNSAFE)
