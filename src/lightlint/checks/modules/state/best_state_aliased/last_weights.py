"""Whether weights are kept anew after each round of training, so that what is kept at the end are the last ones."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import Binding, Kind

if TYPE_CHECKING:
    from lightlint.facts.code.tree import Loop
    from lightlint.facts.file import FileFacts

_SETTINGS = re.compile(r"(?:^|\.)(?:args?|cfg|conf|config|opts?|hparams|flags|settings)\.", re.IGNORECASE)
_TRAINING = re.compile(r"train|fit(?!ness)|backward|optimi[sz]e|run_epoch|one_epoch", re.IGNORECASE)
_DEPTH = 4


def are_kept_each_round(facts: FileFacts, kept: cst.CSTNode, key: str) -> bool:
    """Whether a statement that keeps weights runs in each round, or each that a plan names, with nothing trained on behind
    it there, and the round itself never uses them."""
    loops = facts.tree.loops(kept)
    if loops:
        return _is_in_each_round(facts, kept, key)
    method, attribute = facts.tree.function(kept), key.rpartition(".")[2]
    if method is None or not key.startswith("self.") or facts.conditions(kept):
        return False
    calls = [*facts.hooks.calls_of.get(method, ()), *facts.instances.calls_of.get(method, ())]
    return bool(calls) and all(
        facts.tree.loops(call)
        and _is_in_each_round(facts, call, key)
        and not facts.steps.runs(facts.tree.loops(call)[0].body, lambda each: _loads(facts, each, attribute))
        for call in calls
    )


def is_last_item(facts: FileFacts, use: cst.CSTNode) -> bool:
    """Whether a list is asked for its last item."""
    item = facts.tree.parent(use)
    index = item.slice[0].slice if isinstance(item, cst.Subscript) and item.value is use else None
    return isinstance(index, cst.Index) and facts.names.constant(index.value) == -1


def _loads(facts: FileFacts, call: cst.Call, attribute: str) -> bool:
    words = facts.tree.within(call, cst.Attribute)
    return facts.names.method(call) == "load_state_dict" and any(each.attr.value == attribute for each in words)


def _is_in_each_round(facts: FileFacts, kept: cst.CSTNode, key: str) -> bool:
    owner, loops = facts.tree.owner(kept), facts.tree.loops(kept)
    if not all(_is_planned(facts, test, loops) for test, _ in facts.conditions(kept)):
        return False
    flow, inner = facts.flow(owner), loops[0]
    trains = [
        call
        for call in facts.tree.own(inner.body, cst.Call)
        if _TRAINING.search(facts.names.method(call)) or facts.steps.leads(call, facts.loops.is_backward)
    ]
    used = [
        each
        for each in facts.tree.own(inner.body, cst.Name, cst.Attribute)
        if facts.names.key(each) == key and not facts.tree.contains(kept, each)
    ]
    return not used and not flow.reaches_in_same_iteration(inner, kept, trains)


def _is_planned(facts: FileFacts, test: cst.BaseExpression, loops: list[Loop]) -> bool:
    """Whether a test inside of loops is known before they begin: of their own variables, of settings, of constants."""
    if not facts.tree.contains(loops[-1].body, test) or any(_is_head(each, test) for each in loops):
        return True
    if any(not _SETTINGS.search(f"{facts.names.key(each)}.") for each in facts.tree.within(test, cst.Attribute)):
        return False
    calls = [facts.names.call(each) or "" for each in facts.tree.within(test, cst.Call)]
    names = [each for each in facts.tree.within(test, cst.Name) if not facts.names.is_word(each)]
    return all(each.startswith("builtins.") for each in calls) and all(
        _is_known(facts, each, loops, 0) for name in names for each in facts.names.bindings.lookup(name)
    )


def _is_head(loop: Loop, test: cst.BaseExpression) -> bool:
    return isinstance(loop, cst.While) and loop.test is test


def _is_known(facts: FileFacts, binding: Binding, loops: list[Loop], depth: int) -> bool:
    """Whether a binding's value hangs on nothing that the loops compute."""
    if binding.kind is Kind.LOOP or not facts.tree.contains(loops[-1].body, binding.site):
        return True
    if binding.kind not in {Kind.ASSIGN, Kind.AUGMENT} or binding.value is None or depth > _DEPTH:
        return False
    if facts.tree.within(binding.value, cst.Call):
        return False
    names = [each for each in facts.tree.within(binding.value, cst.Name) if not facts.names.is_word(each)]
    return all(
        each is binding or _is_known(facts, each, loops, depth + 1)
        for name in names
        for each in facts.names.bindings.lookup(name)
    )
