"""Which calls run a forward pass through a DDP model or past it, and whether training hangs on what they give."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import Kind
from lightlint.facts.code.spread import Spread
from lightlint.facts.graphs.gradients import Gradients
from lightlint.facts.ranks.data_parallel import DataParallel
from lightlint.facts.ranks.rank_tests import COLLECTIVES
from lightlint.facts.ranks.wrapped_models import Made, made
from lightlint.facts.steps.steps import Steps

if TYPE_CHECKING:
    from lightlint.facts.linked import Linked

_DEPTH = 4
# methods of a module or of DDP that run no forward pass
# what cuts a value from the graph that gave it
_NO_GRAPH = {"detach", "item", "tolist", "numpy", "argmax", "data", "generate"}
_BY_HAND = re.compile(
    r"(?:average|sync|reduce|allreduce|all_reduce)\w*_?grad|^register_(?:hook|comm_hook)|post_accumulate", re.I
)

Owner = cst.FunctionDef | cst.Module

Inside = tuple[int, int, frozenset[str], Made]
"""A function by its `id`, how deep it was called, which of its parameters hold a DDP model, and which models count."""


class Forwards:
    """The forward passes of one file's DDP models."""

    def __init__(self, facts: Linked) -> None:
        self._facts = facts
        self._tree = facts.tree
        self._names = facts.names
        self._models = facts.fact(DataParallel)
        # what helpers lead to, where which of their parameters hold something: each is looked into once
        self._handed: dict[Inside, bool] = {}
        self._backwards: dict[int, list[cst.Call]] = {}

    @cached_property
    def _by_name(self) -> dict[str, list[cst.FunctionDef]]:
        found: dict[str, list[cst.FunctionDef]] = defaultdict(list)
        for each in self._tree.all(cst.FunctionDef):
            found[each.name.value].append(each)
        return found

    def _is_off(self, method: str) -> bool:
        """Whether a method of this name, in this file, runs without autograd."""
        defined = self._by_name.get(method, ())
        return bool(defined) and all(self._facts.fact(Gradients).may_be_off(each.body) for each in defined)

    def _held(
        self, callee: cst.FunctionDef, call: cst.Call, given: Mapping[str, bool], models: Made
    ) -> dict[str, bool]:
        """Which parameters of a function a call gives a DDP model."""
        parameters = [*callee.params.posonly_params, *callee.params.params, *callee.params.kwonly_params]
        names = [each.name.value for each in parameters]
        values = [self._facts.values.given(callee, call, name) for name in names]
        return {n: v is not None and self._is_wrapped_in(v, given, models) for n, v in zip(names, values, strict=True)}

    def _is_wrapped_in(self, value: cst.BaseExpression, given: Mapping[str, bool], models: Made = None) -> bool:
        if isinstance(value, cst.Name) and value.value in given:
            found = self._facts.reaching.bindings(value)
            if all(each.kind is Kind.PARAMETER for each in found):
                return given[value.value]
        if not self._models.is_wrapped(value):
            return False
        own = made(self._facts, value) if models is not None else None
        return models is None or own is None or not own.isdisjoint(models)

    def _hands_on(self, call: cst.Call, given: Mapping[str, bool], models: Made, depth: int = 0) -> bool:
        """Whether a call gives a DDP model to code out of sight, and takes something from it."""
        name = self._names.call(call) or ""
        dropped = isinstance(self._tree.parent(call), cst.Expr)  # no loss comes of it
        if dropped or name.startswith(("builtins.", "torch.nn.utils.")) or self._models.is_inner(call):
            return False
        if not any(self._is_wrapped_in(arg.value, given, models) for arg in call.args):
            return False
        callee = self._facts.fact(Steps).callee(call) if depth < _DEPTH else None
        if callee is None:
            return True
        held = self._held(callee, call, given, models)
        inside = id(callee), depth, _those(held), models
        if inside not in self._handed:
            calls = self._tree.own(callee.body, cst.Call)
            self._handed[inside] = any(self._hands_on(each, held, models, depth + 1) for each in calls)
        return self._handed[inside]

    def _uses(self, owner: Owner, call: cst.Call) -> list[cst.Name]:
        """The uses of what a call gives, and of what is made from it, behind its own statement."""
        statement = self._tree.statement(call)
        match statement:
            case cst.Assign():
                targets: list[cst.CSTNode] = [each.target for each in statement.targets]
            case cst.AnnAssign() | cst.AugAssign():
                targets = [statement.target]
            case _:
                return []
        if self._leaves_graph(call, [statement]):
            return []
        spread = Spread(self._tree, owner, self._facts.flow(owner))
        bound = [name for target in targets for name in self._tree.within(target, cst.Name)]
        return [use for name in bound for use in spread.uses(name.value, name)]

    def _leaves_graph(self, node: cst.CSTNode, ends: Sequence[cst.CSTNode]) -> bool:
        """Whether what a node gives is cut from its graph on the way up to one of some nodes."""
        for above in self._tree.ancestors(node):
            if isinstance(above, cst.Attribute) and above.attr.value in _NO_GRAPH:
                return True
            if above in ends:
                return False
        return False

    def syncs_by_hand(self, body: cst.CSTNode) -> bool:
        """Whether gradients are, or may be, brought to the other ranks without DDP."""
        for each in self._facts.fact(Steps).bodies(body):
            calls = self._tree.within(each, cst.Call)
            if any(_BY_HAND.search(self._names.method(call)) for call in calls):
                return True
            reads = any(attribute.attr.value == "grad" for attribute in self._tree.within(each, cst.Attribute))
            if reads and any(self._names.call(call) in COLLECTIVES for call in calls):
                return True
        return False


def _those(held: Mapping[str, bool]) -> frozenset[str]:
    return frozenset(name for name, is_held in held.items() if is_held)
