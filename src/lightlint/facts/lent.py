"""Optimizers that a function steps and its callers made, also callers in other files of the project."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.bindings import Kind
from lightlint.facts.callers import Callers, Hand, Way
from lightlint.facts.optimizers import is_library_optimizer

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_CLEARS = "zero_grad"
_BATCH = re.compile(r"(?:x|y|xb|yb|src|tgt|data|batch|inputs?|targets?|labels?|images?|imgs?)$")
_MAKES = ("torch.optim", "optim.")  # what a file holds that makes an optimizer


def lent_optimizer(facts: FileFacts, call: cst.Call) -> cst.BaseExpression | None:
    """What a call steps in a file that clears no gradients, and that may be an optimizer of the file's callers."""
    stepped = facts.steps.stepped(call)
    root = stepped.value if isinstance(stepped, cst.Attribute) else stepped
    if not isinstance(root, cst.Name) or facts.values.origins(stepped) or _CLEARS in facts.source.text:
        return None
    return stepped


def lenders(facts: FileFacts, optimizer: cst.BaseExpression) -> list[Way]:
    """The ways on which a lent optimizer comes, where all begin with one of torch's that no code out of sight gets to know.

    None where such code gets to know what the file itself was lent, as a loss that is given the model: it may clear there.
    As costly as `Callers`: ask only when a finding hangs on it.
    """
    if any(_gives_away(facts, call) for call in facts.tree.all(cst.Call)):
        return []
    ways = Callers(facts).ways(optimizer, *_MAKES)
    return ways if all(_is_torch(way[-1]) and all(_stays(facts, hand) for hand in way) for way in ways) else []


def _gives_away(facts: FileFacts, call: cst.Call) -> bool:
    """Whether a lent function is called with something lent: `self.loss(self.model, x)`."""
    given = (arg.value for arg in call.args)
    return _is_lent(facts, call.func) and facts.steps.callee(call) is None and any(_is_lent(facts, e) for e in given)


def _is_lent(facts: FileFacts, value: cst.BaseExpression) -> bool:
    """Whether something is a parameter, or an attribute of `self`, which may have come as one."""
    if isinstance(value, cst.Attribute):
        return facts.classes.is_self(value.value)
    if isinstance(value, cst.Name) and _BATCH.match(value.value):
        return False
    bound = facts.bindings.lookup(value) if isinstance(value, cst.Name) else ()
    return bool(bound) and all(each.kind is Kind.PARAMETER for each in bound)


def _is_torch(hand: Hand) -> bool:
    origins = hand.facts.values.origins(hand.value)
    named = all(each.name.startswith("torch.optim.") or is_library_optimizer(each.name) for each in origins)
    return named and hand.facts.values.is_optimizer(hand.value)


def _stays(facts: FileFacts, hand: Hand) -> bool:
    clears = hand.facts is not facts and _CLEARS in hand.facts.source.text
    return not clears and not hand.facts.steps.leaves_sight(hand.value, besides=hand.call)


def sources(facts: FileFacts, ways: list[Way]) -> list[cst.CSTNode]:
    """Where, in this file, lent optimizers are made, and what they are called is bound: with each comes another one."""
    hands = [hand for way in ways for hand in way if hand.facts is facts]
    made = [origin.call for hand in hands for origin in facts.values.origins(hand.value)]
    roots = [hand.value.value if isinstance(hand.value, cst.Attribute) else hand.value for hand in hands]
    bound = [each.site for root in roots if isinstance(root, cst.Name) for each in facts.bindings.lookup(root)]
    return [each for each in (*made, *bound) if each is not None]
