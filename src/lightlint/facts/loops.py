"""Which loops draw batches, and what runs once per batch."""

from __future__ import annotations

from enum import StrEnum

import libcst as cst

from lightlint.facts.bindings import Kind
from lightlint.facts.hooks import STEPS, Hook, Hooks
from lightlint.facts.names import Names
from lightlint.facts.tree import Loop, Tree
from lightlint.facts.values import Values

_ENDLESS = {"itertools.cycle", "itertools.count", "itertools.islice", "itertools.repeat"}
_BACKWARDS = {"backward", "manual_backward"}


class LoopKind(StrEnum):
    """What one iteration of a loop is."""

    BATCH = "batch"
    EPOCH = "epoch"
    OTHER = "other"


class Loops:
    """The loops of one file by what they repeat."""

    def __init__(self, tree: Tree, names: Names, hooks: Hooks, values: Values) -> None:
        self._tree = tree
        self._names = names
        self._hooks = hooks
        self._values = values
        self._kinds: dict[Loop, LoopKind] = {}

    def kind(self, loop: Loop) -> LoopKind:
        """A batch loop draws from a DataLoader, or runs one backward pass per iteration; an epoch loop holds one."""
        if loop not in self._kinds:
            if self._values.is_batch_loop(loop):
                self._kinds[loop] = LoopKind.BATCH
            elif any(map(self._trains, self._held(loop))):
                self._kinds[loop] = LoopKind.EPOCH
            else:
                self._kinds[loop] = LoopKind.BATCH if self._trains(loop) else LoopKind.OTHER
        return self._kinds[loop]

    def _held(self, loop: Loop) -> list[Loop]:
        """The loops that run inside an iteration of another: in its body, or in functions of this file it leads to."""
        found = self._inner(loop)
        for each in found:
            found.extend(new for new in self._inner(each) if new not in found)
        return [each for each in found if each is not loop]

    def _inner(self, loop: Loop) -> list[Loop]:
        bodies = [loop.body, *(helper.body for helper in self._helpers(loop))]
        return list(dict.fromkeys(each for body in bodies for each in self._tree.own(body, cst.For, cst.While)))

    def _helpers(self, loop: Loop) -> list[cst.FunctionDef]:
        calls = self._tree.own(loop.body, cst.Call)
        return [callee for callee in map(self._hooks.callee, calls) if callee is not None]

    def _trains(self, loop: Loop) -> bool:
        """Whether a loop draws batches or runs a backward pass, inner loops and those of helpers left to themselves."""
        calls = [call for call in self._tree.own(loop.body, cst.Call) if self._tree.loops(call)[0] is loop]
        for helper in self._helpers(loop):
            calls += [call for call in self._tree.own(helper.body, cst.Call) if not self._tree.loops(call)]
        return any(map(self.is_backward, calls)) or self._values.is_batch_loop(loop)

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
        """The batch loop or per-batch hook in which a node runs once per batch, through helpers of this file."""
        around = self._tree.loops(node)
        if around:
            return self.batch_loop(node)
        function = self._tree.function(node)
        if function is None or depth > 4:
            return None
        hooks = [hook for hook in self._hooks.reached(function) if hook.per_batch]
        hook = min(hooks, key=lambda each: (each.name not in STEPS, each.name), default=None)
        if hook is not None:
            return hook
        calls = self._hooks.calls_of.get(function, ())
        return next((found for call in calls if (found := self.per_batch(call, depth + 1))), None)
