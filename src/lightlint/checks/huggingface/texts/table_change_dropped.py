from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Called
from lightlint.facts.releases.failures import is_expected
from lightlint.models.names.huggingface import ROWS

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_GIVE_ANOTHER = frozenset(
    [
        "add_column",
        "cast",
        "cast_column",
        "class_encode_column",
        "flatten",
        "remove_columns",
        "rename_column",
        "rename_columns",
        "select",
        "select_columns",
        "shard",
        "shuffle",
        "skip",
        "sort",
        "take",
        "train_test_split",
        "with_format",
        "with_transform",
    ]
)  # not `map` and `filter`, which fill the cache for other processes, too


class TableChangeDropped(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Calls that give another table, which nothing takes."""
        for event in entry.of(Called):
            held = event.receiver
            if held is not None and held.kind == ROWS and event.path in _GIVE_ANOTHER and self._is_dropped(event):
                effect = f"`{event.path}()` gives another data set, which is dropped: this one stays as it is"
                yield Fault.at(event, effect)

    def _is_dropped(self, event: Called) -> bool:
        call = self.node_of(event.site)
        statement = self.tree.parent(call) if isinstance(call, cst.Call) else None
        if not isinstance(call, cst.Call) or not isinstance(statement, cst.Expr) or is_expected(self.facts, call):
            return False
        return self.names.method(call) == event.path and not self._is_shown(statement)

    def _is_shown(self, statement: cst.Expr) -> bool:
        """Whether a notebook shows the value: that of the last statement of a cell."""
        source = self.facts.source
        if source.is_notebook:
            return source.ends_cell(self.facts.span(statement)[1])
        return source.is_in_cells and self.tree.owner(statement) is self.tree.module
