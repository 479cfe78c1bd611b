"""Whether workers may give the generators that they got copies of a state of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.bindings import Kind
from lightlint.facts.workers import LOADER

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_WORDS = {"get_worker_info", "worker_init_fn"}
# what seeds the global generators, and what such seeds are made of: none of it reaches an object of the data set's
_HARMLESS = {
    "random.seed", "numpy.random.seed", "torch.manual_seed", "torch.random.manual_seed", "torch.cuda.manual_seed",
    "torch.cuda.manual_seed_all", "torch.initial_seed", "torch.random.initial_seed", "torch.utils.data.get_worker_info",
    "torch.utils.data._utils.worker.get_worker_info", "torch.set_num_threads", "lightning.seed_everything", "builtins.int",
    "builtins.print", "torch.distributed.get_rank", "torch.randint", "builtins.hash", "builtins.str",
}  # fmt: skip
_METHODS = {"item", "info", "debug"}


def may_seed(facts: FileFacts) -> bool:
    """Whether code of a file that may run in a worker could give it a state of its own, beside the global generators."""
    named = [each for each in facts.tree.all(cst.Name) if each.value in _WORDS and not _is_imported(facts, each)]
    return any(not _is_idle(facts, each) and not _is_harmless(facts, each) for each in named)


def _is_imported(facts: FileFacts, name: cst.Name) -> bool:
    return any(isinstance(each, (cst.Import, cst.ImportFrom)) for each in facts.tree.ancestors(name))


def _is_idle(facts: FileFacts, node: cst.CSTNode) -> bool:
    """Whether a node stands in a function of the module that nothing names, in a file that makes loaders itself."""
    above = [each for each in facts.tree.ancestors(node) if isinstance(each, (cst.FunctionDef, cst.ClassDef))]
    function = above[-1] if above else None
    if not isinstance(function, cst.FunctionDef) or function.decorators or not facts.datasets.loaders:
        return False
    word = function.name.value
    named = [
        each for each in facts.tree.all(cst.Name) if each.value == word and not facts.tree.contains(function, each)
    ]
    spelled = (facts.names.constant(each) for each in facts.tree.all(cst.SimpleString))
    return not named and word not in spelled


def _is_harmless(facts: FileFacts, name: cst.Name) -> bool:
    """Whether a name stands in, or for, a function that seeds global generators only, or gives a loader such a one."""
    above = facts.tree.parent(name)
    if isinstance(above, cst.Arg) and above.keyword is name:
        return facts.names.call(facts.tree.parent(above)) == LOADER and _is_seeder(facts, above.value)
    functions = [each for each in facts.tree.ancestors(name) if isinstance(each, cst.FunctionDef)]
    return any(_seeds_globals(facts, each) for each in functions) or _is_seeder(facts, name)


def _is_seeder(facts: FileFacts, value: cst.BaseExpression) -> bool:
    found = facts.names.bindings.lookup(value) if isinstance(value, cst.Name) else []
    site = found[0].site if len(found) == 1 and found[0].kind is Kind.FUNCTION else None
    return isinstance(site, cst.FunctionDef) and _seeds_globals(facts, site)


def _seeds_globals(facts: FileFacts, function: cst.FunctionDef) -> bool:
    """Whether all that a function does is seed global generators: it calls nothing else, and sets no part of an object."""
    calls = facts.tree.within(function.body, cst.Call)
    targets = [each.target for each in facts.tree.within(function.body, cst.AssignTarget)]
    sets = any(not isinstance(each, cst.Name) for each in targets) or facts.tree.within(function.body, cst.Global)
    names = [facts.names.call(each) or "" for each in calls]
    known = all(
        name in _HARMLESS or (not name and facts.names.method(call) in _METHODS)
        for name, call in zip(names, calls, strict=True)
    )
    return known and not sets and any("seed" in each for each in names)
