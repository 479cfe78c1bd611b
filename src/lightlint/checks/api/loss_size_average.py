from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.facts.compat import is_for_older
from lightlint.fixes.draft import Draft
from lightlint.fixes.edits import join, remove_argument, replace, replace_argument_name

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_FUNCTIONAL = {
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_embedding_loss", "cross_entropy",
    "hinge_embedding_loss", "kl_div", "l1_loss", "margin_ranking_loss", "mse_loss", "multi_margin_loss",
    "multilabel_margin_loss", "multilabel_soft_margin_loss", "nll_loss", "poisson_nll_loss", "smooth_l1_loss",
    "soft_margin_loss", "triplet_margin_loss",
}  # fmt: skip
_CLASSES = {
    "BCELoss", "BCEWithLogitsLoss", "CosineEmbeddingLoss", "CrossEntropyLoss", "HingeEmbeddingLoss", "KLDivLoss",
    "L1Loss", "MSELoss", "MarginRankingLoss", "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss",
    "NLLLoss", "NLLLoss2d", "PoissonNLLLoss", "SmoothL1Loss", "SoftMarginLoss", "TripletMarginLoss",
}  # fmt: skip
_NAMES = {f"torch.nn.functional.{name}" for name in _FUNCTIONAL} | {f"torch.nn.{name}" for name in _CLASSES}
_OLD = ("size_average", "reduce")


class LossSizeAverage(Check):
    asks_rest = frozenset(_FUNCTIONAL | _CLASSES)

    def visit_Call(self, call: cst.Call) -> None:
        name = self.names.of(call.func)
        if name not in _NAMES:
            return
        given = [arg for arg in call.args if arg.keyword and arg.keyword.value in _OLD]
        if not given or is_for_older(self.facts, call):
            return
        spelled = " and ".join(f"`{arg.keyword.value}`" for arg in given if arg.keyword)
        state = "are" if len(given) > 1 else "is"
        message = f"{spelled} of `{name.rpartition('.')[2]}` {state} deprecated since torch 0.4.1"
        self.report(given[0], message, repair=self._repair(call, given))

    def _repair(self, call: cst.Call, given: list[cst.Arg]) -> Repair | None:
        """`reduce=False` means "none" whatever else is said, then `size_average=False` means "sum"."""
        values = {arg.keyword.value: self.names.constant(arg.value) for arg in given if arg.keyword}
        if not all(value is True or value is False or value is None for value in values.values()):
            return None
        if self.names.has_star(call) or self.names.argument(call, "reduction") is not None:
            return None
        text = (
            '"none"' if values.get("reduce") is False else '"sum"' if values.get("size_average") is False else '"mean"'
        )
        first, *others = given
        drafts: list[Draft | None] = [
            replace_argument_name(self.code, first, "reduction"),
            replace(self.code, first.value, text),
            *(remove_argument(self.code, call, arg) for arg in others),
        ]
        return Repair(f"write `reduction={text}`", join(*drafts), writes="torch>=0.4.1")

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        for name in _NAMES & entry.calls.keys():
            for event in entry.calls[name]:
                given = [old for old in _OLD if old in event.given.keywords]
                if given and not self.is_versioned(event):
                    spelled = " and ".join(f"`{each}`" for each in given)
                    state = "are" if len(given) > 1 else "is"
                    yield Fault.of(event, f"{spelled} of `{event.name}` {state} deprecated since torch 0.4.1")
