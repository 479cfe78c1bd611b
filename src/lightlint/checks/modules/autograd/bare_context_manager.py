from __future__ import annotations

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.finding import Applicability, Tier
from lightlint.fixes.draft import RawEdit
from lightlint.fixes.drafts.comments import comment_behind
from lightlint.fixes.edits import Draft, drop_statement, replace, wrap_statements

_AUTOCAST = {"torch.autocast", "torch.amp.autocast", "torch.cuda.amp.autocast", "torch.cpu.amp.autocast"}
_SWITCHES = {"torch.set_grad_enabled", "torch.autograd.set_grad_enabled"}  # which act when they are made
_WITHOUT_GRADIENTS = {"torch.no_grad", "torch.inference_mode"}
_MANAGERS = {*_WITHOUT_GRADIENTS, "torch.enable_grad", "torch.random.fork_rng", *_AUTOCAST}


class BareContextManager(Check):
    def visit_Expr(self, statement: cst.Expr) -> None:
        name = self.names.call(statement.value)
        if name not in _MANAGERS or self.facts.source.ends_cell(self.facts.span(statement)[1]):
            return
        idle = name in _WITHOUT_GRADIENTS and self._is_done_below(statement)
        repair = Repair("put the rest of the block under it", self._draft(statement), Applicability.UNSAFE)
        message = f"`{name.rpartition('.')[2]}()` without `with` changes nothing for the lines below"
        self.report(statement, message, tier=Tier.NOTE if idle else None, repair=None if idle else repair)

    def _is_done_below(self, statement: cst.Expr) -> bool:
        """Whether what the function puts in evaluation mode is used below in such blocks only."""
        owner = self.tree.owner(statement)
        calls = self.tree.own(owner, cst.Call)
        evaluated = [each.func.value for each in calls if isinstance(each.func, cst.Attribute) and self._ends(each)]
        keys = {self.names.key(each) for each in evaluated} - {""}
        start = self.tree.order(statement)
        used = [each for each in self.tree.within(owner, cst.Name, cst.Attribute) if self.names.key(each) in keys]
        below = [each for each in used if self.tree.order(each) > start]
        return bool(below) and all(map(self._is_without, below))

    def _ends(self, call: cst.Call) -> bool:
        return self.names.method(call) == "eval" and not call.args

    def _is_without(self, node: cst.CSTNode) -> bool:
        """Whether a block around a place records no gradients."""
        above = self.tree.parent(node)
        while above is not None:
            if isinstance(above, cst.With) and any(
                self.names.call(each.item) in _WITHOUT_GRADIENTS for each in above.items
            ):
                return True
            above = self.tree.parent(above)
        return False

    def visit_With(self, block: cst.With) -> None:
        for item in block.items:
            if self.names.of(item.item) in _MANAGERS and not isinstance(item.item, cst.Call):
                text = self.code.text_of(item.item)
                draft = replace(self.code, item.item, f"{text}()")
                self.report(
                    item.item, f"`with {text}` enters the class itself and raises", repair=Repair("call it", draft)
                )
            elif self._is_mode(item.item):
                text = self.code.text_of(item.item)
                self.report(item.item, f"`{text}` gives the module, which is no context manager: `with` raises")
            elif isinstance(item.item, cst.BooleanOperation):
                self._judge_and(item.item)

    def _judge_and(self, both: cst.BooleanOperation) -> None:
        """`with a() and b():` makes both and enters the last."""
        operands = self._operands(both)
        made = [each for each in operands if self.names.call(each) in _MANAGERS | _SWITCHES]
        lost = operands[:-1]
        if not made or not all(isinstance(each, (cst.Call, cst.Name, cst.Attribute)) for each in lost):
            return
        texts = [self.code.text_of(each) for each in operands]
        shown = ", ".join(f"`{text}`" for text in texts[:-1])
        switched = all(self.names.call(each) in _SWITCHES for each in lost)
        fixable = len(made) == len(operands) == 2 and not both.lpar
        self.report(
            both,
            f"`and` enters `{texts[-1]}` only: what {shown} sets holds behind the block, too"
            if switched
            else f"`and` leaves `{texts[-1]}` to be entered, and drops {shown}",
            tier=Tier.NOTE if switched else None,
            repair=Repair("enter both", self._comma(both), Applicability.UNSAFE) if fixable else None,
        )

    def _comma(self, both: cst.BooleanOperation) -> Draft:
        spans = self.facts.positions
        return Draft((RawEdit(spans.span(both.left)[1], spans.span(both.right)[0], ", "),))

    def _operands(self, value: cst.BaseExpression) -> list[cst.BaseExpression]:
        if isinstance(value, cst.BooleanOperation) and isinstance(value.operator, cst.And):
            return [*self._operands(value.left), *self._operands(value.right)]
        return [value]

    def _is_mode(self, expression: cst.BaseExpression) -> bool:
        """Whether an expression is `net.eval()` of what surely is a module."""
        call = expression if isinstance(expression, cst.Call) else None
        if call is None or not isinstance(call.func, cst.Attribute) or self.names.call(call):
            return False
        off = self.names.method(call) == "train" and [self.names.constant(arg.value) for arg in call.args] == [False]
        if not off and (self.names.method(call) != "eval" or call.args):
            return False
        return self.values.is_module(call.func.value)

    def _draft(self, statement: cst.Expr) -> Draft | None:
        line = self.tree.parent(statement)
        block = self.tree.parent(line) if line is not None else None
        if not isinstance(line, cst.SimpleStatementLine) or not isinstance(block, cst.IndentedBlock):
            return None
        rest = list(block.body)[list(block.body).index(line) + 1 :]
        if not rest:
            return None
        if len(line.body) > 1:
            return None
        comment = comment_behind(self.code, line)
        header = f"with {self.code.text_of(statement.value)}:{comment and '  '}{comment}"
        dropped, wrapped = drop_statement(self.code, statement), wrap_statements(self.code, rest, header)
        return Draft(dropped.edits + wrapped.edits) if dropped and wrapped else None
