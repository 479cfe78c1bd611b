"""Metrics of how examples are ranked, or go with each other, which are no means over examples."""

from __future__ import annotations

import ast
import re

from lightlint.engine.arguments import Arguments
from lightlint.engine.events import RankingAveraged, RankingComputed
from lightlint.engine.machine import Machine
from lightlint.values.core import OWN_DATA, RANKING, Sequence, Unknown, Value, traits_of
from lightlint.values.training import Tensor, tensors_in

_RANKINGS = re.compile(
    r"sklearn\.metrics\.(?:\w+\.)?(?:roc_auc_score|average_precision_score|r2_score|matthews_corrcoef|cohen_kappa_score)"
    r"|scipy\.stats\.(?:\w+\.)?(?:pearsonr|spearmanr|kendalltau)"
    r"|torchmetrics\.functional\.(?:\w+\.)*(?:(?:binary|multiclass|multilabel)_)?"
    r"(?:auroc|average_precision|r2_score|matthews_corrcoef|cohen_kappa|pearson_corrcoef|spearman_corrcoef|kendall_rank_corrcoef)"
)
_MEANS = re.compile(r"(?:numpy|statistics|torch)\.(?:nan|f)?mean|numpy\.average")


def note(machine: Machine, path: str, given: Arguments, found: Unknown, node: ast.AST) -> None:
    """Note a metric of one batch, and write down that some of them are averaged."""
    if _RANKINGS.fullmatch(path):
        two = given.positional[:2] or given.values()[:2]
        batches = any(loop.kind == "batch" for loop in machine.loops)
        if batches and len(two) > 1 and traits_of(*two) >= OWN_DATA and not any(map(_is_collected, two)):
            found.traits = found.traits | RANKING
            found.answers = frozenset([found])
            machine.emit(RankingComputed(machine.where(node), path.rpartition(".")[2], found))
    elif _MEANS.fullmatch(path):
        averaged(machine, given.get(0, "a"), node)


def averaged(machine: Machine, value: Value | None, node: ast.AST) -> None:
    """Write down that the mean of something is taken."""
    items = value.items if isinstance(value, Sequence) else [] if value is None else [value]
    held = frozenset(answer for each in items if each.traits & RANKING for answer in each.answers)
    if held:
        machine.emit(RankingAveraged(machine.where(node), held))


def _is_collected(value: Value, depth: int = 0) -> bool:
    """Whether something was put together of what several batches gave, or may have been."""
    if isinstance(value, Sequence):
        return True
    if isinstance(value, Unknown):
        return depth < _DEPTH and any(_is_collected(each, depth + 1) for each in value.lent)
    return isinstance(value, Tensor) and (bool(value.stacked) or not tensors_in(value))


_DEPTH = 4
