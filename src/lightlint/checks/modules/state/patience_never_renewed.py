from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check
from lightlint.facts.code.bindings import dotted_name
from lightlint.facts.project.mentions import is_changed_elsewhere

if TYPE_CHECKING:
    from lightlint.facts.code.tree import Loop

_PATIENCE = re.compile(r"patien|early|stop|wait|improv|(?:^|_)bad|stale|worse|tolera", re.IGNORECASE)
_BY_OTHER_MEANS = {"setattr", "vars", "__dict__", "nonlocal", "global"}

Counter = cst.Name | cst.Attribute


class PatienceNeverRenewed(Check):
    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        if self._is_step(node):
            self._look_at(node, node.target)

    def visit_Assign(self, node: cst.Assign) -> None:
        if self._is_step(node):
            self._look_at(node, node.targets[0].target)

    def _is_step(self, statement: cst.CSTNode) -> bool:
        """Whether a statement adds one to a counter."""
        if isinstance(statement, cst.AugAssign):
            return isinstance(statement.operator, cst.AddAssign) and self.names.constant(statement.value) == 1
        value = statement.value if isinstance(statement, cst.Assign) and len(statement.targets) == 1 else None
        if not isinstance(statement, cst.Assign) or not isinstance(value, cst.BinaryOperation):
            return False
        counter = statement.targets[0].target
        if not isinstance(value.operator, cst.Add) or not isinstance(counter, (cst.Name, cst.Attribute)):
            return False
        others = [each for each in (value.left, value.right) if self.names.constant(each) != 1]
        return len(others) == 1 and dotted_name(others[0]) == dotted_name(counter) != ""

    def _look_at(self, step: cst.AugAssign | cst.Assign, counter: cst.BaseExpression) -> None:
        """Report a step of a counter that only worse results take, that ends the training, and that nothing sets back."""
        loops = self.tree.loops(step)
        function = self.tree.function(step)
        kept = isinstance(counter, cst.Attribute) and function is not None and function.name.value != "__init__"
        if not isinstance(counter, (cst.Name, cst.Attribute)) or not (loops or kept):
            return
        best = self._beaten(step)
        limit = self._limit(counter, function if kept else loops[0]) if best else ""
        named = f"{self.code.text_of(counter)} {limit}"
        if limit and _PATIENCE.search(named) and self._only_grows(step, counter, loops):
            name = self.code.text_of(counter)
            self.report(
                step,
                f"`{name}` is never set back when `{best}` gets better: it counts all worse results, not those in a row",
            )

    def _beaten(self, step: cst.CSTNode) -> str:
        """The value that a step's test compares with, by its text: the best so far, which the other branch of the test sets to what
        it is compared with, or the last one, which each turn sets."""
        inner = step
        for around in self.tree.ancestors(step):
            if isinstance(around, (cst.For, cst.While, cst.FunctionDef)):
                return ""
            if isinstance(around, cst.If):
                other = around.orelse if self.tree.contains(around.body, inner) else around.body
                compared = self._compared(around.test)
                found = self._set_in(self.tree.own(other, cst.Assign), compared) if other is not None else ""
                plain = [each for each in compared if isinstance(each, (cst.Name, cst.Attribute))]
                found = found or self._set_in(self._beside(around), plain)
                if found:
                    return found
            inner = around
        return ""

    def _compared(self, test: cst.BaseExpression) -> list[cst.BaseExpression]:
        """What a test compares, by itself or in what it was worked out before."""
        test = self._told(test)
        if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
            return self._compared(test.expression)
        ordered = (cst.LessThan, cst.LessThanEqual, cst.GreaterThan, cst.GreaterThanEqual)
        found: list[cst.BaseExpression] = []
        for each in self.tree.within(test, cst.Comparison):
            if len(each.comparisons) == 1 and isinstance(each.comparisons[0].operator, ordered):
                found += [each.left, each.comparisons[0].comparator]
        return found

    def _told(self, test: cst.BaseExpression) -> cst.BaseExpression:
        """What a name stands for that is given one value, followed as long as there is such a name."""
        seen: set[str] = set()
        while isinstance(test, cst.Name) and test.value not in seen:
            seen.add(test.value)
            bound = self.names.bindings.lookup(test)
            value = bound[0].value if len(bound) == 1 and not bound[0].path else None
            if not isinstance(value, (cst.Name, cst.Comparison, cst.UnaryOperation, cst.BooleanOperation)):
                break
            test = value
        return test

    def _beside(self, test: cst.If) -> list[cst.Assign]:
        """The assignments in the block of a test, whichever way it goes."""
        block = self.tree.parent(test)
        inside = block.body if isinstance(block, (cst.IndentedBlock, cst.Module)) else ()
        lines = [each for each in inside if isinstance(each, cst.SimpleStatementLine)]
        return [each for line in lines for each in line.body if isinstance(each, cst.Assign)]

    def _set_in(self, assigned: Iterable[cst.Assign], compared: Iterable[cst.BaseExpression]) -> str:
        """The one of some compared values that is given another value, which went into the comparison as well."""
        words = {self.code.text_of(each): each for side in compared for each in self._words(side)}
        for each in assigned:
            target = self.code.text_of(each.targets[0].target)
            given = {self.code.text_of(word) for word in self._words(each.value)}
            if target in words and given & (words.keys() - {target}):
                return target
        return ""

    def _words(self, value: cst.CSTNode) -> list[Counter]:
        whole = [value] if isinstance(value, (cst.Name, cst.Attribute)) else []
        return whole or [
            each
            for each in self.tree.within(value, cst.Name, cst.Attribute)
            if isinstance(each, (cst.Name, cst.Attribute))
        ]

    def _limit(self, counter: Counter, place: cst.CSTNode | None) -> str:
        """What a counter is compared with, where this ends the loop or tells others to; empty for no such test."""
        name = self.code.text_of(counter)
        for test in self.tree.own(place, cst.If) if place is not None else ():
            for each in self.tree.within(self._told(test.test), cst.Comparison):
                sides = [each.left, each.comparisons[0].comparator]
                texts = [self.code.text_of(side) for side in sides]
                if name in texts and len(each.comparisons) == 1 and self._ends(test.body):
                    return texts[1 - texts.index(name)]
        return ""

    def _ends(self, body: cst.BaseSuite) -> bool:
        """Whether a branch ends the training: it leaves the loop, or says so in a flag."""
        if self.tree.own(body, cst.Break, cst.Return):
            return True
        flags = (each for each in self.tree.own(body, cst.Assign) if self.names.constant(each.value) is True)
        return any(_PATIENCE.search(self.code.text_of(each.targets[0].target)) for each in flags)

    def _only_grows(self, step: cst.CSTNode, counter: Counter, loops: list[Loop]) -> bool:
        """Whether nothing else gives a counter values but what it starts with, before the loop or in `__init__`."""
        name = self.code.text_of(counter)
        words = {each.value for each in self.tree.all(cst.Name)}
        if words & _BY_OTHER_MEANS or self.tree.all(cst.Global, cst.Nonlocal):
            return False
        word = counter.attr.value if isinstance(counter, cst.Attribute) else name
        places = self._places(word, counter)
        if not all(self._beaten(each) for each in places if self._is_step(each)):
            return False  # it counts better results, too
        if isinstance(counter, cst.Attribute):
            started = [each for each in places if self.tree.function(each) is not None and not self._is_step(each)]
            inits = [each for each in started if self.tree.function(each).name.value == "__init__"]  # type: ignore[union-attr]
            own = len(started) == len(inits) == 1 and all(each in started or self._is_step(each) for each in places)
            texts = {self.names.constant(each) for each in self.tree.all(cst.SimpleString)}
            return own and word not in texts and not is_changed_elsewhere(self.facts.project, self.facts.source, word)
        owner = self.tree.owner(step)
        mine = [each for each in places if self.tree.owner(each) is owner and not self._is_step(each)]
        return len(mine) == 1 and not self.tree.contains(loops[0], mine[0])

    def _places(self, word: str, counter: Counter) -> list[cst.CSTNode]:
        """The statements that give a name values, or an attribute of any object."""
        found: list[cst.CSTNode] = []
        for each in self.tree.all(cst.Name):
            above = self.tree.parent(each)
            whole = above if isinstance(above, cst.Attribute) and above.attr is each else each
            if each.value != word or isinstance(whole, cst.Attribute) is not isinstance(counter, cst.Attribute):
                continue
            if self._is_stored(whole):
                statement = self.tree.statement(each)
                found += [statement] if statement is not None else []
        return found

    def _is_stored(self, node: cst.CSTNode) -> bool:
        inner = node
        above = self.tree.parent(node)
        while isinstance(above, (cst.Tuple, cst.List, cst.Element, cst.StarredElement)):
            inner, above = above, self.tree.parent(above)
        if isinstance(above, (cst.AssignTarget, cst.NamedExpr, cst.Param, cst.AsName, cst.CompFor)):
            return getattr(above, "target", None) is inner or isinstance(above, (cst.Param, cst.AsName))
        return isinstance(above, (cst.AugAssign, cst.AnnAssign, cst.For)) and above.target is inner
