"""Masks of attention that is to see the past alone: what makes them, turns them round, and uses them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from lightlint.engine.arguments import Arguments
from lightlint.engine.events import Masked
from lightlint.engine.machine import Machine
from lightlint.values.core import Constant, Site, Value, is_constant, number_of
from lightlint.values.training import Mask, Module, Tensor

FUTURE, PAST = "future", "past"
LEFT_OUT, COUNTED = "left out", "counted"
PADDING, WORDS = "padding", "words"
ONE = "one"
_OTHER = {FUTURE: PAST, PAST: FUTURE, LEFT_OUT: COUNTED, COUNTED: LEFT_OUT, PADDING: WORDS, WORDS: PADDING}
_OF_IDS = ("rows", "steps")
_IGNORED = -100
_FAR_BELOW = -1000  # what a score is set to that is to count for nothing
_LEAVES_OUT = {
    "MultiheadAttention": {"attn_mask": 5},
    "TransformerEncoder": {"mask": 1},
    "TransformerEncoderLayer": {"src_mask": 1},
    "TransformerDecoder": {"tgt_mask": 2},
    "TransformerDecoderLayer": {"tgt_mask": 2},
    "Transformer": {"src_mask": 2, "tgt_mask": 3},
}
"""Which arguments of torch's layers are masks that are true where nothing is to be looked at, and their places."""
_OF_PADDING = {
    "MultiheadAttention": {"key_padding_mask": 3},
    "TransformerEncoder": {"src_key_padding_mask": 2},
    "TransformerEncoderLayer": {"src_key_padding_mask": 2},
    "TransformerDecoder": {"tgt_key_padding_mask": 4, "memory_key_padding_mask": 5},
    "TransformerDecoderLayer": {"tgt_key_padding_mask": 4, "memory_key_padding_mask": 5},
    "Transformer": {"src_key_padding_mask": 5, "tgt_key_padding_mask": 6, "memory_key_padding_mask": 7},
}
"""Those of them that are true at the padding."""
_MOVED = frozenset(
    ["transpose", "permute", "t", "swapaxes", "swapdims", "movedim", "moveaxis", "rearrange", "flip", "rot90"]
)
_CASTS = frozenset(["long", "int", "short", "byte", "bool", "char"])


def note(machine: Machine, made: Value, name: str, given: Arguments, node: ast.AST) -> None:
    """Note what a function or method does with masks, its tensor the first argument."""
    source, second = given.get(0, "input"), given.get(1, "diagonal")
    if name in ("masked_fill", "where", "scaled_dot_product_attention"):
        _use(machine, name, given, node)
    if not isinstance(made, Tensor) or not isinstance(source, Tensor):
        return
    if name in ("triu", "tril"):
        made.mask, made.dtype = _triangle(machine, name, source, second or Constant(0), node), source.dtype
    elif name in ("logical_not", "bitwise_not"):
        made.mask, made.dtype = _turned(source.mask), "bool"
    elif name in ("eq", "ne", "gt", "lt", "ge", "le"):
        compared(made, _SYMBOLS[name], source, given.get(1, "other") or Constant(None), node)
    elif name in ("logical_and", "bitwise_and", "logical_or", "bitwise_or", "mul"):
        symbol = "|" if name.endswith("or") else "&"
        combined(machine, made, symbol, source, given.get(1, "other") or Constant(None), node)
    elif name in _CASTS:
        made.mask = source.mask
    elif name == "unsqueeze":
        made.mask = _with_one_more(source.mask, number_of(given.get(1, "dim")))
    elif name in _MOVED:
        made.mask = None


_SYMBOLS = {"eq": "==", "ne": "!=", "gt": ">", "lt": "<", "ge": ">=", "le": "<="}
_SAME = frozenset([("==", 1), ("!=", 0), (">", 0), (">=", 1)])
_TURNED = frozenset([("==", 0), ("!=", 1), ("<", 1), ("<=", 0)])


def compared(made: Tensor, symbol: str, left: Value, right: Value, node: ast.AST) -> None:
    """Note what the comparison of a mask with 0 or 1 gives, and that of ids with the one that fills up texts."""
    mask, number = left.mask if isinstance(left, Tensor) else None, right.value if isinstance(right, Constant) else None
    if symbol in ("==", "!=") and isinstance(left, Tensor):
        for each in origins(left):
            each.compared = True
        if number == _IGNORED and made.site is not None:
            made.mask = Mask(made.site, LEFT_OUT if symbol == "==" else COUNTED)
        elif mask is None and left.rank in (None, len(_OF_IDS)) and made.site is not None:
            pads = "pad" in ast.unparse(node).lower()
            if pads or isinstance(number, int):
                made.mask = Mask(made.site, PADDING if symbol == "==" else WORDS, left, _OF_IDS, pads=pads)
                made.dtype = "bool"
                return
    if symbol in _ORDERED and (words := _are_within(symbol, left, right)) is not None and made.site is not None:
        made.mask, made.dtype = Mask(made.site, WORDS if words else PADDING, None, _OF_IDS), "bool"
        return
    if (symbol, number) in _SAME:
        made.mask = mask
    elif (symbol, number) in _TURNED:
        made.mask = _turned(mask)
    if made.mask is not None:
        made.dtype = "bool"


