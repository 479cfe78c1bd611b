from __future__ import annotations

from pathlib import PurePath

import libcst as cst

from lightlint.check import Check
from lightlint.facts.compat import is_for_older

_SCOPED_SINCE = "2.3"


class UnscopedLibraryInTest(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if self.names.of(call.func) != "torch.library.Library" or not self.facts.torch.may_be_at_least(_SCOPED_SINCE):
            return
        if self._is_test_file() and not self._is_destroyed() and not is_for_older(self.facts, call):
            self.report(call, "operators of this `Library` outlive the test")

    def _is_test_file(self) -> bool:
        stem = PurePath(self.facts.source.filename).stem
        return stem.startswith("test_") or stem.endswith("_test")

    def _is_destroyed(self) -> bool:
        return any(each.attr.value == "_destroy" for each in self.tree.all(cst.Attribute))
