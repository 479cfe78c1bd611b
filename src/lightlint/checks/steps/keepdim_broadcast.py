from __future__ import annotations

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.bindings import Kind
from lightlint.fixes.edits import wrap

_COMPARING = {"eq", "ne"}
_CLASSIFYING = {"CrossEntropyLoss", "NLLLoss"}


class KeepdimBroadcast(Check):
    def visit_Comparison(self, node: cst.Comparison) -> None:
        if len(node.comparisons) == 1 and isinstance(node.comparisons[0].operator, (cst.Equal, cst.NotEqual)):
            self._judge(node, node.left, node.comparisons[0].comparator)

    def visit_Call(self, call: cst.Call) -> None:
        func = call.func
        if self.names.of(func) in {"torch.eq", "torch.ne"} and len(call.args) == 2:
            self._judge(call, call.args[0].value, call.args[1].value)
        elif isinstance(func, cst.Attribute) and func.attr.value in _COMPARING and len(call.args) == 1:
            self._judge(call, func.value, call.args[0].value)

    def _judge(self, node: cst.CSTNode, left: cst.BaseExpression, right: cst.BaseExpression) -> None:
        for prediction, target in ((left, right), (right, left)):
            if self._keeps_dim(prediction, 0) and self._is_class_index(target):
                self.report(
                    node,
                    "compares a column with a row: every prediction with every target of the batch",
                    repair=Repair(
                        "give the target the shape of the prediction",
                        wrap(self.code, target, "", f".view_as({self.code.text_of(prediction)})"),
                    ),
                )
                return

    def _keeps_dim(self, expression: cst.BaseExpression, depth: int) -> bool:
        """Whether a value surely is what `argmax` or `max` gives with `keepdim=True`, over dimension 1 or -1."""
        match expression:
            case cst.Name() if depth < 4:
                found = self.facts.reaching.bindings(expression)
                return bool(found) and all(
                    each.kind is Kind.ASSIGN and each.value is not None and self._binds(each.value, each.path, depth)
                    for each in found
                )
            case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=index))]):
                return self.names.constant(index) == 1 and self._reduces(expression.value, {"max", "topk"})
            case cst.Attribute(attr=cst.Name(value="indices")):
                return self._reduces(expression.value, {"max"})
            case cst.Call():
                return self._reduces(expression, {"argmax"})
        return False

    def _binds(self, value: cst.BaseExpression, path: tuple[int, ...], depth: int) -> bool:
        return self._reduces(value, {"max", "topk"}) if path == (1,) else not path and self._keeps_dim(value, depth + 1)

    def _reduces(self, expression: cst.BaseExpression, methods: set[str]) -> bool:
        if not isinstance(expression, cst.Call) or self.names.method(expression) not in methods:
            return False
        offset = 1 if (self.names.of(expression.func) or "").startswith("torch.") else 0
        if self.names.method(expression) == "topk":
            count = self.names.argument(expression, "k", offset)
            along = self.names.argument(expression, "dim", 1 + offset)
            last = along is None or self.names.constant(along.value) in (1, -1)
            return last and count is not None and self.names.constant(count.value) == 1
        keep = self.names.argument(expression, "keepdim", 1 + offset)
        dim = self.names.argument(expression, "dim", offset)
        if keep is None or dim is None or self.names.constant(keep.value) is not True:
            return False
        return self.names.constant(dim.value) in (1, -1)

    def _is_class_index(self, target: cst.BaseExpression) -> bool:
        """Whether a value surely is a row of class indices: the target of a classifying loss in the same function."""
        if isinstance(target, cst.Attribute) and target.attr.value == "data":
            target = target.value
        key = self.names.key(target)
        if not key or not isinstance(target, (cst.Name, cst.Attribute)):
            return False
        losses = map(self.facts.criteria.of, self.tree.own(self.tree.owner(target), cst.Call))
        targets = [each.target for each in losses if each is not None and each.name in _CLASSIFYING and each.target]
        same = [each for each in targets if self.names.key(each) == key]
        if not isinstance(target, cst.Name):
            return bool(same)
        if not same:
            return self._is_drawn_alike(target)
        bound = self.facts.reaching.bindings(target)
        return any(isinstance(each, cst.Name) and self.facts.reaching.bindings(each) == bound for each in same)

    def _is_drawn_alike(self, target: cst.Name) -> bool:
        """Whether a loop draws a value as others draw the target of a classifying loss: by the same name, at the same place."""
        losses = [each for call in self.tree.all(cst.Call) if (each := self.facts.criteria.of(call)) is not None]
        targets = [each.target for each in losses if each.name in _CLASSIFYING]
        same = [each for each in targets if isinstance(each, cst.Name) and each.value == target.value]
        places = {self._place(each) for each in [target, *same]}
        return bool(same) and len(places) == 1 and None not in places

    def _place(self, target: cst.BaseExpression | None, depth: int = 0) -> tuple[str, int] | None:
        """Name and place in the batch of a loop's variable, which may have been moved to another device."""
        while isinstance(target, cst.Call) and self.names.method(target) in {"to", "cuda", "long"}:
            target = target.func.value if isinstance(target.func, cst.Attribute) else None
        found = self.facts.reaching.bindings(target) if isinstance(target, cst.Name) else []
        if len(found) != 1 or depth > 3:
            return None
        drawn = found[0]
        if drawn.kind is Kind.LOOP:
            return (drawn.name, drawn.path[-1]) if drawn.path else None
        if drawn.kind is not Kind.ASSIGN or drawn.value is None:
            return None
        if not drawn.path:
            return self._place(drawn.value, depth + 1)
        if (
            isinstance(drawn.value, cst.Tuple)
            and len(drawn.path) == 1
            and 0 <= drawn.path[0] < len(drawn.value.elements)
        ):
            return self._place(drawn.value.elements[drawn.path[0]].value, depth + 1)
        return None
