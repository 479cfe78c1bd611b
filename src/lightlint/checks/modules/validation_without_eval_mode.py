from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Forward, Stepped
from lightlint.explore.queries import acts_by_mode, in_batch, in_sight
from lightlint.facts.across import OUTSIDE, elsewhere
from lightlint.facts.bindings import Kind
from lightlint.facts.calls import given

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_SWITCHES = {"torch.no_grad", "torch.inference_mode"}
_SWITCHING = ("no_grad", "inference_mode")
_LOADER = re.compile(r"loader|iterator|(?:^|[._])(?:\w+_)?dl$", re.IGNORECASE)
# a loop of such a function over such batches evaluates, whatever it records
_EVALUATION = re.compile(
    r"_?(?:run_)?(?:val(?:id(?:ate|ation)?)?|eval(?:uate|uation)?|test)(?:_(?:epoch|model|step|loop|one_epoch))?"
)
_HELD_OUT = re.compile(
    r"(?:^|[._])(?:val|valid|validation|test|eval|dev)_?\w*(?:loader|iterator|dl)\w*$", re.IGNORECASE
)
_MEANT = re.compile(
    r"(?:^|_)mc(?:$|_|[A-Z])|monte|bayes|uncertain|ensembl|dropout|calib|bn_|_bn|stat|precise|warm", re.IGNORECASE
)
# names of functions that evaluate: to look into another file for any other is too much to ask
_EVALUATING = re.compile(
    r"eval|valid|test|infer|predict|scor|acc|metric|measur|sampl|check|dev|rate|recall|precision|loss|error|bench|report",
    re.IGNORECASE,
)


