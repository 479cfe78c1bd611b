from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, Forward
from lightlint.values.training import Graph, Instance

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Site

_WRAPPERS = ("ddp", "accelerate", "fabric")


class ForwardOutsideNoSync(Check):
    of_several_processes = True

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Passes of which one half runs within `no_sync` and the other outside."""
        for path in entry.paths:
            for event, forwards in _passes(path):
                before = next((each for each in event.held_back if _ran_before(each, forwards)), None)
                place = self._opened(before) if before is not None else None
                if place is not None:
                    message = "the model ran forward before this: gradients are exchanged in each step all the same"
                    yield Fault(place, message, None, (event.site,))
                held = [each.held_back for each in forwards if each.held_back is not None]
                place = self._opened(held[0]) if held and not event.held_back else None
                if place is not None and event.where.turns:
                    message = (
                        "the model ran forward here and backward outside: such gradients are never exchanged, "
                        "and the ranks part"
                    )
                    yield Fault(place, message, None, (event.site,))

    def _opened(self, context: Instance) -> Site | None:
        """Where a context begins: the call that made it, or the `with` for one that another function has made."""
        made, entered = (
            self.node_of(each) if each is not None else None for each in (context.site, context.entered_at)
        )
        if entered is None or (made is not None and self.tree.function(made) is self.tree.function(entered)):
            return context.site
        return context.entered_at


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
