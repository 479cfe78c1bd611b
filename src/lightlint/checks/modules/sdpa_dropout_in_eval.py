from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Called
from lightlint.explore.queries import holds, in_each_mode
from lightlint.facts.bindings import Kind
from lightlint.facts.classes import NN_MODULE
from lightlint.facts.keywords import keywords
from lightlint.facts.names import UNKNOWN
from lightlint.facts.sources import sources as reached
from lightlint.finding import Applicability
from lightlint.fixes.edits import replace
from lightlint.values.core import Constant, number_of

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_ATTENTION = "torch.nn.functional.scaled_dot_product_attention"
_MODE = re.compile("train|eval|infer", re.IGNORECASE)


class SdpaDropoutInEval(Check):
    asks_passes = True

    def visit_Call(self, call: cst.Call) -> None:
        if self.names.call(call) != _ATTENTION:
            return
        hidden = (each for each in keywords(self.facts, call) if each.name == "dropout_p")
        at = self.names.argument(call, "dropout_p", 4)
        given = at or next(hidden, None)
        node = self.tree.enclosing_class(call)
        if given is None or node is None or not self.classes.is_a(node, NN_MODULE):
            return
        if self.runs_right(call, Called, _drops):
            return
        if not self._stays(given.value, node) or self._in_training_only(call) or self._is_zero(call, given.value, node):
            return
        text = self.facts.source.text[slice(*self.facts.span(given.value))]
        self.report(
            at or given.value,
            f"`dropout_p={text}` is applied in `eval()` too",
            repair=Repair(
                "drop in training only",
                replace(self.code, given.value, f"{text} if self.training else 0.0"),
                Applicability.UNSAFE,
            ) if self._self_is_visible(call) else None,
        )  # fmt: skip

    def _stays(self, value: cst.BaseExpression, node: cst.ClassDef) -> bool:
        """Whether a probability surely is the same in training and in evaluation, and not zero."""
        constant = self.names.constant(value)
        if constant is not UNKNOWN:
            return isinstance(constant, (int, float)) and constant > 0
        if isinstance(value, cst.Name):
            found = self.names.bindings.lookup(value)
            only = found[0] if len(found) == 1 and found[0].kind is Kind.ASSIGN and not found[0].path else None
            return only is not None and only.value is not None and self._stays(only.value, node)
        match value:
            case cst.Attribute(value=cst.Attribute() as inner, attr=cst.Name(value="p")):
                return self._is_own(inner, node) and self.values.is_module(inner)
            case cst.Attribute():
                return self._is_own(value, node)
        return False

    def _is_own(self, attribute: cst.Attribute, node: cst.ClassDef) -> bool:
        """Whether an attribute of `self` is set in the constructor only, by nothing that asks for the mode."""
        if self.classes.self_class(attribute.value) is not node or _MODE.search(attribute.attr.value):
            return False
        name = attribute.attr.value
        sources = self.classes.attribute_values(node, name)
        makers = {
            owner.name.value for source in sources if isinstance(owner := self.tree.owner(source), cst.FunctionDef)
        }
        asks = any(_MODE.search(word.value) for source in sources for word in self.tree.within(source, cst.Name))
        given = [each for source in sources for each in reached(self.facts, source)]
        never = all(room.names.constant(value) == 0 for room, value in given)
        return (
            bool(sources)
            and makers == {"__init__"}
            and not asks
            and not never
            and not self.classes.has_method(node, name)
        )

    def _in_training_only(self, call: cst.Call) -> bool:
        tests = [test for test, _ in self.facts.conditions(call)]
        tested = any(_MODE.search(name.value) for test in tests for name in self.tree.within(test, cst.Name))
        around = [each.name.value for each in self.tree.ancestors(call) if isinstance(each, cst.FunctionDef)]
        return tested or any(_MODE.search(each) for each in around)

    def _is_zero(self, call: cst.Call, value: cst.BaseExpression, node: cst.ClassDef) -> bool:
        """Whether a test around the call, or the attribute it asks for, compares the probability with 0."""
        tests: list[cst.BaseExpression] = [test for test, _ in self.facts.conditions(call)]
        for test in list(tests):
            for each in self.tree.within(test, cst.Attribute):
                if self.classes.self_class(each.value) is node:
                    tests += self.classes.attribute_values(node, each.attr.value)
        word = value.attr.value if isinstance(value, cst.Attribute) else self.names.key(value)
        compared = [each for test in tests for each in self.tree.within(test, cst.Comparison)]
        return any(name.value == word for each in compared for name in self.tree.within(each, cst.Name))

    def _self_is_visible(self, call: cst.Call) -> bool:
        method = self.tree.function(call)
        return method is not None and bool(method.params.params) and method.params.params[0].name.value == "self"

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Attention that drops values while its module is in evaluation mode."""
        for event in entry.calls.get(_ATTENTION, ()):
            if _drops(event):
                yield Fault.at(event, "this dropout is applied in `eval()` too")


def _drops(call: Called) -> bool | None:
    rate = call.argument("dropout_p", 4)
    if rate is None or call.where.module is None:
        return None
    if call.where.training:
        return False
    if isinstance(rate, Constant):
        return number_of(rate) != 0
    tested = any(holds(each.key, rate.key) for each in call.where.conditions)
    if tested:
        return False
    return None if rate.key is None or not in_each_mode(call.where) else True
