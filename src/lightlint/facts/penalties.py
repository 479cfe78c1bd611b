"""Which gradients a loss has as a term: a norm or power of them, or what compares them with given values, is added to it,
and nothing that is trained multiplies it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.bindings import Binding, Kind, dotted_name
from lightlint.facts.hooks import TRAINING_STEP, Hook, Owner
from lightlint.facts.loops import LoopKind
from lightlint.facts.names import UNKNOWN

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_DEPTH = 24
_CALLS = 4  # functions into which a walk goes
_MEASURING = {"norm", "pow", "square", "abs", "sqrt", "vector_norm"}
_SAME = {
    "clamp", "clamp_min", "contiguous", "cpu", "cuda", "double", "flatten", "float", "mean", "relu", "reshape", "squeeze",
    "sum", "to", "unsqueeze", "view", "requires_grad_",
}  # fmt: skip
_MADE = re.compile(r"torch\.(?:\w+_like|ones|zeros|full|tensor|Tensor|\w+Tensor)$|builtins\.(?:len|float|int)$")
_FACTOR = re.compile(
    r"lambda|lam|lmbd|weight|coeff?|scale|alpha|beta|gamma|gp|penalty|factor|reg|mu$|eps", re.IGNORECASE
)
_CUT = {"item", "size", "detach"}
_TRAINED = {"parameters", "named_parameters", "modules", "children", "layers", "nets", "models"}
# what holds the settings of a run
_SETTINGS = re.compile(r"(?:self\.)?(?:args|opts?|cfg|conf|config|hparams|hps?|flags)\.", re.IGNORECASE)


@dataclass(frozen=True)
class _Term:
    """A value that goes into a loss, met on the way down from it.

    `path` are the items taken of it, innermost last; `via` the calls through which the walk came into its function;
    `measured` says whether a norm, a power or a comparison was met on the way.
    """

    node: cst.BaseExpression
    path: tuple[object, ...] = ()
    via: tuple[cst.Call, ...] = ()
    measured: bool = False

    def to(self, node: cst.BaseExpression, measured: bool = False) -> _Term:
        return replace(self, node=node, measured=self.measured or measured)


class Penalties:
    """The terms of the losses of one file, followed from what `backward` is called on into functions of the file."""

    def __init__(self, facts: FileFacts) -> None:
        self._facts = facts
        self._names = facts.names

    def is_one(self, gradients: cst.Call) -> bool:
        """Whether what `torch.autograd.grad` returns comes to a backward pass as a penalty."""
        return any(self._holds(root, gradients) for root in self._roots())

    def _roots(self) -> Iterator[cst.BaseExpression]:
        """What backward passes start from: those that the file asks for, and Lightning's over what `training_step` gives."""
        for call in self._facts.tree.all(cst.Call):
            if self._facts.loops.is_backward(call):
                yield from _started_from(call)
        for function in self._facts.tree.all(cst.FunctionDef):
            if self._facts.hooks.of(function) == Hook(Owner.MODULE, TRAINING_STEP):
                yield from (each for each in self._facts.values.returns(function) if each is not None)

    def _holds(self, root: cst.BaseExpression, gradients: cst.Call) -> bool:
        """A walk down from a loss."""
        pending, seen = [(_Term(root), 0)], set[_Term]()
        while pending:
            term, depth = pending.pop()
            if term.node is gradients and term.measured:
                return True
            if term in seen or depth > _DEPTH:
                continue
            seen.add(term)
            pending += [(inner, depth + 1) for inner in self._inner(term)]
        return False

    def _inner(self, term: _Term) -> Iterator[_Term]:
        """What hands the gradient of a term on."""
        match term.node:
            case cst.BinaryOperation(left=left, right=right):
                yield from self._of_operation(term, left, right)
            case cst.UnaryOperation(operator=cst.Minus()):
                yield term.to(term.node.expression)
            case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=index))]):
                key = self._names.constant(index)
                path = (*term.path, key) if isinstance(key, (int, str)) else term.path
                yield replace(term.to(term.node.value), path=path)
            case cst.Subscript():
                yield term.to(term.node.value)
            case cst.Tuple() | cst.List() if term.path:
                place, elements = term.path[-1], term.node.elements
                if isinstance(place, int) and -len(elements) <= place < len(elements):
                    yield replace(term.to(elements[place].value), path=term.path[:-1])
            case cst.Dict():
                held = [each for each in term.node.elements if isinstance(each, cst.DictElement)]
                wanted = term.path[-1] if term.path else "loss"
                yield from (
                    replace(term.to(each.value), path=term.path[:-1])
                    for each in held
                    if self._names.constant(each.key) == wanted
                )
            case cst.Name():
                yield from self._of_name(term, term.node)
            case cst.Call():
                yield from self._of_call(term, term.node)

    def _of_operation(self, term: _Term, left: cst.BaseExpression, right: cst.BaseExpression) -> Iterator[_Term]:
        pairs = ((left, right), (right, left))
        match getattr(term.node, "operator", None):
            case cst.Add() | cst.Subtract():
                for part, other in pairs:
                    # a model that is fitted to a norm has its own gradient
                    if not term.measured or self._is_plain(term.to(other), 0):
                        yield term.to(part)
            case cst.Multiply():
                if self._names.key(left) and self._names.key(left) == self._names.key(right):
                    yield term.to(left, measured=True)
                yield from (term.to(part) for part, other in pairs if self._is_plain(term.to(other), 0))
            case cst.Divide() if self._is_plain(term.to(right), 0):
                yield term.to(left)
            case cst.Power():
                yield term.to(left, measured=True)

    def _of_call(self, term: _Term, call: cst.Call) -> Iterator[_Term]:
        callee = self._facts.steps.callee(call)
        functions = [callee] if callee is not None else self._facts.results.functions(call)
        if functions and len(term.via) < _CALLS:
            for function in functions:
                given = (each for each in self._facts.values.returns(function) if each is not None)
                yield from (replace(term.to(each), via=(*term.via, call)) for each in given)
            return
        name, method = self._names.of(call.func) or "", self._names.method(call)
        if method == "scale" and call.args and self._facts.values.is_scaler(getattr(call.func, "value", None)):
            yield term.to(call.args[0].value)
        elif name == "builtins.dict":
            wanted = term.path[-1] if term.path else "loss"
            held = (arg.value for arg in call.args if arg.keyword is not None and arg.keyword.value == wanted)
            yield from (replace(term.to(each), path=term.path[:-1]) for each in held)
        elif name.startswith("torch.") and call.args:
            word = name.rpartition(".")[2]
            if word in _MEASURING | _SAME:
                yield term.to(call.args[0].value, word in _MEASURING)
        elif isinstance(call.func, cst.Attribute) and method in _MEASURING | _SAME:
            yield term.to(call.func.value, method in _MEASURING)
        loss = self._facts.criteria.of(call)
        if loss is not None and loss.target is not None:
            for part, other in ((loss.input, loss.target), (loss.target, loss.input)):
                if self._is_plain(term.to(other), 0):
                    yield term.to(part, measured=True)

    def _of_name(self, term: _Term, name: cst.Name) -> Iterator[_Term]:
        """What a name was given, also what `+=` added, and what the call gives that the walk came through."""
        for each in self._facts.reaching.bindings(name):
            augments = self._facts.tree.parent(each.site) if each.kind is Kind.AUGMENT else None
            adds = isinstance(augments, cst.AugAssign) and isinstance(
                augments.operator, (cst.AddAssign, cst.SubtractAssign)
            )
            if each.kind is Kind.PARAMETER:
                given = self._given(term, each)
                if given is not None:
                    yield given
            elif each.value is not None and (each.kind is Kind.ASSIGN or adds):
                yield replace(term.to(each.value), path=(*term.path, *reversed(each.path)))
            if adds and each.site is not name:
                yield from (term.to(bound.value) for bound in self._before(each) if bound.value is not None)

    def _given(self, term: _Term, parameter: Binding) -> _Term | None:
        """What a parameter stands for in the call through which the walk came into its function."""
        if not term.via or not isinstance(parameter.scope, cst.FunctionDef):
            return None
        call = term.via[-1]
        given = self._facts.values.given(parameter.scope, call, parameter.name) or parameter.value
        return replace(term.to(given), via=term.via[:-1]) if given is not None else None

    def _before(self, binding: Binding) -> list[Binding]:
        found = self._names.bindings.lookup(binding.site) if isinstance(binding.site, cst.Name) else []
        return [each for each in found if each.kind is Kind.ASSIGN and not each.path]

    def _is_plain(self, term: _Term, depth: int) -> bool:
        """Whether a value surely is a number, a setting, a tensor without history, or what a loader gave."""
        if depth > _DEPTH:
            return False
        match term.node:
            case cst.Integer() | cst.Float():
                return True
            case cst.BinaryOperation(left=left, right=right):
                return self._is_plain(term.to(left), depth + 1) and self._is_plain(term.to(right), depth + 1)
            case cst.UnaryOperation():
                return self._is_plain(term.to(term.node.expression), depth + 1)
            case cst.Call(func=func):
                if _MADE.match(self._names.of(func) or "") or self._names.method(term.node) in _CUT:
                    return True
                moved = isinstance(func, cst.Attribute) and func.attr.value in _SAME
                return moved and isinstance(func, cst.Attribute) and self._is_plain(term.to(func.value), depth + 1)
            case cst.Attribute() | cst.Subscript():
                key = self._names.key(term.node)
                told = _FACTOR.search(key) or _SETTINGS.match(dotted_name(term.node))
                return bool(told) or self._is_plain(term.to(term.node.value), depth + 1)
            case cst.Name() if self._names.constant(term.node) is UNKNOWN:
                found = self._facts.reaching.bindings(term.node)
                return bool(found) and all(self._binds_plain(term, each, depth) for each in found)
        return isinstance(term.node, cst.Name)

    def _binds_plain(self, term: _Term, binding: Binding, depth: int) -> bool:
        if binding.kind is Kind.PARAMETER:
            given = self._given(term, binding)
            known = given is not None and self._is_plain(given, depth + 1)
            return known or bool(_FACTOR.search(binding.name)) or self._is_batch(binding)
        if binding.kind is Kind.LOOP:
            loops = self._facts.tree.loops(term.node)
            drawn = [each for each in loops if isinstance(each, cst.For) and each.iter is binding.value]
            return any(self._facts.loops.kind(each) is LoopKind.BATCH and self._is_data(each) for each in drawn)
        known = binding.kind in {Kind.ASSIGN, Kind.AUGMENT}
        return known and binding.value is not None and self._is_plain(term.to(binding.value), depth + 1)

    def _is_data(self, loop: cst.For) -> bool:
        """Whether a loop may well be over data: nothing in sight says that it is over modules or their parameters."""
        return not any(name.value in _TRAINED for name in self._facts.tree.within(loop.iter, cst.Name))

    def _is_batch(self, binding: Binding) -> bool:
        """Whether a parameter is the batch that Lightning gives `training_step`."""
        function = binding.scope
        hook = self._facts.hooks.of(function) if isinstance(function, cst.FunctionDef) else None
        return hook == Hook(Owner.MODULE, TRAINING_STEP) and binding.name != "self"


def _started_from(backward: cst.Call) -> list[cst.BaseExpression]:
    receiver = [backward.func.value] if isinstance(backward.func, cst.Attribute) else []
    return [*receiver, *(arg.value for arg in backward.args[:1])]
