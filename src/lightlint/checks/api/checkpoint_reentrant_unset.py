from __future__ import annotations

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.compat import is_versioned
from lightlint.fixes.edits import insert_argument

_FUNCTIONS = {"torch.utils.checkpoint.checkpoint", "torch.utils.checkpoint.checkpoint_sequential"}
_WARNS_SINCE = "2.1"


class CheckpointReentrantUnset(Check):
    def visit_Call(self, call: cst.Call) -> None:
        name = self.names.of(call.func)
        if name not in _FUNCTIONS or self.names.argument(call, "use_reentrant") is not None:
            return
        if not self.facts.torch.may_be_at_least(_WARNS_SINCE) or any(arg.star == "**" for arg in call.args):
            return
        if is_versioned(self.facts, call):
            return
        draft = insert_argument(self.code, call, "use_reentrant=True")
        repair = Repair("write the default, `use_reentrant=True`", draft, writes="torch>=1.11")
        message = f"`{name.rpartition('.')[2]}` without `use_reentrant` warns, and its default is to change"
        self.report(call, f"{message}: say `use_reentrant=False`, or True to keep what it does now", repair=repair)
