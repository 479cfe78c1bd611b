from __future__ import annotations

import libcst as cst

from lightlint.check import Check

_LOGARITHMS = frozenset(["math.log", "numpy.log", "torch.log", "math.log10", "numpy.log10"])


class EncodingRateFloored(Check):
    def visit_BinaryOperation(self, node: cst.BinaryOperation) -> None:
        """`log(10000) / width // 2`: from left to right, so the quotient is what is rounded down."""
        quotient = node.left
        if not isinstance(node.operator, cst.FloorDivide) or not isinstance(quotient, cst.BinaryOperation):
            return
        if quotient.lpar or not isinstance(quotient.operator, cst.Divide) or not self._is_logarithm(quotient.left):
            return
        width, half = self.code.text_of(quotient.right), self.code.text_of(node.right)
        message = (
            f"`//` rounds the whole quotient down, to 0 or -1 where `{width}` is large: write `/ ({width} // {half})`"
        )
        self.report(node, message)

    def _is_logarithm(self, value: cst.BaseExpression) -> bool:
        """Whether something is a logarithm of a number, or minus that."""
        while isinstance(value, cst.UnaryOperation):
            value = value.expression
        if not isinstance(value, cst.Call) or len(value.args) != 1 or self.names.call(value) not in _LOGARITHMS:
            return False
        return isinstance(self.names.constant(value.args[0].value), (int, float))
