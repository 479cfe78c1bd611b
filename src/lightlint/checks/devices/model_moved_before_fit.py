from __future__ import annotations

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.cuda import is_gpu
from lightlint.facts.forks import forks, use_before
from lightlint.facts.world import TRAINER, Ranks
from lightlint.finding import Tier
from lightlint.fixes.edits import drop_statement, replace

_HARMLESS = {"train", "eval", "to", "cuda", "freeze", "unfreeze", "requires_grad_", "load_state_dict", "parameters"}
_READERS = {"builtins.print", "builtins.len", "builtins.repr", "builtins.id", "builtins.type", "builtins.isinstance"}


class ModelMovedBeforeFit(Check):
    def visit_Call(self, call: cst.Call) -> None:
        model = self._fitted(call)
        if model is None:
            return
        use = self._use_before_fork(call)
        if use is not None:
            message = "CUDA is in use from here on, and the processes that `fit` forks cannot use it any more"
            self.report(use, message, tier=Tier.ERROR)
        if isinstance(model, cst.Call):
            if self._moves(model):
                self._report(model)
            return
        key = self.names.key(model)
        for move in self.tree.own(self.tree.owner(call), cst.Call) if key else ():
            lands = move is not use and self._moves(move) and self._lands_in(move, key)
            if lands and self._only_leads_to(move, call, key):
                self._report(move)

    def _use_before_fork(self, fit: cst.Call) -> cst.Call | None:
        """What uses CUDA in the main process first, where the Trainer forks it then."""
        trainer = self.values.constructor(fit.func.value) if isinstance(fit.func, cst.Attribute) else None
        made = trainer.call if trainer is not None else None
        return use_before(self.facts, fit) if made is not None and forks(self.facts, made) else None

    def _fitted(self, call: cst.Call) -> cst.BaseExpression | None:
        """The model that a call of `Trainer.fit` trains."""
        if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "fit":
            return None
        trainer = self.values.constructor(call.func.value)
        model = self.names.argument(call, "model", 0)
        return model.value if model and trainer and trainer.name == TRAINER else None

    def _moves(self, call: cst.Call) -> bool:
        """Whether a call surely puts its receiver on a GPU: `.cuda()`, `.to("cuda:1")`, `.to(torch.device("cuda"))`."""
        method = self.names.method(call)
        if not isinstance(call.func, cst.Attribute):
            return False
        if method == "cuda":
            return True
        target = self.names.argument(call, "device", 0)
        return method == "to" and target is not None and is_gpu(self.names, target.value)

    def _lands_in(self, move: cst.Call, key: str) -> bool:
        """Whether the moved model is, or is assigned to, the name that `fit` gets."""
        statement = self.tree.statement(move)
        if isinstance(statement, cst.Assign) and statement.value is move:
            return any(self.names.key(target.target) == key for target in statement.targets)
        func = move.func
        in_place = isinstance(statement, cst.Expr) and statement.value is move
        return in_place and isinstance(func, cst.Attribute) and self.names.key(func.value) == key

    def _only_leads_to(self, move: cst.Call, fit: cst.Call, key: str) -> bool:
        """Whether the move can reach `fit` with the name unchanged, and nothing on the way needs the model on a GPU."""
        owner = self.tree.owner(fit)
        assigns = [
            each.value for each in self.tree.own(owner, cst.Assign) if self._binds(each, key) and each.value is not move
        ]
        if not self.facts.flow(owner).reaches(move, [fit], avoiding=assigns):
            return False
        return not any(
            self._uses(node, key) and self.facts.flow(owner).reaches(move, [node], avoiding=[fit])
            for node in self.tree.own(owner, cst.Call)
            if node is not move
        )

    def _binds(self, assign: cst.Assign, key: str) -> bool:
        return any(self.names.key(target.target) == key for target in assign.targets)

    def _uses(self, call: cst.Call, key: str) -> bool:
        """Whether a call runs the model, or hands it to something that may."""
        if self.names.key(call.func) == key:
            return True
        if isinstance(call.func, cst.Attribute) and self.names.key(call.func.value) == key:
            return call.func.attr.value not in _HARMLESS
        if self._fitted(call) is not None or self.names.of(call.func) in _READERS:
            return False
        return any(self.names.key(arg.value) == key for arg in call.args)

    def _report(self, move: cst.Call) -> None:
        one = self.facts.world.lightning is Ranks.ONE
        message = f"`{self.names.method(move)}()` before `Trainer.fit`, which moves the model itself"
        if not one:
            message += ": every rank first uses this GPU"
        self.report(move, message, repair=self._repair(move), tier=Tier.NOTE if one else None)

    def _repair(self, move: cst.Call) -> Repair | None:
        if not isinstance(move.func, cst.Attribute):
            return None
        statement = self.tree.statement(move)
        receiver = self.names.key(move.func.value)
        alone = isinstance(statement, (cst.Expr, cst.Assign)) and statement.value is move
        same = isinstance(statement, cst.Expr) or (
            isinstance(statement, cst.Assign)
            and [self.names.key(each.target) for each in statement.targets] == [receiver]
        )
        if receiver and alone and same and isinstance(statement, cst.BaseSmallStatement):
            return Repair("drop the move", drop_statement(self.code, statement))
        return Repair("leave the move to the Trainer", replace(self.code, move, self.code.text_of(move.func.value)))
