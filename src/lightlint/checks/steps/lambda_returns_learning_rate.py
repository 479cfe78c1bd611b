from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import ScheduleMade
from lightlint.engine.operators import factors_of
from lightlint.explore.queries import optimizer_of
from lightlint.facts.bindings import Kind
from lightlint.values.core import Unknown

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


_LAMBDA = "torch.optim.lr_scheduler.LambdaLR"
_PARAMETERS = {"parameters", "named_parameters", "values"}
_PASSING_ON = {"builtins.list", "builtins.filter", "builtins.tuple", "itertools.chain", "builtins.sum", "builtins.map"}
_BOUNDS = {"builtins.max", "builtins.min"}

Function = cst.FunctionDef | cst.Lambda


@dataclass(frozen=True, slots=True)
class _Named:
    """A dotted name as some place spells it, and its first part, which tells what it is bound to."""

    key: str
    root: cst.Name | None


class LambdaReturnsLearningRate(Check):
    def visit_Call(self, call: cst.Call) -> None:
        given = self.names.argument(call, "lr_lambda", 1) if self.names.call(call) == _LAMBDA else None
        optimizer = self.names.argument(call, "optimizer", 0)
        if given is None or optimizer is None:
            return
        function, made_by = self._function(given.value)
        if function is None:
            return
        for returned in self._returned(function):
            for factor in self._factors(returned):
                if self._is_rate(self._outside(factor, made_by), optimizer.value):
                    name = self.code.text_of(factor)
                    said = f"`LambdaLR` multiplies the learning rate, which is `{name}`, by this: `{name}` comes in squared"
                    self.report(factor, said)
                    return

    def _function(self, value: cst.BaseExpression, depth: int = 0) -> tuple[Function | None, cst.Call | None]:
        """The function that a scheduler is given, and the call of the helper that made it."""
        if isinstance(value, cst.Lambda):
            return value, None
        if isinstance(value, cst.Name):
            found = self.facts.reaching.bindings(value)
            site = found[0].site if len(found) == 1 and found[0].kind is Kind.FUNCTION else None
            if isinstance(site, cst.FunctionDef):
                return site, None
            sources = self.facts.reaching.sources(value) if depth == 0 else []
            return self._function(sources[0], 1) if len(sources) == 1 else (None, None)
        callee = self.hooks.callee(value) if isinstance(value, cst.Call) else None
        returned = self.values.returns(callee) if callee is not None and not callee.decorators else []
        if not isinstance(value, cst.Call) or len(returned) != 1 or returned[0] is None or depth > 1:
            return None, None
        return self._function(returned[0], 2)[0], value

    def _returned(self, function: Function) -> list[cst.BaseExpression]:
        if isinstance(function, cst.Lambda):
            return [function.body]
        found = [each for each in self.values.returns(function) if each is not None]
        return [source for each in found for source in self.facts.reaching.sources(each)]

    def _factors(self, value: cst.BaseExpression) -> list[cst.Name | cst.Attribute]:
        """The names that a number is a multiple of, or that it is bounded by."""
        match value:
            case cst.Name() | cst.Attribute():
                return [value]
            case cst.BinaryOperation(operator=cst.Multiply()):
                return [*self._factors(value.left), *self._factors(value.right)]
            case cst.BinaryOperation(operator=cst.Divide()):
                below = {self.names.key(each) for each in self.tree.within(value.right, cst.Name, cst.Attribute)}
                return [each for each in self._factors(value.left) if self.names.key(each) not in below]
            case cst.IfExp():
                return [*self._factors(value.body), *self._factors(value.orelse)]
            case cst.Call() if self.names.call(value) in _BOUNDS:
                products = [each.value for each in value.args if isinstance(each.value, cst.BinaryOperation)]
                return [factor for each in products for factor in self._factors(each)]
        return []

    def _outside(self, factor: cst.Name | cst.Attribute, made_by: cst.Call | None) -> _Named:
        """A factor as the place that makes the scheduler knows it: what the helper around its function was given."""
        root = _root(factor)
        bound = self.names.bindings.lookup(root) if root is not None else []
        helper = self.hooks.callee(made_by) if made_by is not None else None
        if root is None or made_by is None or helper is None or len(bound) != 1 or bound[0].scope is not helper:
            return _Named(self.names.key(factor), root)
        given = self.values.given(helper, made_by, root.value) if bound[0].kind is Kind.PARAMETER else None
        key = self.names.key(given)
        return _Named(key + self.names.key(factor).removeprefix(root.value) if key else "", _root(given))

    def _is_rate(self, factor: _Named, optimizer: cst.BaseExpression) -> bool:
        """Whether all that an optimizer can be was surely made with a factor, other than 1, as its learning rate."""
        origins = self.values.origins(optimizer)
        if not origins or self.names.constant(factor.root) == 1 or self._may_be_one(factor.key):
            return False
        for origin in origins:
            rate = self.names.argument(origin.call, "lr", 1) if origin.call is not None else None
            known = self.classes.name_is_a(origin.name, "torch.optim.Optimizer")
            if rate is None or not known or not self._is_same(rate.value, factor) or self._has_own_rates(origin.call):
                return False
        return True

    def _has_own_rates(self, call: cst.Call | None) -> bool:
        """Whether some of an optimizer's groups may have a rate of their own."""
        params = self.names.argument(call, "params", 0) if call is not None else None
        sources = self.facts.reaching.sources(params.value) if params is not None else []
        if not all(map(self._holds_parameters, sources)):
            return True
        entries = [each for source in sources for each in self.tree.within(source, cst.DictElement)]
        return params is None or any(self.names.constant(each.key) == "lr" for each in entries)

    def _holds_parameters(self, value: cst.BaseExpression) -> bool:
        """Whether all groups in what an optimizer is given are in sight: others may have a rate of their own."""
        match value:
            case cst.Call():
                inner = [each.value for each in value.args if isinstance(each.value, cst.Call)]
                passes_on = self.names.call(value) in _PASSING_ON and bool(inner)
                return self.names.method(value) in _PARAMETERS or (
                    passes_on and all(map(self._holds_parameters, inner))
                )
            case cst.BinaryOperation():
                sides = [self.facts.reaching.sources(each) for each in (value.left, value.right)]
                return all(side and all(map(self._holds_parameters, side)) for side in sides)
            case cst.Name() | cst.Attribute():
                return False
        return not self.tree.within(value, cst.StarredDictElement)

    def _may_be_one(self, key: str) -> bool:
        """Whether an option's default shows that the rate is meant to be a multiple of 1."""
        word = key.rpartition(".")[2]
        for call in (each for each in self.tree.all(cst.Call) if self.names.method(each) == "add_argument"):
            flags = [self.names.constant(each.value) for each in call.args if each.keyword is None]
            named = any(isinstance(each, str) and each.lstrip("-").replace("-", "_") == word for each in flags)
            default = self.names.argument(call, "default") if named else None
            if default is not None and self.names.constant(default.value) == 1:
                return True
        return False

    def _is_same(self, one: cst.BaseExpression, other: _Named) -> bool:
        """Whether two names are of one value: spelled alike, in scopes that see one binding or one object."""
        root = _root(one)
        if not other.key or self.names.key(one) != other.key or root is None or other.root is None:
            return False
        node = self.classes.self_class(root)
        if node is not None:
            return node is self.classes.self_class(other.root)
        bound = self.names.bindings.lookup(root)
        return len(bound) == 1 and bound == self.names.bindings.lookup(other.root)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Functions for `LambdaLR` that give a multiple of the rate that their optimizer was made with."""
        for event in entry.of(ScheduleMade):
            schedule, optimizer = event.schedule, optimizer_of(event.schedule)
            if optimizer is None or schedule.factor is None or schedule.factor_site is None or optimizer.own_rates:
                continue
            rate = optimizer.arguments.get("lr", optimizer.arguments.get("#1"))
            powers = dict(factors_of(schedule.factor) or ())
            if isinstance(rate, Unknown) and "one" not in rate.traits and powers.get(rate.key, 0) > 0:
                message = "`LambdaLR` multiplies the learning rate of the optimizer by this, which has that rate in it: it comes in squared"
                yield Fault(schedule.factor_site, message, also=event.where.places)


def _root(expression: cst.BaseExpression | None) -> cst.Name | None:
    """The first name of a dotted one."""
    while isinstance(expression, cst.Attribute):
        expression = expression.value
    return expression if isinstance(expression, cst.Name) else None
