from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.explore.questions.evaluation import evaluated_loaders
from lightlint.explore.samples import is_stream
from lightlint.facts.project.mentions import has_no_step_for
from lightlint.values.core import Class, Function, Sequence, is_constant, number_of
from lightlint.values.training import Instance, Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.training import Loader

_MUCH = 0.01  # of all samples, each of which is left out in its turn


class DropLastInEvaluation(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Loaders of nothing but evaluation that leave the last examples out."""
        for loader, event in evaluated_loaders(entry).values():
            size = loader.arguments.get("batch_size")
            single = size is None or is_constant(size, 1)  # of which nothing can be left over
            dropped = is_constant(loader.arguments.get("drop_last"), True) and not single
            if (
                not dropped
                or _leaves_little_out(loader)
                or _is_shared_stream(loader)
                or has_no_step_for(self.facts.project, self.facts.source, event.where.phase)
            ):
                continue
            if loader.site is not None:
                message = "the loader that is evaluated leaves out what is left over behind the last whole batch"
                yield Fault(loader.site, message)


def _is_shared_stream(loader: Loader) -> bool:
    """Whether ranks take turns at a stream of unknown length: all of them go through a whole batch, or none may."""
    return "#managed" in loader.attributes and is_stream(loader.data)


def _leaves_little_out(loader: Loader) -> bool:
    """Whether nothing is left over, as far as the numbers are known, or less than what matters of samples in random order."""
    samples, size = _samples(loader.data), number_of(loader.arguments.get("batch_size"))
    if not samples or not size:
        return False
    left = samples % size
    return left == 0 or (
        is_constant(loader.arguments.get("shuffle"), True) and left < _MUCH * samples <= samples - left
    )


def _samples(data: object) -> float | None:
    """How many samples a data set has: as its class says it in an attribute, or as the sizes of its tensors do."""
    if not isinstance(data, Instance):
        return None
    own = data.cls.find("__len__") if isinstance(data.cls, Class) else None
    if isinstance(own, Function):
        match getattr(own.node, "body", None):
            case [ast.Return(value=ast.Attribute(value=ast.Name(id="self"), attr=name))]:
                return number_of(data.attributes.get(name))
        return None
    tensors = data.arguments.get("tensors")
    first = tensors.items[0] if isinstance(tensors, Sequence) and tensors.items else None
    return first.sizes[0] if isinstance(first, Tensor) and first.sizes else None
