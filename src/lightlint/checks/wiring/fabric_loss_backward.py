from __future__ import annotations

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.finding import Applicability, Tier
from lightlint.fixes.edits import Draft, replace

_FULL = {None, 32, "32", "32-true", 64, "64", "64-true"}
_SCALED = {16, "16", "16-mixed"}
_LOSSY = {"bf16", "bf16-mixed"}
_DEPTH = 4
_CUTTING = {"detach", "data", "item", "numpy", "tolist"}


class FabricLossBackward(Check):
    def visit_Call(self, call: cst.Call) -> None:
        tensor = self.facts.optimization.raw_backward(call)
        maker = self._maker(tensor) if tensor is not None else None
        if tensor is None or maker is None:
            return
        given = self.facts.dicts.argument(maker, "precision", 3)
        precision = self.names.constant(given.value) if given.value is not None else None
        strategy = self.facts.dicts.argument(maker, "strategy", 1).value
        old = not self.facts.lightning.may_be_at_least("2.3")
        needed = isinstance(precision, (int, str)) and precision in (_SCALED if old else _SCALED | _LOSSY)
        own = strategy is not None and str(self.names.constant(strategy)).startswith("deepspeed")
        plain = given.value is None and given.sure
        effect = "trains with an unscaled loss" if old else "raises"
        why = f"precision={self.code.text_of(given.value)}" if needed and given.value is not None else ""
        why = why or ('strategy="deepspeed"' if own else "")
        name = self.code.text_of(tensor)
        self.report(
            call,
            f"`{name}.backward()` goes past Fabric" + (f", which with `{why}` {effect}" if why else ""),
            tier=Tier.ERROR if why else Tier.NOTE if plain or precision in _FULL else Tier.WARNING,
            repair=Repair(
                "call `fabric.backward`",
                self._draft(call, tensor),
                Applicability.UNSAFE if old and why else Applicability.SAFE,
            ),
        )

    def _maker(self, tensor: cst.BaseExpression) -> cst.Call | None:
        """The constructor of the Fabric that set up the model a loss comes from, here or in a function that computes it."""
        pending, seen = self._sources(tensor, 0), set[cst.FunctionDef]()
        for call in pending:
            fabric = self.facts.fabrics.set_up(call.func)
            if fabric is not None:
                return self.facts.fabrics.constructor(fabric)
            callee = self.hooks.callee(call)
            if callee is not None and callee not in seen and len(seen) < _DEPTH:
                seen.add(callee)
                returned = [each for each in self.values.returns(callee) if each is not None]
                pending += [inner for each in returned for inner in self._sources(each, 0)]
        return None

    def _sources(self, expression: cst.BaseExpression, depth: int) -> list[cst.Call]:
        """The calls in the expressions that a local value is made of, up to where its graph is cut."""
        found = [each for each in self.tree.within(expression, cst.Call) if not self._is_cut(each, expression)]
        for name in self.tree.within(expression, cst.Name) if depth < _DEPTH else ():
            for binding in self.facts.reaching.bindings(name) if not self._is_cut(name, expression) else ():
                own = binding.value is not None and self.tree.owner(binding.site) is self.tree.owner(name)
                recorded = own and not self.facts.gradients.is_switched(binding.site)
                if recorded and binding.value is not None and binding.site is not name:
                    found = [*found, *self._sources(binding.value, depth + 1)]
        return found

    def _is_cut(self, node: cst.CSTNode, expression: cst.BaseExpression) -> bool:
        """Whether a part of an expression gives it values without their graph: `code` in `probe(code.detach())`."""
        for above in self.tree.ancestors(node):
            if isinstance(above, cst.Attribute) and above.attr.value in _CUTTING and above.attr is not node:
                return True
            if above is expression:
                return False
        return False

    def _draft(self, call: cst.Call, tensor: cst.BaseExpression) -> Draft | None:
        """`fabric.backward(loss)`, with the Fabric by the name it has where the call stands."""
        scope = self.tree.owner(call)
        names = {each.value: each for each in self.tree.own(scope, cst.Name) if self.facts.fabrics.is_fabric(each)}
        params = scope.params.params if isinstance(scope, cst.FunctionDef) else ()
        known = [each.name.value for each in params if self.facts.fabrics.is_fabric(each.name)]
        found = [*known, *names]
        if not found:
            return None
        arguments = [self.code.text_of(tensor), *(self.code.text_of(arg).rstrip(", ") for arg in call.args)]
        return replace(self.code, call, f"{found[0]}.backward({', '.join(arguments)})")
