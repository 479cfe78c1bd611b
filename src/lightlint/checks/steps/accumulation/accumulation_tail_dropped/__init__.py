from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.checks.steps.accumulation.accumulation_tail_dropped.filled import is_filled, rows
from lightlint.checks.steps.accumulation.accumulation_tail_dropped.tails import is_rest_asked
from lightlint.engine.events import Backward, Cleared, Stepped
from lightlint.explore.questions.queries import in_batch
from lightlint.facts.code.bindings import Kind
from lightlint.facts.lightning.hooks import TRAINING_STEP
from lightlint.facts.objects.classes import MODULE
from lightlint.facts.project.mentions import occurs
from lightlint.facts.project.options import project_default
from lightlint.facts.steps.accumulation import Window
from lightlint.facts.values.sources import sources
from lightlint.finding import Tier
from lightlint.values.core import Constant, number_of
from lightlint.values.training import Instance, Loader, Tensor

if TYPE_CHECKING:
    from lightlint.engine.frames import Loop, Turn
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Site


class AccumulationTailDropped(Check):
    def visit_Call(self, call: cst.Call) -> None:
        accumulation = self.facts.accumulation
        window = accumulation.window(call) if accumulation.is_step(call) else None
        if window is None or self._has_closure(call) or self._size(window.size) == 1:
            return
        loop, function = self.loops.batch_loop(call), self.tree.function(call)
        if isinstance(loop, cst.For):
            dropped = self._is_epoch(loop, window) and self._accumulates(loop.body) and not self._is_flushed(loop)
        else:
            manual = loop is None and function is not None and self._is_manual_step(function, window)
            dropped = manual and function is not None and self._accumulates(function.body)
        if isinstance(loop, cst.For) and dropped and not self._comes_round(call, loop):
            return
        if dropped and not is_rest_asked(self.facts, call, window):
            size = self.tree.module.code_for_node(window.size)
            message = f"no step follows the last batches of an epoch where they do not fill a window of `{size}`"
            self.report(call, message, tier=_tier(self._size(window.size)))

    def _comes_round(self, step: cst.Call, loop: cst.For) -> bool:
        """Whether a loop ever comes from one step to the next: one that tries a single batch does not."""
        return self.facts.flow(self.tree.owner(step)).reaches_in_later_iteration(loop, step, [step])

    def _size(self, size: cst.BaseExpression) -> int:
        """How many batches a window holds where nobody asks for more: the fewest by any way, 0 for what is unknown."""
        found = [(room, value) for room, value in sources(self.facts, size) if value is not None]
        known = [*(project_default(*each) for each in found), *(room.names.constant(value) for room, value in found)]
        fewest = min((int(each) for each in known if isinstance(each, int | float) and each >= 1), default=0)
        return 1 if fewest != 1 and self._is_set_to_one(size) else fewest

    def _is_set_to_one(self, size: cst.BaseExpression) -> bool:
        """Whether a window is read from settings that code writes down as one batch, and nowhere as more."""
        if not isinstance(size, cst.Attribute):
            return False
        word = size.attr.value
        given = rf"\b{re.escape(word)}(?:['\"]\s*:|\s*(?::\s*(?:int|float)\s*)?=(?!=))\s*"
        one, more = rf"{given}{_ONE}", rf"{given}(?!{_ONE})[\d.]"
        return occurs(self.facts.project, word, one) and not occurs(self.facts.project, word, more)

    def _has_closure(self, call: cst.Call) -> bool:
        """Whether a step computes its gradient itself."""
        scaled = isinstance(call.func, cst.Attribute) and self.values.is_scaler(call.func.value)
        given = self.names.argument(call, "closure", None if scaled else 0)
        return given is not None and not self.values.is_optimizer(given.value)

    def _is_epoch(self, loop: cst.For, window: Window) -> bool:
        """Whether a loop is one pass of several over a loader, and its counter starts anew with each.

        A counter that runs on hands the rest of one pass to the next; only the end of the training loses it.
        """
        if not isinstance(window.counter, cst.Name) or not self.loops.is_one_pass(loop) or not self._is_repeated(loop):
            return False
        if self.facts.accumulation.is_unbound(window) or self.facts.accumulation.is_left_over(window, loop):
            return True  # meant to count this loop's batches
        found = self.names.bindings.lookup(window.counter)
        inside = [each for each in found if self.tree.contains(loop, each.site)]
        if inside and all(each.kind is Kind.LOOP and each.path == (0,) for each in inside):
            return self._counts_from_constant(loop.iter)
        around = self.tree.loops(loop)
        place = around[0].body if around else self.tree.owner(loop)
        resets = (each for each in found if each.kind is Kind.ASSIGN and self.tree.contains(place, each.site))
        counted = bool(inside) and all(each.kind is Kind.AUGMENT for each in inside)
        return counted and any(self.tree.order(each.site) < self.tree.order(loop) for each in resets)

    def _counts_from_constant(self, iterable: cst.BaseExpression) -> bool:
        if self.names.call(iterable) != "builtins.enumerate" or not isinstance(iterable, cst.Call):
            return False
        start = self.names.argument(iterable, "start", 1)
        return start is None or isinstance(self.names.constant(start.value), int)

    def _is_repeated(self, loop: cst.For) -> bool:
        """Whether the loop runs once per epoch, as far as its callers are in sight."""
        function = self.tree.function(loop)
        calls = self.hooks.calls_of.get(function, ()) if function else ()
        outside = function is not None and not calls
        return bool(self.tree.loops(loop)) or outside or any(self.tree.loops(call) for call in calls)

    def _is_flushed(self, loop: cst.For) -> bool:
        """Whether a step may follow the loop: behind it in its function, or in a caller."""
        function = self.tree.function(loop)
        callers = self.hooks.calls_of.get(function, ()) if function else ()
        behind = [call for call in self.tree.own(self.tree.owner(loop), cst.Call) if self._is_behind(call, loop)]
        for caller in {self.tree.owner(call) for call in callers}:
            behind += [call for call in self.tree.own(caller, cst.Call) if self.hooks.callee(call) is not function]
        return any(self._steps_at_once(call) for call in behind)

    def _is_behind(self, call: cst.Call, loop: cst.For) -> bool:
        return self.tree.order(call) > self.tree.order(loop) and not self.tree.contains(loop, call)

    def _steps_at_once(self, call: cst.Call) -> bool:
        """Whether a call steps an optimizer without waiting for a full window."""
        return self.facts.accumulation.comes_to_step(call) and self.facts.accumulation.window(call) is None

    def _is_manual_step(self, function: cst.FunctionDef, window: Window) -> bool:
        """Whether this is a `training_step` that counts by `batch_idx`, of a class that steps nowhere else."""
        hook, node = self.hooks.of(function), self.tree.class_of(function)
        if hook is None or hook.name != TRAINING_STEP or node is None or not self.classes.is_a(node, MODULE):
            return False
        if self.classes.constant(node, "automatic_optimization", True) is not False:
            return False
        third = [each.name.value for each in function.params.params[2:3]]
        steps = [each for each in self.tree.within(node, cst.Call) if self.facts.accumulation.is_step(each)]
        counts = isinstance(window.counter, cst.Name) and third == [window.counter.value]
        return counts and all(self.tree.contains(function, each) for each in steps)

    def _accumulates(self, body: cst.CSTNode) -> bool:
        """Whether every batch adds a gradient, and every step and every `zero_grad` waits for a full window."""
        calls = self.tree.own(body, cst.Call)
        zeroes = (call for call in calls if self.names.method(call) == "zero_grad")
        if any(self.facts.accumulation.window(call) is None for call in zeroes) or any(map(self._steps_at_once, calls)):
            return False
        backward = (call for call in calls if self._comes_to_backward(call))
        return any(self.facts.accumulation.window(call) is None for call in backward)

    def _comes_to_backward(self, call: cst.Call) -> bool:
        callee = self.hooks.callee(call)
        return self.loops.is_backward(call) or (callee is not None and self.loops.is_backward_in(callee.body))

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Optimizers that step once in so many batches, and nowhere else on any path."""
        sums = {step for path in entry.paths if not _counts_rest(path) for step in _adding_up(path)}
        for steps in _by_optimizer(entry):
            counts_batches = any(_traits(event) & {"index", "restarted"} for event in steps)
            size = self._size_at(steps[0].site) if counts_batches and all(map(_waits, steps)) else 1
            if size != 1 and sums & set(steps):
                message = "no step follows the last batches of an epoch where they do not fill a window"
                yield Fault.at(steps[0], message, tier=_tier(size))

    def _size_at(self, site: Site) -> int:
        """How many batches the window of the step at a place holds where nobody asks for more, 0 where that is unknown."""
        span = self.facts.rehearsed.span(site)
        for call in self.tree.all(cst.Call) if span is not None else ():
            window = self.facts.accumulation.window(call) if self.names.method(call) == "step" else None
            if window is not None and self.facts.positions.span(call) == span:
                return self._size(window.size)
        return 0

    def clears(self, entry: Entry) -> Iterator[Site]:
        """Steps beside which another takes the rest, or of which the program makes sure that there is none."""
        counted = any(map(_counts_rest, entry.paths))
        for steps in _by_optimizer(entry):
            others = not all(event.where.conditions and in_batch(event.where) for event in steps)
            right = [
                e for e in steps if others or counted or _traits(e) & _WITHOUT_REST or _may_be_filled(e) or is_filled(e)
            ]
            yield from (site for event in right for site in event.where.places)


def _tier(size: int) -> Tier | None:
    """What it means that batches are lost: of windows of two it is one in an epoch."""
    return Tier.NOTE if size == 2 else None


_ONE = r"1(?:\.0*)?(?![\w.])"
_WITHOUT_REST = frozenset({"batches", "samples", "last", "one"})


def _by_optimizer(entry: Entry) -> list[list[Stepped]]:
    steps: dict[object, list[Stepped]] = {}
    for event in entry.of(Stepped):
        steps.setdefault((event.optimizer.site, event.optimizer.serial), []).append(event)
    return [*steps.values()]


def _traits(event: Stepped) -> frozenset[str]:
    return frozenset(trait for each in event.where.conditions for trait in each.traits)


def _waits(event: Stepped) -> bool:
    """Whether a step in a loop over batches hangs on how many there were, and not on which is the last."""
    optimizer = event.optimizer
    seen = not optimizer.escaped and "#managed" not in optimizer.arguments
    counts = "periodic" in _traits(event) and not _traits(event) & _WITHOUT_REST
    counts = counts and not any(_runs_on(each.key) for each in event.where.conditions)
    fixed = any(isinstance(turn.loop.bound, Constant) for turn in event.where.turns if turn.loop.kind == "batch")
    return counts and in_batch(event.where) and seen and not fixed  # a number of batches that is written down fits


def _runs_on(key: object) -> bool:
    """Whether a multiple is asked of a number that goes by more than the place in one loop, as `epoch * len(loader) + i` does."""
    if not isinstance(key, tuple):
        return False
    divided = len(key) == 3 and key[0] == "%"
    return (divided and len({*_counted(key[1])}) > 1) or any(map(_runs_on, key))


def _counted(key: object) -> Iterator[object]:
    """The loops whose turns a number counts, and the lengths that it adds."""
    if isinstance(key, tuple) and len(key) > 1 and key[0] in ("index", "length"):
        yield key[:2]
    elif isinstance(key, tuple):
        yield from (each for part in key for each in _counted(part))


def _adding_up(path: Path) -> Iterator[Stepped]:
    """The steps that use gradients of more batches than one, of a loader that may have any number of them."""
    added: dict[Tensor, set[tuple[Turn, ...]]] = {}
    for event in path.events:
        if isinstance(event, Backward):
            for each in event.parameters:
                added.setdefault(each, set()).add(event.where.turns)
        elif isinstance(event, Cleared):
            for each in event.parameters:
                added.pop(each, None)
        elif isinstance(event, Stepped):
            sums = any(len(added.get(each, ())) > 1 for each in event.parameters)
            if sums and not any(_is_measured(turn.loop) for turn in event.where.turns if turn.loop.kind == "batch"):
                yield event


def _is_measured(loop: Loop) -> bool:
    """Whether a loop over batches never ends, or the program says how many there are."""
    over = loop.over
    if isinstance(loop.bound, Constant) or _is_left_by_count(loop.node):
        return True
    if isinstance(over, Loader):
        return isinstance(over.data, Instance) and "tensors" in over.data.arguments
    return isinstance(over, Instance) and over.name == "cycle"


def _is_left_by_count(node: ast.AST | None) -> bool:
    """Whether a loop has a `break` behind a test of the number of its turn: the program says how many batches it takes."""
    if not isinstance(node, ast.For) or not isinstance(node.target, ast.Tuple):
        return False
    number = node.target.elts[0]
    asked = (each.test for each in ast.walk(node) if isinstance(each, ast.If) and isinstance(each.body[-1], ast.Break))
    read = {name.id for test in asked for name in ast.walk(test) if isinstance(name, ast.Name)}
    return isinstance(number, ast.Name) and number.id in read


def _may_be_filled(event: Stepped) -> bool:
    """Whether the program makes data of so many rows, and an option says how large a window is, or its numbers divide
    but for the number of ranks."""
    loop = next((turn.loop for turn in reversed(event.where.turns) if turn.loop.kind == "batch"), None)
    loader = loop.over if loop is not None else None
    count = rows(loader.data) if isinstance(loader, Loader) else None
    windows = [window for each in event.where.conditions for window in _windows(each.key)]
    if count is None or not isinstance(loader, Loader) or len(windows) != 1:
        return False
    if not isinstance(windows[0], int):
        return True
    size = number_of(loader.arguments.get("batch_size"))
    return loader.sampler is not None and bool(size) and count % (int(size or 1) * windows[0]) == 0


def _windows(key: object) -> Iterator[object]:
    """By what a number of batches is divided, `(index + 1) % size`: the size, or the key of one that is unknown."""
    match key:
        case ("%", ("+", _, ("constant", "int", 1)), ("constant", "int", size)):
            yield size
        case ("%", ("+", _, ("constant", "int", 1)), size):
            yield size
        case tuple():
            yield from (each for part in key for each in _windows(part))


def _counts_rest(path: Path) -> bool:
    """Whether the program has tested what is left of a length over a window."""
    return any(_holds_rest(key) for key in path.machine.answers)


def _holds_rest(key: object) -> bool:
    if not isinstance(key, tuple):
        return False
    first = key[1] if len(key) == 3 and key[0] == "%" else None
    return (isinstance(first, tuple) and first[:1] == ("length",)) or any(map(_holds_rest, key))
