from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.checks.modules.state.best_value_never_updated.apart import goes_apart
from lightlint.engine.events import Called, CalledUnknown, Event, Passed, Written
from lightlint.facts.code.bindings import Binding, Kind, dotted_name
from lightlint.facts.code.names import UNKNOWN
from lightlint.facts.project.mentions import is_changed_elsewhere

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path

_BEST = re.compile(r"best|(?:^|_)(?:max|min|lowest|highest|top)(?:_|$)")
_BOUND = re.compile(  # of what is counted: how much of it is asked for, not the best so far
    r"(?:^|_)(?:max|min)_?(?:\w*_)?(?:epochs?|steps?|iter\w*|len\w*|sizes?|counts?|num\w*|samples?|tokens?|words?|batch\w*)$"
)
_INFINITE = {"math.inf", "numpy.inf", "numpy.Inf", "numpy.infty", "torch.inf"}
_KEEPS = re.compile(r"save|checkpoint|ckpt|deepcopy|snapshot")
_LIBRARIES = ("torch.", "lightning.", "builtins.", "abc.")
_ENDS = (cst.Break, cst.Return, cst.Raise)
_HUGE = 999  # no value that is known to be good


class BestValueNeverUpdated(Check):
    asks_rest = frozenset(["save", "save_checkpoint", "deepcopy"])

    def visit_If(self, node: cst.If) -> None:
        parts = [(test, *self._compared(test)) for test in self._parts(node.test)]
        if any(best is not None and self._is_set(best, node.body) for _, best, _ in parts):
            return  # one of them is updated
        for test, best, is_higher in parts:
            if best is None or not self._keeps(node.body) or not self._is_repeated(node, best):
                continue
            start = self._start(best)
            if start is not None and (start <= 0 if is_higher else start >= _HUGE):
                self.report(test, _told(self.code.text_of(best)))

    def _parts(self, test: cst.BaseExpression) -> list[cst.BaseExpression]:
        if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And):
            return [*self._parts(test.left), *self._parts(test.right)]
        return [test]

    def _compared(self, test: cst.BaseExpression) -> tuple[cst.Name | cst.Attribute | None, bool]:
        """The best value so far that something is compared with, and whether a higher one is better."""
        only = test.comparisons[0] if isinstance(test, cst.Comparison) and len(test.comparisons) == 1 else None
        if not isinstance(test, cst.Comparison) or only is None:
            return None, False
        if isinstance(only.operator, (cst.GreaterThan, cst.GreaterThanEqual)):
            higher, lower = test.left, only.comparator
        elif isinstance(only.operator, (cst.LessThan, cst.LessThanEqual)):
            higher, lower = only.comparator, test.left
        else:
            return None, False
        for best, value, is_higher in ((lower, higher, True), (higher, lower, False)):
            named = isinstance(best, (cst.Name, cst.Attribute)) and _is_best(best)
            if named and isinstance(best, (cst.Name, cst.Attribute)) and self._is_measured(value):
                return best, is_higher
        return None, False

    def _is_measured(self, value: cst.BaseExpression) -> bool:
        """Whether a value may be a result: neither a written number nor what a loop counts."""
        bound = self.names.bindings.lookup(value) if isinstance(value, cst.Name) else []
        return self.names.constant(value) is UNKNOWN and not any(map(self._counts, bound))

    def _counts(self, bound: Binding) -> bool:
        """Whether a name is what a loop counts its turns with."""
        calls = self.tree.within(bound.value, cst.Call) if bound.kind is Kind.LOOP and bound.value is not None else []
        names = {self.names.method(each) for each in calls}
        return bool(names & {"range", "trange"}) or ("enumerate" in names and bound.path[:1] == (0,))

    def _is_set(self, best: cst.Name | cst.Attribute, body: cst.BaseSuite) -> bool:
        targets = (each.target for each in self.tree.own(body, cst.AssignTarget, cst.AugAssign))
        return self.code.text_of(best) in {self.code.text_of(each) for each in targets}

    def _keeps(self, body: cst.BaseSuite) -> bool:
        """Whether a branch saves something, and what is around it goes on."""
        calls = self.tree.own(body, cst.Call)
        ends = any(self.tree.own(body, kind) for kind in _ENDS)
        return not ends and any(map(self._is_kept, calls))

    def _is_kept(self, call: cst.Call) -> bool:
        """Whether a call saves something where it writes over what was there."""
        return bool(_KEEPS.search(self.names.method(call))) and not goes_apart(self.facts, call)

    def _is_repeated(self, node: cst.If, best: cst.Name | cst.Attribute) -> bool:
        """Whether the comparison is made more than once: in a loop, or by a method with what its object keeps."""
        function = self.tree.function(node)
        method = isinstance(best, cst.Attribute) and function is not None and function.name.value != "__init__"
        return method or bool(self.tree.loops(node))

    def _start(self, best: cst.Name | cst.Attribute) -> float | None:
        """The one number that a value ever is; None if it may be others."""
        if isinstance(best, cst.Attribute):
            return self._start_of_attribute(best)
        bound = self.names.bindings.lookup(best)
        only = bound[0] if len(bound) == 1 and bound[0].kind is Kind.ASSIGN and not bound[0].path else None
        outside = only is not None and not any(
            self.tree.contains(each.body, only.site) for each in self.tree.loops(best)
        )
        own = only is not None and only.scope is self.tree.owner(best)
        return self._number(only.value) if only is not None and outside and own else None

    def _start_of_attribute(self, best: cst.Attribute) -> float | None:
        node, word = self.classes.self_class(best.value), best.attr.value
        init = self.classes.methods(node).get("__init__") if node is not None else None
        sources = self.classes.attribute_sources(node, word) if node is not None else []
        if node is None or init is None or len(sources) != 1 or sources[0][1] or not self._stands_alone(node):
            return None
        stores = [each.target for each in self.tree.all(cst.AssignTarget)]
        places = [each for each in stores if isinstance(each, cst.Attribute) and each.attr.value == word]
        if len(places) != 1 or self.tree.function(places[0]) is not init or self._may_be_set(word):
            return None
        return self._number(sources[0][0])

    def _stands_alone(self, node: cst.ClassDef) -> bool:
        """Whether no class of the project above or below one may set its attributes."""
        above = self.classes.ancestors(node)
        return all(each.startswith(_LIBRARIES) for each in above) and not self.hooks.subclasses.get(node)

    def _may_be_set(self, word: str) -> bool:
        """Whether an attribute may be set by other means than assignments in this file."""
        spelled = {each.value for each in self.tree.all(cst.Name)} & {"setattr", "vars", "__dict__"}
        texts = {self.names.constant(each) for each in self.tree.all(cst.SimpleString)}
        changed = is_changed_elsewhere(self.facts.project, self.facts.source, word)
        return bool(spelled) or word in texts or changed

    def _number(self, value: cst.BaseExpression | None) -> float | None:
        if isinstance(value, cst.UnaryOperation) and isinstance(value.operator, cst.Minus):
            number = self._number(value.expression)
            return -number if number is not None else None
        if self.names.of(value) in _INFINITE:
            return math.inf
        if self.names.call(value) == "builtins.float" and isinstance(value, cst.Call) and len(value.args) == 1:
            text = self.names.constant(value.args[0].value)
            return math.copysign(math.inf, -text.count("-") or 1) if isinstance(text, str) and "inf" in text else None
        known = self.names.constant(value)
        return float(known) if isinstance(known, (int, float)) and not isinstance(known, bool) else None

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Tests that let something be saved in each turn of a loop, of a number that stays what it was before."""
        for path in entry.paths:
            kept = [each for each in _kept(path) if any("passed by any" in one.traits for one in each.where.conditions)]
            failed = {id(each.bar) for each in path.of(Passed) if _is_failed(path, each)}
            for first, second in combinations(path.of(Passed), 2):
                again = first.site == second.site and first.bar is second.bar and _in_turns(first, second)
                possible = again and id(first.bar) not in failed
                if possible and all(any(_follows(each, test) for each in kept) for test in (first, second)):
                    best = self._best(first)
                    if best is not None and not self._is_updated(best) and not self._are_apart(best):
                        yield Fault.at(first, _told(self.code.text_of(best)))

    def _best(self, test: Passed) -> cst.Name | cst.Attribute | None:
        """The best value, by whose name it is more than a bar."""
        node = self.node_of(test.site)
        words = self.tree.within(node, cst.Name, cst.Attribute) if node is not None else []
        named = (each for each in words if isinstance(each, (cst.Name, cst.Attribute)))
        return next((each for each in named if _is_best(each)), None)

    def _are_apart(self, best: cst.Name | cst.Attribute) -> bool:
        """Whether all that a test lets be saved goes to a file of its own in each turn."""
        above = (each for each in self.tree.ancestors(best) if isinstance(each, cst.If))
        around = next((each for each in above if self.tree.contains(each.test, best)), None)
        calls = self.tree.own(around.body, cst.Call) if around is not None else []
        saves = [each for each in calls if _KEEPS.search(self.names.method(each))]
        return bool(saves) and not any(map(self._is_kept, saves))

    def _is_updated(self, best: cst.Name | cst.Attribute) -> bool:
        """Whether the loop around a test, or its function, sets the best value in a branch, which may be another than that of the test."""
        loops = self.tree.loops(best)
        place = loops[0].body if loops else self.tree.owner(best)
        set_here = (each.target for each in self.tree.own(place, cst.AssignTarget, cst.AugAssign))
        return self.code.text_of(best) in {self.code.text_of(each) for each in set_here}


def _is_best(value: cst.Name | cst.Attribute) -> bool:
    """Whether a name is that of the best so far of something."""
    word = dotted_name(value).rpartition(".")[2]
    return bool(_BEST.search(word)) and not _BOUND.search(word)


def _told(name: str) -> str:
    return f"`{name}` keeps its first value: this is true each time, and what is saved is the last, not the best"


def _kept(path: Path) -> list[Event]:
    """Where something is saved or copied."""
    copied = [each for each in path.of(Called) if _KEEPS.search(each.name)]
    unknown = [each for each in path.of(CalledUnknown) if _KEEPS.search(getattr(each.callee, "hint", ""))]
    return [*path.of(Written), *copied, *unknown]


def _in_turns(first: Event, second: Event) -> bool:
    """Whether one loop has turned on between two events."""
    turns = {each.loop: each.number for each in first.where.turns}
    return any(turns.get(each.loop, each.number) != each.number for each in second.where.turns)


def _is_failed(path: Path, test: Passed) -> bool:
    """Whether a path takes for failed what about any number passes: no run goes that way."""
    return path.machine.asked.get((test.site[0], test.site[1], test.site[2])) is False


def _follows(event: Event, test: Passed) -> bool:
    return event.time > test.time and event.where.turns[: len(test.where.turns)] == test.where.turns
