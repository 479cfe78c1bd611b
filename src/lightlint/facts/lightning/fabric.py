"""What Fabric objects of a file set up."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import Kind
from lightlint.facts.ranks.world import FABRIC, Ranks, trainer_ranks

if TYPE_CHECKING:
    from lightlint.facts.linked import Linked

SETUPS = {"setup", "setup_module", "setup_optimizers"}
_POSITIONS = ("accelerator", "strategy", "devices", "num_nodes")
_DEPTH = 4


class Fabrics:
    """The Fabrics of one file."""

    def __init__(self, facts: Linked) -> None:
        self._facts = facts

    def constructor(self, expression: cst.CSTNode | None) -> cst.Call | None:
        """The call that made the Fabric an expression holds; None for anything else, and for one made out of sight."""
        origin = self._facts.values.constructor(expression)
        return origin.call if origin is not None and origin.name == FABRIC else None

    def is_fabric(self, expression: cst.CSTNode | None) -> bool:
        """Whether a value surely is a Fabric, by its constructor or an annotation."""
        origin = self._facts.values.constructor(expression)
        return origin is not None and self._facts.classes.name_is_a(origin.name, FABRIC)

    def set_up(self, expression: cst.CSTNode, depth: int = 0) -> cst.BaseExpression | None:
        """The Fabric that set a model up which an expression holds, as written there; None for any other value."""
        facts = self._facts
        if depth > _DEPTH:
            return None
        if isinstance(expression, cst.Call):
            func = expression.func
            is_setup = isinstance(func, cst.Attribute) and func.attr.value in SETUPS
            return func.value if isinstance(func, cst.Attribute) and is_setup and self.is_fabric(func.value) else None
        if isinstance(expression, cst.Attribute):
            node = facts.classes.self_class(expression.value)
            values = facts.classes.attribute_sources(node, expression.attr.value) if node is not None else []
            return next((each for value, _ in values if value and (each := self.set_up(value, depth + 1))), None)
        if not isinstance(expression, cst.Name):
            return None
        for binding in facts.bindings.lookup(expression):
            if binding.kind is Kind.ASSIGN and binding.value is not None:
                found = self.set_up(binding.value, depth + 1)
            elif binding.kind is Kind.PARAMETER and isinstance(binding.scope, cst.FunctionDef):
                function = binding.scope
                calls = facts.hooks.calls_of.get(function, ())
                given = [facts.values.given(function, call, binding.name) for call in calls]
                found = next((each for value in given if value and (each := self.set_up(value, depth + 1))), None)
            else:
                found = None
            if found is not None:
                return found
        return None

    def per_rank(self, node: cst.CSTNode) -> bool:
        """Whether each of several processes that a Fabric of this file has surely launched runs a node, tests aside.

        Only for strategies that keep a whole copy of the model in each process.
        """
        return self._is_launched(node, 0)

    def _is_launched(self, node: cst.CSTNode, depth: int) -> bool:
        facts = self._facts
        owner = facts.tree.owner(node)
        here = [each for each in self._launches if facts.tree.owner(each) is owner and not each.args]
        if here and facts.flow(owner).always_before(node, here):
            return True
        if isinstance(owner, cst.Module) or depth > _DEPTH:
            return False
        name = facts.names.defined(owner)
        if any(facts.names.of(each.args[0].value) == name for each in self._launches if each.args):
            return True
        calls = (*facts.hooks.calls_of.get(owner, ()), *facts.hooks.constructions.get(owner, ()))
        return bool(calls) and all(self._is_launched(each, depth + 1) for each in calls)

    @cached_property
    def _launches(self) -> list[cst.Call]:
        """The calls that launch several processes."""
        found = [each for each in self._facts.tree.all(cst.Call) if self._facts.names.method(each) == "launch"]
        return [each for each in found if isinstance(each.func, cst.Attribute) and self._is_copied(each.func.value)]

    def _is_copied(self, fabric: cst.BaseExpression) -> bool:
        """Whether a Fabric surely runs several processes, each with the whole model."""
        names, maker = self._facts.names, self.constructor(fabric)
        if maker is None or names.has_star(maker):
            return False
        given = {
            name: names.constant(arg.value)
            for position, arg in enumerate(maker.args)
            if (name := arg.keyword.value if arg.keyword is not None else "".join(_POSITIONS[position : position + 1]))
        }
        strategy = given.get("strategy", "auto")
        whole = isinstance(strategy, str) and (strategy == "auto" or strategy.startswith("ddp"))
        return whole and trainer_ranks(given, starred=False) is Ranks.MANY
