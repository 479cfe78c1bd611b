from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Looped
from lightlint.values.core import Class, Site, site_of
from lightlint.values.training import Instance, Loader

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class IteratorMadeBeforeEpochs(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Iterators over a loader that a loop drains, made before the loop around that comes to them again."""
        for path in entry.paths:
            drained: dict[tuple[int, Site], Looped] = {}
            for event in path.of(Looped):
                loop = event.loop
                if loop.once is None or loop.kind != "batch" or not _is_plain(loop.over) or _may_leave(event):
                    continue
                first = drained.setdefault((id(loop.once), event.site), event)
                if first is not event and _is_older(loop.once, first, event):
                    message = (
                        "the iterator can be gone through once: the loop around this one finds it empty the second time"
                    )
                    yield Fault(_iterated(event), message, None, (event.site,))


def _is_plain(over: object) -> bool:
    """Whether an iterator is one of a DataLoader of PyTorch's, which does not start again."""
    return isinstance(over, Loader) and not isinstance(over.cls, Class)


def _may_leave(event: Looped) -> bool:
    """Whether a loop may be left before its end, and go on with the rest later."""
    node = event.loop.node
    return node is None or any(isinstance(each, (ast.Break, ast.Return)) for each in ast.walk(node))


def _is_older(once: object, first: Looped, again: Looped) -> bool:
    """Whether an iterator was made before the loop whose next turn comes to it again."""
    pairs = zip(first.where.turns, again.where.turns, strict=False)
    loop = next((one.loop for one, other in pairs if one.loop is other.loop and one.number < other.number), None)
    return loop is not None and isinstance(once, Instance) and once.made < loop.made


def _iterated(event: Looped) -> Site:
    """The place of what a loop goes over."""
    node = event.loop.node
    if not isinstance(node, (ast.For, ast.AsyncFor)):
        return event.site
    return site_of(event.site[0], node.iter)
