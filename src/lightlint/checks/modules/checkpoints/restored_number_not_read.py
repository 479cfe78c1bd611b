from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import RangeBegun, Restored
from lightlint.facts.code.bindings import Kind
from lightlint.values.core import number_of

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Value


class RestoredNumberNotRead(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Numbers that a load was to replace by others, and from which a range behind it starts all the same."""
        for path in entry.paths:
            begun = path.of(RangeBegun)
            for load in path.of(Restored):
                for key, value in load.before.items():
                    starts = any(each.first is value and each.time > load.time for each in begun)
                    if starts and number_of(value) is not None and not load.state.escaped:
                        yield from self._faults(load, key, value)

    def _faults(self, load: Restored, key: Hashable, value: Value) -> Iterator[Fault]:
        site = load.state.site or load.site
        named = self.entry_of(node, str(key)) if (node := self.node_of(site)) is not None else None
        name = (
            named.value.value if named is not None and isinstance(named.value, cst.Name) else f"this {number_of(value)}"
        )
        what = f'`load` puts what was saved into the dict, under "{key}"'
        yield Fault(site, f"`{name}` keeps the number it has here: {what}, which nobody reads", argument=str(key))

    def visit_Call(self, call: cst.Call) -> None:
        func = call.func
        if not isinstance(func, cst.Attribute) or func.attr.value != "load":
            return
        given = self.names.argument(call, "state", 1)
        display = self._display(given.value, call) if given is not None else None
        if given is None or display is None or not self.facts.fabrics.is_fabric(func.value):
            return
        for element in display.elements:
            if isinstance(element, cst.DictElement) and isinstance(element.value, cst.Name):
                name, key = element.value, self.names.constant(element.key)
                if not isinstance(key, str) or not self._is_plain_number(name):
                    continue
                if self._is_read_behind(name, call) and self._changes(name, key):
                    what = f'`load` puts what was saved into the dict, under "{key}"'
                    self.report(name, f"`{name.value}` keeps the number it has here: {what}, which nobody reads")

    def _display(self, state: cst.BaseExpression, call: cst.Call) -> cst.Dict | None:
        """The dict that gets what was saved, if nothing but this call, and what saves it, uses it."""
        if isinstance(state, cst.Dict):
            return state
        found = self.names.bindings.lookup(state) if isinstance(state, cst.Name) else []
        made = found[0].value if len(found) == 1 and found[0].kind is Kind.ASSIGN and not found[0].path else None
        owner = self.tree.owner(call)
        if not isinstance(made, cst.Dict) or not isinstance(state, cst.Name) or found[0].scope is not owner:
            return None
        uses = [each for each in self.tree.within(owner, cst.Name) if each.value == state.value and each is not state]
        return made if all(map(self._only_writes, uses)) else None

    def _only_writes(self, use: cst.Name) -> bool:
        """Whether a use of a dict's name binds it, sets one of its items, or saves it."""
        above = self.tree.parent(use)
        if isinstance(above, cst.Subscript):
            return above.value is use and isinstance(self.tree.parent(above), cst.AssignTarget)
        call = self.tree.parent(above) if isinstance(above, cst.Arg) else None
        return isinstance(above, cst.AssignTarget) or self.names.method(call) == "save"

    def _is_plain_number(self, name: cst.Name) -> bool:
        """Whether a local name is bound to a number in the text, and else only counted up."""
        found = self.names.bindings.lookup(name)
        owner = self.tree.owner(name)
        plain = [each for each in found if each.kind is Kind.ASSIGN and not each.path]
        counted = [each for each in found if each.kind is Kind.AUGMENT]
        numbers = [self.names.constant(each.value) for each in plain]
        known = bool(plain) and len(plain) + len(counted) == len(found)
        earlier = all(self.tree.order(each.site) < self.tree.order(name) for each in plain)
        return known and earlier and found[0].scope is owner and all(type(each) in {int, float} for each in numbers)

    def _changes(self, name: cst.Name, key: str) -> bool:
        """Whether another number than the one in the text is saved: it is counted up, or the key gets other values."""
        if any(each.kind is Kind.AUGMENT for each in self.names.bindings.lookup(name)):
            return True
        values = [each.value for each in self.tree.all(cst.DictElement) if self.names.constant(each.key) == key]
        for assign in self.tree.all(cst.Assign):
            item = assign.targets[0].target
            index = item.slice[0].slice if isinstance(item, cst.Subscript) else None
            if isinstance(index, cst.Index) and self.names.constant(index.value) == key:
                values.append(assign.value)
        return any(not isinstance(each, cst.Name) or each.value != name.value for each in values)

    def _is_read_behind(self, name: cst.Name, call: cst.Call) -> bool:
        """Whether a loop behind the call starts from the name, or counts it on."""
        for each in self.tree.own(self.tree.owner(call), cst.Name):
            if (
                each.value != name.value
                or self.tree.order(each) < self.tree.order(call)
                or self.tree.contains(call, each)
            ):
                continue
            above = self.tree.parent(each)
            user = self.tree.parent(above) if isinstance(above, cst.Arg) else above
            if self.names.call(user) == "builtins.range" or isinstance(user, (cst.AugAssign, cst.Comparison)):
                return True
        return False
