"""What uses CUDA in a process before a Trainer forks it: the ranks that it starts that way cannot use CUDA any more."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.values.keywords import keywords

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_FORKING = re.compile(r"ddp_(?:notebook|fork)(?:_find_unused_parameters_(?:true|false))?$")
_GPUS = {"gpu", "cuda", "auto"}


def forks(facts: FileFacts, trainer: cst.Call) -> bool:
    """Whether a Trainer surely forks its processes when it runs, to use GPUs in them."""
    given = {each.name: each.value for each in keywords(facts, trainer)}
    accelerators = facts.strings.possible(given["accelerator"]) if "accelerator" in given else frozenset({"auto"})
    if not accelerators or not accelerators <= _GPUS:
        return False
    strategies = (
        (facts.strings.possible(given["strategy"]) or frozenset()) if "strategy" in given else frozenset({"auto"})
    )
    if strategies == frozenset({"auto"}) and not facts.names.has_star(trainer):
        return _forks_by_default(facts, trainer, given.get("devices"))
    return bool(strategies) and all(map(_FORKING.match, strategies))


def _forks_by_default(facts: FileFacts, trainer: cst.Call, devices: cst.BaseExpression | None) -> bool:
    """Whether a Trainer stands in a notebook and is told to use several devices."""
    from lightlint.facts.versions.versions import Version

    count = facts.names.constant(devices)
    several = len(count) > 1 if isinstance(count, list) else isinstance(count, int) and count > 1
    if not several or not facts.lightning.surely_at_least(Version("2")):
        return False
    return facts.source.cell_at(facts.span(trainer)[0]) is not None
