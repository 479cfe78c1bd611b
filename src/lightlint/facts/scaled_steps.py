"""Plain steps of optimizers whose gradients, in some iteration, surely are still multiplied by the scale of a scaler."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.bindings import Binding, Kind

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts
    from lightlint.facts.updates import Update

_DEPTH = 3


def left_scaled(facts: FileFacts, update: Update) -> cst.BaseExpression | None:
    """The scaler whose backward pass comes to a plain step, with nothing on the way that unscales or clears the gradients.

    All backward passes of the function have to be scaled ones, and whether the step runs may only hang on where the loop
    is, as for what is left over in the last window: other tests may ask whether there is a scaler.
    """
    updates, owner = facts.updates, facts.tree.owner(update.call)
    if not facts.values.is_optimizer(update.optimizer) or updates.handles_gradients(owner):
        return None
    backwards = updates.backwards(owner)
    if not backwards or any(updates.scaler_of(each) is None for each in backwards):
        return None
    key, flow = facts.names.key(update.optimizer), facts.flow(owner)
    ends = [each for each in updates.own(owner) if _ends(facts, each, key)]
    ours = facts.conditions(update.call)
    for backward in backwards:
        theirs = facts.conditions(backward)
        extra = [test for test, outcome in ours if (test, outcome) not in theirs]
        if all(_counts(facts, each) for each in extra) and flow.reaches(backward, [update.call], avoiding=ends):
            return updates.scaler_of(backward)
    return None


def _ends(facts: FileFacts, call: cst.Call, key: str) -> bool:
    """Whether a call may end the time in which the gradients of an optimizer are scaled."""
    update = facts.updates.update(call)
    if update is not None:
        return update.scaler is not None and facts.names.key(update.optimizer) in {key, ""}
    return facts.steps.leads(call, lambda each: _settles(facts, each))


def _settles(facts: FileFacts, call: cst.Call) -> bool:
    method = facts.names.method(call)
    update = facts.updates.update(call)
    return "unscale" in method or "zero_grad" in method or (update is not None and update.scaler is not None)


def _counts(facts: FileFacts, test: cst.BaseExpression, depth: int = 0) -> bool:
    """Whether a test asks for nothing but where a loop of its function is."""
    match test:
        case cst.UnaryOperation(operator=cst.Not()):
            return _counts(facts, test.expression, depth)
        case cst.BooleanOperation():
            return _counts(facts, test.left, depth) and _counts(facts, test.right, depth)
    names = [each for each in facts.tree.within(test, cst.Name) if not facts.names.is_word(each)]
    found = [binding for name in names for binding in facts.bindings.lookup(name)]
    return any(_is_counter(facts, each, depth) for each in found)


def _is_counter(facts: FileFacts, binding: Binding, depth: int) -> bool:
    """Whether a binding counts the turns of a loop, or keeps what a test for that said."""
    if binding.kind is Kind.LOOP:
        return facts.names.call(binding.value) == "builtins.enumerate" and binding.path == (0,)
    if binding.kind is Kind.AUGMENT:
        return bool(facts.tree.loops(binding.site))
    test = binding.value if binding.kind is Kind.ASSIGN and not binding.path else None
    return isinstance(test, cst.Comparison) and depth < _DEPTH and _counts(facts, test, depth + 1)
