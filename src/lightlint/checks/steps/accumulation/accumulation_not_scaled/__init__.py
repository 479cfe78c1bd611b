from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.checks.steps.accumulation.accumulation_not_scaled.micro_batches import MicroBatches
from lightlint.engine.events import Backward, Cleared, Stepped
from lightlint.explore.questions.queries import in_batch, in_sight, speaks_of
from lightlint.explore.questions.scales import evens
from lightlint.facts.code.bindings import dotted_name
from lightlint.facts.code.tree import Loop
from lightlint.facts.project.mentions import occurs
from lightlint.finding import Applicability, Tier
from lightlint.fixes.edits import wrap
from lightlint.values.canonical import LIBRARIES
from lightlint.values.core import Constant, Library, Sequence, Unknown, is_constant
from lightlint.values.training import Instance, Tensor

if TYPE_CHECKING:
    from lightlint.engine.frames import Loop as Rehearsed
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Value

_OF_SCALERS = frozenset(["step", "unscale_"])
_HARMLESS = re.compile(r"sched|warm|anneal|cosine|cyclic|lr|rate|save|load|checkpoint|print|log|prepare", re.IGNORECASE)
_PRIVATE = ("opacus", "PrivacyEngine", "make_private", "virtual_step")
"""Words for engines whose optimizers step by a mean over the window."""
_SETTINGS = {("argument",), ("field",), ("of",), ("item",)}
"""How the keys of what a run is told begin: an option, a field of a dataclass, an attribute or item of what is handed in."""
_WINDOW = re.compile(r"accum|micro", re.IGNORECASE)


