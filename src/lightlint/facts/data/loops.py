"""Which loops draw batches, and what runs once per batch."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum

import libcst as cst

from lightlint.facts.code.bindings import Kind
from lightlint.facts.code.names import Names
from lightlint.facts.code.tree import Loop, Tree
from lightlint.facts.lightning.hooks import STEPS, Hook, Hooks
from lightlint.facts.values.values import Values

_ENDLESS = {"itertools.cycle", "itertools.count", "itertools.islice", "itertools.repeat"}
# calls that answer the same all through a run, and words for what moves on with the batches
_FIXED = {"torch.cuda.is_available", "builtins.isinstance", "builtins.hasattr", "torch.distributed.is_initialized"}
_COUNTER = re.compile(
    r"step|iter|epoch|batch|count|idx|index|every|freq|interval|last|first|loss|nan|inf|^[a-z]$", re.IGNORECASE
)
_BACKWARDS = {"backward", "manual_backward"}
_OF_ONE_BATCH = {"backward", "zero_grad", "step"}


Conditions = Callable[[cst.CSTNode], list[tuple[cst.BaseExpression, bool]]]


class LoopKind(StrEnum):
    """What one iteration of a loop is."""

    BATCH = "batch"
    EPOCH = "epoch"
    OTHER = "other"


class Loops:
    """The loops of one file by what they repeat."""

    def __init__(self, tree: Tree, names: Names, hooks: Hooks, values: Values, conditions: Conditions) -> None:
        self._conditions = conditions
        self._tree = tree
        self._names = names
        self._hooks = hooks
        self._values = values
        self._kinds: dict[Loop, LoopKind] = {}
        self._over_trained: dict[Loop, bool] = {}
        self._per_batch: dict[tuple[int, int], Loop | Hook | None] = {}  # by the `id` of a function, and the depth

    def kind(self, loop: Loop) -> LoopKind:
        """A batch loop draws from a DataLoader, or runs one backward pass per iteration; an epoch loop holds one.

        A loop over the networks, optimizers or losses of one batch is neither.
        """
        if loop not in self._kinds:
            if self._values.is_batch_loop(loop):
                self._kinds[loop] = LoopKind.BATCH
            elif any(map(self._trains, self._held(loop))):
                self._kinds[loop] = LoopKind.EPOCH
            else:
                is_batch = self._trains(loop) and not self._is_over_trained(loop)
                self._kinds[loop] = LoopKind.BATCH if is_batch else LoopKind.OTHER
        return self._kinds[loop]

    def _is_over_trained(self, loop: Loop) -> bool:
        """Whether each iteration takes an optimizer or a loss of its own: it clears, goes backward from or steps what it goes over."""
        if loop not in self._over_trained:
            targets = (
                {name.value for name in self._tree.within(loop.target, cst.Name)}
                if isinstance(loop, cst.For)
                else set()
            )
            used = (call.func for call in self._tree.own(loop.body, cst.Call))
            self._over_trained[loop] = any(
                isinstance(func, cst.Attribute)
                and func.attr.value in _OF_ONE_BATCH
                and self._names.key(func.value) in targets
                for func in used
            )
        return self._over_trained[loop]

    def _held(self, loop: Loop) -> list[Loop]:
        """The loops that run inside an iteration of another: in its body, or in functions of this file it leads to."""
        found = self._inner(loop)
        for each in found:
            found.extend(new for new in self._inner(each) if new not in found)
        return [each for each in found if each is not loop and not self._is_over_trained(each)]

    def _inner(self, loop: Loop) -> list[Loop]:
        bodies = [loop.body, *(helper.body for helper in self._helpers(loop))]
        return list(dict.fromkeys(each for body in bodies for each in self._tree.own(body, cst.For, cst.While)))

    def _helpers(self, loop: Loop) -> list[cst.FunctionDef]:
        calls = self._tree.own(loop.body, cst.Call)
        return [callee for callee in map(self._hooks.callee, calls) if callee is not None]

    def _trains(self, loop: Loop) -> bool:
        """Whether a loop draws batches or runs a backward pass, inner loops and those of helpers left to themselves."""
        calls = [call for call in self._tree.own(loop.body, cst.Call) if self._around(call) is loop]
        for helper in self._helpers(loop):
            calls += [call for call in self._tree.own(helper.body, cst.Call) if not self._tree.loops(call)]
        return any(map(self.is_backward, calls)) or self._values.is_batch_loop(loop)

    def _around(self, call: cst.Call) -> Loop | None:
        """The innermost loop around a call, but for those over what one batch trains."""
        return next((each for each in self._tree.loops(call) if not self._is_over_trained(each)), None)

    def is_backward_in(self, body: cst.CSTNode) -> bool:
        """Whether a body runs a backward pass itself, not in a function nested in it."""
        return any(self.is_backward(call) for call in self._tree.own(body, cst.Call))

    def is_backward(self, call: cst.Call) -> bool:
        """Whether a call is a backward pass: `loss.backward()`, `accelerator.backward(loss)`, `torch.autograd.backward`."""
        return isinstance(call.func, cst.Attribute) and call.func.attr.value in _BACKWARDS

    def batch_loop(self, node: cst.CSTNode) -> Loop | None:
        """The innermost loop around a node, in its function, if it is a batch loop."""
        around = self._tree.loops(node)
        return around[0] if around and self.kind(around[0]) is LoopKind.BATCH else None

    def is_one_pass(self, loop: cst.For) -> bool:
        """Whether a loop draws every batch of a loader once: it iterates a DataLoader, or what comes from outside, to the end.

        Endless iterators, generators of this file and loops left by `break` or `return` are none.
        """
        exits = self._tree.own(loop.body, cst.Break, cst.Return)
        left = any(isinstance(each, cst.Return) or self._tree.loops(each)[0] is loop for each in exits)
        calls = {self._names.call(each) for each in self._tree.within(loop.iter, cst.Call)}
        drawn = self._values.iterated(loop.iter)
        if left or calls & _ENDLESS:
            return False
        if isinstance(drawn, cst.Name):
            found = self._names.bindings.lookup(drawn)
            outside = all(each.kind is Kind.PARAMETER for each in found)
        else:
            outside = isinstance(drawn, cst.Attribute)
        return self._values.is_loader(drawn) or (outside and not self._values.origins(drawn))

    def per_batch(self, node: cst.CSTNode, depth: int = 0) -> Loop | Hook | None:
        """The batch loop or per-batch hook in which a node runs for every batch, through helpers of this file.

        None where a test that can come out differently from batch to batch lets only some of them get to it.
        """
        around = self._tree.loops(node)
        if around:
            return self.batch_loop(node) if self._is_steady(node, around[0].body) else None
        function = self._tree.function(node)
        if function is None or depth > 4 or not self._is_steady(node, function.body):
            return None
        key = (id(function), depth)
        if key not in self._per_batch:
            self._per_batch[key] = self._runs_per_batch(function, depth)
        return self._per_batch[key]

    def _runs_per_batch(self, function: cst.FunctionDef, depth: int) -> Loop | Hook | None:
        hook = self._hooks.of(function)
        if hook is not None:
            return hook if hook.per_batch else None
        calls = sorted(self._hooks.calls_of.get(function, ()), key=self._stands_in_step, reverse=True)
        return next((found for call in calls if (found := self.per_batch(call, depth + 1))), None)

    def _stands_in_step(self, call: cst.Call) -> bool:
        function = self._tree.function(call)
        return function is not None and function.name.value in STEPS

    def _is_steady(self, node: cst.CSTNode, body: cst.CSTNode) -> bool:
        """Whether the tests in a body that lead to a node come out the same in every iteration; errs towards no."""
        tests = [test for test, _ in self._conditions(node) if self._tree.contains(body, test)]
        return all(self._is_fixed(test, body) for test in tests)

    def _is_fixed(self, test: cst.CSTNode, body: cst.CSTNode) -> bool:
        calls = {self._names.call(call) for call in self._tree.within(test, cst.Call)}
        counts = any(isinstance(each.operator, cst.Modulo) for each in self._tree.within(test, cst.BinaryOperation))
        words = self._tree.within(test, cst.Name)
        bound = [site.site for word in words for site in self._names.bindings.lookup(word)]
        moves = any(self._tree.contains(body, site) for site in bound)
        return calls <= _FIXED and not counts and not moves and not any(_COUNTER.search(word.value) for word in words)