class ValidationWithoutEvalMode(Check):
    def visit_For(self, loop: cst.For) -> None:
        if not self._evaluates(loop) or not any(map(self.loops.is_backward, self.tree.all(cst.Call))):
            return
        modes = self.facts.modes
        for call in self._unrecorded(loop):
            key = self.names.key(call.func)
            if modes.acts_by_mode(call.func) and not modes.setting.may_be_in_eval(call, call.func):
                self.report(
                    call, f"`{key}` is evaluated in training mode: dropout drops, batch norm learns from this data"
                )
                return
            inner = self._run_in_helper(call)
            if inner is not None and not modes.setting.may_be_in_eval(call, inner.func):
                key = self.names.key(inner.func)
                self.report(
                    call, f"`{key}` is evaluated in training mode: dropout drops, batch norm learns from this data"
                )
                return

    def visit_Call(self, call: cst.Call) -> None:
        """A function of another file that evaluates the model it is given."""
        if not call.args or not _EVALUATING.search(self.names.method(call)):
            return
        name = self.names.call(call) or ""
        if "." not in name or name.startswith(OUTSIDE) or self.facts.steps.callee(call):
            return
        if not any(map(self.loops.is_backward, self.tree.all(cst.Call))):
            return
        modes = self.facts.modes
        place = elsewhere(self.facts, name, self.facts.path.parent, *_SWITCHING)
        if place is None:
            return
        for parameter in ValidationWithoutEvalMode(self.page, place.facts, self._add).evaluated(place.function):
            model = given(place.facts.names, place.facts.classes, place.function, call, parameter)
            key = self.names.key(model)
            if key and modes.acts_by_mode(model) and not modes.setting.may_be_in_eval(call, model):
                self.report(
                    call,
                    f"`{self.names.method(call)}` runs `{key}` in training mode: dropout drops, batch norm learns from this data",
                )
                return

    def evaluated(self, function: cst.FunctionDef) -> list[str]:
        """The parameters of a function that it surely runs as models over batches, without gradients or a look at their mode."""
        calls = self.tree.own(function.body, cst.Call)
        if any(map(self.facts.modes.setting.may_set, calls)) or any(map(self.loops.is_backward, calls)):
            return []
        loops = [each for each in self.tree.own(function.body, cst.For) if self._evaluates(each)]
        called = {
            each.func.value for loop in loops for each in self._unrecorded(loop) if isinstance(each.func, cst.Name)
        }
        bound = {key: self.names.bindings.lookup_in(key, function) for key in called}
        return sorted(key for key in called if all(each.kind is Kind.PARAMETER for each in bound[key]))

    def _evaluates(self, loop: cst.For) -> bool:
        """Whether a loop draws batches, by what it iterates or by its name, and trains on none, as far as it says."""
        return (
            self._draws_batches(loop)
            and not self.facts.steps.runs(loop.body, self.loops.is_backward)
            and not self._is_meant(loop)
        )

    def _unrecorded(self, loop: cst.For) -> list[cst.Call]:
        """The calls in a loop that autograd surely does not record, or need not, and whose value is used."""
        calls = self.tree.own(loop.body, cst.Call)
        named = self._is_named_evaluation(loop)
        return [
            each
            for each in calls
            if self.names.key(each.func)
            and not isinstance(self.tree.parent(each), cst.Expr)
            and (named or self._is_unrecorded(each))
        ]

    def _is_named_evaluation(self, loop: cst.For) -> bool:
        """Whether the names of a function and of what a loop in it draws from both say that it evaluates."""
        function = self.tree.function(loop)
        key = self.names.key(self.values.iterated(loop.iter))
        return function is not None and bool(_EVALUATION.fullmatch(function.name.value) and _HELD_OUT.search(key))

    def _run_in_helper(self, call: cst.Call) -> cst.Call | None:
        """The call of a model that acts by its mode in the helper of this file that a call runs, which sets no mode."""
        helper = self.hooks.callee(call)
        calls = self.tree.own(helper.body, cst.Call) if helper is not None else []
        if any(map(self.facts.modes.setting.may_set, calls)) or any(map(self.loops.is_backward, calls)):
            return None
        return next((each for each in calls if self.facts.modes.acts_by_mode(each.func)), None)

    def _draws_batches(self, loop: cst.For) -> bool:
        """Whether a loop draws batches, by what it iterates or by its name."""
        drawn = self.values.iterated(loop.iter)
        return self.values.is_batch_loop(loop) or bool(_LOADER.search(self.names.key(drawn)))

    def _is_meant(self, loop: cst.For) -> bool:
        """Whether names say that dropout or batch norm is meant to act, or the file sets modes in ways of its own."""
        around = [each for each in self.tree.ancestors(loop) if isinstance(each, (cst.FunctionDef, cst.ClassDef))]
        targets = [each.target for each in self.tree.all(cst.AssignTarget) if isinstance(each.target, cst.Attribute)]
        own = any(isinstance(each, cst.Attribute) and each.attr.value == "training" for each in targets)
        return own or any(_MEANT.search(each.name.value) for each in around)

    def _is_unrecorded(self, call: cst.Call) -> bool:
        """Whether autograd surely does not record a call, by a context manager or a decorator of its function."""
        for above in self.tree.ancestors(call):
            if isinstance(above, cst.With) and any(self.names.call(each.item) in _SWITCHES for each in above.items):
                return True
            if isinstance(above, cst.FunctionDef):
                spelled = [each.decorator for each in above.decorators]
                return any(self.names.call(each) in _SWITCHES or self.names.of(each) in _SWITCHES for each in spelled)
        return False

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Modules that train, and run over batches without gradients in training mode."""
        for path in entry.paths:
            stepped = {each for event in path.of(Stepped) for each in event.parameters}
            for event in path.of(Forward):
                trained = stepped & set(event.parameters) and in_sight([event.module])
                if event.grad or not event.training or event.where.phase or not trained or not in_batch(event.where):
                    continue
                names = [event.module.name, *(call.function.name for call in event.where.calls)]
                meant = any(map(_MEANT.search, names)) or not all(each.known for each in event.where.conditions)
                if not meant and acts_by_mode(event.module) and not self._is_dropped(event):
                    message = (
                        "the module is evaluated in training mode: dropout drops, batch norm learns from this data"
                    )
                    yield Fault.at(event, message)

    def _is_dropped(self, event: Forward) -> bool:
        """Whether nothing uses what a call gives, which then is made for what it does to the module."""
        span = self.facts.rehearsed.span(event.site)
        calls = [each for each in self.tree.all(cst.Call) if self.facts.positions.span(each) == span]
        return any(isinstance(self.tree.parent(each), cst.Expr) for each in calls)
