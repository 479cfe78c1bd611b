from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.checks.data.splits.subsets_share_transform.splits import SPLIT, Splits
from lightlint.engine.events import AttributeSet, BatchDrawn, CalledUnknown, FitStarted, SplitDrawn
from lightlint.facts.code.bindings import Kind
from lightlint.values.core import Constant, Unknown, Value
from lightlint.values.training import Instance

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_REPLACED = (
    "both parts of the split have this one data set: what is set on it here for one replaces what was set for the other"
)
Given = tuple[cst.BaseExpression, cst.BaseExpression | None, cst.CSTNode]
"""A part, what is set on its data set, and a node of the place where that is said."""


class SubsetsShareTransform(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """One data set behind two parts that is given one thing for the first, and another for the second before either is
        drawn from."""
        for path in entry.paths:
            splits = [event for event in path.of(SplitDrawn) if event.name == "random_split"]
            held = {data: event.time for event in splits for data in event.data if not data.escaped}
            between = (*path.of(BatchDrawn), *path.of(FitStarted), *path.of(CalledUnknown)) if held else ()
            drawn = [event.time for event in between]  # or perhaps, by code out of sight
            last: dict[tuple[Value, str], AttributeSet] = {}
            for event in path.of(AttributeSet) if held else ():
                if held.get(event.object, event.time) >= event.time or _is_of_itself(event):
                    continue
                before = last.get((event.object, event.name))
                last[event.object, event.name] = event
                kept = before is not None and any(before.time < each < event.time for each in drawn)
                if before is not None and not kept and not _are_one(before.value, event.value):
                    yield Fault.at(event, _REPLACED)

    def visit_AssignTarget(self, node: cst.AssignTarget) -> None:
        target = node.target
        subset, assign = self._subset(target), self.tree.parent(node)
        if subset is None:
            return
        value = assign.value if isinstance(assign, cst.Assign) else None
        given = self._given(subset, value)
        for part, _, place in given:
            name, others = self.code.text_of(part), self._others(part)
            if (
                not others
                or self._is_replaced(place, [name, *others])
                or self._is_replaced(node, [self.names.key(subset)])
            ):
                continue
            if not (
                self._is_for_all(node, name, others)
                if part is subset
                else self._are_alike(given, place, [name, *others])
            ):
                shared = ", ".join(f"`{each}`" for each in others)
                self.report(target, f"`{name}.dataset` is the data set of {shared} too: this changes both")
                return

    def _given(self, subset: cst.BaseExpression, value: cst.BaseExpression | None, depth: int = 0) -> list[Given]:
        """The parts that a name stands for, each with what is set on it and where: itself, what the calls of a helper
        give, what a loop over a display goes through."""
        bound = [self.names.bindings.lookup(each) if isinstance(each, cst.Name) else [] for each in (subset, value)]
        own, other = (each[0] if len(each) == 1 else None for each in bound)
        if own is None or depth > 2:
            return [(subset, value, subset)]
        found: list[Given] = []
        if own.kind is Kind.PARAMETER and isinstance(own.scope, cst.FunctionDef):
            beside = other is not None and other.kind is Kind.PARAMETER and other.scope is own.scope
            for call in self.hooks.calls_of.get(own.scope, ()):
                part = self.values.given(own.scope, call, own.name)
                same = self.values.given(own.scope, call, other.name) if beside and other is not None else value
                found += self._given(part, same, depth + 1) if part is not None else []
            return found
        if own.kind is Kind.LOOP and isinstance(own.value, (cst.Tuple, cst.List)) and len(own.path) < 2:
            beside = other is not None and other.kind is Kind.LOOP and other.value is own.value
            for item in own.value.elements:
                part = self._item(item.value, own.path)
                same = self._item(item.value, other.path) if beside and other is not None else value
                found += self._given(part, same, depth + 1) if part is not None else []
            return found
        return [(subset, value, subset)]

    def _item(self, value: cst.BaseExpression, path: tuple[int, ...]) -> cst.BaseExpression | None:
        if not path:
            return value
        inside = isinstance(value, (cst.Tuple, cst.List)) and path[0] < len(value.elements)
        return value.elements[path[0]].value if inside and isinstance(value, (cst.Tuple, cst.List)) else None

    def _are_alike(self, given: list[Given], place: cst.CSTNode, parts: list[str]) -> bool:
        """Whether all parts of a data set are given one thing at one place."""
        owner = self.tree.owner(place)
        here = {self.names.key(part): value for part, value, at in given if self.tree.owner(at) is owner}
        if not set(parts) <= set(here):
            return False
        values = [here[each] for each in parts]
        keys = {self.names.key(each) for each in values}
        return all(each is values[0] for each in values) or (len(keys) == 1 and "" not in keys)

    def _subset(self, target: cst.BaseExpression) -> cst.BaseExpression | None:
        """What `x.dataset.transform` takes apart: `x`, also where the data set lies deeper (`x.dataset.dataset`)."""
        if not isinstance(target, cst.Attribute) or target.attr.value == "dataset":
            return None
        holder = target.value
        found = None
        while isinstance(holder, cst.Attribute) and holder.attr.value == "dataset":
            found = holder = holder.value
        return found if self.names.key(found) else None

    def _others(self, subset: cst.BaseExpression) -> list[str]:
        """What else draws from the data set of a subset: the other parts of its split, other `Subset`s of it."""
        match subset:
            case cst.Name():
                return Splits(self.facts).beside_name(subset)
            case cst.Attribute():
                return Splits(self.facts).beside_attribute(subset)
            case cst.Subscript():
                return self._beside_item(subset)
        return []

    def _beside_item(self, subset: cst.Subscript) -> list[str]:
        """`parts[1]` beside `parts[0]`, where `parts` is a split that is used by its items."""
        parts = subset.value
        found = self.names.bindings.lookup(parts) if isinstance(parts, cst.Name) else []
        if len(found) != 1 or found[0].path or self.names.call(found[0].value) != SPLIT:
            return []
        key = self.names.key(subset)
        used = [self.names.key(each) for each in self.tree.within(self.tree.owner(subset), cst.Subscript)]
        return sorted({each for each in used if each.startswith(f"{self.names.key(parts)}[") and each != key})

    def _is_replaced(self, node: cst.CSTNode, parts: list[str]) -> bool:
        """Whether one of the parts is given a data set of its own."""
        keys = {f"{each}.dataset" for each in parts}
        room = self.tree.owner(node) if not parts[0].startswith("self.") else self.tree.module
        return any(self.names.key(each.target) in keys for each in self.tree.within(room, cst.AssignTarget))

    def _is_for_all(self, node: cst.AssignTarget, part: str, others: list[str]) -> bool:
        """Whether the other parts are given the same at the same place, said of each of them with its own name."""
        assign, place = self.tree.parent(node), self.names.key(node.target).removeprefix(part)
        if not isinstance(assign, cst.Assign) or not place:
            return False
        text = self.code.text_of
        assigns = self.tree.within(self.tree.owner(node), cst.Assign)
        given = {(self.names.key(target.target), text(each.value)) for each in assigns for target in each.targets}
        own = text(assign.value).split(f"{part}.dataset")
        return all((f"{each}{place}", f"{each}.dataset".join(own)) in given for each in others)


def _is_of_itself(event: AttributeSet) -> bool:
    """Whether a method of the data set sets it, as one that switches between the parts does."""
    function = event.where.calls[-1].function if event.where.calls else None
    return function is not None and isinstance(event.object, Instance) and function.owner is event.object.cls


def _are_one(one: Value, other: Value) -> bool:
    """Whether two values may be the same."""
    if isinstance(one, Constant) and isinstance(other, Constant):
        return bool(one.value == other.value)
    unknown = isinstance(one, Unknown) or isinstance(other, Unknown)
    return one is other or (unknown and (one.key is None or other.key is None or one.key == other.key))
