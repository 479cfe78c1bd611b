"""What the lists and dicts of one file hold: what their displays spell, and what later statements put into them."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from lightlint.facts.code.bindings import unpacked
from lightlint.facts.code.names import Names
from lightlint.facts.code.tree import Tree

# what changes no list or dict that it is given
_READERS = ("lightning.", "torch.", *(f"builtins.{name}" for name in ("len", "print", "enumerate", "sorted", "zip", "reversed", "list", "tuple", "set", "dict", "str", "isinstance")))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Entries:
    """A dict display, or `dict(...)`: values and key nodes by key. `closed` says that it has no other keys."""

    node: cst.Dict | cst.Call
    values: dict[str, cst.BaseExpression]
    keys: dict[str, cst.CSTNode]
    closed: bool

    def lacks(self, key: str) -> bool:
        """Whether the dict surely has no such key."""
        return self.closed and key not in self.values


class Contents:
    """Lists, tuples and dicts of one file."""

    def __init__(self, tree: Tree, names: Names) -> None:
        self._tree = tree
        self._names = names

    def items(self, display: cst.BaseExpression, until: cst.CSTNode | None = None) -> list[cst.BaseExpression] | None:
        """The items of a list or tuple, with those added later, but before a place; None where some are out of sight."""
        items = spelled(display)
        later = self.later(display, until) if items is not None else None
        return [*items, *later] if items is not None and later is not None else None

    def later(self, made: cst.BaseExpression, until: cst.CSTNode | None = None) -> list[cst.BaseExpression] | None:
        """What is added to a list, made by any expression, after it was; None where some is out of sight."""
        items: list[cst.BaseExpression] = []
        for use in self._other_uses(made):
            if until is not None and self._tree.order(use) > self._tree.order(until):
                continue
            added = self._added(use)
            if added is None:
                return None
            items += added
        return items

    def _added(self, use: cst.Name) -> list[cst.BaseExpression] | None:
        """What a use of a list's name adds to it, None where that is out of sight."""
        above, call = self._tree.parent(use), self._method_call(use)
        if isinstance(above, cst.AugAssign) and above.target is use and isinstance(above.operator, cst.AddAssign):
            return spelled(above.value)
        given = call.args[0].value if call is not None and len(call.args) == 1 and not call.args[0].star else None
        if given is None or self._names.method(call) not in {"append", "extend"}:
            return None
        return [given] if self._names.method(call) == "append" else spelled(given)

    def is_counted(self, display: cst.BaseExpression) -> bool:
        """Whether a list surely holds as many items as `items` gives: none is appended in a loop, under a condition, or too late."""
        made, owner = self._tree.statement(display), self._tree.owner(display)
        leaves = [self._tree.order(each) for each in self._tree.own(owner, cst.Return)]
        block = self._block(made)
        for use in self._other_uses(display):
            added = self._tree.statement(use)
            # a `return` on the way hands out what is there by then
            early = made is None or any(self._tree.order(made) < each < self._tree.order(use) for each in leaves)
            if early or self._block(added) is not block:
                return False
        return True

    def _block(self, statement: cst.CSTNode | None) -> cst.CSTNode | None:
        """The block whose line a simple statement is, or is a part of."""
        line = self._tree.parent(statement) if statement is not None else None
        return self._tree.parent(line) if isinstance(line, cst.SimpleStatementLine) else line

    def entries(self, source: cst.BaseExpression) -> list[Entries]:
        """The one dict that a display or a `dict(...)` makes, with what is put into it later; none for anything else."""
        values: dict[str, cst.BaseExpression] = {}
        keys: dict[str, cst.CSTNode] = {}
        closed = True
        if isinstance(source, cst.Dict):
            for element in source.elements:
                key = self._names.constant(element.key) if isinstance(element, cst.DictElement) else None
                if isinstance(element, cst.DictElement) and isinstance(key, str):
                    values[key], keys[key] = element.value, element.key
                else:
                    closed = False
        elif isinstance(source, cst.Call) and self._names.call(source) == "builtins.dict":
            for arg in source.args:
                if arg.keyword is not None:
                    values[arg.keyword.value], keys[arg.keyword.value] = arg.value, arg.keyword
                else:
                    closed = False
        else:
            return []
        for use in self._other_uses(source):
            closed = self._add_later(use, values, keys) and closed
        return [Entries(source, values, keys, closed)]

    def _add_later(self, use: cst.Name, values: dict[str, cst.BaseExpression], keys: dict[str, cst.CSTNode]) -> bool:
        """Add what a use of a dict's name puts into it; whether that is all it can put there."""
        place = self._tree.parent(use)
        target = self._tree.parent(place) if place is not None else None
        statement = self._tree.parent(target) if target is not None else None
        if isinstance(place, cst.Subscript) and isinstance(target, cst.AssignTarget):
            index = place.slice[0].slice
            key = self._names.constant(index.value) if isinstance(index, cst.Index) else None
            if isinstance(key, str) and isinstance(statement, cst.Assign):
                values[key], keys[key] = statement.value, index
                return True
        return False

    def _other_uses(self, display: cst.BaseExpression) -> list[cst.Name]:
        """The uses of the names a display is bound to that may change it: all but reading it and handing it on."""
        names = self._named(display)
        owner = self._tree.owner(display)
        uses: list[cst.Name] = []
        for name in names:
            if isinstance(name, cst.Name):
                uses.extend(
                    use
                    for use in self._tree.within(owner, cst.Name)
                    if use.value == name.value and use is not name and self._may_change(use)
                )
        return uses

    def _named(self, display: cst.BaseExpression) -> list[cst.CSTNode]:
        """What a display is assigned to, also as a part of an assignment of several: `first, second = [], []`."""
        statement = self._tree.statement(display)
        if isinstance(statement, cst.AnnAssign):
            return [statement.target] if statement.value is display else []
        if not isinstance(statement, cst.Assign):
            return []
        pairs = [pair for each in statement.targets for pair in unpacked(each.target, statement.value)]
        return [leaf for leaf, value, path in pairs if value is display and not path]

    def _may_change(self, use: cst.Name) -> bool:
        above = self._tree.parent(use)
        if isinstance(above, cst.Subscript) and above.value is use:
            return isinstance(self._tree.parent(above), (cst.AssignTarget, cst.AugAssign, cst.Del))
        if isinstance(above, cst.Attribute):
            return above.value is use
        if isinstance(above, cst.Arg):
            return not above.star and not (self._names.call(self._tree.parent(above)) or "").startswith(_READERS)
        return isinstance(above, cst.AugAssign) and above.target is use

    def _method_call(self, use: cst.Name) -> cst.Call | None:
        """The call `use.method(...)` that a use stands in."""
        attribute = self._tree.parent(use)
        call = self._tree.parent(attribute) if isinstance(attribute, cst.Attribute) else None
        return call if isinstance(call, cst.Call) and call.func is attribute else None


def spelled(display: cst.BaseExpression | None) -> list[cst.BaseExpression] | None:
    """The items of a list or tuple as it is written, None where it takes some from elsewhere."""
    if not isinstance(display, (cst.List, cst.Tuple)):
        return None
    plain = all(isinstance(each, cst.Element) for each in display.elements)
    return [each.value for each in display.elements] if plain else None
