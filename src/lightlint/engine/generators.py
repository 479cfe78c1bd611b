"""Generators of the program: frames that stop at each `yield` and go on where they stopped."""

from __future__ import annotations

import ast
from functools import lru_cache

from lightlint.engine.execution import Returned, block
from lightlint.engine.frames import Call, Condition, Iteration, Loop
from lightlint.engine.machine import Machine
from lightlint.values.core import Function, Library, Scope, Value
from lightlint.values.training import Instance, Iterator

_MOST_YIELDS = 6


class Frame:
    """A suspended call of a generator function: its block, and the loops and tests open inside of it."""

    def __init__(self, machine: Machine, function: Function, scope: Scope, node: ast.AST) -> None:
        self.function, self.scope, self.node = function, scope, node
        self._body = block(machine, getattr(function.node, "body", []), scope)
        self._loops: list[Loop] = []
        self._conditions: list[Condition] = []
        self._grad: list[bool] = [False] if "no_grad" in function.flags else []
        self.yielded = 0
        self.done = False

    def resume(self, machine: Machine) -> Value | None:
        """Run up to the next `yield`; None at the end."""
        if self.done or self.yielded >= _MOST_YIELDS or machine.entered[id(self.function.node)] > 2:
            return None
        outside = machine.file, len(machine.loops), len(machine.conditions), len(machine.grad)
        machine.file = self.function.file
        machine.loops += self._loops
        machine.conditions += self._conditions
        machine.grad += self._grad
        machine.calls.append(Call(self.function, machine.site(self.node), outside[1]))
        machine.scopes.append(self.scope)
        machine.entered[id(self.function.node)] += 1
        try:
            value = next(self._body, None)
        except Returned:
            value = None
        finally:
            machine.entered[id(self.function.node)] -= 1
            machine.calls.pop()
            machine.scopes.pop()
            machine.file, loops, conditions, grad = outside
            self._loops, self._conditions = machine.loops[loops:], machine.conditions[conditions:]
            self._grad = machine.grad[grad:]
            del machine.loops[loops:], machine.conditions[conditions:], machine.grad[grad:]
        self.done = value is None
        self.yielded += 1
        return value

    def resume_context(self, machine: Machine) -> Value | None:
        """As `resume`, for a context manager: what it sets inside its own `with` holds for the caller's block, too."""
        value = self.resume(machine)
        machine.grad += self._grad
        self._grad = []
        return value

    @property
    def batch_loop(self) -> Loop | None:
        """The loop over a loader that the frame is stopped in."""
        return next((loop for loop in reversed(self._loops) if loop.kind == "batch"), None)

    @property
    def yields_each_turn(self) -> bool:
        """Whether it yields as often as its one loop takes turns."""
        return len(self._loops) == 1 and not self._conditions and _has_one_way(self.function.node)

    @property
    def loop(self) -> Loop | None:
        """The innermost loop that the frame is stopped in."""
        return self._loops[-1] if self._loops else None


@lru_cache(maxsize=256)
def _has_one_way(function: ast.AST) -> bool:
    """Whether one `yield` alone stands in a function, and nothing that leaves a turn or a loop early."""
    nodes = [*ast.walk(function)]
    leaves = any(isinstance(each, (ast.Break, ast.Continue, ast.Return)) for each in nodes)
    return not leaves and sum(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in nodes) == 1


def generator_of(machine: Machine, function: Function, scope: Scope, node: ast.AST) -> Iterator | Instance:
    """What a call of a generator function gives: an iterator, or a context manager where a decorator says so."""
    frame = Frame(machine, function, scope, node)
    if "contextmanager" in function.flags:
        manager = _iterator(machine, node, frame)
        manager.kind = "context"
        return manager
    return _iterator(machine, node, frame)


def _iterator(machine: Machine, node: ast.AST, frame: Frame) -> Iterator:
    made = Iterator(Library("builtins.generator"), machine.site(node), machine.number(), frame)
    machine.objects.append(made)
    return made


def iteration_of(machine: Machine, frame: Frame) -> Iteration:
    """How a generator is gone over: its loop's kind and bound become known once it has begun."""

    def pull(_: int) -> Value | None:
        value = frame.resume(machine)
        inner = frame.batch_loop or frame.loop
        if inner is not None:
            iteration.kind, iteration.over = inner.kind, inner.over
            iteration.bound = inner.bound if frame.yields_each_turn else None
            iteration.known = iteration.known and inner.known
        iteration.known = iteration.known and (frame.done or frame.yielded < _MOST_YIELDS)
        return value

    iteration = Iteration(pull, "elements", _MOST_YIELDS, True)
    return iteration
