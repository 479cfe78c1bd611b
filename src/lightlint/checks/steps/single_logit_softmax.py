from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.names import UNKNOWN

_LINEAR = "torch.nn.Linear"
_SOFTMAX = {"torch.softmax", "torch.nn.functional.softmax", "torch.log_softmax", "torch.nn.functional.log_softmax"}
_DEPTH = 5


class SingleLogitSoftmax(Check):
    def visit_Module(self, module: cst.Module) -> None:
        calls = self.tree.within(module, cst.Call)
        if any(map(self._is_single, calls)):  # few files have such a layer, and a loss is costly to tell
            for call in calls:
                self._judge(call)

    def _is_single(self, call: cst.Call) -> bool:
        """Whether a call makes a linear layer of one output."""
        out = self.names.argument(call, "out_features", 1)
        return out is not None and self.names.constant(out.value) == 1 and self.names.call(call) == _LINEAR

    def _judge(self, call: cst.Call) -> None:
        loss = self.facts.criteria.of(call)
        if loss is not None and loss.name == "CrossEntropyLoss":
            if self._width(loss.input, 0) == 1:
                self.report(
                    call, "cross entropy over one class is 0, whatever the model says: its last layer has one output"
                )
            return
        name = self.names.of(call.func) or ""
        given = self._normalised(call, name)
        if given is not None and self._width(given, 0) == 1:
            self.report(call, f"`{self.names.method(call)}` over the one output of a layer is the same for every input")

    def _normalised(self, call: cst.Call, name: str) -> cst.BaseExpression | None:
        """What a softmax over the last dimension is given; 1 is the last of two, and of more it is not."""
        offset = 0 if name in _SOFTMAX else -1
        method = self.names.method(call)
        dim = self.names.argument(call, "dim", 1 + offset)
        if dim is None or self.names.constant(dim.value) != -1:
            return None
        if name in _SOFTMAX:
            given = self.names.argument(call, "input", 0)
            return given.value if given is not None and not given.star else None
        plain = isinstance(call.func, cst.Attribute) and method in {"softmax", "log_softmax"} and not name
        return call.func.value if plain and isinstance(call.func, cst.Attribute) else None

    def _width(self, value: cst.BaseExpression | None, depth: int) -> object:
        """The last dimension of what a linear layer gives, as it is: through no call that changes its shape."""
        if value is None or depth > _DEPTH:
            return UNKNOWN
        widths: set[object] = set()
        for source in self.facts.reaching.sources(value):
            widths.add(self._of_call(source, depth) if isinstance(source, cst.Call) else UNKNOWN)
        return widths.pop() if len(widths) == 1 else UNKNOWN

    def _of_call(self, call: cst.Call, depth: int) -> object:
        if self.hooks.callee(call) is not None or not isinstance(call.func, (cst.Name, cst.Attribute)):
            return UNKNOWN
        origins = self.values.unwrapped(call.func)
        widths = {self._of_module(each.name, each.call, depth) for each in origins}
        return widths.pop() if len(widths) == 1 else UNKNOWN

    def _of_module(self, name: str, made: cst.Call | None, depth: int) -> object:
        if name == _LINEAR and made is not None:
            out = self.names.argument(made, "out_features", 1)
            return self.names.constant(out.value) if out is not None and not self._is_changed(made) else UNKNOWN
        if name == "torch.nn.Sequential" and made is not None and made.args and not self.names.has_star(made):
            last = made.args[-1].value
            return (
                self._of_module(self.names.call(last) or "", last, depth + 1) if isinstance(last, cst.Call) else UNKNOWN
            )
        node = self.classes.local(name)
        forward = self.classes.method(node, "forward") if node is not None else None
        widths = (
            {self._width(each, depth + 1) for each in self.values.returns(forward)} if forward is not None else set()
        )
        return widths.pop() if len(widths) == 1 else UNKNOWN

    def _is_changed(self, made: cst.Call) -> bool:
        """Whether a layer is one of several by a condition."""
        return bool(self.facts.conditions(made))
