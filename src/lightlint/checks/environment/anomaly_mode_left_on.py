from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Called
from lightlint.explore.questions.queries import sure
from lightlint.facts.data.loops import LoopKind
from lightlint.facts.project.options import project_default
from lightlint.facts.ranks.world import TRAINER
from lightlint.facts.values.keywords import keywords
from lightlint.finding import Applicability
from lightlint.fixes.edits import drop_statement, remove_argument
from lightlint.syntax import tree_of
from lightlint.values.core import is_constant

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_SWITCHES = {"torch.autograd.set_detect_anomaly", "torch.autograd.anomaly_mode.set_detect_anomaly"}
_BLOCKS = {"torch.autograd.detect_anomaly", "torch.autograd.anomaly_mode.detect_anomaly", *_SWITCHES}
_DEPTH, _MANY = 3, 1000
_DEBUG = re.compile(r"debug|test|nan|anomal|repro", re.IGNORECASE)
_STARTS = re.compile(r"main|train|fit|run|start|launch|learn|experiment|solve|epoch|step|spawn|cli", re.IGNORECASE)
_OF_TESTS, _TESTS = (
    re.compile(r"^(?:test_|conftest)|_test\.py$|debug|anomal"),
    {"test", "tests"},
)  # files and their folders


_EVALUATES = re.compile(r"no_grad|inference_mode|\.eval\(\)")
_GOES_BACKWARD = re.compile(r"backward|autograd\.grad\(|\.fit\(")
_MESSAGE = "anomaly detection is on for the whole run: every backward pass is checked"


