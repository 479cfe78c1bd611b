from __future__ import annotations

import ast
import re
from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Logged, RankingAveraged, RankingComputed
from lightlint.values.core import RANKING, Library, Value, is_constant
from lightlint.values.training import Instance, Loader, Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Site

_MESSAGE = "`{}` of single batches is averaged over the batches, which is not that of all examples: it counts no pair of examples of two batches"
_LOGGED = (
    "Lightning averages this value of `{}` over the batches, which is not that of all examples: log the metric itself"
)
_STAGES = ("validation_step", "test_step")


class RankingAveragedByBatch(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Metrics of how examples are ranked that are computed of each batch of an evaluation, and averaged."""
        for path in entry.paths:
            computed = path.of(RankingComputed)
            averaged = {each for event in path.of(RankingAveraged) for each in event.results} if computed else set()
            averaged |= _logged(path) if computed else set()
            for event in computed:
                several = event.result in averaged and not event.where.grad and _has_several(event)
                if several and not _are_graphs(path, event.site[0]):
                    yield Fault.at(event, _MESSAGE.format(event.function))
        values = [each for each in entry.of(Logged) if isinstance(each.value, Tensor) and each.value.metric is not None]
        means = {
            _place(each) for each in values if not _is_no_mean(each.value)
        }  # where another test comes out otherwise
        for logged in values:
            if _place(logged) not in means and _is_averaged(logged):
                yield Fault.at(logged, _LOGGED.format(_name_of(logged.value)))


def _logged(path: Path) -> set[Value]:
    """What Lightning averages over the batches of an evaluation."""
    found: set[Value] = set()
    for event in path.of(Logged):
        if _is_averaged(event) and event.value is not None and event.value.traits & RANKING:
            found |= event.value.answers
    return found


def _is_averaged(event: Logged) -> bool:
    """Whether Lightning takes the mean of what an evaluation logs of its batches."""
    kept = event.where.hook in _STAGES and not is_constant(event.keywords.get("on_epoch"), False)
    own = "reduce_fx" not in event.keywords and not event.open_keywords
    return kept and own and not is_constant(event.keywords.get("batch_size"), 1)


_RATIOS = re.compile(r"(Binary|Multiclass|Multilabel)?(F1Score|FBetaScore|Precision|Recall|JaccardIndex)")
_RANKS = re.compile(
    r"(?:Binary|Multiclass|Multilabel)?(?:AUROC|AveragePrecision|MatthewsCorrCoef|CohenKappa)|R2Score|\w+CorrCoef"
)


def _place(event: Logged) -> tuple[Site, Hashable]:
    return event.site, event.name.key if event.name is not None else None


def _name_of(value: Value | None) -> str:
    metric = value.metric if isinstance(value, Tensor) else None
    return metric.name if isinstance(metric, Instance) else ""


def _is_no_mean(value: Value | None) -> bool:
    """Whether a metric of torchmetrics gave a value that surely is no mean over examples: a ratio of counts is one where it is
    of all classes at once."""
    metric = value.metric if isinstance(value, Tensor) else None
    if (
        not isinstance(metric, Instance)
        or not isinstance(metric.cls, Library)
        or not metric.cls.path.startswith("torchmetrics.")
        or metric.open_arguments
    ):
        return False
    ratio = _RATIOS.fullmatch(metric.name)
    if ratio is None:
        return _RANKS.fullmatch(metric.name) is not None
    kind, name = ratio[1], ratio[2]
    if kind == "Binary" or is_constant(metric.argument("task", 0), "binary"):
        return True
    average = metric.arguments.get("average")
    if average is None:
        return kind is not None or (name == "JaccardIndex" and "task" in metric.arguments)
    return is_constant(average, "macro", "weighted")


_OF_GRAPHS = frozenset(
    [
        "ndata",
        "edata",
        "srcdata",
        "dstdata",
        "edge_index",
        "edge_label",
        "edge_label_index",
        "train_mask",
        "val_mask",
        "test_mask",
    ]
)
"""What a graph has, as libraries for graphs call it."""


def _are_graphs(path: Path, file: str) -> bool:
    """Whether a file asks for parts of graphs, each of which may be all there is to rank."""
    tree = path.machine.sources.tree(file)
    names = ast.walk(tree) if tree is not None else ()
    return any(getattr(each, word, "") in _OF_GRAPHS for each in names for word in ("attr", "id", "arg"))


def _has_several(event: RankingComputed) -> bool:
    """Whether the batches hold several examples, and are not all that there is."""
    loops = [turn.loop for turn in event.where.turns if turn.loop.kind == "batch"]
    loader = loops[-1].over if loops else None
    if not isinstance(loader, Loader):
        return bool(loops)
    size = loader.arguments.get("batch_size")
    whole = size is None or size.traits & {"samples"} or _is_length(size)
    return not (whole or is_constant(size, 1, None))


def _is_length(size: Value) -> bool:
    """Whether a size is a length, or is worked out from one."""
    key = size.key if isinstance(size.key, tuple) else ()
    return any(isinstance(each, tuple) and each[:1] == ("length",) for each in (key, *key))
