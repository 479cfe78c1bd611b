from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.facts.releases.failures import is_expected
from lightlint.finding import Applicability, Tier
from lightlint.fixes.edits import insert_argument
from lightlint.fixes.repairs.dimensions import dimensions_before, dimensions_of, picked
from lightlint.values.core import is_constant
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Site

_FUNCTIONS = {f"torch.nn.functional.{name}" for name in ("softmax", "log_softmax", "softmin")}
_BATCH_FIRST = 3  # of so many dimensions it picks the first; of others the last, or that of the classes in an image
_MODULES = {f"torch.nn.{name}" for name in ("Softmax", "LogSoftmax", "Softmin")}


class SoftmaxWithoutDim(Check):
    asks_passes = True
    asks_rest = frozenset(["softmax", "log_softmax", "softmin", "Softmax", "LogSoftmax", "Softmin"])

    def visit_Call(self, call: cst.Call) -> None:
        name = self.names.of(call.func) or ""
        position = 0 if name in _MODULES else 1
        if name not in _FUNCTIONS | _MODULES or self.names.has_star(call):
            return
        given = self.names.argument(call, "dim", position)
        if given is not None and self.names.constant(given.value) is not None:
            return
        if is_expected(self.facts, call):
            return
        known = self._dimensions(call, is_module=name in _MODULES)
        self.report(
            call,
            _message(name),
            repair=self._repair(call, known) if given is None and known is not None else None,
            tier=Tier.WARNING if known == _BATCH_FIRST else None,
        )

    def _dimensions(self, call: cst.Call, *, is_module: bool) -> int | None:
        """How many dimensions what comes in surely has."""
        if is_module:
            return dimensions_before(self.facts, call)
        values = self.names.argument(call, "input", 0)
        return dimensions_of(self.facts, values.value) if values is not None else None

    def _repair(self, call: cst.Call, dimensions: int) -> Repair:
        """Write what torch picks."""
        text = f"dim={picked(dimensions)}"
        return Repair(
            f"write `{text}`, which torch picks here", insert_argument(self.code, call, text), Applicability.UNSAFE
        )

    def clears(self, entry: Entry) -> Iterator[Site]:
        """Layers of which a test waits for something else to raise."""
        for name in (_FUNCTIONS | _MODULES) & entry.calls.keys():
            yield from (event.site for event in entry.calls[name] if event.where.awaited)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        for name in (_FUNCTIONS | _MODULES) & entry.calls.keys():
            for event in entry.calls[name]:
                dim, values = event.argument("dim", 0 if name in _MODULES else 1), event.argument("input", 0)
                node = self.node_of(event.site)
                expected = event.where.awaited or (node is not None and is_expected(self.facts, node))
                if event.given.exact and (dim is None or is_constant(dim, None)) and not expected:
                    known = values.rank if isinstance(values, Tensor) else None
                    yield Fault.of(event, _message(name), tier=Tier.WARNING if known == _BATCH_FIRST else None)


def _message(name: str) -> str:
    short = name.rpartition(".")[2]
    return f"`{short}` without `dim` warns and takes dimension 0 of a tensor with 1 or 3 of them, else 1: say which, as in `dim=-1`"
