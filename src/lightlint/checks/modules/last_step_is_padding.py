from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Called, PaddingRead
from lightlint.facts.bindings import Binding, Kind
from lightlint.values.core import Sequence

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_PAD = "torch.nn.utils.rnn.pad_packed_sequence"
_PACK = "torch.nn.utils.rnn.pack_padded_sequence"


class LastStepIsPadding(Check):
    asks_passes = True

    def visit_Subscript(self, item: cst.Subscript) -> None:
        places = [each.slice for each in item.slice]
        if not isinstance(item.value, cst.Name) or not 1 <= len(places) <= 3:
            return
        last = [at for at, place in enumerate(places) if self._is_last(place)]
        if len(last) != 1 or not all(self._is_whole(place) for place in places if not self._is_last(place)):
            return
        bound = self.facts.reaching.bindings(item.value)
        calls = [self._unpacking(each) for each in bound]
        if not bound or any(call is None or self._steps_at(call) != last[0] for call in calls):
            return
        if self._may_be_equal(item):
            return
        self.report(
            item, "the last step of a padded batch is padding for all but the longest sequences, which give zeros here"
        )

    def _is_last(self, place: cst.BaseSlice) -> bool:
        return isinstance(place, cst.Index) and self.names.constant(place.value) == -1

    def _is_whole(self, place: cst.BaseSlice) -> bool:
        return isinstance(place, cst.Slice) and place.lower is None and place.upper is None

    def _unpacking(self, binding: Binding) -> cst.Call | None:
        """The `pad_packed_sequence` whose output, not its lengths, a name is."""
        value, path = binding.value, binding.path
        if isinstance(value, cst.Subscript) and not path and len(value.slice) == 1:
            index = value.slice[0].slice
            path = (0,) if isinstance(index, cst.Index) and self.names.constant(index.value) == 0 else ()
            value = value.value
        unpacks = isinstance(value, cst.Call) and self.names.of(value.func) == _PAD and not self.names.has_star(value)
        return (
            value if binding.kind is Kind.ASSIGN and path == (0,) and unpacks and isinstance(value, cst.Call) else None
        )

    def _steps_at(self, call: cst.Call) -> int | None:
        """Which dimension of the output counts the steps."""
        first = self.names.argument(call, "batch_first", 1)
        batch_first = False if first is None else self.names.constant(first.value)
        return {True: 1, False: 0}.get(batch_first) if isinstance(batch_first, bool) else None

    def _may_be_equal(self, item: cst.Subscript) -> bool:
        """Whether the sequences may be of one length: by a test around it, or as they were packed."""
        if self.facts.conditions(item):
            return True
        owner = self.tree.owner(item)
        packs = [each for each in self.facts.updates.own(owner) if self.names.of(each.func) == _PACK]
        lengths = [self.names.argument(each, "lengths", 1) for each in packs]
        return not packs or any(each is None or self._is_one_number(each.value) for each in lengths)

    def _is_one_number(self, lengths: cst.BaseExpression) -> bool:
        """Whether lengths may be one number many times: `[n] * batch`, `torch.full(...)`."""
        for source in self.facts.reaching.sources(lengths):
            if isinstance(source, (cst.BinaryOperation, cst.ListComp, cst.List)):
                return True
            made = {self.names.method(each) for each in self.tree.within(source, cst.Call)}
            if made & {"full", "full_like", "repeat", "ones", "expand", "fill_"}:
                return True
        return False

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Last steps of sequences that were packed with lengths of their own."""
        lengths = [event.argument("lengths", 1) for event in entry.of(Called) if event.name == "pack_padded_sequence"]
        equal = any(isinstance(each, Sequence) or getattr(each, "origin", None) is not None for each in lengths)
        for event in entry.of(PaddingRead) if lengths and not equal else ():
            if all(each.known for each in event.where.conditions):
                message = "the last step of a padded batch is padding for all but the longest sequences, which give zeros here"
                yield Fault.of(event, message)
