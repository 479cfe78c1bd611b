from __future__ import annotations

import re

import libcst as cst

from lightlint.check import Check

_SWITCHES = {"torch.no_grad", "torch.inference_mode"}
_LOADER = re.compile(r"loader|iterator", re.IGNORECASE)
_MEANT = re.compile(
    r"(?:^|_)mc(?:$|_|[A-Z])|monte|bayes|uncertain|ensembl|dropout|calib|bn_|_bn|stat|precise|warm", re.IGNORECASE
)
_DEPTH = 4


class ValidationWithoutEvalMode(Check):
    def visit_For(self, loop: cst.For) -> None:
        if not self._draws_batches(loop) or self.facts.steps.runs(loop.body, self.loops.is_backward):
            return
        if self._is_meant(loop) or not any(map(self.loops.is_backward, self.tree.all(cst.Call))):
            return
        for call in self.tree.own(loop.body, cst.Call):
            key = self.names.key(call.func)
            if not key or isinstance(self.tree.parent(call), cst.Expr) or not self._is_unrecorded(call):
                continue
            if self.facts.modes.acts_by_mode(call.func) and not self._may_be_in_eval(call, self._makers(call)):
                self.report(
                    call, f"`{key}` is evaluated in training mode: dropout drops, batch norm learns from this data"
                )
                return
            inner = self._run_in_helper(call)
            if inner is not None and not self._may_be_in_eval(call, self._makers(inner)):
                key = self.names.key(inner.func)
                self.report(
                    call, f"`{key}` is evaluated in training mode: dropout drops, batch norm learns from this data"
                )
                return

    def _run_in_helper(self, call: cst.Call) -> cst.Call | None:
        """The call of a model that acts by its mode in the helper of this file that a call runs, which sets no mode."""
        helper = self.hooks.callee(call)
        calls = self.tree.own(helper.body, cst.Call) if helper is not None else []
        if any(map(self._may_set_mode, calls)) or any(map(self.loops.is_backward, calls)):
            return None
        return next((each for each in calls if self.facts.modes.acts_by_mode(each.func)), None)

    def _draws_batches(self, loop: cst.For) -> bool:
        """Whether a loop draws batches, by what it iterates or by its name."""
        drawn = self.values.iterated(loop.iter)
        return self.values.is_batch_loop(loop) or bool(_LOADER.search(self.names.key(drawn)))

    def _is_meant(self, loop: cst.For) -> bool:
        """Whether names say that dropout or batch norm is meant to act, or the file sets modes in ways of its own."""
        around = [each for each in self.tree.ancestors(loop) if isinstance(each, (cst.FunctionDef, cst.ClassDef))]
        targets = [each.target for each in self.tree.all(cst.AssignTarget) if isinstance(each.target, cst.Attribute)]
        own = any(isinstance(each, cst.Attribute) and each.attr.value == "training" for each in targets)
        return own or any(_MEANT.search(each.name.value) for each in around)

    def _is_unrecorded(self, call: cst.Call) -> bool:
        """Whether autograd surely does not record a call, by a context manager or a decorator of its function."""
        for above in self.tree.ancestors(call):
            if isinstance(above, cst.With) and any(self.names.call(each.item) in _SWITCHES for each in above.items):
                return True
            if isinstance(above, cst.FunctionDef):
                spelled = [each.decorator for each in above.decorators]
                return any(self.names.call(each) in _SWITCHES or self.names.of(each) in _SWITCHES for each in spelled)
        return False

    def _makers(self, call: cst.Call) -> set[cst.CSTNode]:
        """The functions that make the called module."""
        made = [each.call for each in self.values.origins(call.func)]
        return {self.tree.owner(each) for each in made if each is not None}

    def _may_be_in_eval(self, node: cst.CSTNode, makers: set[cst.CSTNode], depth: int = 0) -> bool:
        """Whether something may have set the mode before a node runs, in its function or at a call of that, up to
        where the module is made."""
        owner = self.tree.owner(node)
        flow = self.facts.flow(owner)
        setting = [each for each in self.tree.own(owner, cst.Call) if each is not node and self._may_set_mode(each)]
        if any(flow.reaches(each, [node]) for each in setting):
            return True
        if not isinstance(owner, cst.FunctionDef) or makers == {owner}:
            return False
        calls = self.facts.steps.calls_of.get(owner, ())
        return not calls or depth > _DEPTH or any(self._may_be_in_eval(each, makers, depth + 1) for each in calls)

    def _may_set_mode(self, call: cst.Call) -> bool:
        """Whether a call is, or leads to, anything that may put a module in eval mode."""

        def sets(each: cst.Call) -> bool:
            method = self.names.method(each)
            plain = method == "train" and not each.args and isinstance(each.func, cst.Attribute)
            return (
                not plain
                and bool(re.search(r"(?:^|_)(?:eval\w*|train|apply|modes?)$", method))
                and not (self.facts.steps.callee(each))
            )

        return self.facts.steps.leads(call, sets)
