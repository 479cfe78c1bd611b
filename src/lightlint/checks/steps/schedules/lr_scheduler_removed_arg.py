from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Called
from lightlint.explore.questions.queries import sure
from lightlint.facts.releases.compat import is_versioned
from lightlint.facts.steps.updates import SCHEDULER
from lightlint.facts.values.keywords import keywords
from lightlint.finding import Tier
from lightlint.fixes.edits import remove_argument

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_ROOM = "torch.optim.lr_scheduler."
_SINCE = "2.7"  # the first release whose schedulers raise on `verbose`


class LrSchedulerRemovedArg(Check):
    asks_rest = frozenset(["lr_scheduler", "verbose"])

    def visit_Call(self, call: cst.Call) -> None:
        if not self.facts.torch.may_be_at_least(_SINCE):
            return
        tier = None if self.facts.torch.surely_at_least(_SINCE) else Tier.WARNING
        # the class may come out of a dict of settings: `config["scheduler"](optimizer)`
        name = self.names.of(self.facts.dicts.item(call.func) or call.func) or ""
        given = self.names.argument(call, "verbose")
        if given is not None and (name.startswith(_ROOM) or self._is_base_init(call)):
            if is_versioned(self.facts, given):
                return
            called = name.rpartition(".")[2] or "LRScheduler.__init__"
            self.report(
                given,
                f"`{called}` takes no `verbose` since torch {_SINCE}: a TypeError",
                repair=Repair("remove `verbose`", remove_argument(self.code, call, given)),
                tier=tier,
            )
            return
        travelling = keywords(self.facts, call) if name.startswith(_ROOM) else []
        hidden = [each for each in travelling if each.name == "verbose"]
        if hidden:
            if is_versioned(self.facts, call) or is_versioned(self.facts, hidden[0].node):
                return
            self.report(
                hidden[0].node,
                f"`{name.rpartition('.')[2]}` takes no `verbose` since torch {_SINCE}: a TypeError",
                tier=tier,
            )
        elif self._is_base_init(call) and len(call.args) == 3 and not any(arg.keyword or arg.star for arg in call.args):
            if is_versioned(self.facts, call):
                return
            self.report(
                call.args[2],
                f"`LRScheduler.__init__` takes no `verbose` since torch {_SINCE}: a TypeError",
                repair=Repair("remove the argument", remove_argument(self.code, call, call.args[2])),
                tier=tier,
            )

    def _is_base_init(self, call: cst.Call) -> bool:
        """`super().__init__(...)` in a class directly below torch's base of all schedulers."""
        func = call.func
        if not isinstance(func, cst.Attribute) or func.attr.value != "__init__":
            return False
        node = self.tree.enclosing_class(call)
        bases = set(self.classes.base_names(node)) if node is not None else set()
        by_super = isinstance(func.value, cst.Call) and self.names.call(func.value) == "builtins.super"
        return by_super and bool(bases) and bases <= {SCHEDULER, f"{_ROOM}_LRScheduler"}

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Schedules that are made with it, however the call is spelled and wherever the argument is said."""
        tier = None if self.facts.torch.surely_at_least(_SINCE) else Tier.WARNING
        made = self.facts.torch.may_be_at_least(_SINCE) and any(name.startswith(_ROOM) for name in entry.calls)
        for event in sure(entry, Called, _says_verbose) if made else ():
            if not self.is_versioned(event):
                message = f"`{event.name}` takes no `verbose` since torch {_SINCE}: a TypeError"
                yield Fault.of(event, message, tier=tier, argument="verbose")


def _says_verbose(event: Called) -> bool:
    return event.receiver is None and event.path.startswith(_ROOM) and "verbose" in event.given.sure()
