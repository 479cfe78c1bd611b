"""Which models FSDP shards: what `FullyShardedDataParallel(...)` gives, and what `fully_shard(...)` was called on."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.bindings import Binding, Kind
from lightlint.facts.values import SAME_OBJECT

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

WRAPPER = "torch.distributed.fsdp.FullyShardedDataParallel"
SHARDERS = {"torch.distributed.fsdp.fully_shard", "torch.distributed._composable.fsdp.fully_shard"}
_DEPTH = 6
_STRATEGIES = {"FULL_SHARD", "SHARD_GRAD_OP", "HYBRID_SHARD", "_HYBRID_SHARD_ZERO2"}

Made = tuple[cst.Call | None, ...]


class Sharded:
    """The sharded models of one file."""

    def __init__(self, facts: FileFacts) -> None:
        self._facts = facts
        self._tree = facts.tree
        self._names = facts.names

    def wraps(self, value: cst.CSTNode | None, depth: int = 0) -> Made:
        """The calls of `FullyShardedDataParallel` that a value can come from, with None for all else it can be."""
        if depth > _DEPTH:
            return (None,)
        match value:
            case cst.IfExp():
                return (*self.wraps(value.body, depth + 1), *self.wraps(value.orelse, depth + 1))
            case cst.Name() if self._facts.classes.self_class(value) is None:
                found = self._facts.reaching.bindings(value)
                return tuple(each for one in found for each in self._bound(one, depth + 1)) or (None,)
            case cst.Attribute():
                return self._of_self(value, depth)
            case cst.Call():
                return self._given_by(value, depth)
        return (None,)

    def surely_wrapped(self, value: cst.CSTNode | None) -> bool:
        """Whether a value surely is an FSDP model of which each rank holds a share."""
        found = self.wraps(value)
        return bool(found) and all(each is not None and self.shards(each) for each in found)

    def shards(self, wrap: cst.Call) -> bool:
        """Whether a call of `FullyShardedDataParallel` surely spreads parameters and gradients over the ranks."""
        strategy = self._names.argument(wrap, "sharding_strategy", 2)
        if strategy is None:
            return not self._names.has_star(wrap)
        name = self._names.of(strategy.value) or ""
        if self._names.constant(strategy.value) is None:
            return True
        return ".ShardingStrategy." in name and name.rpartition(".")[2] in _STRATEGIES

    def is_sharded(self, value: cst.CSTNode | None, depth: int = 0) -> bool:
        """Whether a value surely is a sharded model: what FSDP wrapped, or what `fully_shard` was called on before."""
        if value is None or depth > _DEPTH:
            return False
        if self.surely_wrapped(value) or self._names.call(value) in SHARDERS or self._is_sharded_before(value):
            return True
        found = self._facts.reaching.bindings(value) if isinstance(value, cst.Name) else []
        if len(found) != 1 or found[0].path:
            return False
        if found[0].kind is Kind.PARAMETER:
            given = self._arguments(found[0])
            return bool(given) and all(self.is_sharded(each, depth + 1) for each in given)
        return found[0].kind is Kind.ASSIGN and self.is_sharded(found[0].value, depth + 1)

    def _is_sharded_before(self, value: cst.CSTNode) -> bool:
        """Whether `fully_shard` was called on a model that goes by the same name, in the same function or class."""
        key = self._names.key(value)
        same = [(call, model) for call, model in self._shardings if key and self._names.key(model) == key]
        return any(self._is_of_class(value, call) or self._comes_before(call, model, value) for call, model in same)

    def _comes_before(self, call: cst.Call, model: cst.BaseExpression, value: cst.CSTNode) -> bool:
        """Whether a call on a model comes before another use of it in the same function."""
        owner = self._tree.owner(call)
        if owner is not self._tree.owner(value) or (isinstance(value, cst.Name) and not self._is_one(value, model)):
            return False
        return self._facts.flow(owner).reaches(call, [value])

    def _is_of_class(self, value: cst.CSTNode, call: cst.Call) -> bool:
        """Whether a value is an attribute of `self`, in the class that a call stands in."""
        if not isinstance(value, cst.Attribute) or self._facts.classes.self_class(value.value) is None:
            return False
        return self._tree.enclosing_class(call) is self._tree.enclosing_class(value)

    def _is_one(self, value: cst.Name, model: cst.BaseExpression) -> bool:
        """Whether two names of one spelling have the same value."""
        found = self._facts.reaching.bindings(value)
        return isinstance(model, cst.Name) and found == self._facts.reaching.bindings(model)

    @cached_property
    def _shardings(self) -> list[tuple[cst.Call, cst.BaseExpression]]:
        """The calls that shard a model in place, with the model: of `fully_shard`, and of functions that give it theirs."""
        found: list[tuple[cst.Call, cst.BaseExpression]] = []
        for call in (each for each in self._tree.all(cst.Call) if self._names.call(each) in SHARDERS):
            given = self._names.argument(call, "module", 0)
            if given is None or self._facts.conditions(call):
                continue
            found.append((call, given.value))
            function = self._tree.function(call)
            for outer in self._facts.hooks.calls_of.get(function, ()) if function is not None else ():
                taken = self._facts.values.given(function, outer, self._names.key(given.value)) if function else None
                found += [(outer, taken)] if taken is not None and not self._facts.conditions(outer) else []
        return found

    def _bound(self, binding: Binding, depth: int) -> Made:
        if binding.kind is Kind.PARAMETER:
            given = self._arguments(binding)
            return tuple(each for value in given for each in self.wraps(value, depth)) or (None,)
        if binding.kind is not Kind.ASSIGN or binding.path or binding.value is None:
            return (None,)
        return self.wraps(binding.value, depth)

    def _arguments(self, binding: Binding) -> list[cst.BaseExpression | None]:
        """What the calls in sight give for a parameter."""
        function = binding.scope
        if not isinstance(function, cst.FunctionDef):
            return []
        calls = (
            *self._facts.steps.calls_of.get(function, ()),
            *self._facts.hooks.constructions.get(function, ()),
        )
        return [self._facts.values.given(function, call, binding.name) for call in dict.fromkeys(calls)]

    def _given_by(self, call: cst.Call, depth: int) -> Made:
        name = self._names.call(call)
        if name == WRAPPER:
            return (call,)
        if name == "torch.compile" and call.args:
            return self.wraps(call.args[0].value, depth + 1)
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in SAME_OBJECT:
            return self.wraps(call.func.value, depth + 1)
        callee = self._facts.hooks.callee(call)
        returned = self._facts.values.returns(callee) if callee is not None else []
        return tuple(each for value in returned for each in self.wraps(value, depth + 1)) or (None,)

    def _of_self(self, attribute: cst.Attribute, depth: int) -> Made:
        """Of an attribute of `self` what its class assigns to it, without what is surely wrapped behind that."""
        node = self._facts.classes.self_class(attribute.value)
        if node is None:
            return (None,)
        values = self._facts.classes.attribute_values(node, attribute.attr.value)
        kept = [each for each in values if not any(self._replaces(other, each) for other in values)]
        return tuple(each for value in kept for each in self.wraps(value, depth + 1)) or (None,)

    def _replaces(self, later: cst.BaseExpression, earlier: cst.BaseExpression) -> bool:
        """Whether a value surely takes the place of one that the same function assigned before."""
        owner = self._tree.owner(later)
        if later is earlier or owner is not self._tree.owner(earlier):
            return False
        return self._facts.flow(owner).always_after(earlier, [later])

    def drawn_from(self, parameters: cst.BaseExpression) -> cst.BaseExpression | None:
        """`model` of `model.parameters()`, also where parameters are filtered, grouped or named first; None for any
        other value and for those of several modules."""
        calls = [
            call
            for source in self._facts.reaching.sources(parameters)
            for call in self._tree.within(source, cst.Call)
            if self._names.method(call) in {"parameters", "named_parameters"} and not call.args
        ]
        func = calls[0].func if len(calls) == 1 else None
        return func.value if isinstance(func, cst.Attribute) else None
