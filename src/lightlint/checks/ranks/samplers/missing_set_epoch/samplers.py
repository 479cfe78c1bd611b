"""The distributed samplers of a file: which loader has which, whether they shuffle, and which of them are told the epoch."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import Binding, Kind, dotted_name
from lightlint.facts.code.unknown import UNKNOWN
from lightlint.facts.data.loading import LOADER
from lightlint.facts.values.origins import Origin

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

SAMPLERS = {"torch.utils.data.distributed.DistributedSampler", "torch.utils.data.DistributedSampler"}
_LOCAL = re.compile(r"torch\.utils\.data\.(?:sampler\.)?(?:Random|Sequential)Sampler")
_DEPTH = 3


class Samplers:
    """Distributed samplers of one file."""

    def __init__(self, facts: FileFacts) -> None:
        self._facts = facts
        self._names = facts.names

    def given(self, loader: cst.Call) -> list[cst.BaseExpression]:
        """What a loader is given as its sampler, by any way that leads to it."""
        found = self._facts.workers.given(loader, "sampler", 3)
        return [each for value in found.values for each in self._facts.reaching.sources(value)]

    def of(self, loader: cst.Call) -> cst.Call | None:
        """The one sampler that a loader is given where it gets any; a distributed one, where others are for one process."""
        found = self._origins(loader)
        spread = [each.call for each in found if each.name in SAMPLERS]
        alone = [each for each in found if _LOCAL.fullmatch(each.name)]
        if spread and len(spread) + len(alone) == len(found):
            found = [each for each in found if each not in alone]
        return found[0].call if len({each.call for each in found}) == 1 else None

    def is_always_given(self, loader: cst.Call) -> bool:
        """Whether a loader surely has that sampler, whatever the number of processes."""
        always = self._facts.workers.given(loader, "sampler", 3).always
        maybe = any(dotted_name(each) == "None" for each in self.given(loader))
        return always and not maybe and len({each.call for each in self._origins(loader)}) == 1

    def _origins(self, loader: cst.Call) -> list[Origin]:
        sources = [each for each in self.given(loader) if dotted_name(each) != "None"]
        return [each for source in sources for each in self._facts.values.origins(source)]

    def shuffles(self, call: cst.Call) -> bool:
        """Whether a sampler surely shuffles, by default or as it asks, at least for one of the values in sight."""
        given = self._names.argument(call, "shuffle", 3)
        if given is None:
            return not self._names.has_star(call)
        return self._may_be_true(given.value)

    def _may_be_true(self, value: cst.BaseExpression, depth: int = 0) -> bool:
        """Whether a flag is True for a value in sight: a constant, what a call gives, `split == "train"` in a loop over splits."""
        if self._names.constant(value) is True or depth > _DEPTH:
            return depth <= _DEPTH
        match value:
            case cst.IfExp() if (
                self._names.constant(value.body) is True and self._names.constant(value.orelse) is False
            ):
                return self._may_be_true(value.test, depth + 1)
            case cst.Comparison(left=cst.Name() as left, comparisons=[only]) if isinstance(only.operator, cst.Equal):
                wanted = self._names.constant(only.comparator)
                taken = [each for one in self._names.bindings.lookup(left) for each in self._constants(one)]
                return wanted is not UNKNOWN and wanted in taken
            case cst.Name():
                found = self._facts.reaching.bindings(value)
                sources = [each for one in found for each in self._sources(one)]
                return any(self._may_be_true(each, depth + 1) for each in sources)
        return False

    def _sources(self, binding: Binding) -> list[cst.BaseExpression]:
        """What a name is assigned, or the calls of its function give for it."""
        function = binding.scope
        if binding.kind is Kind.ASSIGN and binding.value is not None and not binding.path:
            return [binding.value]
        if binding.kind is not Kind.PARAMETER or not isinstance(function, cst.FunctionDef):
            return []
        calls = self._facts.hooks.calls_of.get(function, ())
        values = [self._facts.values.given(function, each, binding.name) for each in calls]
        return [each for each in values if each is not None]

    def _constants(self, binding: Binding) -> list[object]:
        """The constants that a name surely takes: the items it loops over, or what it is given."""
        if binding.kind is Kind.LOOP and not binding.path:
            items = self._names.constant(binding.value)
            return items if isinstance(items, list) else []
        return [self._names.constant(each) for each in self._sources(binding)]

    def is_told(self, sampler: cst.Call, loader: cst.Call | None) -> bool:
        """Whether something may tell a sampler the epoch, or whatever holds one: not what surely is told to another one."""
        attributes = self._facts.tree.all(cst.Attribute)
        told = [each for each in attributes if each.attr.value == "set_epoch" or self._sets_epoch(each)]
        return any(not self._is_another(each.value, sampler, loader) for each in told)

    def _sets_epoch(self, attribute: cst.Attribute) -> bool:
        """Whether a sampler's `epoch` is assigned."""
        parent = self._facts.tree.parent(attribute)
        stored = isinstance(parent, (cst.AssignTarget, cst.AugAssign)) or (
            isinstance(parent, cst.For) and parent.target is attribute
        )
        if not stored or attribute.attr.value != "epoch":
            return False
        origin = self._facts.values.constructor(attribute.value)
        return "sampler" in dotted_name(attribute.value) or (origin is not None and origin.name in SAMPLERS)

    def _is_another(self, told: cst.BaseExpression, sampler: cst.Call, loader: cst.Call | None) -> bool:
        """Whether what is told the epoch surely is not a sampler: one of another call, or of a loader under another key."""
        origins = self._facts.values.origins(told)
        if origins:
            return all(each.name in SAMPLERS and each.call not in (None, sampler) for each in origins)
        if not isinstance(told, cst.Attribute) or told.attr.value != "sampler":
            return False
        holders = self._facts.values.origins(told.value)
        made = [each.call for each in holders if each.name == LOADER and each.call is not None]
        if not made or len(made) < len(holders):
            return False
        owned = [self.of(each) for each in made]
        if all(each is not None and each is not sampler for each in owned):
            return True
        return loader is not None and self._is_under_another_key(told.value, loader)

    def _is_under_another_key(self, told: cst.BaseExpression, loader: cst.Call) -> bool:
        """Whether training draws `loaders["train"]` alone of what one call makes, and `loaders["val"]` is told."""
        drawn = [
            self._facts.values.iterated(loop.iter)
            for loop in self._facts.tree.all(cst.For)
            if self._facts.loops.is_backward_in(loop.body)
        ]
        of_loader = [each for each in drawn if any(o.call is loader for o in self._facts.values.origins(each))]
        return bool(of_loader) and all(self._differ(each, told) for each in of_loader)

    def _differ(self, one: cst.CSTNode, other: cst.CSTNode) -> bool:
        """Whether two items of one container of a function surely are under different keys."""
        if not isinstance(one, cst.Subscript) or not isinstance(other, cst.Subscript):
            return False
        same = self._facts.tree.owner(one) is self._facts.tree.owner(other)
        base, keys = self._names.key(one.value), (self._names.key(one), self._names.key(other))
        return same and bool(base) and base == self._names.key(other.value) and "" not in keys and keys[0] != keys[1]
