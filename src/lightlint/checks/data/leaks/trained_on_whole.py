from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Forward, LoaderMade, SplitDrawn
from lightlint.explore.questions.evaluation import evaluated_loaders
from lightlint.explore.questions.queries import identity_of, in_sight
from lightlint.values.core import Site, Value, is_constant
from lightlint.values.training import Instance, Loader

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_CHOOSING = ("sampler", "batch_sampler")
_MESSAGE = "training reads all of the data that is split in line {}, and with it what is held out there for evaluation"


class TrainedOnWhole(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Data of which a part is held out for evaluation alone, and that is trained on as a whole and never in parts."""
        held_out = {identity_of(loader.data): loader for loader, _ in evaluated_loaders(entry).values()}
        held_out.pop(None, None)
        if not held_out:
            return
        made = {event.loader: event for event in entry.of(LoaderMade)}
        loaders = _trained(entry)
        trained = {identity_of(each.data) for each in loaders}
        for split in entry.of(SplitDrawn):
            parts = {identity_of(each) for each in split.parts.items}
            whole = split.data[0] if split.data else None
            kept = [held_out[each] for each in parts & held_out.keys()]
            if split.name != "random_split" or not kept or parts & trained:
                continue
            for loader in loaders:
                if _reads_all(loader, whole) and loader in made:
                    event = made[loader]
                    place = _where_chosen(event, made.get(kept[0]))
                    yield Fault(place, _MESSAGE.format(split.site[1]), None, (split.site,), event.where.places[1:])


def _trained(entry: Entry) -> list[Loader]:
    """The loaders whose batches something is trained on."""
    found: dict[Hashable, Loader] = {}
    for event in entry.of(Forward):
        if any(graph.used for graph in event.graph):
            found.update({id(each.batch_of): each.batch_of for each in event.inputs if each.batch_of is not None})
    return list(found.values())


def _where_chosen(event: LoaderMade, other: LoaderMade | None) -> Site:
    """Where a loader is made, or where that is asked of what makes the other one, too."""
    calls, others = event.where.calls, other.where.calls if other is not None else ()
    site = event.site
    for call, theirs in zip(reversed(calls), reversed(others), strict=False):
        if call.function.node is not theirs.function.node or call.site == theirs.site:
            break
        site = call.site
    return site


def _reads_all(loader: Loader, whole: Value | None) -> bool:
    """Whether a loader surely draws from all of a data set."""
    chosen = (loader.arguments.get(name) for name in _CHOOSING)
    chooses = any(each is not None and not is_constant(each, None) for each in chosen)
    data = loader.data
    return (
        isinstance(data, Instance)
        and data is whole
        and in_sight([loader, data])
        and not chooses
        and not loader.open_arguments
    )
