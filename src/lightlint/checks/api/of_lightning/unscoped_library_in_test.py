from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.facts.releases.compat import is_for_older

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_SCOPED_SINCE = "2.3"
_LIBRARY = "torch.library.Library"
_MESSAGE = "operators of this `Library` outlive the test"


class UnscopedLibraryInTest(Check):
    asks_rest = frozenset(["Library"])

    def visit_Call(self, call: cst.Call) -> None:
        if self.names.of(call.func) == _LIBRARY and self._stays() and not is_for_older(self.facts, call):
            self.report(call, _MESSAGE)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        for event in entry.calls.get(_LIBRARY, ()) if self._stays() else ():
            if not self.is_versioned(event):
                yield Fault.of(event, _MESSAGE)

    def _stays(self) -> bool:
        """Whether a test that makes one leaves it behind."""
        torch = self.facts.torch
        return torch.may_be_at_least(_SCOPED_SINCE) and self._is_test_file() and not self._is_destroyed()

    def _is_test_file(self) -> bool:
        stem = PurePath(self.facts.source.filename).stem
        return stem.startswith("test_") or stem.endswith("_test")

    def _is_destroyed(self) -> bool:
        return any(each.attr.value == "_destroy" for each in self.tree.all(cst.Attribute))