class AnomalyModeLeftOn(Check):
    asks_rest = frozenset(["set_detect_anomaly"])

    def visit_Call(self, call: cst.Call) -> None:
        name = self.names.call(call)
        if name in _SWITCHES:
            self._check_switch(call)
        elif name == TRAINER:
            self._check_trainer(call)

    def visit_With(self, block: cst.With) -> None:
        """A block around the whole training, or around every step of it: not around the few steps in question."""
        for item in block.items:
            call = item.item
            if not isinstance(call, cst.Call) or self.names.call(call) not in _BLOCKS:
                continue
            given = self.names.argument(call, "mode", 0) if self.names.call(call) in _SWITCHES else None
            on = self.names.constant(given.value) is True if given is not None else not self.names.has_star(call)
            if on and not self._is_meant(call) and (self._trains(block.body) or self._is_in_each_step(block)):
                self.report(call, _MESSAGE)

    def _trains(self, body: cst.CSTNode) -> bool:
        """Whether a body runs a loop over epochs, over all batches of a loader, or of many turns, that goes backward in each."""
        loops = [each for part in self.facts.steps.bodies(body) for each in self.tree.own(part, cst.For)]
        return any(
            self.facts.steps.runs(each.body, self.loops.is_backward)
            and (self.loops.kind(each) is LoopKind.EPOCH or self.loops.is_one_pass(each) or self._is_long(each))
            for each in loops
        )

    def _is_long(self, loop: cst.For) -> bool:
        """Whether a loop counts more turns than somebody looks at."""
        args = loop.iter.args if isinstance(loop.iter, cst.Call) else ()
        counted = self.names.call(loop.iter) == "builtins.range" and len(args) == 1
        told = (self.names.constant(args[0].value), project_default(self.facts, args[0].value)) if counted else ()
        return any(isinstance(turns, int) and turns >= _MANY for turns in told)

    def _is_in_each_step(self, block: cst.With) -> bool:
        """Whether a block goes backward, and every step of the training comes to it."""
        return bool(self.facts.steps.runs(block.body, self.loops.is_backward)) and self._is_repeated(block, 0)

    def _is_repeated(self, node: cst.CSTNode, depth: int) -> bool:
        """Whether a batch loop, over a loader or in one over epochs, comes to a node whatever is asked on the way."""
        around = self.tree.loops(node)
        if around:
            loop = around[0]
            epochs = any(self.loops.kind(each) is LoopKind.EPOCH for each in self.facts.steps.around(loop))
            whole = epochs or (isinstance(loop, cst.For) and self.loops.is_one_pass(loop))
            return whole and self.loops.kind(loop) is LoopKind.BATCH
        function = self.tree.function(node)
        calls = self.facts.steps.calls_of.get(function, ()) if function is not None and depth < _DEPTH else ()
        return any(not self._is_meant(each) and self._is_repeated(each, depth + 1) for each in calls)

    def _check_switch(self, call: cst.Call) -> None:
        given = self.names.argument(call, "mode", 0)
        statement = self.tree.statement(call)
        if given is None or self.names.constant(given.value) is not True or not isinstance(statement, cst.Expr):
            return
        if not self._is_meant(call):
            repair = Repair("drop the call", drop_statement(self.code, statement), Applicability.UNSAFE)
            self.report(call, _MESSAGE, repair=repair)

    def _check_trainer(self, call: cst.Call) -> None:
        given = [each for each in keywords(self.facts, call) if each.name == "detect_anomaly"]
        if len(given) != 1 or self.names.constant(given[0].value) is not True or self._is_meant(call):
            return
        arg, repair = given[0].node, None
        if isinstance(arg, cst.Arg):
            repair = Repair("drop the argument", remove_argument(self.code, call, arg), Applicability.UNSAFE)
        self.report(arg, _MESSAGE, repair=repair)

    def _is_meant(self, call: cst.Call, depth: int = 0) -> bool:
        """Whether a test decides about it, here or where all calls lead here, or names say that this is no training proper."""
        around = [each for each in self.tree.ancestors(call) if isinstance(each, cst.FunctionDef)]
        tests = [test for test, _ in self.facts.conditions(call) if "__name__" not in self._words(test)]
        if (
            tests
            or (not around and (self._only_tries(call) or self._only_evaluates()))
            or any(_DEBUG.search(each.name.value) for each in around)
        ):
            return True
        if _OF_TESTS.search(self.facts.path.name) or self.facts.path.parent.name in _TESTS:
            return True
        calls = self.hooks.calls_of.get(around[0], ()) if around and depth < _DEPTH else ()
        return bool(calls) and all(self._is_meant(each, depth + 1) for each in calls)

    def _only_tries(self, call: cst.Call) -> bool:
        """Whether what a file does when it is run neither repeats anything nor calls what may: it tries its own classes."""
        guard = next((each for each in self.tree.ancestors(call) if isinstance(each, cst.If)), None)
        if guard is None:
            return False
        calls = (self.names.method(each) or "" for each in self.tree.within(guard.body, cst.Call))
        return not list(self.tree.within(guard.body, cst.For, cst.While)) and not any(map(_STARTS.search, calls))

    def _only_evaluates(self) -> bool:
        """Whether a file evaluates, and neither it nor what it names of what it imports of its project goes backward."""
        text, project, path = self.facts.source.text, self.facts.project, self.facts.path
        if not _EVALUATES.search(text) or _GOES_BACKWARD.search(text):
            return False
        named = project.summary(path).imported
        modules = (project.find_module(each, path.parent) for name in named for each in (name, name.rpartition(".")[0]))
        told = (project.text(each) for each in {*modules} if each is not None)
        return not any(_goes_backward_in(each, text) for each in told)

    def _words(self, node: cst.CSTNode) -> set[str]:
        return {name.value for name in self.tree.within(node, cst.Name)}

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """The same switch by another name, out of a table or with its argument said elsewhere."""
        for event in sure(entry, Called, _is_switched_on) if entry.calls.keys() & {*_SWITCHES, TRAINER} else ():
            call = self.node_of(event.site)
            meant = any(not each.known for each in event.where.conditions)
            if not isinstance(call, cst.Call) or meant or self._is_meant(call):
                continue
            if event.path == TRAINER:
                yield Fault.of(event, _MESSAGE, argument="detect_anomaly")
            elif isinstance(self.tree.statement(call), cst.Expr):
                yield Fault.of(event, _MESSAGE)


def _goes_backward_in(module: str, user: str) -> bool:
    """Whether what a text names of a module may go backward: a function that does, or that names one which does."""
    if not _GOES_BACKWARD.search(module):
        return False
    tree = tree_of(module)
    if tree is None:
        return True
    lines = module.splitlines()
    bodies = [
        (each.name, "\n".join(lines[each.lineno : each.end_lineno]))
        for each in ast.walk(tree)
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    going = {name for name, body in bodies if _GOES_BACKWARD.search(body)}
    grown = 0
    while grown != len(going):
        grown = len(going)
        words = re.compile(rf"\b(?:{'|'.join(map(re.escape, going))})\b") if going else _GOES_BACKWARD
        going |= {name for name, body in bodies if words.search(body)}
    by_no_name = any(name.startswith("__") or name == "forward" for name in going)
    return not going or by_no_name or any(re.search(rf"\b{re.escape(name)}\b", user) for name in going)


def _is_switched_on(event: Called) -> bool:
    if event.path == TRAINER:
        return is_constant(event.given.sure().get("detect_anomaly"), True)
    return event.path in _SWITCHES and is_constant(event.argument("mode", 0), True)
