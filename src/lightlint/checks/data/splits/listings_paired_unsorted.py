from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations

import libcst as cst

from lightlint.check import Check

_LISTINGS = {"os.listdir", "glob.glob", "glob.iglob", "os.scandir"}
_OF_PATHS = {"glob", "rglob", "iterdir"}  # methods of `pathlib.Path`
_SAME_ORDER = {"builtins.list", "builtins.tuple"}
_ORDERING = {"sort", "shuffle"}


# what a sample is learned against, in the names of variables
_ANSWER = re.compile(
    r"mask|label|target|annot|truth|(?:^|[._])gt|seg|depth|clean|sharp|(?:^|[._])[hl]r(?:$|_)|high_?res|low_?res|caption|transcript",
    re.IGNORECASE,
)


class ListingsPairedUnsorted(Check):
    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        for pair in self._paired(node):
            listings = [self._listing(each) for each in pair]
            first, second = listings
            if first is None or second is None or self._are_compared(pair):
                continue
            if self._spelling(first) == self._spelling(second) or not self._belong_together(pair):
                continue
            self.report(
                second,
                "listed in no particular order, as is what it is paired with by position: sort both",
            )
            return

    def _paired(self, function: cst.FunctionDef) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression]]:
        """What a function takes the items of at one index, or by `zip`, two by two."""
        by_index: dict[tuple[str, int, int], dict[str, cst.BaseExpression]] = {}
        for item in self.tree.own(function.body, cst.Subscript):
            index = item.slice[0].slice if len(item.slice) == 1 else None
            if isinstance(index, cst.Index) and isinstance(index.value, cst.Name) and self.names.key(item.value):
                place = (index.value.value, id(self.tree.scope(item)), id(next(iter(self.tree.loops(item)), None)))
                by_index.setdefault(place, {}).setdefault(self.names.key(item.value), item.value)
        for found in by_index.values():
            yield from combinations(found.values(), 2)
        for call in self.tree.own(function.body, cst.Call):
            if self.names.call(call) == "builtins.zip" and not any(arg.star for arg in call.args):
                yield from combinations([arg.value for arg in call.args], 2)

    def _listing(self, expression: cst.BaseExpression, depth: int = 0) -> cst.Call | None:
        """The call that lists the files of which an expression has the names, in the order in which it gave them."""
        if depth > 4:
            return None
        if isinstance(expression, cst.Call):
            if self._lists(expression):
                return expression
            inner = expression.args[0].value if len(expression.args) == 1 else None
            same = inner is not None and self.names.call(expression) in _SAME_ORDER
            return self._listing(inner, depth + 1) if same and inner is not None else None
        if isinstance(expression, cst.ListComp):
            outer = expression.for_in
            return self._listing(outer.iter, depth + 1) if outer.inner_for_in is None else None
        value = self._value(expression)
        return self._listing(value, depth + 1) if value is not None else None

    def _lists(self, call: cst.Call) -> bool:
        name = self.names.call(call)
        if name is not None:
            return name in _LISTINGS or (name.startswith("pathlib.") and name.rpartition(".")[2] in _OF_PATHS)
        return isinstance(call.func, cst.Attribute) and call.func.attr.value in _OF_PATHS

    def _value(self, expression: cst.BaseExpression) -> cst.BaseExpression | None:
        """What a name or an attribute of `self` stands for, if that is one value which nothing brings into an order."""
        if self._is_ordered(expression):
            return None
        if isinstance(expression, cst.Name):
            bound = self.names.bindings.lookup(expression)
            return bound[0].value if len(bound) == 1 and not bound[0].path else None
        if isinstance(expression, cst.Attribute):
            owner = self.classes.self_class(expression.value)
            sources = self.classes.attribute_sources(owner, expression.attr.value) if owner is not None else []
            return sources[0][0] if len(sources) == 1 and not sources[0][1] else None
        return None

    def _is_ordered(self, expression: cst.BaseExpression) -> bool:
        """Whether the file sorts or shuffles what has this name, or gives it to something that may."""
        key = self.names.key(expression)
        for call in self.tree.all(cst.Call):
            func = call.func
            if not isinstance(func, cst.Attribute) or func.attr.value not in _ORDERING:
                continue
            if key in {self.names.key(func.value), *(self.names.key(arg.value) for arg in call.args)}:
                return True
        return False

    def _are_compared(self, pair: tuple[cst.BaseExpression, cst.BaseExpression]) -> bool:
        """Whether the file compares the two, more than by their lengths: it makes sure that they fit."""
        keys = {self.names.key(each) for each in pair}
        return any(
            keys <= {self.names.key(each) for each in self._mentioned(comparison)}
            for comparison in self.tree.all(cst.Comparison)
        )

    def _mentioned(self, comparison: cst.Comparison) -> list[cst.Name | cst.Attribute]:
        found = self.tree.within(comparison, cst.Name, cst.Attribute)
        calls = [each for each in self.tree.within(comparison, cst.Call) if self.names.call(each) == "builtins.len"]
        return [each for each in found if not any(self.tree.contains(call, each) for call in calls)]

    def _belong_together(self, pair: tuple[cst.BaseExpression, cst.BaseExpression]) -> bool:
        """Whether one file of a pair is made for the other: by a name, or since there must be as many of each."""
        keys = {self.names.key(each) for each in pair}
        if any(_ANSWER.search(key) and not self._covers(key) for key in keys):
            return True
        lengths = {f"builtins.len({key})" for key in keys}
        for comparison in self.tree.all(cst.Comparison):
            sides = [comparison.left, *(target.comparator for target in comparison.comparisons)]
            counted = {
                f"{self.names.call(each)}({self.names.key(each.args[0].value)})"
                for each in sides
                if isinstance(each, cst.Call) and len(each.args) == 1
            }
            if lengths <= counted:
                return True
        return False

    def _covers(self, key: str) -> bool:
        """Whether it is masks, and the file multiplies something by a mask: it covers pictures, of which it need be no map."""
        products = (each for each in self.tree.all(cst.BinaryOperation) if isinstance(each.operator, cst.Multiply))
        return "mask" in key.lower() and any(
            "mask" in self.names.key(side).lower() for each in products for side in (each.left, each.right)
        )

    def _spelling(self, call: cst.Call) -> list[str]:
        """The names and texts in a call, which tell whether another one lists the same."""
        parts = self.tree.within(call, cst.Name, cst.SimpleString)
        return [part.value for part in parts]
