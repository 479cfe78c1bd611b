"""What rules ask of events again and again."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TYPE_CHECKING

from lightlint.engine.events import E, Where
from lightlint.values.core import Site, Value
from lightlint.values.training import Graph, Instance, Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


def identity(parameter: Tensor) -> Hashable:
    """What a parameter is in every rehearsal of an entry: where and as which it was made, and so its owner."""
    owner = parameter.owner
    return (parameter.site, parameter.serial, (owner.site, owner.serial) if owner is not None else None)


def in_sight(values: Iterable[Value]) -> bool:
    """Whether some values were made in the program, and no code out of sight has had any of them."""
    return not any(value.escaped or getattr(value, "assumed", False) or _is_managed(value) for value in values)


def _is_managed(value: Value) -> bool:
    """Whether a framework that was given the object may do more with it than the program says."""
    return isinstance(value, Instance) and "#managed" in value.arguments


def in_batch(where: Where) -> bool:
    """Whether a loop over a loader's batches is open."""
    return where.within("batch")


def sure(entry: Entry, kind: type[E], is_fault: Callable[[E], bool]) -> Iterator[E]:
    """The faulty events of a kind at places where, on each path that gets there, one is faulty."""
    faulty: dict[Site, E] = {}
    spared: set[Site] = set()
    for path in entry.paths:
        found = {event.site: event for event in path.of(kind) if is_fault(event)}
        if path.finished or not path.flips:
            spared |= {event.site for event in path.of(kind)} - found.keys()
        faulty.update(found)
    yield from (event for site, event in faulty.items() if site not in spared)


def goes_nowhere(graphs: Iterable[Graph]) -> bool:
    """Whether nothing has gone backward through graphs, and nothing out of sight has them."""
    return not any(graph.used or graph.open for graph in graphs)
