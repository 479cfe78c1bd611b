from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Called
from lightlint.explore.queries import holds, in_each_mode
from lightlint.facts.classes import NN_MODULE
from lightlint.finding import Applicability
from lightlint.fixes.edits import insert_argument
from lightlint.values.core import is_constant

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_DROPOUTS = {
    f"torch.nn.functional.{name}"
    for name in ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout")
}
_MEANT = re.compile(r"(?:^|_)mc(?:$|_|[A-Z])|^MC|monte|bayes|prenet|uncertain|stochastic|always|train", re.IGNORECASE)


class FunctionalDropoutAlwaysOn(Check):
    asks_passes = True

    def visit_Call(self, call: cst.Call) -> None:
        name = self.names.call(call)
        if name not in _DROPOUTS or self.names.has_star(call) or self.names.argument(call, "training", 2) is not None:
            return
        method, probability = self.tree.function(call), self.names.argument(call, "p", 1)
        around = [each for each in self.tree.ancestors(call) if isinstance(each, cst.FunctionDef)]
        if method is None or any(self._is_asked_for(each, probability) for each in around):
            return
        if probability is not None and self.names.constant(probability.value) in (0, 0.0):
            return
        given = [probability] if probability is not None else []
        if not (self._runs_in_module(call) if self.tree.enclosing_class(call) else self._helps_forward(method)):
            return
        if self._is_meant(call) or self._depends_on_mode(call, given) or self.runs_right(call, Called, _drops):
            return
        self.report(
            call,
            f"`{name.rpartition('.')[2]}()` without `training=` drops values in `eval()` too",
            repair=self._repair(call),
        )

    def _runs_in_module(self, call: cst.Call) -> bool:
        return self.classes.is_a(self.tree.enclosing_class(call), NN_MODULE)

    def _helps_forward(self, function: cst.FunctionDef) -> bool:
        """Whether a function outside of classes is called by modules, in their forward pass and in each mode."""
        calls = self.hooks.calls_of.get(function, ())
        return bool(calls) and all(
            self._runs_in_module(call) and self._runs_in_forward(call) and not self._is_the_callers(call)
            for call in calls
        )

    def _runs_in_forward(self, call: cst.Call) -> bool:
        node, method = self.tree.enclosing_class(call), self.tree.function(call)
        forward = self.classes.method(node, "forward") if node is not None else None
        return forward is not None and method in self.hooks.reachable(forward)

    def _is_the_callers(self, call: cst.Call) -> bool:
        """Whether a module that calls a function chooses when values are dropped."""
        constants = [self.names.constant(arg.value) for arg in call.args]
        return self._is_meant(call) or self._depends_on_mode(call, call.args) or 0.0 in constants

    def _is_meant(self, call: cst.Call) -> bool:
        """Whether names say that the dropout is meant to stay on, or that the code runs in training only."""
        around = [
            each.name.value for each in self.tree.ancestors(call) if isinstance(each, (cst.FunctionDef, cst.ClassDef))
        ]
        node = self.tree.enclosing_class(call)
        own = node is not None and any(
            isinstance(assign.target, cst.Attribute) and assign.target.attr.value == "training"
            for assign in self.tree.within(node, cst.AssignTarget)
        )
        return own or any(_MEANT.search(each) for each in around)

    def _is_asked_for(self, method: cst.FunctionDef, probability: cst.Arg | None) -> bool:
        """Whether each call of a method says whether values are dropped: by a parameter that is 0 unless given."""
        if probability is None or not isinstance(probability.value, cst.Name):
            return False
        parameters = (*method.params.params, *method.params.kwonly_params)
        return any(
            each.name.value == probability.value.value
            and each.default is not None
            and self.names.constant(each.default) in (0, 0.0)
            for each in parameters
        )

    def _depends_on_mode(self, call: cst.Call, given: Sequence[cst.Arg]) -> bool:
        parts: list[cst.CSTNode] = [*(test for test, _ in self.facts.conditions(call)), *given]
        names = [name for part in parts for name in self.tree.within(part, cst.Name)]
        bound = [each.value for name in names for each in self.names.bindings.lookup(name) if each.value is not None]
        words = {name.value for part in (*parts, *bound) for name in self.tree.within(part, cst.Name)}
        return any(re.search("train|eval", word) for word in words)

    def _repair(self, call: cst.Call) -> Repair | None:
        method = next(
            (
                each
                for each in self.tree.ancestors(call)
                if isinstance(each, cst.FunctionDef) and self.tree.class_of(each)
            ),
            None,
        )
        if method is None or self.classes.is_static(method) or not method.params.params:
            return None
        first = method.params.params[0].name.value
        draft = insert_argument(self.code, call, f"training={first}.training")
        return Repair(f"follow `{first}.training`", draft, Applicability.UNSAFE)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Functions that drop values, without a word of the mode, while the module around them is in evaluation mode."""
        for name in _DROPOUTS & entry.calls.keys():
            for event in entry.calls[name]:
                if _drops(event):
                    message = f"`{event.name}()` without `training=` drops values in `eval()` too"
                    yield Fault.of(event, message)


def _drops(call: Called) -> bool | None:
    where, rate = call.where, call.argument("p", 1)
    if where.module is None:
        return None
    if where.training:
        return False
    if call.argument("training", 2) is not None or not call.given.exact or is_constant(rate, 0, 0.0):
        return False
    names = [where.module.name, *(each.function.name for each in where.calls)]
    if any(_MEANT.search(each) for each in names) or "training" in where.module.attributes:
        return False
    tested = rate is not None and any(holds(each.key, rate.key) for each in where.conditions)
    known = rate is None or rate.key is not None
    return None if tested or not known or not in_each_mode(where) else True
