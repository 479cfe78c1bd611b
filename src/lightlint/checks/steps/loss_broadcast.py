from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import LossComputed
from lightlint.facts.layouts import Layout
from lightlint.facts.loops import LoopKind
from lightlint.facts.tree import Loop
from lightlint.finding import Tier
from lightlint.models import forms
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


_BROADCASTING = {"MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss"}
_REFUSING = {"BCELoss", "BCEWithLogitsLoss"}
_LOADER = re.compile(r"loader|batches", re.IGNORECASE)
_SHAPES = {Layout.FLAT: "(N,)", Layout.COLUMN: "(N, 1)", Layout.PICKED: "(N, 1)", Layout.REDUCED: "(N,)"}
_APART = ({Layout.FLAT, Layout.COLUMN}, {Layout.FLAT, Layout.PICKED}, {Layout.REDUCED, Layout.PICKED})


class LossBroadcast(Check):
    def visit_Call(self, call: cst.Call) -> None:
        loss = self.facts.criteria.of(call)
        if loss is None or loss.target is None or loss.name not in _BROADCASTING | _REFUSING:
            return
        given, target = self.facts.shapes.layout(loss.input), self.facts.shapes.layout(loss.target)
        if given is None or target is None or {given, target} not in _APART:
            return
        if Layout.PICKED not in (given, target) and not self._is_batched(call):
            return
        met = f"`{loss.name}` compares {_SHAPES[given]} with {_SHAPES[target]}"
        if loss.name in _REFUSING:
            self.report(call, f"{met} and raises", tier=Tier.ERROR)
        else:
            self.report(call, f"{met}: each prediction with each target, so the model learns their mean")

    def _is_batched(self, call: cst.Call) -> bool:
        """Whether a loss is computed over many samples: per batch, or over tensors that are made whole."""
        loops = self.tree.loops(call)
        if not loops:
            return self.loops.per_batch(call) is not None
        words = (
            [name.value for name in self.tree.within(loops[0].iter, cst.Name)] if isinstance(loops[0], cst.For) else []
        )
        drawn = self.loops.kind(loops[0]) is LoopKind.BATCH and any(_LOADER.search(word) for word in words)
        counted = "range" in words  # epochs over one tensor
        return drawn or counted or self.values.is_batch_loop(loops[0]) or self._draws_together(loops[0])

    def _draws_together(self, loop: Loop) -> bool:
        """Whether a loop draws from several loaders at once: `zip(one, other)`."""
        drawn = self.values.iterated(loop.iter) if isinstance(loop, cst.For) else None
        if not isinstance(drawn, cst.Call) or self.names.call(drawn) != "builtins.zip":
            return False
        return all(self.values.is_loader(arg.value) for arg in drawn.args)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Losses of a column and a row."""
        for event in entry.of(LossComputed):
            given, target = event.input, event.target
            if not isinstance(given, Tensor) or not isinstance(target, Tensor) or not forms.differ(given, target):
                continue
            shapes = {forms.COLUMN: "(N, 1)", forms.ROW: "(N,)"}
            met = f"`{event.function}` compares {shapes[str(given.form)]} with {shapes[str(target.form)]}"
            if event.function in _RAISING:
                yield Fault.at(event, f"{met} and raises", tier=Tier.ERROR)
            elif event.function in _SPREADING:
                yield Fault.at(event, f"{met}: each prediction with each target, so the model learns their mean")


_RAISING = frozenset(["BCELoss", "BCEWithLogitsLoss", "binary_cross_entropy", "binary_cross_entropy_with_logits"])
_SPREADING = frozenset(
    ["MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"]
)
