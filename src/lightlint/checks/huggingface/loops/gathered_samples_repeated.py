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


_GATHERS = ("accelerator.gather", "accelerate.utils.gather")
_IDS = re.compile(
    r"(?:[a-z]+_)?(?:idx|index|indices|indexes|guids?|qids?|uids?)|(?:(?:sample|example|row|item|question)_)?ids?"
)


class GatheredSamplesRepeated(Check):
    of_several_processes = True

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
            if event.name in _GATHERS and in_batch(event.where) and (apart or not event.where.grad):
                loaders = [turn.loop.over for turn in event.where.turns if turn.loop.kind == "batch"]
                prepared = bool(loaders) and isinstance(loaders[-1], Loader) and "#managed" in loaders[-1].attributes
                given = _given(event)
                inner = event.where.turns[-1].loop.kind != "batch"  # as over texts to try a model with
                if (inner or not apart) and not any(map(_is_of_batch, given)):
                    continue
                if prepared and given and all(map(_is_answer, given)) and not any(each.requires_grad for each in given):
                    message = (
                        "this gathers the samples, too, that fill the last batch of each process: they count twice"
                    )
                    yield Fault.at(event, message)


def _given(event: Collective) -> list[Tensor]:
    return [tensor for value in event.args for tensor in tensors_in(value)]


def _is_answer(tensor: Tensor) -> bool:
    """Whether a tensor has a row for each sample, and is no loss or sum."""
    return not tensor.scalar and tensor.role != "loss" and tensor.reduction is None and "loss" not in tensor.traits


def _is_of_batch(tensor: Tensor) -> bool:
    """Whether a tensor is known to come from a batch, or from what a model makes of one."""
    made_of = (tensor.whole is not None, tensor.role, tensor.layer, tensor.answer, tensor.guessed, tensor.mixed)
    return any(map(bool, made_of))


def _may_be_cut_behind(entry: Entry) -> bool:
    """Whether something is cut to a length in a file of the program: answers may get there as numbers in lists."""
    slices = (node for node in code_of(entry.paths[0]) if isinstance(node, ast.Slice)) if entry.paths else ()
    return any(_is_length(part) for cut in slices if cut.upper is not None for part in ast.walk(cut.upper))


def _gathers_ids(entry: Entry) -> bool:
    """Whether the numbers of the samples are gathered, too, by which the program tells those that come again."""
    gathered = (tensor for event in entry.of(Collective) if event.name in _GATHERS for tensor in _given(event))
    names = (name for each in gathered for name in (each.named, each.part) if isinstance(name, str))
    return any(map(_IDS.fullmatch, names))


def _is_length(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len"
