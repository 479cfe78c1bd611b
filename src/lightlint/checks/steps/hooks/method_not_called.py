from __future__ import annotations

import re

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.finding import Tier
from lightlint.fixes.edits import replace

_SURE = {"zero_grad", "backward"}
_OF_CUDA = {"torch.cuda.empty_cache", "torch.cuda.synchronize"}  # without which all numbers are the same
_OPTIMIZER = re.compile(r"optim|^opt(?:_|$)|sched|scaler", re.IGNORECASE)
_MODULE = re.compile(r"model|^net(?:_?[A-Z]|$)|encoder|decoder|generator|discriminator", re.IGNORECASE)
_SCHEDULERS = "torch.optim.lr_scheduler."
_PLATEAU = f"{_SCHEDULERS}ReduceLROnPlateau"


class MethodNotCalled(Check):
    def visit_Expr(self, statement: cst.Expr) -> None:
        method = statement.value
        if not isinstance(method, cst.Attribute) or not self._is_meant(method) or self._is_asked(statement):
            return
        text = self.code.text_of(method)
        draft = replace(self.code, method, f"{text}()")
        message, repair = f"`{text}` is named and not called: nothing happens here", Repair("call it", draft)
        self.report(method, message, repair=repair, tier=Tier.NOTE if self.names.of(method) in _OF_CUDA else None)

    def _is_meant(self, method: cst.Attribute) -> bool:
        """Whether an attribute is a method without arguments that training calls for its effect."""
        name, receiver = method.attr.value, method.value
        key = self.names.key(receiver).rpartition(".")[2]
        if self.names.of(method) in _OF_CUDA:
            return True
        if name in _SURE:
            return bool(key)
        if name == "step":
            origins = {origin.name for origin in self.values.origins(receiver)}
            if self.values.is_optimizer(receiver):
                return True
            if origins:
                return _PLATEAU not in origins and all(each.startswith(_SCHEDULERS) for each in origins)
            return bool(_OPTIMIZER.search(key)) and "scaler" not in key
        if name in {"train", "eval"}:
            known = self.values.origins(receiver)
            return self.values.is_module(receiver) if known else bool(_MODULE.search(key))
        return name == "update" and (self.values.is_scaler(receiver) or key == "scaler")

    def _is_asked(self, statement: cst.Expr) -> bool:
        """Whether a statement asks if the attribute is there, or is the last of a cell, which shows it."""
        for above in self.tree.ancestors(statement):
            rescued = isinstance(above, cst.Try) and any(not _raises_again(each) for each in above.handlers)
            if rescued or (isinstance(above, cst.With) and self._expects(above)):
                return True
        return self.facts.source.ends_cell(self.facts.span(statement)[1])

    def _expects(self, block: cst.With) -> bool:
        return any("aise" in each.value for item in block.items for each in self.tree.within(item.item, cst.Name))


def _raises_again(handler: cst.ExceptHandler) -> bool:
    """Whether a handler lets every error on its way."""
    last = handler.body.body[-1] if handler.body.body else None
    held = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else None
    return isinstance(held, cst.Raise) and held.exc is None
