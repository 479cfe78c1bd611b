"""What uses CUDA in a process before a Trainer forks it: the ranks that it starts that way cannot use CUDA any more."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.tensors.cuda_uses import uses_cuda
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


def use_before(facts: FileFacts, run: cst.Call) -> cst.Call | None:
    """The first call of the same function, or of the module itself, that surely uses CUDA whenever a run gets so far."""
    owner = facts.tree.owner(run)
    calls = [each for each in facts.tree.own(owner, cst.Call) if facts.tree.order(each) < facts.tree.order(run)]
    known = {id(test) for test, _ in facts.conditions(run)}
    for call in sorted(calls, key=facts.tree.order):
        if uses_cuda(facts, call) and all(_holds(facts, *each, known) for each in facts.conditions(call)):
            return call
    return None


def _holds(facts: FileFacts, test: cst.BaseExpression, outcome: bool, known: set[int]) -> bool:
    return id(test) in known or (outcome and facts.names.call(test) == "torch.cuda.is_available")
