from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeGuard

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.facts.code.bindings import Kind
from lightlint.facts.code.unknown import UNKNOWN
from lightlint.facts.objects.classes import NN_MODULE
from lightlint.finding import Applicability
from lightlint.fixes.edits import replace
from lightlint.values.core import Sequence
from lightlint.values.training import Module

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_MESSAGE = "one layer in every place: all of them share its weights"
_HOLDERS = {"torch.nn.ModuleList", "torch.nn.Sequential"}
_WEIGHTED = re.compile(
    r"torch\.nn\.(?:Linear|Bilinear|Lazy\w+|Conv\w+|BatchNorm\w+|SyncBatchNorm|LayerNorm|GroupNorm|RMSNorm|Embedding\w*"
    r"|LSTM\w*|GRU\w*|RNN\w*|MultiheadAttention|Transformer\w*|PReLU|Parameter)$"
)
# words of code that shares its weights on purpose
_ON_PURPOSE = re.compile(
    r"shar|tied|tie_|recur|univers|albert|iter|loop|unroll|unfold|cycle|repeat|siam", re.IGNORECASE
)


class SharedLayerByMultiplication(Check):
    def wants_passes(self) -> bool:
        """Whether a list of one thing is multiplied."""
        products = (each for each in self.tree.all(cst.BinaryOperation) if isinstance(each.operator, cst.Multiply))
        return any(self._may_repeat(side) for each in products for side in (each.left, each.right))

    def _may_repeat(self, side: cst.BaseExpression) -> bool:
        named = self.names.bindings.lookup(side) if isinstance(side, cst.Name) else []
        values = [side, *(each.value for each in named if each.kind is Kind.ASSIGN)]
        shown = [each for each in values if isinstance(each, (cst.List, cst.Tuple)) and len(each.elements) == 1]
        return any(self.names.constant(each.elements[0].value) is UNKNOWN for each in shown)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Containers that are given one layer times a number."""
        for event in (each for name in _HOLDERS for each in entry.calls.get(name, ())):
            for given in (each for each in event.given.values() if isinstance(each, Sequence)):
                layer = given.items[0] if given.items else None
                node = self.node_of(given.repeated) if given.repeated is not None else None
                weighs = isinstance(layer, Module) and bool(layer.parameters()) and layer.sees_all()
                around = [self.node_of(each.site) for each in event.where.conditions]
                around += [self.node_of(each) for each in event.where.places]
                meant = any(self._speaks(each) or self._is_meant(each) for each in around if _is_small(each))
                if weighs and isinstance(node, cst.BaseExpression) and not self._is_meant(node) and not meant:
                    yield Fault(given.repeated or event.site, _MESSAGE)

    def _speaks(self, node: cst.CSTNode) -> bool:
        return any(_ON_PURPOSE.search(name.value) for name in self.tree.within(node, cst.Name))

    def visit_Call(self, call: cst.Call) -> None:
        if self.names.call(call) not in _HOLDERS:
            return
        for arg in call.args:
            repeated = self._list(arg.value)
            for layer in self._repeated(repeated):
                if self._has_weights(layer) and not self._is_meant(repeated):
                    repair = self._repair(repeated, layer)
                    self.report(repeated, _MESSAGE, repair=repair)
                    break

    def _list(self, value: cst.BaseExpression) -> cst.BaseExpression:
        """The list that an argument gives, behind a name that is bound once."""
        found = self.names.bindings.lookup(value) if isinstance(value, cst.Name) else []
        only = found[0] if len(found) == 1 and found[0].kind is Kind.ASSIGN and not found[0].path else None
        return only.value if only is not None and isinstance(only.value, cst.BaseExpression) else value

    def _repeated(self, value: cst.BaseExpression) -> list[cst.Call]:
        """The modules that `[layer] * n`, or `[layer for _ in range(n)]`, has several times."""
        match value:
            case cst.BinaryOperation(operator=cst.Multiply()):
                lists = [side for side in (value.left, value.right) if isinstance(side, (cst.List, cst.Tuple))]
                counts = [self.names.constant(side) for side in (value.left, value.right) if side not in lists]
                if len(lists) != 1 or counts == [1]:
                    return []
                made = [self._made(element.value, value) for element in lists[0].elements]
                return [call for call in made if call is not None]
            case cst.ListComp() | cst.GeneratorExp():
                made_once = self._made(value.elt, value) if isinstance(value.elt, cst.Name) else None
                return [made_once] if made_once is not None else []
        return []

    def _made(self, item: cst.BaseExpression, inside: cst.BaseExpression) -> cst.Call | None:
        """The call that makes an item, which is the same one in each place."""
        if isinstance(item, cst.Call):
            return item
        if not isinstance(item, cst.Name) or _ON_PURPOSE.search(item.value):
            return None
        found = self.names.bindings.lookup(item)
        only = found[0] if len(found) == 1 and found[0].kind is Kind.ASSIGN and not found[0].path else None
        outside = only is not None and not self.tree.contains(inside, only.site)
        return only.value if only is not None and outside and isinstance(only.value, cst.Call) else None

    def _has_weights(self, call: cst.Call, depth: int = 0) -> bool:
        """Whether a call makes a module with weights: one of torch's, or a class of this file that holds one."""
        name = self.names.call(call) or ""
        if _WEIGHTED.match(name):
            return True
        inside: cst.CSTNode | None = self.classes.local(name)
        if inside is not None and not self.classes.name_is_a(name, NN_MODULE):
            return False
        if inside is None and name == "torch.nn.Sequential":
            inside = call
        if inside is None or depth > 3:
            return False
        return any(
            each is not call and self._has_weights(each, depth + 1) for each in self.tree.within(inside, cst.Call)
        )

    def _is_meant(self, repeated: cst.CSTNode) -> bool:
        """Whether a name in the expression, its target or a test around it speaks of sharing; what a function returns gets its
        targets where that is called."""
        statement, function = self.tree.statement(repeated), self.tree.function(repeated)
        nodes: list[cst.CSTNode] = [test for test, _ in self.facts.conditions(repeated)]
        calls = self.hooks.calls_of.get(function, ()) if isinstance(statement, cst.Return) and function else ()
        for each in (statement, *map(self.tree.statement, calls)):
            nodes += [] if each is None or isinstance(each, cst.BaseCompoundStatement) else [each]
        words = [name.value for each in nodes for name in self.tree.within(each, cst.Name)]
        around = self.tree.enclosing_class(repeated)
        words += [around.name.value] if around is not None else []
        return any(_ON_PURPOSE.search(word) for word in words)

    def _repair(self, repeated: cst.BaseExpression, layer: cst.Call) -> Repair | None:
        if not isinstance(repeated, cst.BinaryOperation):
            return None
        held, count = (repeated.left, repeated.right)
        if not isinstance(held, cst.List):
            held, count = count, held
        if not isinstance(held, cst.List) or [element.value for element in held.elements] != [layer]:
            return None
        text = f"[{self.code.text_of(layer)} for _ in range({self.code.text_of(count)})]"
        return Repair("make a layer for each place", replace(self.code, repeated, text), Applicability.UNSAFE)


def _is_small(node: cst.CSTNode | None) -> TypeGuard[cst.BaseExpression]:
    return isinstance(node, cst.BaseExpression)
