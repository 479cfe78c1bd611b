from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import CalledUnknown, Collective
from lightlint.explore.queries import may_be_alone
from lightlint.facts.rank_tests import on_some_ranks, other_ways
from lightlint.values.core import Site

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path

_OUTPUT = re.compile(
    r"^(?:info|debug|warning|error|log|print|write|append|exit|format|rank_zero_\w+|mkdir|touch|unlink|exists|is_file"
    r"|is_dir|write_text|write_bytes|writelines|writerows?|extractall|urlretrieve)$"
)
# packages that know nothing of ranks, where nothing runs code that is handed to it
_APART = {
    "builtins", "collections", "csv", "glob", "gzip", "hashlib", "io", "json", "logging", "os", "pathlib", "pickle", "random",
    "re", "requests", "shutil", "string", "subprocess", "sys", "tarfile", "tempfile", "time", "urllib", "warnings", "zipfile",
}  # fmt: skip


class CollectiveInRankGuard(Check):
    def visit_Call(self, call: cst.Call) -> None:
        name = self.facts.collectives.name(call)
        if name and on_some_ranks(self.facts, call) and not self._is_balanced(call, name) and not self._is_alone(call):
            self.report(call, f"`{name}` waits for all ranks, and only some of them get here")
            return
        led = "" if name else self.facts.collectives.led_to(call)
        if led and on_some_ranks(self.facts, call) and not (self._is_met(call) or self._is_alone(call)):
            shown = self.names.method(call)
            self.report(call, f"`{shown}` leads to `{led}`, which waits for all ranks, and only some of them get here")

    def _is_met(self, call: cst.Call) -> bool:
        """Whether the other ranks may join what a helper waits for, in a branch or under a rank test of their own."""
        if any(map(self._may_join, other_ways(self.facts, call))):
            return True
        others = [each for each in self.tree.own(self.tree.owner(call), cst.Call) if each is not call]
        waiting = [each for each in others if self.facts.collectives.name(each) or self.facts.collectives.led_to(each)]
        return any(self.guards.may_be_test(test) for each in waiting for test, _ in self.facts.conditions(each))

    def visit_Attribute(self, attribute: cst.Attribute) -> None:
        waits = self.facts.collectives.is_log_dir(attribute) and on_some_ranks(self.facts, attribute)
        if waits and not self._is_alone(attribute):
            self.report(attribute, "`trainer.log_dir` is broadcast to all ranks, and only some of them read it here")

    def _is_alone(self, node: cst.CSTNode) -> bool:
        """Whether one process is all there is where the rehearsals come to a node."""
        found = self.happened(node, Collective)
        return bool(found) and all(event.alone or may_be_alone(event.where) for _, _, event in found)

    def _is_balanced(self, call: cst.Call, name: str) -> bool:
        """Whether the function has a second call of the kind under a rank test: each rank then joins one of them."""
        owner = self.tree.owner(call)
        others = [
            each
            for each in self.tree.own(owner, cst.Call)
            if each is not call and self.facts.collectives.name(each) == name
        ]
        if any(any(map(self.guards.may_be_test, (t for t, _ in self.facts.conditions(each)))) for each in others):
            return True
        return any(self._may_join(other) for other in other_ways(self.facts, call))

    def _may_join(self, call: cst.Call) -> bool:
        """Whether a call may wait with the others: it leads to a collective, or is out of sight and no output."""
        if self.facts.steps.leads(call, lambda each: bool(self.facts.collectives.name(each))):
            return True
        harmless = (self.names.call(call) or "").partition(".")[0] in _APART
        return self.facts.steps.callee(call) is None and not harmless and not _OUTPUT.search(self.names.method(call))

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Collectives that a test of the rank keeps some ranks from, in two rehearsals that differ in the rank alone."""
        for first, second in entry.pairs():
            if _names(first) == _names(second) or _unknown(first) != _unknown(second):
                continue  # matched by others, or perhaps by code out of sight
            for path, other in ((first, second), (second, first)):
                there = {event.site for event in other.of(Collective)}
                for event in path.of(Collective):
                    if (
                        event.site not in there
                        and not event.alone
                        and event.where.depends_on("rank")
                        and event.name.startswith(("dist.", "strategy.", "self.all_gather"))
                    ):
                        message = f"`{event.name}` waits for all ranks, and only some of them get here"
                        yield Fault.at(event, message)


def _names(path: Path) -> list[str]:
    return [event.name for event in path.of(Collective)]


def _unknown(path: Path) -> set[Site]:
    return {event.site for event in path.of(CalledUnknown)}
