from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.checks.modules.shapes.view_mixes_dimensions.sizes import WrittenSizes
from lightlint.engine.events import DimensionsMixed

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class ViewMixesDimensions(Check):
    def wants_passes(self) -> bool:
        return WrittenSizes(self).may_be_reordered()

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Views that are given the sizes of a tensor's own dimensions in another order, but for the relative shift of
        Transformer-XL."""
        for event in entry.of(DimensionsMixed):
            if not event.view.shifted and not event.view.thin:
                message = f"`{event.how}` puts the dimensions in another order without moving a number: rows of one become parts of another"
                yield Fault.at(event, message)
