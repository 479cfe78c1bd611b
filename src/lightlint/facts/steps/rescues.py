"""Handlers that catch whatever a training step raises and let the training go on without it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import Kind
from lightlint.facts.code.names import UNKNOWN
from lightlint.facts.code.tree import Loop
from lightlint.facts.lightning.hooks import TRAINING_STEP, Hook, Owner
from lightlint.facts.steps.steps import Steps

if TYPE_CHECKING:
    from lightlint.facts.linked import Linked

# `torch.cuda.OutOfMemoryError` and the error of a failed collective are RuntimeErrors: measured on torch 2.13
OUT_OF_MEMORY = {"torch.cuda.OutOfMemoryError", "torch.OutOfMemoryError"}
_BROAD = {"builtins.BaseException", "builtins.Exception", "builtins.RuntimeError"} | OUT_OF_MEMORY
_COLLECTIVES = {"all_reduce", "all_gather", "all_gather_object", "broadcast", "barrier", "reduce", "gather"}
_FRESH = {f"torch.{name}" for name in ("tensor", "zeros", "ones", "empty", "full", "zeros_like", "as_tensor")}
_LOSS = re.compile(r"torch\.nn\.functional\.(?:\w*loss\w*|\w*cross_entropy\w*)$")
_STEP = Hook(Owner.MODULE, TRAINING_STEP)


@dataclass(frozen=True, slots=True)
class Rescue:
    """A handler that lets training go on without the step that failed.

    `caught` are the canonical names of what it catches, none for a bare `except`; `loop` is the batch loop it is in, None
    in a `training_step`; `exits` are the statements in it that go on, `falls_through` says whether control also passes its end.
    """

    handler: cst.ExceptHandler
    caught: tuple[str, ...]
    loop: Loop | None
    exits: tuple[cst.Return | cst.Continue, ...]
    falls_through: bool


class Rescues:
    """The rescues of one file."""

    def __init__(self, facts: Linked) -> None:
        self._facts = facts
        self._tree = facts.tree
        self._names = facts.names

    @cached_property
    def all(self) -> tuple[Rescue, ...]:
        """Rescues around the forward or backward pass of a training step or batch loop, in source order."""
        found = [self._rescue(attempt, handler) for attempt in self._tree.all(cst.Try) for handler in attempt.handlers]
        return tuple(each for each in found if each is not None)

    def _rescue(self, attempt: cst.Try, handler: cst.ExceptHandler) -> Rescue | None:
        caught = self._caught(handler)
        if caught is None or self._is_agreed(handler):
            return None
        owner, loop = self._tree.owner(attempt), self._facts.loops.batch_loop(attempt)
        flow = self._facts.flow(owner)
        if isinstance(loop, cst.For) and self._facts.fact(Steps).runs(attempt.body, self._facts.loops.is_backward):
            if not self._facts.fact(Steps).updates(loop):
                return None  # backward passes that are timed or looked at
            work = [call for call in self._tree.own(attempt.body, cst.Call) if self._works(call)]
            if not flow.reaches_in_later_iteration(loop, handler, work):
                return None
            exits = tuple(e for e in self._tree.own(handler, cst.Continue) if self._tree.loops(e)[0] is loop)
            return Rescue(handler, caught, loop, exits, flow.reaches(handler, [loop], avoiding=exits))
        if not isinstance(owner, cst.FunctionDef) or not self._is_step(attempt, owner):
            return None
        returns = self._tree.own(owner, cst.Return)
        empty = [each for each in returns if self._is_empty(each.value, attempt)]
        work = [call for call in self._tree.own(owner, cst.Call) if self._works(call)]
        blocked = [*work, *(each for each in returns if each not in empty)]
        if not flow.reaches(handler, [flow.end], avoiding=blocked):
            return None
        own = tuple(each for each in empty if self._tree.contains(handler, each))
        return Rescue(handler, caught, None, own, flow.reaches(handler, [flow.end], avoiding=[*blocked, *own]))

    def _is_empty(self, value: cst.BaseExpression | None, attempt: cst.Try) -> bool:
        """Whether a step that gives this gives no loss of its batch: None, a constant, a fresh tensor, or a name for one."""
        while (
            isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute) and self._names.of(value.func) is None
        ):
            value = value.func.value  # `torch.zeros(()).to(device)`
        if isinstance(value, cst.Call):
            return self._names.of(value.func) in _FRESH
        if isinstance(value, cst.Name) and value.value != "None":
            found = self._names.bindings.lookup(value)
            others = [each for each in found if not self._tree.contains(attempt.body, each.site)]
            return bool(others) and all(
                each.kind is Kind.ASSIGN and each.value is not value and self._is_empty(each.value, attempt)
                for each in others
            )
        return value is None or self._names.constant(value) is not UNKNOWN

    def _caught(self, handler: cst.ExceptHandler) -> tuple[str, ...] | None:
        """Canonical names of what a handler catches if one of them is broad; none for a bare `except`."""
        if handler.type is None:
            return ()
        types = (
            [each.value for each in handler.type.elements] if isinstance(handler.type, cst.Tuple) else [handler.type]
        )
        known = [self._names.of(each) or "" for each in types]
        return tuple(known) if any(name in _BROAD for name in known) else None

    def _is_agreed(self, handler: cst.ExceptHandler) -> bool:
        """Whether a handler's function lets the ranks agree, or a handler ends the run or builds a loss of all parameters."""
        owner = self._tree.owner(handler)
        if any(self._names.method(call) in _COLLECTIVES for call in self._tree.own(owner, cst.Call)):
            return True
        words = {name.value for name in self._tree.within(handler, cst.Name)}
        return bool(words & {"parameters", "should_stop", "exit", "abort"})

    def _is_step(self, attempt: cst.Try, owner: cst.FunctionDef) -> bool:
        """Whether a `try` of `training_step` or its helpers holds the forward or backward pass of the step."""
        if _STEP not in self._facts.hooks.around(attempt):
            return False
        if self._facts.fact(Steps).runs(attempt.body, self._facts.loops.is_backward):
            return True
        if self._facts.hooks.of(owner) == _STEP:
            gives = any(not _is_none(each.value) for each in self._tree.own(attempt.body, cst.Return))
            return gives or bool(self._facts.fact(Steps).runs(attempt.body, self._is_forward))
        used = any(
            not isinstance(self._tree.parent(call), cst.Expr) for call in self._facts.hooks.calls_of.get(owner, ())
        )
        return used and bool(self._facts.fact(Steps).runs(attempt.body, self._is_forward))

    def _works(self, call: cst.Call) -> bool:
        return self._facts.fact(Steps).leads(
            call, lambda each: self._facts.loops.is_backward(each) or self._is_forward(each)
        )

    def _is_forward(self, call: cst.Call) -> bool:
        """Whether a call runs a module, or computes a loss by a torch function."""
        name = self._names.of(call.func) or ""
        return self._facts.values.is_module(call.func) or bool(_LOSS.match(name))


def _is_none(node: cst.CSTNode | None) -> bool:
    return node is None or (isinstance(node, cst.Name) and node.value == "None")
