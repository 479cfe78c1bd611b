from __future__ import annotations

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.classes import NN_MODULE
from lightlint.facts.tensor_uses import TensorUses
from lightlint.finding import Applicability
from lightlint.fixes.buffers import as_buffer


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
        uses = TensorUses(self.facts)
        read = uses.in_forward(node, name)
        if any((sized and uses.is_surely_mixed(use)) or uses.weighs_classes(use) for use in read):
            self.report(
                target,
                f"`self.{name}` is no buffer: it stays on the CPU when the module is moved",
                repair=Repair("make it a buffer", as_buffer(self.code, assign, name), Applicability.UNSAFE),
            )

    def _moves_itself(self, node: cst.ClassDef, name: str) -> bool:
        """Whether the class moves tensors in its own way, or asks for the attribute by name."""
        if any(self.classes.has_method(node, each) for each in ("_apply", "to", "cuda")):
            return True
        texts = [self.names.constant(each) for each in self.tree.within(node, cst.SimpleString)]
        return name in texts
