"""Which gradients a loss has as a term: a norm or power of them is added to it, and nothing that is trained multiplies it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.bindings import Binding, Kind
from lightlint.facts.names import UNKNOWN

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_DEPTH = 24
_MEASURING = {"norm", "pow", "square", "abs", "sqrt", "vector_norm"}
_SAME = {
    "clamp", "clamp_min", "contiguous", "cpu", "cuda", "double", "flatten", "float", "mean", "relu", "reshape", "squeeze",
    "sum", "to", "unsqueeze", "view", "requires_grad_",
}  # fmt: skip
_MADE = re.compile(r"torch\.(?:\w+_like|ones|zeros|full|tensor|Tensor|\w+Tensor)$|builtins\.(?:len|float|int)$")
_FACTOR = re.compile(
    r"lambda|lam|lmbd|weight|coeff?|scale|alpha|beta|gamma|gp|penalty|factor|reg|mu$|eps", re.IGNORECASE
)


class Penalties:
    """The terms of the losses of one file, followed from what `backward` is called on into functions of the file."""

    def __init__(self, facts: FileFacts) -> None:
        self._facts = facts
        self._names = facts.names

    def is_one(self, gradients: cst.Call) -> bool:
        """Whether what `torch.autograd.grad` returns comes to a backward pass as a penalty."""
        calls = [each for each in self._facts.tree.all(cst.Call) if self._facts.loops.is_backward(each)]
        return any(self._holds(root, gradients) for call in calls for root in _roots(call))

    def _holds(self, root: cst.BaseExpression, gradients: cst.Call) -> bool:
        """A walk down from a loss; the flag says whether a norm or power was met on the way."""
        pending, seen = [(root, False, 0)], set()
        while pending:
            term, measured, depth = pending.pop()
            if term is gradients and measured:
                return True
            if (term, measured) in seen or depth > _DEPTH:
                continue
            seen.add((term, measured))
            pending += [(inner, flag or measured, depth + 1) for inner, flag in self._inner(term, measured)]
        return False

    def _inner(self, term: cst.BaseExpression, measured: bool) -> Iterator[tuple[cst.BaseExpression, bool]]:
        """What hands the gradient of a term on, and whether by a norm or power."""
        match term:
            case cst.BinaryOperation(operator=cst.Add() | cst.Subtract()):
                for part, other in ((term.left, term.right), (term.right, term.left)):
                    if not measured or self._is_plain(
                        other, 0
                    ):  # a model that is fitted to a norm has its own gradient
                        yield part, False
            case cst.BinaryOperation(operator=cst.Multiply()):
                if self._names.key(term.left) and self._names.key(term.left) == self._names.key(term.right):
                    yield term.left, True
                for part, other in ((term.left, term.right), (term.right, term.left)):
                    if self._is_plain(other, 0):
                        yield part, False
            case cst.BinaryOperation(operator=cst.Divide()) if self._is_plain(term.right, 0):
                yield term.left, False
            case cst.BinaryOperation(operator=cst.Power()):
                yield term.left, True
            case cst.UnaryOperation(operator=cst.Minus()):
                yield term.expression, False
            case cst.Subscript():
                yield term.value, False
            case cst.Name():
                yield from ((value, False) for value in self._values(term))
            case cst.Call():
                yield from self._of_call(term)

    def _of_call(self, call: cst.Call) -> Iterator[tuple[cst.BaseExpression, bool]]:
        callee = self._facts.steps.callee(call)
        if callee is not None:
            yield from ((each, False) for each in self._facts.values.returns(callee) if each is not None)
            return
        name, method = self._names.of(call.func) or "", self._names.method(call)
        if method == "scale" and call.args and self._facts.values.is_scaler(getattr(call.func, "value", None)):
            yield call.args[0].value, False
        elif name.startswith("torch.") and call.args:
            word = name.rpartition(".")[2]
            if word in _MEASURING | _SAME:
                yield call.args[0].value, word in _MEASURING
        elif isinstance(call.func, cst.Attribute) and method in _MEASURING | _SAME:
            yield call.func.value, method in _MEASURING
        loss = self._facts.criteria.of(call)
        if loss is not None and loss.target is not None and self._is_plain(loss.target, 0):
            yield loss.input, False

    def _values(self, name: cst.Name) -> Iterator[cst.BaseExpression]:
        """What a name was given, also what `+=` added."""
        for each in self._facts.reaching.bindings(name):
            augments = self._facts.tree.parent(each.site) if each.kind is Kind.AUGMENT else None
            adds = isinstance(augments, cst.AugAssign) and isinstance(
                augments.operator, (cst.AddAssign, cst.SubtractAssign)
            )
            if each.value is not None and (each.kind is Kind.ASSIGN or adds):
                yield each.value
            if adds and each.site is not name:
                yield from (bound.value for bound in self._before(each) if bound.value is not None)

    def _before(self, binding: Binding) -> list[Binding]:
        found = self._names.bindings.lookup(binding.site) if isinstance(binding.site, cst.Name) else []
        return [each for each in found if each.kind is Kind.ASSIGN and not each.path]

    def _is_plain(self, value: cst.BaseExpression, depth: int) -> bool:
        """Whether a value surely is a number, a setting or a tensor without history."""
        if depth > _DEPTH:
            return False
        match value:
            case cst.Integer() | cst.Float():
                return True
            case cst.BinaryOperation():
                return self._is_plain(value.left, depth + 1) and self._is_plain(value.right, depth + 1)
            case cst.UnaryOperation():
                return self._is_plain(value.expression, depth + 1)
            case cst.Call():
                return bool(_MADE.match(self._names.of(value.func) or "")) or self._names.method(value) in {
                    "item",
                    "size",
                }
            case cst.Attribute() | cst.Subscript():
                return bool(_FACTOR.search(self._names.key(value)))
            case cst.Name() if self._names.constant(value) is UNKNOWN:
                found = self._facts.reaching.bindings(value)
                return bool(found) and all(self._binds_plain(each, value.value, depth) for each in found)
        return isinstance(value, cst.Name)

    def _binds_plain(self, binding: Binding, name: str, depth: int) -> bool:
        if binding.kind is Kind.PARAMETER:
            return bool(_FACTOR.search(name))
        known = binding.kind in {Kind.ASSIGN, Kind.AUGMENT} and not binding.path
        return known and binding.value is not None and self._is_plain(binding.value, depth + 1)


def _roots(backward: cst.Call) -> list[cst.BaseExpression]:
    receiver = [backward.func.value] if isinstance(backward.func, cst.Attribute) else []
    return [*receiver, *(arg.value for arg in backward.args[:1])]
