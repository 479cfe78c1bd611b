from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, Forward
from lightlint.values.training import Graph, Instance

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path

_WRAPPERS = ("ddp", "accelerate", "fabric")


class ForwardOutsideNoSync(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Passes of which one half runs within `no_sync` and the other outside."""
        for path in entry.paths:
            for event, forwards in _passes(path):
                before = next((each for each in event.held_back if _ran_before(each, forwards)), None)
                if before is not None and before.site is not None:
                    message = "the model ran forward before this: gradients are exchanged in each step all the same"
                    yield Fault(before.site, message, None, (event.site,))
                held = [each.held_back for each in forwards if each.held_back is not None]
                if held and not event.held_back and held[0].site is not None and event.where.turns:
                    message = (
                        "the model ran forward here and backward outside: such gradients are never exchanged, "
                        "and the ranks part"
                    )
                    yield Fault(held[0].site, message, None, (event.site,))


def _passes(path: Path) -> Iterator[tuple[Backward, list[Forward]]]:
    """The backward passes, with the forward passes through wrappers that they go back over."""
    ran: dict[Graph, Forward] = {}
    for event in path.events:
        if isinstance(event, Forward) and event.module.wrapper in _WRAPPERS and event.grad:
            ran.update(dict.fromkeys(event.graph, event))
        elif isinstance(event, Backward):
            yield event, [ran[each] for each in event.graph if each in ran]


def _ran_before(context: Instance, forwards: list[Forward]) -> bool:
    """Whether a model ran forward, and always so, before its `no_sync` was opened."""
    own = [each for each in forwards if each.module is context.attributes.get("of")]
    return bool(own) and all(each.held_back is None for each in own)
