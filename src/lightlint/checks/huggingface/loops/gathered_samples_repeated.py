from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, Collective
from lightlint.engine.events.huggingface import Trimmed
from lightlint.explore.questions.accelerators import code_of
from lightlint.explore.questions.queries import in_batch
from lightlint.values.training import Loader, Tensor, tensors_in

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


_IDS = re.compile(
    r"(?:[a-z]+_)?(?:idx|index|indices|indexes|guids?|qids?|uids?)|(?:(?:sample|example|row|item|question)_)?ids?"
)


class GatheredSamplesRepeated(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Answers for the batches of a prepared loader, gathered with those that only fill the last batch."""
        if any(True for _ in entry.of(Trimmed)):
            return
        faults = [*self._faults(entry)]
        if faults and not (_may_be_cut_behind(entry) or _gathers_ids(entry)):
            yield from faults

    def _faults(self, entry: Entry) -> Iterator[Fault]:
        trained = {turn.loop.site for event in entry.of(Backward) for turn in event.where.turns[-1:]}
        for event in entry.of(Collective):
            apart = event.where.turns and event.where.turns[-1].loop.site not in trained
            if (
                event.name in ("accelerator.gather", "accelerate.utils.gather")
                and in_batch(event.where)
                and (apart or not event.where.grad)
            ):
                loaders = [turn.loop.over for turn in event.where.turns if turn.loop.kind == "batch"]
                prepared = bool(loaders) and isinstance(loaders[-1], Loader) and "#managed" in loaders[-1].attributes
                given = [tensor for value in event.args for tensor in tensors_in(value)]
                if prepared and given and all(map(_is_answer, given)) and not any(each.requires_grad for each in given):
                    message = (
                        "this gathers the samples, too, that fill the last batch of each process: they count twice"
                    )
                    yield Fault.at(event, message)


def _is_answer(tensor: Tensor) -> bool:
    """Whether a tensor has a row for each sample, and is no loss or sum."""
    return not tensor.scalar and tensor.role != "loss" and tensor.reduction is None and "loss" not in tensor.traits


def _may_be_cut_behind(entry: Entry) -> bool:
    """Whether something is cut to a length in a file of the program: answers may get there as numbers in lists."""
    slices = (node for node in code_of(entry.paths[0]) if isinstance(node, ast.Slice)) if entry.paths else ()
    return any(_is_length(part) for cut in slices if cut.upper is not None for part in ast.walk(cut.upper))


def _gathers_ids(entry: Entry) -> bool:
    """Whether the numbers of the samples are gathered, too, by which the program tells those that come again."""
    nodes = code_of(entry.paths[0]) if entry.paths else ()
    calls = (each for each in nodes if isinstance(each, ast.Call) and _last_name(each.func) == "gather")
    parts = (part for call in calls for given in call.args for part in ast.walk(given))
    return any(_IDS.fullmatch(_last_name(part)) for part in parts)


def _last_name(node: ast.AST) -> str:
    """A name, the last one of an attribute, or a text that is written down."""
    named = getattr(node, "id", getattr(node, "attr", getattr(node, "value", None)))
    return named if isinstance(named, str) else ""


def _is_length(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len"
