from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import DigitsLost
from lightlint.facts.linked import Linked
from lightlint.facts.values.sources import sources
from lightlint.finding import Applicability
from lightlint.fixes.edits import replace

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_MESSAGE = "`log` of a sum of `exp` is infinite once a value exceeds 88"


class LogSumExpOverflow(Check):
    asks_rest = frozenset(["log"])

    def visit_Call(self, call: cst.Call) -> None:
        total, rest = self._applied(call, "log")
        summed, dims = self._applied(total, "sum")
        value, others = self._applied(summed, "exp")
        if value is None or rest or others or not self._is_torch(call, total, summed) or self._is_shifted(value):
            return
        self.report(call, _MESSAGE, repair=self._repair(call, value, dims))

    def _applied(self, node: cst.CSTNode | None, name: str) -> tuple[cst.BaseExpression | None, Sequence[cst.Arg]]:
        """The operand of `torch.name(operand, ...)` or `operand.name(...)`, and the other arguments."""
        if not isinstance(node, cst.Call) or any(arg.star for arg in node.args):
            return None, ()
        if self.names.call(node) == f"torch.{name}":
            first = node.args[0] if node.args else None
            return (first.value, node.args[1:]) if first and first.keyword is None else (None, ())
        if isinstance(node.func, cst.Attribute) and node.func.attr.value == name and self.names.of(node.func) is None:
            return node.func.value, node.args
        return None, ()

    def _is_torch(self, *calls: cst.CSTNode | None) -> bool:
        """Whether one of the three is torch's function by name: methods of these names exist elsewhere, too."""
        return any((self.names.call(each) or "").startswith("torch.") for each in calls)

    def _is_shifted(self, value: cst.BaseExpression) -> bool:
        """Whether something, commonly the largest value, is taken off first, or may be where the value comes from."""
        values = [value, *self._kept(value)]
        found = [(home, each) for one in values for home, each in sources(self.facts, one) if each is not None]
        out_of_sight = any(each is not value and isinstance(each, cst.Attribute | cst.Subscript) for _, each in found)
        return out_of_sight or any(_subtracts(home, each) for home, each in found)

    def _kept(self, value: cst.BaseExpression) -> list[cst.BaseExpression]:
        """What an item or attribute of the same spelling is set to in the same function."""
        key = self.names.key(value) if isinstance(value, cst.Attribute | cst.Subscript) else ""
        assigns = self.tree.own(self.tree.owner(value), cst.Assign) if key else []
        return [a.value for a in assigns if any(self.names.key(t.target) == key for t in a.targets)]

    def _repair(self, call: cst.Call, value: cst.BaseExpression, dims: Sequence[cst.Arg]) -> Repair | None:
        func = call.func
        named = [arg.keyword.value for arg in dims if arg.keyword]
        has_dim = "dim" in named or (dims and dims[0].keyword is None)
        if not has_dim or not isinstance(func, cst.Attribute) or not set(named) <= {"dim", "keepdim"}:
            return None
        if self.names.of(func) != "torch.log":
            return None
        arguments = [self.code.text_of(value), *(self.code.text_of(arg).rstrip(", ") for arg in dims)]
        text = f"{self.code.text_of(func.value)}.logsumexp({', '.join(arguments)})"
        return Repair("write `torch.logsumexp`", replace(self.code, call, text), Applicability.UNSAFE)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        for event in entry.of(DigitsLost):
            if event.better == "logsumexp":
                yield Fault.of(event, _MESSAGE)


def _subtracts(facts: Linked, value: cst.BaseExpression) -> bool:
    return any(isinstance(each.operator, cst.Subtract) for each in facts.tree.within(value, cst.BinaryOperation))
