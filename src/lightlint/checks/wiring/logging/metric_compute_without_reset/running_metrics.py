"""Metrics of torchmetrics that a loop over epochs, written by hand, computes and never resets."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.checks.wiring.logging.metric_compute_without_reset.states import Carrying
from lightlint.facts.code.bindings import Kind
from lightlint.facts.code.tree import Loop
from lightlint.facts.data.loops import LoopKind

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_ACROSS_EPOCHS = ("MaxMetric", "MinMetric", "Running", "MetricTracker")
_TOTALS = {"torchmetrics.SumMetric", "torchmetrics.CatMetric", "torchmetrics.aggregation.SumMetric", "torchmetrics.aggregation.CatMetric"}  # fmt: skip
_BASES = ("torchmetrics.Metric", "torchmetrics.metric.Metric")
_LASTING = re.compile(r"Max|Min|Best|Running|Total|Moving|Ema|EMA|Tracker|History|Global")
_GROWING = {"update", "forward"}
_READING = {"compute", "device", "dtype"}
_DEPTH = 2


def counts_one_epoch(name: str) -> bool:
    """Whether a canonical name is that of one of torchmetrics' metrics that is meant to be reset after each epoch."""
    last = name.rpartition(".")[2]
    return name.startswith("torchmetrics.") and last[:1].isupper() and not last.startswith(_ACROSS_EPOCHS)


def own_counts_one_epoch(facts: FileFacts, name: str) -> bool:
    """As `counts_one_epoch`, for a class of the project made from torchmetrics' `Metric`, which says nothing of resets."""
    last = name.rpartition(".")[2]
    if _LASTING.search(last) or not facts.classes.name_is_a(name, *_BASES):
        return False
    found = facts.of_class(name)
    if found is None or any("reset" in each.value for each in found[0].tree.within(found[1], cst.Name)):
        return False
    methods = found[0].classes.methods(found[1])
    return "update" not in methods or any(map(Carrying(found[0]).goes_on, methods.values()))


class RunningMetrics:
    """The metrics that functions of one file hold under names."""

    def __init__(self, facts: FileFacts) -> None:
        self._facts = facts
        self._tree = facts.tree
        self._names = facts.names

    def is_never_reset(self, call: cst.Call) -> bool:
        """Whether `metric.compute()` runs after the batches of each epoch, with those of all epochs before."""
        metric = call.func.value if isinstance(call.func, cst.Attribute) else None
        if not isinstance(metric, cst.Name):
            return False
        origin = self._facts.values.constructor(metric)
        if origin is None or origin.call is None or not counts_one_epoch(origin.name) or origin.name in _TOTALS:
            return False
        return self._lasts(metric, call, origin.call, (), 0)

    def _lasts(
        self, metric: cst.Name, place: cst.Call, made: cst.Call, grown: tuple[cst.Call, ...], depth: int
    ) -> bool:
        """Whether a loop over epochs around a place, or around the one call of its function, goes on with one metric."""
        owner = self._tree.owner(place)
        found = self._names.bindings.lookup(metric)
        uses = self._growing(metric, owner)
        if len(found) != 1 or uses is None:
            return False
        before = (*grown, *(each for each in uses if self._tree.order(each) < self._tree.order(place)))
        loops = self._tree.loops(place)
        if loops:
            kept = found[0].kind is Kind.ASSIGN and not self._tree.contains(loops[-1], made)
            return kept and len(loops) == 1 and self._is_of_epochs(loops[0], place, before, bool(grown))
        if depth >= _DEPTH or found[0].kind is not Kind.PARAMETER or not isinstance(owner, cst.FunctionDef):
            return False
        calls = self._facts.hooks.calls_of.get(owner, ())
        given = self._facts.hooks.given(owner, calls[0], metric.value) if len(calls) == 1 else None
        inner = tuple(each for each in before if each in grown or self._tree.loops(each))
        return isinstance(given, cst.Name) and bool(inner) and self._lasts(given, calls[0], made, inner, depth + 1)

    def _is_of_epochs(self, loop: Loop, place: cst.Call, before: tuple[cst.Call, ...], grows_inside: bool) -> bool:
        """Whether a loop trains for epochs, and adds the batches of each before it comes to a place."""
        trains = self._facts.steps.runs(loop.body, self._facts.loops.is_backward)
        if not trains or self._facts.loops.kind(loop) is not LoopKind.EPOCH:
            return False
        batches = [each for each in before if self._tree.loops(each)[:1] not in ([], [loop])]
        again = self._facts.flow(self._tree.owner(place)).reaches_in_later_iteration(loop, place, [place])
        return again and (grows_inside or any(self._tree.contains(loop, each) for each in batches))

    def _growing(self, metric: cst.Name, owner: cst.CSTNode, depth: int = 0) -> list[cst.Call] | None:
        """The calls that add to a metric in a function; None if something in it may reset or keep it."""
        found: list[cst.Call] = []
        for use in self._tree.within(owner, cst.Name):
            above = self._tree.parent(use)
            if use.value != metric.value or isinstance(above, (cst.AssignTarget, cst.Param)):
                continue
            if isinstance(above, cst.Attribute):
                if above.attr is use or above.attr.value in _READING:
                    continue
                call = self._tree.parent(above)
                if above.attr.value not in _GROWING or not isinstance(call, cst.Call):
                    return None
                found.append(call)
            elif isinstance(above, cst.Call) and above.func is use:
                found.append(above)
            elif not (isinstance(above, cst.Arg) and self._leaves(above, use, depth + 1)):
                return None
        return found

    def _leaves(self, arg: cst.Arg, use: cst.Name, depth: int) -> bool:
        """Whether a function of this file that is given a metric surely does not reset it."""
        call = self._tree.parent(arg)
        callee = self._facts.hooks.callee(call) if isinstance(call, cst.Call) and arg.keyword is not use else None
        if callee is None or not isinstance(call, cst.Call) or depth > _DEPTH:
            return arg.keyword is use
        params = [*callee.params.posonly_params, *callee.params.params, *callee.params.kwonly_params]
        taken = [each.name for each in params if self._facts.hooks.given(callee, call, each.name.value) is use]
        return len(taken) == 1 and self._growing(taken[0], callee, depth) is not None
