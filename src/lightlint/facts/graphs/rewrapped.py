"""Tensors made of values that code has computed, which leaves the graph of these behind."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import Kind
from lightlint.facts.code.names import UNKNOWN
from lightlint.facts.steps.updates import Updates
from lightlint.facts.tensors.criteria import Criteria

if TYPE_CHECKING:
    from lightlint.facts.linked import Linked

_NEW = {"torch.tensor", "torch.FloatTensor", "torch.Tensor", "torch.cuda.FloatTensor", "torch.from_numpy"}
_VARIABLE = "torch.autograd.Variable"
_TOTALS = {"builtins.sum", "builtins.float", "numpy.mean", "numpy.sum", "numpy.array"}
_NUMBERS = {"item", "detach", "cpu", "numpy", "mean", "sum"}
_LOG_PROBS = re.compile(r"^(?:saved_)?log_?probs?(?:_list|_history)?$")  # what policies gather, of each action
_DEPTH = 4


class Rewrapped:
    """Tensors without history of one file."""

    def __init__(self, facts: Linked) -> None:
        self._facts = facts
        self._names = facts.names
        self._tree = facts.tree

    def makes_leaf(self, call: cst.Call, backward: cst.Call, anchor: cst.Call) -> bool:
        """Whether a call makes a new tensor of a computed value, for nothing that the backward pass is run for.

        `anchor` is the call that stands where the backward pass does: the call itself, or that of the function it is in.
        """
        given = self.given(call)
        if given is None:
            return False
        if self._flagged(call) is not None:
            return self._is_gathered(given, anchor) and self._serves_an_update(anchor, backward)
        if self._cuts(call):
            return self.is_computed(given)
        name = self._names.of(call.func)
        asked = self._asks_for_gradient(call)
        if name == _VARIABLE:
            cut = isinstance(given, cst.Attribute) and given.attr.value == "data"
            if self.is_computed(given) and (cut or asked):
                return True
        elif name not in _NEW:
            return False
        elif self.is_computed(given):
            return True
        return asked and self._is_gathered(given, anchor) and self._serves_an_update(anchor, backward)

    def given(self, call: cst.Call) -> cst.BaseExpression | None:
        """The value of which a call makes a tensor without history."""
        cut = self._flagged(call) or self._cuts(call)
        if cut is not None:
            return cut
        return call.args[0].value if call.args and not call.args[0].star else None

    def _flagged(self, call: cst.Call) -> cst.BaseExpression | None:
        """`losses` of `torch.FloatTensor(losses).requires_grad_()`."""
        made = call.func.value if isinstance(call.func, cst.Attribute) else None
        if self._names.method(call) != "requires_grad_" or not isinstance(made, cst.Call) or not made.args:
            return None
        on = not call.args or self._names.constant(call.args[0].value) is True
        new = self._names.call(made) in _NEW | {"torch.as_tensor"}
        return made.args[0].value if on and new and not made.args[0].star else None

    def _cuts(self, call: cst.Call) -> cst.BaseExpression | None:
        """`loss` of `loss.detach().requires_grad_()`."""
        detach = call.func.value if isinstance(call.func, cst.Attribute) else None
        if self._names.method(call) != "requires_grad_" or self._names.method(detach) not in {"detach", "clone"}:
            return None
        flag = call.args[0].value if call.args else None
        if flag is not None and self._names.constant(flag) is not True:
            return None
        cut = False
        while isinstance(detach, cst.Call) and isinstance(detach.func, cst.Attribute) and not detach.args:
            method = detach.func.attr.value
            if method not in {"detach", "clone"}:
                break
            cut = cut or method == "detach"
            detach = detach.func.value
        return detach if cut and isinstance(detach, cst.BaseExpression) else None

    def _asks_for_gradient(self, call: cst.Call) -> bool:
        flag = self._names.argument(call, "requires_grad", 1 if self._names.of(call.func) == _VARIABLE else None)
        return flag is not None and self._names.constant(flag.value) is True

    def _is_gathered(self, value: cst.BaseExpression, anchor: cst.Call, depth: int = 0) -> bool:
        """Whether a value is a list that this function fills with what it computes, or a total of one."""
        if depth > _DEPTH:
            return False
        match value:
            case cst.Attribute(attr=cst.Name(value=word)) if _LOG_PROBS.search(word):
                return True
            case cst.Name():
                found = self._facts.reaching.bindings(value)
                if len(found) == 1 and found[0].kind is Kind.PARAMETER:
                    function = self._tree.owner(value)
                    given = (
                        self._facts.values.given(function, anchor, value.value)
                        if isinstance(function, cst.FunctionDef) and self._facts.hooks.callee(anchor) is function
                        else None
                    )
                    known = given is not None and self._is_gathered(given, anchor, depth + 1)
                    return known or bool(_LOG_PROBS.search(value.value))
                known = bool(found) and all(each.kind is Kind.ASSIGN and not each.path for each in found)
                return known and all(each.value and self._is_gathered(each.value, anchor, depth + 1) for each in found)
            case cst.List(elements=[]):
                return any(self._names.constant(each) is UNKNOWN for each in self._gathered(value))
            case cst.Attribute(value=inner, attr=cst.Name(value="data")):
                return self._is_gathered(inner, anchor, depth + 1)
            case cst.Call(args=[first, *_]) if self._names.of(value.func) in _TOTALS:
                return self._is_gathered(first.value, anchor, depth + 1)
            case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value=method))) if method in _NUMBERS:
                return self._is_gathered(inner, anchor, depth + 1)
        return False

    def _serves_an_update(self, leaf: cst.Call, backward: cst.Call) -> bool:
        """Whether an optimizer that cannot know the new tensor steps behind the backward pass."""
        owner, updates = self._tree.owner(backward), self._facts.fact(Updates)
        if self._tree.owner(leaf) is not owner:
            return False
        cleared = {self._names.key(call.func).rpartition(".")[0] for call in updates.clears(owner)} - {""}
        steps = [
            each.call
            for each in updates.updates(owner)
            if self._facts.values.is_optimizer(each.optimizer) or self._names.key(each.optimizer) in cleared
        ]
        flow = self._facts.flow(owner)
        if not steps or not flow.reaches(backward, steps):
            return False
        calls = updates.own(owner)
        made = [
            each for each in calls if self._facts.classes.name_is_a(self._names.call(each), "torch.optim.Optimizer")
        ]
        late = bool(made) and flow.reaches(leaf, made)
        return not late and not any(self._names.method(each) == "add_param_group" for each in calls)

    def is_computed(self, value: cst.BaseExpression, depth: int = 0) -> bool:
        """Whether a value comes from a call in sight that is no plain number, list or new tensor."""
        if depth > _DEPTH:
            return False
        match value:
            case cst.Name():
                found = self._facts.reaching.bindings(value)
                assigned = bool(found) and all(each.kind is Kind.ASSIGN and each.value for each in found)
                return assigned and all(each.value and self.is_computed(each.value, depth + 1) for each in found)
            case cst.List(elements=elements):
                return any(self.is_computed(each, depth + 1) for each in self._gathered(value)) or any(
                    self.is_computed(each.value, depth + 1) for each in elements
                )
            case cst.ListComp(elt=each) | cst.GeneratorExp(elt=each):
                return self.is_computed(each, depth + 1)
            case cst.Attribute(value=inner, attr=cst.Name(value="data")):
                return self.is_computed(inner, depth + 1)
            case cst.BinaryOperation():
                return self.is_computed(value.left, depth + 1) or self.is_computed(value.right, depth + 1)
            case cst.Call():
                name = self._names.of(value.func) or ""
                if self._facts.fact(Criteria).of(value) is not None:
                    return True
                if (
                    name == "builtins.sum"
                    and value.args
                    and isinstance(value.args[0].value, (cst.GeneratorExp, cst.ListComp))
                ):
                    return self.is_computed(value.args[0].value.elt, depth + 1)
                if name in {"builtins.float", "numpy.mean", "numpy.array"} and value.args:
                    return self.is_computed(value.args[0].value, depth + 1)
                method = self._names.method(value)
                if isinstance(value.func, cst.Attribute) and method in {
                    "item",
                    "detach",
                    "cpu",
                    "numpy",
                    "mean",
                    "sum",
                }:
                    return not name.startswith(("torch.", "numpy.")) and self.is_computed(value.func.value, depth + 1)
        return False

    def _gathered(self, display: cst.List) -> list[cst.BaseExpression]:
        """What is appended to a list that starts as this display."""
        assign = self._tree.parent(display)
        target = assign.targets[0].target if isinstance(assign, cst.Assign) else None
        calls = self._tree.own(self._tree.owner(display), cst.Call) if isinstance(target, cst.Name) else []
        return [
            call.args[0].value
            for call in calls
            if self._names.method(call) == "append"
            and call.args
            and isinstance(call.func, cst.Attribute)
            and self._names.key(call.func.value) == self._names.key(target)
        ]
