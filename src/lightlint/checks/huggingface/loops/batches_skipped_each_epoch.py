from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Called
from lightlint.values.core import is_constant

if TYPE_CHECKING:
    from lightlint.engine.frames import Condition, Loop
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Site

_NAME = "skip_first_batches"
_COUNTED = {"index", "count", "periodic"}


class BatchesSkippedEachEpoch(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Batches that an interrupted epoch has had, and that every later epoch leaves out, too."""
        for path in entry.paths:
            before: dict[tuple[Site, Loop, Hashable], int] = {}
            for event in path.of(Called):
                number = event.argument("num_batches", 1) if event.name == _NAME else None
                loops = [turn for turn in event.where.turns if turn.loop.kind != "batch"]
                if number is None or not loops or is_constant(number, 0, None) or number.traits & _COUNTED:
                    continue
                loop, turn = loops[-1]
                key = (event.site, loop, number.key if number.key is not None else id(number))
                if before.setdefault(key, turn) == turn or _changes(number.key, loop):
                    continue
                if not any(self._may_change(each, loop) for each in event.where.conditions):
                    message = "each epoch leaves out the batches that only the one which was interrupted has had"
                    yield Fault.at(event, message)

    def _may_change(self, test: Condition, loop: Loop) -> bool:
        """Whether a test may come out otherwise in another turn of the loop."""
        if test.traits & _COUNTED or _changes(test.key, loop):
            return True
        if test.known or test.key is not None:
            return False
        node = self.node_of(test.site)
        if node is None or self.tree.within(node, cst.Call):
            return True
        return bool({name.value for name in self.tree.within(node, cst.Name)} & _set_in(loop))


def _changes(key: Hashable, loop: Loop) -> bool:
    """Whether a value is made of the number of a turn, or of an attribute that the loop sets."""
    if isinstance(key, tuple):
        return key[:2] == ("index", loop.site[1]) or any(_changes(each, loop) for each in key)
    return isinstance(key, str) and key in _set_in(loop)


def _set_in(loop: Loop) -> set[str]:
    """The names and attributes that a loop sets."""
    nodes = list(ast.walk(loop.node)) if loop.node is not None else []
    held = [each for each in nodes if isinstance(each, (ast.Name, ast.Attribute)) and isinstance(each.ctx, ast.Store)]
    return {each.id if isinstance(each, ast.Name) else each.attr for each in held}
