from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.facts.releases.compat import is_versioned
from lightlint.fixes.edits import insert_argument

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_FUNCTIONS = {"torch.utils.checkpoint.checkpoint", "torch.utils.checkpoint.checkpoint_sequential"}
_WARNS_SINCE = "2.1"


class CheckpointReentrantUnset(Check):
    asks_passes = True
    asks_rest = frozenset(["checkpoint", "checkpoint_sequential"])

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
        self.report(call, _message(name), repair=repair)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        for name in _FUNCTIONS & entry.calls.keys() if self.facts.torch.may_be_at_least(_WARNS_SINCE) else ():
            for event in entry.calls[name]:
                given = event.given
                if "use_reentrant" not in given.keywords and given.double_star is None and not self.is_versioned(event):
                    yield Fault.of(event, _message(name))


def _message(name: str) -> str:
    what = f"`{name.rpartition('.')[2]}` without `use_reentrant` warns, and its default is to change"
    return f"{what}: say `use_reentrant=False`, or True to keep what it does now"