_ORDERED = frozenset(["<", "<=", ">", ">="])


def _are_within(symbol: str, left: Value, right: Value) -> bool | None:
    """Whether a comparison is true for the places within the length of each text; None where it is none of places and lengths."""
    first, second = any(each.counts for each in origins(left)), any(each.counts for each in origins(right))
    other = right if first else left
    if first is second or not isinstance(other, Tensor):
        return None
    return (symbol in ("<", "<=")) is first


def combined(machine: Machine, made: Tensor, symbol: str, left: Value, right: Value, node: ast.AST) -> None:
    """Note what operators make of masks: one that leaves out more keeps nothing else."""
    found = [each.mask for each in (left, right) if isinstance(each, Tensor) and each.mask is not None]
    inverted = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert)
    masks = (
        found if inverted else [each for each in found if not each.dimensions]
    )  # with one of ids: it leaves out more
    if len(masks) != 1:
        return
    if symbol == "-" and (inverted or is_constant(left, 1, 1.0)) and right is not left:
        made.mask, made.dtype = _turned(masks[0]), right.dtype if isinstance(right, Tensor) and inverted else None
    elif symbol == "*" and "predicted" in made.traits:
        if masks[0].kind in (LEFT_OUT, COUNTED):
            machine.emit(Masked(machine.where(node), masks[0], kept=True))
    elif symbol in ("&", "*") or (symbol == "|" and masks[0].kind == PAST):
        made.mask = masks[0]
        made.dtype = next((each.dtype for each in (left, right) if isinstance(each, Tensor)), None)


def of_texts(site: Site) -> Mask:
    """The mask of its words that a tokenizer gives."""
    return Mask(site, WORDS, None, _OF_IDS, pads=True)


def origins(value: Value | None) -> Iterator[Tensor]:
    """A tensor, and what it is a part, a view or a copy of."""
    while isinstance(value, Tensor):
        yield value
        value = value.seen_of


def note_layer(machine: Machine, module: Module, given: Arguments, node: ast.AST) -> None:
    """Note the masks, and the padded ids, that a layer of torch is given."""
    if module.name == "Embedding" and not is_constant(module.argument("padding_idx", 2) or Constant(None), None):
        for each in origins(given.get(0, "input")):
            each.looked_up = module
    if module.name == "Embedding":
        for each in origins(given.get(0, "input")):
            each.embedded = True
    for word, place in _LEAVES_OUT.get(module.name, {}).items():
        _emit(machine, given.get(place, word), node, kept=False, logical=True)
    for word, place in _OF_PADDING.get(module.name, {}).items():
        mask = given.get(place, word)
        if isinstance(mask, Tensor) and mask.mask is not None and mask.mask.dimensions and mask.dtype == "bool":
            machine.emit(Masked(machine.where(node), mask.mask, kept=False, by_name=True))


def _triangle(machine: Machine, name: str, source: Tensor, diagonal: Value, node: ast.AST) -> Mask | None:
    place = number_of(diagonal)
    if source.filling != 1 or place is None:
        return None
    if name == "triu":
        return Mask(machine.site(node), FUTURE) if place >= 1 else None
    return Mask(machine.site(node), PAST) if place >= 0 else None


def _turned(mask: Mask | None) -> Mask | None:
    return mask.turned(_OTHER[mask.kind]) if mask is not None else None


def _with_one_more(mask: Mask | None, place: float | None) -> Mask | None:
    """A mask with one more dimension, that counts nothing, at a place."""
    if mask is None or not mask.dimensions:
        return mask
    if not isinstance(place, int):
        return None
    at = place if place >= 0 else len(mask.dimensions) + 1 + place
    return mask.shaped((*mask.dimensions[:at], ONE, *mask.dimensions[at:]))


def _use(machine: Machine, name: str, given: Arguments, node: ast.AST) -> None:
    first, second, third = (given.get(place, word) for place, word in enumerate(("input", "mask", "value")))
    if name == "scaled_dot_product_attention":
        _emit(machine, given.get(3, "attn_mask"), node, kept=True, logical=True)
    elif name == "masked_fill":
        if _are_scores(first) and _is_far_below(third):
            _emit(machine, second, node, kept=False, scores=first)
    elif _are_scores(second) and _is_far_below(third):
        _emit(machine, first, node, kept=True, scores=second)
    elif _are_scores(third) and _is_far_below(second):
        _emit(machine, first, node, kept=False, scores=third)


def _are_scores(value: Value | None) -> bool:
    return isinstance(value, Tensor) and value.scored


def _is_far_below(value: Value | None) -> bool:
    number = number_of(value.stacked[0] if isinstance(value, Tensor) and len(value.stacked) == 1 else value)
    return number is not None and number < _FAR_BELOW


def _emit(
    machine: Machine,
    mask: Value | None,
    node: ast.AST,
    *,
    kept: bool,
    logical: bool = False,
    scores: Value | None = None,
) -> None:
    """Write down that a mask is used; `logical`: where another than one of true and false is added to the scores."""
    if isinstance(mask, Tensor) and mask.mask is not None and (mask.dtype == "bool" or not logical):
        held = scores if isinstance(scores, Tensor) else None
        machine.emit(Masked(machine.where(node), mask.mask, kept, held))
