from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.configured import CONFIGURE
from lightlint.facts.world import Ranks
from lightlint.finding import Tier

_SETS_UP = {"estimated_stepping_batches", "setup_data", "num_training_batches", "reset_train_dataloader"}


class TrainDataloaderLenInConfigureOptimizers(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if self.names.of(call.func) != "builtins.len" or len(call.args) != 1:
            return
        function = self.tree.function(call)
        if self.facts.lightning.may_be_below("2.0") or self.hooks.around(call) != {CONFIGURE} or function is None:
            return
        argument = call.args[0].value
        if isinstance(argument, cst.Attribute) and argument.attr.value == "train_dataloader":
            if self._is_trainer(argument.value) and not self._may_be_set_up(call, function):
                self.report(call, "`trainer.train_dataloader` is None in `configure_optimizers`: `len` raises")
        elif isinstance(argument, cst.Call) and self._is_own(argument):
            node = self.tree.enclosing_class(call)
            if node is None or not self.classes.complete(node) or self._is_patched(node):
                return
            if not self.classes.has_method(node, "train_dataloader"):
                self.report(call, "this module has no `train_dataloader` of its own: the call raises")
            elif self.facts.world.lightning is Ranks.MANY:
                message = "a second loader without the sampler of the ranks: its length is that of all ranks together"
                self.report(call, message, tier=Tier.WARNING)

    def _is_trainer(self, expression: cst.BaseExpression) -> bool:
        return (
            isinstance(expression, cst.Attribute)
            and expression.attr.value in {"trainer", "_trainer"}
            and self.classes.is_self(expression.value)
        )

    def _is_own(self, call: cst.Call) -> bool:
        func = call.func
        return (
            isinstance(func, cst.Attribute)
            and func.attr.value == "train_dataloader"
            and self.classes.is_self(func.value)
        )

    def _is_patched(self, node: cst.ClassDef) -> bool:
        return bool(self.classes.attribute_values(node, "train_dataloader"))

    def _may_be_set_up(self, call: cst.Call, function: cst.FunctionDef) -> bool:
        """Whether something before the call may have made the Trainer load its data, or the code asks for None first."""
        words = {each.attr.value for each in self.tree.within(function, cst.Attribute)}
        in_try = any(isinstance(above, cst.Try) for above in self.tree.ancestors(call))
        return bool(words & _SETS_UP) or in_try or bool(self.facts.conditions(call))