class AccumulationNotScaled(Check):
    def stands(self) -> bool:
        """No code of the project uses an engine that makes optimizers step by a mean over the window."""
        text, project = self.facts.source.text, self.facts.project
        return not any(word in text or occurs(project, word, rf"\b{word}\b") for word in _PRIVATE)

    def visit_For(self, loop: cst.For) -> None:
        """The batches of a window in a loop of their own: `for micro in range(n): ...; loss.backward()`."""
        counted = loop.iter.args[0].value if self._counts(loop) and isinstance(loop.iter, cst.Call) else None
        size = counted if counted is not None and _WINDOW.search(dotted_name(counted)) else None
        parts = MicroBatches(self.facts).whole(loop) if size is None else None
        sizes = [size] if size is not None else parts[1] if parts is not None else []
        if not sizes or any(self._is_scaled_elsewhere(each) for each in sizes):
            return
        owner, facts = self.tree.owner(loop), self.facts.updates
        backwards = [each for each in facts.own(owner) if self.loops.is_backward(each)]
        inside = [each for each in backwards if self.tree.loops(each)[:1] == [loop]]
        updates = [each.call for each in facts.updates(owner)]
        if len(inside) != 1 or len(backwards) != 1 or not updates or facts.handles_gradients(owner):
            return
        if any(self.tree.contains(loop, each) for each in (*updates, *facts.clears(owner))):
            return
        loss = self._loss(inside[0])
        if (
            loss is not None
            and self.facts.criteria.is_mean(loss)
            and self.facts.flow(owner).reaches(inside[0], updates)
        ):
            optimizers = [each.optimizer for each in self.facts.updates.updates(owner)]
            if size is not None:
                self._tell(inside[0], loss, size, optimizers)
            elif parts is not None:
                whole = self.code.text_of(parts[0])
                message = f"adds up the gradients of the mean losses of all parts of `{whole}` undivided"
                self.report(inside[0], message, tier=self._tier(optimizers))

    def _counts(self, loop: cst.For) -> bool:
        return (
            isinstance(loop.iter, cst.Call)
            and self.names.call(loop.iter) == "builtins.range"
            and len(loop.iter.args) == 1
        )

    def visit_Call(self, call: cst.Call) -> None:
        update = self.facts.updates.update(call)
        loop = self.tree.loops(call)[0] if self.tree.loops(call) else None
        number = self._number(call, loop) if update is not None and loop is not None else None
        if update is None or loop is None or number is None or self._is_scaled_elsewhere(number):
            return
        owner = self.tree.owner(call)
        backwards = [each for each in self.facts.updates.own(owner) if self.loops.is_backward(each)]
        backwards = [each for each in backwards if self.tree.loops(each)[:1] == [loop]]
        optimizers = {self.names.key(each.optimizer) for each in self.facts.updates.updates(owner)}
        if len(backwards) != 1 or len(optimizers) != 1 or not self._adds_up(backwards[0], call, loop):
            return
        if self._is_handed_out(update.optimizer):
            return
        loss = self._loss(backwards[0])
        if loss is None or not self.facts.criteria.is_mean(loss):
            return
        self._tell(backwards[0], loss, number, [update.optimizer])

    def _is_handed_out(self, optimizer: cst.BaseExpression) -> bool:
        """Whether something out of sight gets the optimizer, and may make it divide, or clear its gradients: a method of some
        object (`engine.attach(optimizer)`), or a function."""
        key = self.names.key(optimizer)
        given = [each for each in self.tree.all(cst.Call) if any(self.names.key(a.value) == key for a in each.args)]
        return bool(key) and any(self._is_method_out_of_sight(each) or self._is_out_of_sight(each) for each in given)

    def _is_out_of_sight(self, call: cst.Call) -> bool:
        """Whether a function is imported from where nobody looks, and its name does not say that it is about learning rates or files."""
        name = self.names.call(call)
        if name is None or "." not in name or name.startswith((*LIBRARIES, "builtins.")) or _HARMLESS.search(name):
            return False
        return self.facts.project.find_function(name, self.facts.path.parent) is None

    def _is_method_out_of_sight(self, call: cst.Call) -> bool:
        if not isinstance(call.func, cst.Attribute) or self.names.call(call) or call.func.attr.value in _OF_SCALERS:
            return False
        names = [each.name for each in self.values.origins(call.func.value)]
        known = any(each.startswith(LIBRARIES) or self.classes.local(each) is not None for each in names)
        return not known and self.classes.self_class(call.func.value) is None

    def _tell(
        self,
        backward: cst.Call,
        loss: cst.BaseExpression,
        number: cst.BaseExpression,
        optimizers: list[cst.BaseExpression],
    ) -> None:
        size = self.code.text_of(number)
        self.report(
            backward,
            f"adds up the gradients of `{size}` mean losses without dividing them, which makes the gradient as much larger",
            repair=Repair(
                f"divide the loss by `{size}`", wrap(self.code, loss, "", f" / {size}"), Applicability.UNSAFE
            ),
            tier=self._tier(optimizers),
        )

    def _tier(self, optimizers: list[cst.BaseExpression]) -> Tier | None:
        origins = [origin for each in optimizers for origin in self.facts.values.origins(each)]
        even = (evens(origin.name, self._decays(origin.call)) for origin in origins)
        return Tier.NOTE if origins and all(even) and not self._clips() else None

    def _decays(self, made: cst.Call | None) -> bool:
        """Whether the call that makes an optimizer gives it a weight decay, or may."""
        if made is None or self.names.has_star(made):
            return True
        given = self.names.argument(made, "weight_decay", 4)
        return given is not None and self.names.constant(given.value) != 0

    def _clips(self) -> bool:
        """Whether some code of the project clips gradients: sums of them come to the bound earlier than means."""
        clips = r"clip_grad|gradient_clip|clip_by"
        return bool(re.search(clips, self.facts.source.text)) or occurs(self.facts.project, "clip", clips)

    def _number(self, step: cst.Call, loop: Loop) -> cst.BaseExpression | None:
        """The number of batches that a step waits for: `n` of `(i + 1) % n == 0`, alone or with `or last`, or of a count."""
        window = self.facts.accumulation.window(step)
        counted = self.facts.accumulation.counted(step) if window is None else window.size
        if counted is not None:
            return counted
        tests = [
            test for test, outcome in self.facts.conditions(step) if outcome and self.tree.contains(loop.body, test)
        ]
        for each in (one for test in tests for one in self.tree.within(test, cst.Comparison)):
            left, target = each.left, each.comparisons[0]
            modulo = isinstance(left, cst.BinaryOperation) and isinstance(left.operator, cst.Modulo)
            if modulo and isinstance(target.operator, cst.Equal) and isinstance(left, cst.BinaryOperation):
                return left.right
        return None

    def _loss(self, backward: cst.Call) -> cst.BaseExpression | None:
        """What a backward pass starts from: `loss` of `loss.backward()` and of `scaler.scale(loss).backward()`."""
        if self.names.method(backward) != "backward" or backward.args or not isinstance(backward.func, cst.Attribute):
            return None
        receiver = backward.func.value
        if self.facts.updates.scaler_of(backward) is not None and isinstance(receiver, cst.Call) and receiver.args:
            return receiver.args[0].value
        return receiver if isinstance(receiver, cst.Name) else None

    def _adds_up(self, backward: cst.Call, step: cst.Call, loop: Loop) -> bool:
        """Whether gradients of several iterations meet: each iteration comes to the backward pass, nothing clears between."""
        owner = self.tree.owner(step)
        flow, clears = self.facts.flow(owner), self.facts.updates.clears(owner)
        tests, of_step = self.facts.conditions(backward), self.facts.conditions(step)
        thinned = any(isinstance(each.operator, cst.Modulo) for test, _ in tests for each in self._operations(test))
        meets = flow.reaches_in_later_iteration(loop, backward, [backward], avoiding=[*clears, step])
        return (
            bool(clears)
            and set(tests) <= set(of_step)
            and not thinned
            and meets
            and not self.facts.updates.handles_gradients(owner)
        )

    def _operations(self, test: cst.BaseExpression) -> list[cst.BinaryOperation]:
        return self.tree.within(test, cst.BinaryOperation)

    def _is_scaled_elsewhere(self, size: cst.BaseExpression) -> bool:
        """Whether the file divides something else than a number of batches by the size, such as the learning rate."""
        last, number = dotted_name(size).rpartition(".")[2], self.names.constant(size)
        if number == 1 or (not last and not isinstance(number, int)):
            return True
        if not last:
            divided = [each for each in self.tree.all(cst.BinaryOperation) if isinstance(each.operator, cst.Divide)]
            return any(self.names.constant(each.right) == number for each in divided)
        for division in self.tree.all(cst.BinaryOperation):
            if isinstance(division.operator, (cst.Divide, cst.Multiply)) and self._mentions(division.right, last):
                counts = any(
                    self.names.call(each) == "builtins.len" for each in self.tree.within(division.left, cst.Call)
                )
                if isinstance(division.operator, cst.Divide) and not counts:
                    return True
        assigned = [each for each in self.tree.all(cst.AugAssign) if isinstance(each.operator, cst.DivideAssign)]
        return any(self._mentions(each.value, last) for each in assigned)

    def _mentions(self, expression: cst.CSTNode, word: str) -> bool:
        return any(name.value == word for name in self.tree.within(expression, cst.Name))

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Mean losses of several batches that add up to one step, none of them divided."""
        steps = [event.optimizer for path in entry.paths for event in path.of(Stepped)]
        handed_out = {each.site for each in steps if each.escaped}
        for path in entry.paths:
            for backward, step in _added_up(path):
                if step.optimizer.site in handed_out:
                    continue
                loss = backward.loss
                if loss is None or loss.reduction != "mean" or loss.scaled or loss.escaped:
                    continue
                if not (loss.criterion or (_is_worked_out(loss) and not step.where.depends_on("periodic"))):
                    continue
                if backward.via in ("backward", "manual_backward"):
                    message = "adds up the gradients of several mean losses without dividing them, which makes the gradient as much larger"
                    tier = Tier.NOTE if self._is_even(step.optimizer) else None
                    yield Fault.at(backward, message, tier=tier)

    def _is_even(self, optimizer: Instance) -> bool:
        decay = optimizer.argument("weight_decay", 4)
        decays = decay is not None and not is_constant(decay, 0, 0.0)
        return isinstance(optimizer.cls, Library) and evens(optimizer.cls.path, decays) and not self._clips()


def _is_worked_out(value: Tensor) -> bool:
    """Whether the program worked a loss out of a network's answers."""
    return value.role == "loss" and value.scalar and "predicted" in value.traits


