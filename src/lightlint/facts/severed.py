"""Where the graph of a value comes from: the calls of one module it goes back to, and the cuts on the way."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.bindings import Binding, Kind
from lightlint.facts.hooks import TRAINING_STEP, Hook, Owner
from lightlint.facts.names import UNKNOWN

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_DEPTH = 16
_KEEPING = {
    "abs", "clamp", "clone", "contiguous", "cpu", "cuda", "double", "exp", "flatten", "float", "half", "log", "max", "mean",
    "min", "mul", "neg", "norm", "permute", "pow", "relu", "reshape", "sigmoid", "softmax", "sqrt", "square", "squeeze",
    "sum", "tanh", "to", "transpose", "type_as", "unsqueeze", "view",
}  # fmt: skip
_NUMBERS = {"item", "size", "dim", "numel", "new_ones", "new_zeros", "new_full", "fill_", "uniform_", "normal_", "long"}
_MADE = re.compile(
    r"torch\.(?:\w+_like|rand\w*|ones|zeros|full|empty|tensor|arange|linspace|eye|normal|Tensor|\w+Tensor|device)$"
)
_THROUGH = re.compile(r"torch\.(?:nn\.functional\.)?[a-z]\w*$")
_SETTINGS = re.compile(r"(?:self\.)?(?:args|opts?|cfg|conf|config|hparams|params|flags)\.\w+$", re.IGNORECASE)


class End(StrEnum):
    """How a way back from a value ends."""

    MODULE = "module"
    CUT = "cut"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Root:
    """Where a way back ends: at a call of the module, in front of a `detach()`, or out of sight."""

    end: End
    node: cst.CSTNode | None = None
    given: Given = field(default_factory=dict)


# what the parameters of the functions on the way were given, by the parameter's node, and what held there
Given = Mapping[int, tuple["cst.BaseExpression | None", "Given"]]


Stop = frozenset[End]
_MODULE, _NOT_CUT = Stop([End.MODULE]), Stop([End.MODULE, End.UNKNOWN])


class Severed:
    """Ways back from values of one file to a module, known by the call that made it."""

    def __init__(self, facts: FileFacts, module: cst.Call) -> None:
        self._facts = facts
        self._names = facts.names
        self._module = module
        self._nothing: Given = {}
        self._known: dict[
            tuple[int, int, Stop, int], tuple[list[Root], Given]
        ] = {}  # with what an `id` in the key is of
        self._inside: dict[tuple[int, int], tuple[Given, Given]] = {}

    def cut(self, value: cst.BaseExpression) -> cst.CSTNode | None:
        """The tensor whose `detach()` keeps the gradient of a value from the module; None where some may get there."""
        cuts: list[Root] = []
        for root in self.roots(value, self._nothing, _NOT_CUT):
            if root.end is not End.CUT:
                return None
            cuts.append(root)
        met = (each for each in cuts if self._comes_from_module(each))
        return next((each.node for each in met), None)

    def _comes_from_module(self, cut: Root) -> bool:
        return any(root.end is End.MODULE for root in self.roots(cut.node, cut.given, _MODULE))

    def roots(self, value: cst.CSTNode | None, given: Given, stop: Stop, depth: int = 0) -> list[Root]:
        """The ends of all ways back from a value, each once, up to the first that is one to stop at.

        Numbers, batches and new tensors have none.
        """
        key = (id(value), id(given), stop, depth)
        if key not in self._known:
            ends: dict[tuple[End, int, int], Root] = {}
            for each in self._roots(value, given, stop, depth):
                ends[each.end, id(each.node), id(each.given)] = each
                if each.end in stop:
                    break
            self._known[key] = [*ends.values()], given
        return self._known[key][0]

    def _roots(self, value: cst.CSTNode | None, given: Given, stop: Stop, depth: int) -> Iterator[Root]:
        parts: list[cst.CSTNode | None] = []
        if depth > _DEPTH:
            yield Root(End.UNKNOWN)
            return
        match value:
            case cst.BinaryOperation() | cst.BooleanOperation():
                parts = [value.left, value.right]
            case cst.UnaryOperation():
                parts = [value.expression]
            case cst.IfExp():
                parts = [value.body, value.orelse]
            case cst.Tuple() | cst.List():
                parts = [each.value for each in value.elements]
            case cst.Subscript():
                parts = [value.value]
            case cst.Name():
                yield from self._of_name(value, given, stop, depth)
            case cst.Call():
                yield from self._of_call(value, given, stop, depth)
            case _:
                if not self._is_plain(value):
                    yield Root(End.UNKNOWN)
        for part in parts:
            yield from self.roots(part, given, stop, depth + 1)

    def _is_plain(self, value: cst.CSTNode | None) -> bool:
        """Whether a value surely is a number, a flag or a text."""
        if value is None or isinstance(value, (cst.Comparison, cst.FormattedString)):
            return True
        return self._names.constant(value) is not UNKNOWN or bool(_SETTINGS.match(self._names.key(value)))

    def _of_name(self, name: cst.Name, given: Given, stop: Stop, depth: int) -> Iterator[Root]:
        if self._names.constant(name) is not UNKNOWN:
            return
        found = self._facts.reaching.bindings(name)
        if not found:
            yield Root(End.UNKNOWN)
        for binding in found:
            if id(binding.site) in given:
                value, outside = given[id(binding.site)]
                yield from self.roots(value, outside, stop, depth + 1)
            elif binding.kind is Kind.ASSIGN and binding.value is not None:
                yield from self.roots(binding.value, given, stop, depth + 1)
            elif not self._is_batch(binding):
                yield Root(End.UNKNOWN)

    def _is_batch(self, binding: Binding) -> bool:
        """Whether a binding takes a batch: from a DataLoader, or as the one that Lightning gives a step."""
        if binding.kind is Kind.LOOP and binding.value is not None:
            return self._facts.values.is_loader(self._facts.values.iterated(binding.value))
        function = binding.scope
        is_step = isinstance(function, cst.FunctionDef) and self._facts.hooks.of(function) == Hook(
            Owner.MODULE, TRAINING_STEP
        )
        return binding.kind is Kind.PARAMETER and is_step

    def _of_call(self, call: cst.Call, given: Given, stop: Stop, depth: int) -> Iterator[Root]:
        name, method = self._names.of(call.func) or "", self._names.method(call)
        arguments: list[cst.CSTNode | None] = [arg.value for arg in call.args]
        callee = self._facts.hooks.callee(call)
        if callee is not None:
            yield from self._returned(callee, call, given, stop, depth)
            return
        if name:
            if _MADE.match(name) or name == "builtins.len":
                return
            parts = arguments if _THROUGH.match(name) else None
        elif isinstance(call.func, cst.Attribute) and method in _KEEPING | _NUMBERS | {"detach"}:
            if method == "detach":
                yield Root(End.CUT, call.func.value, given)
                return
            parts = [call.func.value, *arguments] if method in _KEEPING else []
        else:
            parts = arguments if self._is_other_module(call.func) else None
        if parts is None:
            origins = self._facts.values.unwrapped(call.func) if not name else ()
            met = any(each.call is self._module for each in origins)
            yield Root(End.MODULE if met else End.UNKNOWN, call)
            return
        for part in parts:
            if not self._is_device(part):
                yield from self.roots(part, given, stop, depth + 1)

    def _is_device(self, part: cst.CSTNode | None) -> bool:
        return self._names.key(part).rpartition(".")[2] in {"device", "dtype"}

    def _is_other_module(self, func: cst.BaseExpression) -> bool:
        """Whether what is called surely is a module that was made without the one in question."""
        origins = self._facts.values.unwrapped(func)
        if not origins or not all(self._facts.classes.name_is_a(each.name, "torch.nn.Module") for each in origins):
            return False
        calls = [each.call for each in origins]
        return all(call is not None and call is not self._module and not self._holds(call) for call in calls)

    def _holds(self, made: cst.Call) -> bool:
        """Whether a module may be made of the one in question, by an argument that is one or is out of sight."""
        names = [each for arg in made.args for each in self._facts.tree.within(arg, cst.Name, cst.Attribute)]
        return any(origin.call is self._module for each in names for origin in self._facts.values.origins(each))

    def _returned(
        self, function: cst.FunctionDef, call: cst.Call, given: Given, stop: Stop, depth: int
    ) -> Iterator[Root]:
        returns, params = self._facts.values.returns(function), function.params
        if not returns or params.star_kwarg or isinstance(params.star_arg, cst.Param) or self._names.has_star(call):
            yield Root(End.UNKNOWN)
            return
        for value in returns:
            yield from self.roots(value, self._given_inside(function, call, given), stop, depth + 1)

    def _given_inside(self, function: cst.FunctionDef, call: cst.Call, given: Given) -> Given:
        """What the parameters of a function hold that is called where others were given something."""
        key = (id(call), id(given))
        if key not in self._inside:
            inside, params = dict(given), function.params
            for each in (*params.posonly_params, *params.params, *params.kwonly_params):
                value = self._facts.values.given(function, call, each.name.value)
                inside[id(each)] = (value, given) if value is not None else (each.default, self._nothing)
            self._inside[key] = inside, given
        return self._inside[key][0]
