from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import LeafChanged
from lightlint.facts.bindings import Binding, Kind

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_FACTORIES = {
    f"torch.{name}"
    for name in (
        "tensor",
        "zeros",
        "ones",
        "rand",
        "randn",
        "full",
        "empty",
        "zeros_like",
        "ones_like",
        "randn_like",
        "linspace",
    )
}
_IN_PLACE = {
    "add_",
    "sub_",
    "mul_",
    "div_",
    "clamp_",
    "zero_",
    "fill_",
    "copy_",
    "normal_",
    "uniform_",
    "addcmul_",
    "addcdiv_",
}


class LeafChangedInPlace(Check):
    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        if isinstance(node.target, cst.Name):
            self._judge(node, node.target)

    def visit_Call(self, call: cst.Call) -> None:
        func = call.func
        if isinstance(func, cst.Attribute) and func.attr.value in _IN_PLACE and isinstance(func.value, cst.Name):
            self._judge(call, func.value)

    def _judge(self, node: cst.CSTNode, name: cst.Name) -> None:
        if not any(map(self._makes_leaf, self.names.bindings.lookup(name))):  # quicker to tell than what reaches it
            return
        bound = [each for each in self.facts.reaching.bindings(name) if each.kind is not Kind.AUGMENT]
        if not bound or not all(map(self._makes_leaf, bound)):
            return
        if self._is_tested(node) or self.facts.gradients.may_be_off(node) or self._is_switched_off(name):
            return
        self.report(
            node,
            f"`{name.value}` is a leaf that requires a gradient: changing it in place raises outside of `no_grad()`",
        )

    def _makes_leaf(self, binding: Binding) -> bool:
        made = binding.value if binding.kind is Kind.ASSIGN and not binding.path else None
        return isinstance(made, cst.Call) and self._is_leaf(made)

    def _is_leaf(self, made: cst.Call) -> bool:
        name, flag = self.names.call(made), self.names.argument(made, "requires_grad")
        if name == "torch.nn.Parameter":
            return flag is None and len(made.args) == 1
        return name in _FACTORIES and flag is not None and self.names.constant(flag.value) is True

    def _is_tested(self, node: cst.CSTNode) -> bool:
        """Whether an error is caught or expected."""
        return any(
            isinstance(above, cst.Try) or (isinstance(above, cst.With) and self._expects(above))
            for above in self.tree.ancestors(node)
        )

    def _expects(self, block: cst.With) -> bool:
        return any(
            self.names.method(item.item) in {"raises", "assertRaises", "assertRaisesRegex"} for item in block.items
        )

    def _is_switched_off(self, name: cst.Name) -> bool:
        """Whether the file says anywhere that the tensor needs no gradient, or gives the name another one."""
        for attribute in self.tree.all(cst.Attribute):
            if self.names.key(attribute.value) == name.value and attribute.attr.value.startswith("requires_grad"):
                return True
            if self.names.key(attribute.value) == name.value and attribute.attr.value == "detach_":
                return True
        return False

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Leaves that are changed in place while autograd records."""
        for event in entry.of(LeafChanged):
            span = self.facts.rehearsed.span(event.site)
            nodes = [n for n in self.tree.all(cst.AugAssign, cst.Call) if self.facts.positions.span(n) == span]
            known = all(each.known for each in event.where.conditions) and not event.leaf.escaped
            if known and not event.leaf.parameter and nodes and not any(map(self._is_tested, nodes)):
                message = "this is a leaf that requires a gradient: changing it in place raises outside of `no_grad()`"
                yield Fault.of(event, message)