def _rate_is_plain(optimizer: Instance) -> bool:
    """Whether an optimizer's learning rate is not worked out, perhaps to make up for the sum."""
    rate = optimizer.argument("lr", 1)
    return rate is None or (isinstance(rate, Constant) and "scaled" not in rate.traits)


def _rate_is_told(optimizer: Instance) -> bool:
    """Whether it is plain, or a setting as it is."""
    rate = optimizer.argument("lr", 1)
    key = rate.key if isinstance(rate, Unknown) else None
    return _rate_is_plain(optimizer) or (isinstance(key, tuple) and key[:1] in _SETTINGS)


def _added_up(path: Path) -> Iterator[tuple[Backward, Stepped]]:
    """The last of several backward passes at one place that a step, taken every so many batches, sums up, with that step."""
    by_hand = {each for event in path.of(Stepped) for each in event.parameters if each.gradient_touched or each.escaped}
    added: dict[Tensor, list[Backward]] = {}
    for event in path.events:
        if isinstance(event, Backward):
            for each in event.parameters:
                added.setdefault(each, []).append(event)
        elif isinstance(event, Cleared):
            for each in event.parameters:
                added.pop(each, None)
        elif isinstance(event, Stepped) and in_sight([event.optimizer]):
            waits, plain = event.where.depends_on("periodic"), _rate_is_plain(event.optimizer)
            for each in event.parameters:
                passes = added.get(each, [])
                if not waits:
                    several = len(passes) > 1 and each not in by_hand
                    grouped = plain and all(_is_of_group(one, event) for one in passes)
                    counted = _rate_is_told(event.optimizer) and all(_is_of_window(one, event) for one in passes)
                    if several and (grouped or counted):
                        yield passes[-1], event
                        break
                    continue
                if not plain:
                    break
                one_place = len({every.site for every in passes}) == 1 and each not in by_hand
                if len(passes) < 2 or not one_place or not in_batch(passes[0].where):
                    continue
                if len(passes[0].where.turns) == len(event.where.turns):
                    yield passes[-1], event
                    break


