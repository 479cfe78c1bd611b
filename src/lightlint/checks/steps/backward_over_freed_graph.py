from __future__ import annotations

import re

import libcst as cst

from lightlint.check import Check
from lightlint.facts.bindings import Binding, Kind
from lightlint.facts.tree import Loop
from lightlint.facts.updates import Owner

_KEEPING = {
    "abs", "clamp", "clone", "contiguous", "exp", "flatten", "float", "log", "mean", "pow", "reshape", "sigmoid", "softmax",
    "sqrt", "squeeze", "sum", "to", "transpose", "permute", "unsqueeze", "view", "scale", "cuda",
}  # fmt: skip
_LOSS = re.compile(r"crit|loss|bce|mse|(?:^|_)ce(?:$|_)", re.IGNORECASE)
_RECURRENT = {"torch.nn.RNN", "torch.nn.LSTM", "torch.nn.GRU"}
_CUTTING = {"detach", "detach_", "data", "no_grad", "repackage_hidden"}
_DEPTH = 8


class BackwardOverFreedGraph(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if not self._is_plain_backward(call):
            return
        owner = self.tree.owner(call)
        carried = self._carried_state(call)
        if carried is not None:
            self.report(
                call, f"`{carried}` carries the graph of the iteration before, which is freed: the second pass raises"
            )
            return
        for binding in self._graphs(call.func, 0):
            freed = self._freed_by(call, binding, owner)
            if freed is not None:
                what = "the call in the iteration before" if freed is call else f"`{self.code.text_of(freed.func)}()`"
                self.report(call, f"runs through `{binding.name}` again, whose graph {what} has freed")
                return

    def _is_plain_backward(self, call: cst.Call) -> bool:
        """Whether a call is a backward pass by `backward()` that is expected to work."""
        if self.names.method(call) != "backward" or not isinstance(call.func, cst.Attribute):
            return False
        above = self.tree.ancestors(call)
        return not any(
            isinstance(each, (cst.ExceptHandler, cst.Try, cst.With)) and self._expects(each) for each in above
        )

    def _expects(self, node: cst.CSTNode) -> bool:
        """Whether an exception is awaited around a node."""
        if isinstance(node, cst.With):
            return any("aise" in self.code.text_of(item.item) for item in node.items)
        return True

    def _frees(self, call: cst.Call) -> bool:
        retained = self.names.argument(call, "retain_graph", 1) or self.names.argument(call, "create_graph", 2)
        return retained is None and not self.names.has_star(call)

    def _freed_by(self, call: cst.Call, binding: Binding, owner: Owner) -> cst.Call | None:
        """The backward pass that surely has freed the graph of a binding when `call` runs through it."""
        flow = self.facts.flow(owner)
        tests = {id(test) for test, _ in self.facts.conditions(call)}
        for other in self.tree.own(owner, cst.Call):
            if not self._is_plain_backward(other) or not self._frees(other):
                continue
            if binding.site not in {each.site for each in self._graphs(other.func, 0)}:
                continue
            theirs = {id(test) for test, _ in self.facts.conditions(other)}
            if (theirs <= tests or tests <= theirs) and flow.reaches(other, [call], avoiding=[binding.site]):
                return other
        return None

    def _graphs(self, expression: cst.BaseExpression, depth: int) -> list[Binding]:
        """The names with the results of modules that a value's graph surely runs through."""
        match expression:
            case _ if depth > _DEPTH:
                return []
            case cst.Attribute(attr=cst.Name(value="backward")):
                return self._graphs(expression.value, depth)
            case cst.Name():
                found = self.facts.reaching.bindings(expression)
                only = found[0] if len(found) == 1 and found[0].kind is Kind.ASSIGN and not found[0].path else None
                if only is None or only.value is None or self.tree.owner(expression) is not self.tree.owner(only.site):
                    return []
                inner = self._graphs(only.value, depth + 1)
                return [only, *inner] if self._is_recorded(only.value) else inner
            case cst.BinaryOperation():
                return [*self._graphs(expression.left, depth + 1), *self._graphs(expression.right, depth + 1)]
            case cst.UnaryOperation():
                return self._graphs(expression.expression, depth + 1)
            case cst.Call():
                parts = self._carried(expression)
                return [each for part in parts for each in self._graphs(part, depth + 1)]
        return []

    def _carried(self, call: cst.Call) -> list[cst.BaseExpression]:
        """The parts of a call whose graph its result surely hangs on."""
        given = [arg.value for arg in call.args]
        name = self.names.of(call.func) or ""
        if name.startswith(("torch.nn.functional.", "torch.mean", "torch.sum", "torch.log")):
            return given[:1] if name.startswith("torch.nn.functional.") else given
        method = self.names.method(call)
        if isinstance(call.func, cst.Attribute) and method in _KEEPING and not name:
            return [call.func.value, *(given if method == "scale" else [])]
        if self.facts.steps.callee(call) is not None or name.startswith(("torch.", "builtins.", "numpy.")):
            return []
        if self._is_recorded(call):
            node = self.classes.local(origin.name) if (origin := self.values.constructor(call.func)) else None
            return [] if node is not None and self._cuts(node) else given
        is_loss = self.facts.criteria.of(call) is not None or bool(_LOSS.search(method))
        return given[:1] if is_loss else []

    def _is_recorded(self, value: cst.CSTNode | None) -> bool:
        """Whether a value surely is what a module with parameters that are trained gives."""
        if not isinstance(value, cst.Call) or self.facts.gradients.may_be_off(value):
            return False
        graphs = self.facts.gradients.graphs(value)
        if any(graph.node is value for graph in graphs):
            return True
        key = self.names.key(value.func)
        return bool(key) and key in self._optimized()

    def _optimized(self) -> set[str]:
        """The keys of modules whose parameters an optimizer is given, none where the file may freeze parameters."""
        words = {name.value for name in self.tree.all(cst.Name)}
        if any(re.search("requires_grad|freeze", word) for word in words):
            return set()
        found = set[str]()
        for call in self.tree.all(cst.Call):
            if self.classes.name_is_a(self.names.call(call), "torch.optim.Optimizer"):
                inner = [each for each in self.tree.within(call, cst.Call) if self.names.method(each) == "parameters"]
                found |= {self.names.key(each.func.value) for each in inner if isinstance(each.func, cst.Attribute)}
        return found - {""}

    def _cuts(self, node: cst.CSTNode) -> bool:
        return bool(_CUTTING & {name.value for name in self.tree.within(node, cst.Name)})

    def _carried_state(self, call: cst.Call) -> str | None:
        """The recurrent state that a backward pass in a loop runs back through to the iteration before."""
        loops = self.tree.loops(call)
        if not loops or not self._frees(call):
            return None
        loop = loops[0]
        if any(self.tree.contains(loop.body, test) for test, _ in self.facts.conditions(call)):
            return None
        flow = self.facts.flow(self.tree.owner(call))
        for inner in self.tree.own(loop.body, cst.Call):
            state = self._state(inner, loop)
            if state is None or not flow.reaches_in_same_iteration(loop, inner, [call]):
                continue
            if flow.reaches_in_later_iteration(loop, call, [call]) and self._hangs_on(call, inner):
                return state
        return None

    def _state(self, call: cst.Call, loop: Loop) -> str | None:
        """`h` of `out, h = rnn(x, h)`, where the loop does nothing else to it and the network cuts nothing."""
        assign = self.tree.parent(call)
        if not isinstance(assign, cst.Assign) or self.tree.loops(call)[:1] != [loop] or len(call.args) < 2:
            return None
        target = assign.targets[0].target
        if not isinstance(target, cst.Tuple) or len(target.elements) != 2 or self.facts.gradients.may_be_off(call):
            return None
        state = target.elements[1].value
        if not isinstance(state, cst.Name) or not any(self._is_same(arg.value, state) for arg in call.args[1:]):
            return None
        uses = [each for each in self.tree.own(loop.body, cst.Name) if each.value == state.value]
        return state.value if len(uses) == 2 and self._is_recurrent(call) else None

    def _is_same(self, value: cst.BaseExpression, name: cst.Name) -> bool:
        return isinstance(value, cst.Name) and value.value == name.value

    def _is_recurrent(self, call: cst.Call) -> bool:
        """Whether a call runs a recurrent layer, or a module of this file that holds one and cuts nothing."""
        origin = self.values.constructor(call.func)
        if origin is None:
            return False
        if origin.name in _RECURRENT:
            return True
        node = self.classes.local(origin.name)
        if node is None or self._cuts(node) or not self.values.is_module(call.func):
            return False
        return any(self.names.call(each) in _RECURRENT for each in self.tree.within(node, cst.Call))

    def _hangs_on(self, backward: cst.Call, call: cst.Call) -> bool:
        """Whether what is differentiated is made of what a call gives, by names of the loop's body."""
        pending, seen = [backward.func], set[str]()
        assign = self.tree.parent(call)
        target = assign.targets[0].target if isinstance(assign, cst.Assign) else None
        wanted = {name.value for name in self.tree.within(target, cst.Name)} if target is not None else set()
        while pending:
            for name in self.tree.within(pending.pop(), cst.Name):
                if name.value in wanted:
                    return True
                if name.value not in seen:
                    seen.add(name.value)
                    bound = self.facts.reaching.bindings(name)
                    pending += [each.value for each in bound if each.kind is Kind.ASSIGN and each.value is not None]
        return False
