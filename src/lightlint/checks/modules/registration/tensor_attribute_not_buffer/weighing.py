"""Which calls of layers surely compute what they are given with weights of the layers' own, so that both must be on one device."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import Kind
from lightlint.facts.objects.classes import NN_MODULE
from lightlint.facts.values.origins import Origin

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_LAYER = re.compile(
    r"torch\.nn\.(?:Linear|Bilinear|Conv(?:Transpose)?[123]d|Embedding|PReLU|RNN|LSTM|GRU|(?:RNN|LSTM|GRU)Cell|LayerNorm"
    r"|GroupNorm|MultiheadAttention|Transformer(?:Encoder|Decoder)Layer)$"
)
_MOVING = {"to", "cuda", "type_as", "cpu"}
_DEPTH = 4


def weighs(facts: FileFacts, call: cst.Call, argument: cst.CSTNode, depth: int = 0) -> bool:
    """Whether a call is one of a module that surely computes an argument of it with its weights, as it comes."""
    if not call.args or call.args[0].value is not argument or call.args[0].keyword or call.args[0].star:
        return False
    found = facts.values.origins(call.func) if depth < _DEPTH else ()
    return bool(found) and all(_is_weighing(facts, each, depth) for each in found)


def _is_weighing(facts: FileFacts, layer: Origin, depth: int) -> bool:
    """Whether a module, known by what made it, does so with its first argument."""
    if layer.name == "torch.nn.Sequential" and layer.call is not None:
        return _is_first_of(facts, layer.call)
    node = facts.classes.local(layer.name)
    if node is None:
        return bool(_LAYER.match(layer.name))
    forward = facts.classes.method(node, "forward") if facts.classes.is_a(node, NN_MODULE) else None
    first = forward.params.params[1:2] if forward is not None else ()
    if forward is None or not first or _moves(facts, forward) or facts.classes.has_method(node, "__call__"):
        return False
    own = facts.tree.own(forward.body, cst.Call)
    given = [(each, each.args[0].value) for each in own if each.args and not facts.conditions(each)]
    return any(_is_parameter(facts, value, first[0]) and weighs(facts, each, value, depth + 1) for each, value in given)


def _is_first_of(facts: FileFacts, sequence: cst.Call) -> bool:
    """Whether the first layer of an `nn.Sequential` that has weights stands behind others of torch only."""
    for arg in sequence.args:
        name = facts.names.call(arg.value) or ""
        if arg.star or not name.startswith("torch.nn."):
            return False
        if _LAYER.match(name):
            return True
    return False


def _moves(facts: FileFacts, forward: cst.FunctionDef) -> bool:
    """Whether a forward pass may take what it is given to another device."""
    calls = facts.tree.within(forward.body, cst.Call)
    words = facts.tree.within(forward.body, cst.Name)
    return any(facts.names.method(each) in _MOVING for each in calls) or any(each.value == "device" for each in words)


def _is_parameter(facts: FileFacts, value: cst.BaseExpression, parameter: cst.Param) -> bool:
    """Whether a value surely is what a function was given for a parameter."""
    found = facts.reaching.bindings(value) if isinstance(value, cst.Name) else []
    return len(found) == 1 and found[0].kind is Kind.PARAMETER and found[0].site is parameter
