from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.facts.code.unknown import UNKNOWN
from lightlint.facts.releases.compat import is_for_older
from lightlint.finding import Tier
from lightlint.fixes.draft import Draft
from lightlint.fixes.edits import join, remove_argument, replace, replace_argument_name
from lightlint.models.names.parameters import parameters_of
from lightlint.values.core import Constant, Value, is_constant

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
_SAID = {"mean", "sum", "none"}


class LossSizeAverage(Check):
    tells_of_old_code = True

    asks_rest = frozenset(_FUNCTIONAL | _CLASSES)

    def visit_Call(self, call: cst.Call) -> None:
        name = self.names.of(call.func)
        if name not in _NAMES:
            return
        args = self._named(name, call)
        values = {each: self.names.constant(arg.value) for each, arg in args.items()}
        given = [args[each] for each in args if each in _OLD and (args[each].keyword or values[each] is not None)]
        if not given or is_for_older(self.facts, call):
            return
        message, tier = _told(name.rpartition(".")[2], values)
        self.report(given[0], message, repair=self._repair(call, given), tier=tier)

    def _named(self, name: str, call: cst.Call) -> dict[str, cst.Arg]:
        """The arguments of a call by the names of what they are for, those by place up to the first `*args`."""
        names, args = iter(parameters_of(name)), {}
        for arg in call.args:
            if arg.star == "*":
                names = iter(())
            called = arg.keyword.value if arg.keyword else "" if arg.star else next(names, "")
            if called:
                args[called] = arg
        return args

    def _repair(self, call: cst.Call, given: list[cst.Arg]) -> Repair | None:
        """`reduce=False` means "none" whatever else is said, then `size_average=False` means "sum"."""
        values = {arg.keyword.value: self.names.constant(arg.value) for arg in given if arg.keyword}
        if not all(value is True or value is False or value is None for value in values.values()):
            return None
        if (
            self.names.has_star(call)
            or any(not arg.keyword for arg in given)
            or self.names.argument(call, "reduction") is not None
        ):
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
                told = dict(zip(parameters_of(name), event.given.positional, strict=False))
                told = {
                    key: value for key, value in told.items() if not is_constant(value, None)
                } | event.given.keywords
                if any(old in told for old in _OLD) and not self.is_versioned(event):
                    values = {key: _constant(value) for key, value in told.items()}
                    message, tier = _told(event.name, values)
                    yield Fault.of(event, message, tier=tier)


def _constant(value: Value) -> object:
    return value.value if isinstance(value, Constant) else UNKNOWN


def _told(name: str, given: dict[str, object]) -> tuple[str, Tier | None]:
    """What to say of a call that is given the old arguments: they may overrule what it says of its reduction."""
    old = [each for each in given if each in _OLD]
    spelled = " and ".join(f"`{each}`" for each in old)
    values = [given[each] for each in old]
    if not any(value is UNKNOWN for value in values):
        size_average, reduce = (given.get(each) is None or bool(given[each]) for each in _OLD)
        done = "none" if not reduce else "mean" if size_average else "sum"
        texts = [given.get("reduction"), *values]
        said = next((text for text in texts if isinstance(text, str) and text in _SAID), done)
        if said != done and any(value is not None for value in values):
            return f'{spelled} of `{name}` makes the reduction "{done}", though the call says "{said}"', Tier.WARNING
    return f"{spelled} of `{name}` {'are' if len(old) > 1 else 'is'} deprecated since torch 0.4.1", None
