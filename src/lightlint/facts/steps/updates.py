"""The order of one update inside a function: backward passes, clearing, clipping, scaling and optimizer steps."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import dotted_name
from lightlint.facts.steps.steps import Steps

if TYPE_CHECKING:
    from lightlint.facts.linked import Linked

Owner = cst.FunctionDef | cst.Module
_PREFIXES = ("torch.", "builtins.", "math.", "numpy.", "logging.", "time.", "tqdm.", "wandb.")
_QUIET = {
    "add_scalar", "append", "cpu", "debug", "detach", "extend", "get_last_lr", "info", "item", "log", "mean", "numel",
    "parameters", "print", "set_description", "set_postfix", "size", "step", "sum", "unscale_", "update", "warning",
    "write", "zero_grad",
}  # fmt: skip
_CLIPS = {"torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad_value_", "torch.nn.utils.clip_grad_norm"}
_SCHEDULERS = "torch.optim.lr_scheduler."
_PARAMETERS = {"parameters", "named_parameters"}
_TRANSFORMERS = re.compile(r"transformers\.(?:optimization\.)?get_\w*schedule")
SCHEDULER = "torch.optim.lr_scheduler.LRScheduler"


@dataclass(frozen=True, slots=True)
class Update:
    """A call that steps an optimizer, through a gradient scaler where `scaler` is given."""

    call: cst.Call
    optimizer: cst.BaseExpression
    scaler: cst.BaseExpression | None = None


class Updates:
    """Updates of one file. An optimizer or scaler is known by its constructor or by what it is told to do."""

    def __init__(self, facts: Linked) -> None:
        self._facts = facts
        self._names = facts.names

    def update(self, call: cst.Call) -> Update | None:
        """What a call updates, without a closure; None for any other call."""
        if not isinstance(call.func, cst.Attribute) or not self._facts.accumulation.is_step(call):
            return None
        receiver = call.func.value
        if not call.args:
            return Update(call, receiver)
        given = call.args[0].value
        return Update(call, given, receiver) if len(call.args) == 1 and self.is_scaler(receiver) else None

    def is_scaler(self, expression: cst.BaseExpression) -> bool:
        """Whether a value is a gradient scaler: by constructor, or because it scales a loss and is told to `update()`."""
        return self._facts.values.is_scaler(expression) or self._names.key(expression) in self._scalers

    @cached_property
    def _scalers(self) -> frozenset[str]:
        scaling: set[str] = set()
        updated: set[str] = set()
        for call in self._facts.tree.all(cst.Call):
            func = call.func
            if not isinstance(func, cst.Attribute):
                continue
            scaled = func.value.func if isinstance(func.value, cst.Call) else None
            if func.attr.value == "backward" and isinstance(scaled, cst.Attribute) and scaled.attr.value == "scale":
                scaling.add(self._names.key(scaled.value))
            if func.attr.value == "update" and not call.args:
                updated.add(self._names.key(func.value))
        return frozenset((scaling & updated) - {""})

    def scaler_of(self, backward: cst.Call) -> cst.BaseExpression | None:
        """The scaler of `scaler.scale(loss).backward()`."""
        scaled = backward.func.value if isinstance(backward.func, cst.Attribute) else None
        func = scaled.func if isinstance(scaled, cst.Call) else None
        known = isinstance(func, cst.Attribute) and func.attr.value == "scale" and self.is_scaler(func.value)
        return func.value if known and isinstance(func, cst.Attribute) else None

    def own(self, owner: Owner) -> list[cst.Call]:
        """The calls a function makes itself."""
        return self._facts.tree.own(body_of(owner), cst.Call)

    def updates(self, owner: Owner) -> list[Update]:
        """The updates a function makes itself."""
        return [found for call in self.own(owner) if (found := self.update(call))]

    def backwards(self, owner: Owner) -> list[cst.Call]:
        """The calls in a function that are, or in this file lead to, a backward pass."""
        return self._facts.fact(Steps).runs(body_of(owner), self._facts.loops.is_backward)

    def clears(self, owner: Owner) -> list[cst.Call]:
        """The `zero_grad()` calls of a function."""
        return [call for call in self.own(owner) if self._names.method(call) in {"zero_grad", "optimizer_zero_grad"}]

    def _modules(self, optimizer: cst.BaseExpression) -> set[str]:
        """Keys of the module whose parameters an optimizer was made of, in the function that made it."""
        found: set[str] = set()
        for origin in self._facts.values.origins(optimizer):
            params = self._names.argument(origin.call, "params", 0) if origin.call is not None else None
            key = parameters_of(params.value) if params is not None else ""
            if not key or params is None:
                continue
            if self._facts.tree.owner(params.value) is self._facts.tree.owner(optimizer):
                found.add(key)
            elif self._names.key(optimizer).startswith("self.") and self._is_in_class(params, optimizer):
                found |= {key} if key.startswith("self.") else self._kept(params, key)
        return found

    def holds(self, optimizer: cst.BaseExpression, wanted: Callable[[cst.BaseExpression], bool]) -> bool:
        """Whether an optimizer was surely made of the parameters of a wanted module, among others or not."""
        for origin in self._facts.values.origins(optimizer):
            params = self._names.argument(origin.call, "params", 0) if origin.call is not None else None
            sources = self._facts.reaching.sources(params.value) if params is not None else []
            calls = [call for each in sources for call in self._facts.tree.within(each, cst.Call)]
            held = [
                call.func.value
                for call in calls
                if self._names.method(call) in _PARAMETERS and isinstance(call.func, cst.Attribute)
            ]
            if any(map(wanted, held)):
                return True
        return False

    def _is_in_class(self, params: cst.Arg, optimizer: cst.BaseExpression) -> bool:
        node = self._facts.tree.enclosing_class(params)
        return node is not None and node is self._facts.tree.enclosing_class(optimizer)

    def _kept(self, params: cst.Arg, key: str) -> set[str]:
        """The attributes of `self` that the method which makes an optimizer gives the module to."""
        owner = self._facts.tree.owner(params)
        assigns = self._facts.tree.own(body_of(owner), cst.Assign)
        targets = [self._names.key(each.targets[0].target) for each in assigns if self._names.key(each.value) == key]
        return {each for each in targets if each.startswith("self.")}

    def clips(self, call: cst.Call) -> bool:
        """Whether a call clips gradients."""
        return self._names.of(call.func) in _CLIPS

    def is_scheduler(self, expression: cst.BaseExpression) -> bool:
        """Whether a value surely is one of torch's learning-rate schedulers, or of those Transformers makes."""
        origins = self._facts.values.origins(expression)
        return bool(origins) and all(self._makes_scheduler(each.name) for each in origins)

    def _makes_scheduler(self, name: str) -> bool:
        made = name.startswith(_SCHEDULERS) or bool(_TRANSFORMERS.match(name))
        return made or self._facts.classes.name_is_a(name, SCHEDULER)

    def is_quiet(self, call: cst.Call) -> bool:
        """Whether a call surely runs no backward pass: known functions, and helpers of this file without one."""
        name = self._names.of(call.func) or ""
        if self._facts.loops.is_backward(call) or name.startswith("torch.autograd."):
            return False
        if name.startswith(_PREFIXES) or self._names.method(call) in _QUIET:
            return True
        origins = self._facts.values.origins(call.func)
        if origins and all(origin.name.startswith("torch.nn.") for origin in origins):
            return True
        helper = self._facts.hooks.callee(call)
        return helper is not None and not self._facts.fact(Steps).leads(call, self._facts.loops.is_backward)

    def handles_gradients(self, owner: Owner, besides: cst.CSTNode | None = None) -> bool:
        """Whether a function reads or writes `.grad` by itself, outside of one statement if that is given."""
        return any(
            each.attr.value == "grad" and dotted_name(each) != "torch.autograd.grad"
            for each in self._facts.tree.within(body_of(owner), cst.Attribute)
            if not self._is_called(each) and not (besides is not None and self._facts.tree.contains(besides, each))
        )

    def _is_called(self, attribute: cst.Attribute) -> bool:
        above = self._facts.tree.parent(attribute)
        return isinstance(above, cst.Call) and above.func is attribute


def body_of(owner: Owner) -> cst.CSTNode:
    """Where the statements of a function or module stand."""
    return owner.body if isinstance(owner, cst.FunctionDef) else owner


def parameters_of(expression: cst.BaseExpression) -> str:
    """`net` of `net.parameters()`, else empty."""
    func = expression.func if isinstance(expression, cst.Call) and not expression.args else None
    return dotted_name(func.value) if isinstance(func, cst.Attribute) and func.attr.value == "parameters" else ""
