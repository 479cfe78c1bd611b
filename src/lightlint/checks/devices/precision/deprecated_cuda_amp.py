from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.facts.releases.compat import is_for_older
from lightlint.fixes.edits import Draft, add_import, join, replace

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_SINCE = "2.4"  # the first release that deprecates them
_WRITES = {"autocast": "torch>=1.10", "GradScaler": "torch>=2.3"}
_PARAMETERS = {"autocast": ("enabled", "dtype", "cache_enabled"), "GradScaler": ()}


class DeprecatedCudaAmp(Check):
    """A visitor, too: a call of what is imported by this name is seen in any file."""

    def visit_Call(self, call: cst.Call) -> None:
        name = self.names.of(call.func) or ""
        room, _, last = name.rpartition(".")
        if room != "torch.cuda.amp" or last not in _PARAMETERS or not self.facts.torch.surely_at_least(_SINCE):
            return
        if is_for_older(self.facts, call) or self._is_imported_for_older(call):
            return
        self.report(
            call,
            _told(last),
            repair=Repair(f'use `torch.amp.{last}("cuda")`', self._draft(call, last), writes=_WRITES[last]),
        )

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Calls of them by another name, as out of a dict or from a `partial`."""
        for last in _PARAMETERS if self.facts.torch.surely_at_least(_SINCE) else ():
            for event in entry.calls.get(f"torch.cuda.amp.{last}", ()):
                if not self.is_versioned(event):
                    yield Fault.of(event, _told(last))

    def _is_imported_for_older(self, call: cst.Call) -> bool:
        """Whether what is called is imported under a test of the version, where nothing else has its name."""
        root = call.func
        while isinstance(root, cst.Attribute):
            root = root.value
        found = self.names.bindings.lookup(root) if isinstance(root, cst.Name) else []
        amp = bool(found) and all(each.dotted.startswith("torch.cuda.amp") for each in found)
        return amp and all(is_for_older(self.facts, each.site) for each in found)

    def _draft(self, call: cst.Call, last: str) -> Draft | None:
        parameters = _PARAMETERS[last]
        given = ['"cuda"']
        for index, arg in enumerate(call.args):
            text = self.code.text_of(arg.value)
            if arg.star or (not arg.keyword and parameters and index >= len(parameters)):
                return None
            if arg.keyword is not None:
                given.append(f"{arg.keyword.value}={text}")
            else:
                given.append(f"{parameters[index]}={text}" if parameters else text)
        torch = add_import(self.code, self.tree.module, "torch")
        replaced = replace(self.code, call, f"torch.amp.{last}({', '.join(given)})")
        return join(torch, replaced)


def _told(last: str) -> str:
    return f"`torch.cuda.amp.{last}` is deprecated since torch {_SINCE}: a FutureWarning"