def _is_of_window(backward: Backward, step: Stepped) -> bool:
    """Whether a pass is one of those that a loop in each turn of the step's loop counts: `for _ in range(plan.micro_steps)`."""
    loop = _own_loop(backward, step)
    if loop is None or loop.kind != "count" or not isinstance(loop.node, ast.For):
        return False
    bound = loop.bound.key if loop.bound is not None else None
    named = _WINDOW.search(ast.unparse(loop.node.iter)) is not None or speaks_of(bound, _WINDOW)
    return named and not backward.where.conditions[len(step.where.conditions) :]


def _own_loop(backward: Backward, step: Stepped) -> Rehearsed | None:
    """The one loop around a pass that is not around the step as well."""
    inner, outer = backward.where.turns, step.where.turns
    return inner[-1].loop if outer and len(inner) == len(outer) + 1 and inner[: len(outer)] == outer else None


def _is_of_group(backward: Backward, step: Stepped) -> bool:
    """Whether a pass goes over one of the batches in a list that each turn of the step's loop makes anew."""
    loop = _own_loop(backward, step)
    over = loop.over if loop is not None else None
    fresh = isinstance(over, Sequence) and over.made > step.where.turns[-1].loop.made and bool(over.items)
    return (
        fresh
        and isinstance(over, Sequence)
        and all(map(_is_batch, over.items))
        and not backward.where.conditions[len(step.where.conditions) :]
    )


def _is_batch(value: Value) -> bool:
    """Whether something came out of a loader, a batch or its parts."""
    if isinstance(value, Sequence):
        return bool(value.items) and all(map(_is_batch, value.items))
    return isinstance(value, Tensor) and value.batch_of is not None
