from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.facts.code.bindings import dotted_name
from lightlint.facts.releases.compat import is_for_older
from lightlint.values.core import text_of

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_MODULE = "torch.distributed.launch"
_COMMAND = re.compile(r"(?:^|\s)torch\.distributed\.launch(?:\s|$)")
_STARTERS = ("subprocess.", "os.system", "os.popen", "os.exec", "os.spawn", "asyncio.create_subprocess_")
_MESSAGE = "`torch.distributed.launch` is deprecated since torch 1.9 in favour of `torchrun`"


class TorchDistributedLaunch(Check):
    asks_rest = frozenset(["subprocess", "system", "popen", "create_subprocess_shell"])

    def visit_Import(self, statement: cst.Import) -> None:
        for alias in statement.names:
            if dotted_name(alias.name) == _MODULE:
                self._tell(alias)

    def visit_ImportFrom(self, statement: cst.ImportFrom) -> None:
        module = dotted_name(statement.module)
        if statement.relative or isinstance(statement.names, cst.ImportStar):
            return
        for alias in statement.names:
            if _MODULE in {module, f"{module}.{dotted_name(alias.name)}"}:
                self._tell(alias)
                return

    def visit_SimpleString(self, string: cst.SimpleString) -> None:
        text = string.evaluated_value
        if isinstance(text, str) and _COMMAND.search(text) and (self._is_run(string) or self._follows_m(string)):
            self._tell(string)

    def _is_run(self, string: cst.SimpleString) -> bool:
        calls = (each for each in self.tree.ancestors(string) if isinstance(each, cst.Call))
        return any((self.names.call(each) or "").startswith(_STARTERS) for each in calls)

    def _follows_m(self, string: cst.SimpleString) -> bool:
        """Whether a list spells a command: `[python, "-m", "torch.distributed.launch", ...]`."""
        element = self.tree.parent(string)
        display = self.tree.parent(element) if isinstance(element, cst.Element) else None
        if not isinstance(display, (cst.List, cst.Tuple)):
            return False
        place = next(number for number, each in enumerate(display.elements) if each is element)
        return place > 0 and self.names.constant(display.elements[place - 1].value) == "-m"

    def _tell(self, node: cst.CSTNode) -> None:
        if self.facts.torch.may_be_at_least("1.9") and not is_for_older(self.facts, node):
            self.report(node, _MESSAGE)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Commands that are said elsewhere than in the call that runs them."""
        if self.facts.torch.may_be_at_least("1.9"):
            started = (event for name, events in entry.calls.items() if name.startswith(_STARTERS) for event in events)
            for event in started:
                command = text_of(event.argument("args", 0))
                if command and _COMMAND.search(command) and not self.is_versioned(event):
                    yield Fault.of(event, _MESSAGE)
