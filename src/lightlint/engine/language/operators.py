"""Operators on values that are no tensors; the models are asked first for those that are."""

from __future__ import annotations

import ast
import operator as op
from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any

from lightlint.engine.choices import ANY_OF, is_constant_key
from lightlint.engine.events import Averaged, LossDivided, Passed, RankingAveraged, RowsScaled, SumDivided
from lightlint.engine.events.huggingface import TalkAsked
from lightlint.engine.language.counters import added_up_in, miscounted
from lightlint.engine.language.statistics import scaled_rows
from lightlint.engine.machine import UNNAMED_RANK, Machine
from lightlint.values.core import (
    ARRAYS,
    BLENDED,
    FITTED,
    NO_TRAITS,
    RANKING,
    SUMMED,
    WHOLE,
    Bound,
    Class,
    Constant,
    Function,
    Library,
    Mapping,
    Method,
    Namespace,
    Partial,
    Sequence,
    Traits,
    Unknown,
    Value,
    identified,
    is_constant,
    is_device,
    number_of,
    text_of,
    traits_of,
)
from lightlint.values.training import Instance, Tensor

SYMBOLS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.MatMult: "@",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
}
COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}
_PYTHON: dict[str, Callable[[Any, Any], Any]] = {
    "+": op.add,
    "-": op.sub,
    "*": op.mul,
    "/": op.truediv,
    "//": op.floordiv,
    "%": op.mod,
    "**": op.pow,
    "&": op.and_,
    "|": op.or_,
    "^": op.xor,
    "<<": op.lshift,
    ">>": op.rshift,
    "==": op.eq,
    "!=": op.ne,
    "<": op.lt,
    "<=": op.le,
    ">": op.gt,
    ">=": op.ge,
    "is": op.is_,
    "is not": op.is_not,
    "in": lambda a, b: a in b,
    "not in": lambda a, b: a not in b,
}
_SMALL = 1 << 40  # numbers and texts beyond this are not worked out
_OBJECTS = (Function, Bound, Class, Library, Method, Partial, Namespace, Sequence, Mapping, Tensor)
_COUNTED = {"index", "count"}
_BY_VALUE = frozenset(["shape", "path", "namespace", "object", "unknown", "exception"])
"""Kinds of objects that may be equal without being one."""


def unary(machine: Machine, operator: ast.unaryop, value: Value, node: ast.AST) -> Value:
    """`not`, `-`, `+`, `~`."""
    if isinstance(operator, ast.Not):
        known = machine.truth(value)
        if known is not None:
            return Constant(not known, value.traits)
        key = identified(value).key
        return Unknown(("not", key) if key is not None else None, value.traits, plain=True)
    if isinstance(value, Constant) and isinstance(value.value, (int, float)):
        if isinstance(operator, ast.USub):
            return Constant(-value.value, value.traits)
        if isinstance(operator, ast.UAdd):
            return Constant(+value.value, value.traits)
    if isinstance(value, Tensor):
        found = machine.models.binary(machine, "-", Constant(0), value, node)
        return found if found is not None else Unknown()
    name = type(operator).__name__
    found = Unknown((name, value.key) if value.key is not None else None, value.traits, plain=True)
    if isinstance(operator, ast.USub):
        found.terms = ("-", (value,))
    return found


def binary(machine: Machine, symbol: str, left: Value, right: Value, node: ast.AST) -> Value:
    """An arithmetic operator."""
    if symbol in ("%", "//", "-") and "rank of all" in left.traits and isinstance(left, Constant):
        left = Constant(left.value, left.traits - {"rank of all"})  # the place on a node, or the node's
    if symbol == "/" and left.traits & SUMMED and (length := _length_in(right)) is not None:
        machine.emit(Averaged(machine.where(node), left, Unknown(length)))
    if symbol == "/" and (loops := added_up_in(left)) and (length := _length_in(right)) is not None:
        machine.emit(SumDivided(machine.where(node), loops, length))
    if symbol == "/" and not added_up_in(left) and (length := _length_in(right)) is not None and _is_of_loss(left):
        machine.emit(LossDivided(machine.where(node), left, length))
    if symbol == "/" and (loops := added_up_in(left)) and (what := miscounted(machine, loops, right, node)):
        machine.emit(SumDivided(machine.where(node), loops, what))
    if symbol == "/" and left.traits & RANKING and left.answers:
        machine.emit(RankingAveraged(machine.where(node), left.answers))
    found = machine.models.binary(machine, symbol, left, right, node)
    if found is not None:
        return found
    if isinstance(left, Constant) and isinstance(right, Constant):
        worked_out = _worked_out(symbol, left, right)
        if worked_out is not None:
            return worked_out
    if symbol == "%" and isinstance(left, Unknown) and is_constant(right, 1):
        return Constant(0)
    if symbol == "+" and isinstance(left, Sequence) and isinstance(right, Sequence):
        return Sequence([*left.items, *right.items], left.kind, more=left.more or right.more)
    if symbol == "*" and isinstance(left, Sequence) and left.kind != "slice":
        return _repeated(machine, left, right, node)
    if symbol == "*" and isinstance(right, Sequence) and right.kind != "slice":
        return _repeated(machine, right, left, node)
    if symbol == "|" and isinstance(left, Mapping) and isinstance(right, Mapping):
        joined = Mapping({**left.items, **right.items}, more=left.more or right.more)
        joined.said = left.places() | right.places()
        return joined
    symbolic = _symbolic(symbol, left, right)
    if symbol == "/" and isinstance(symbolic, Unknown) and (rows := scaled_rows(left, right)) is not None:
        symbolic.traits |= FITTED
        machine.emit(RowsScaled(machine.where(node), rows, symbolic))
    return symbolic


def _repeated(machine: Machine, sequence: Sequence, count: Value, node: ast.AST) -> Sequence:
    """`[item] * n`."""
    times = count.value if isinstance(count, Constant) and isinstance(count.value, int) else None
    if times is not None and 0 <= times * len(sequence.items) <= 64:
        found = Sequence(sequence.items * times, sequence.kind, more=sequence.more)
    else:
        found = Sequence(sequence.items, sequence.kind, more=bool(sequence.items) or sequence.more)
    found.repeated = machine.site(node) if len(sequence.items) == 1 and times not in (0, 1) else None
    return found


def _worked_out(symbol: str, left: Constant, right: Constant) -> Value | None:
    numbers = [each.value for each in (left, right) if isinstance(each.value, (int, float))]
    if symbol in ("**", "<<") and (len(numbers) < 2 or abs(numbers[0]) > 1e4 or abs(numbers[1]) > 100):
        return None
    if any(abs(number) > _SMALL for number in numbers if isinstance(number, int)) and symbol in ("*", "<<"):
        return None
    if symbol == "*" and len(numbers) == 1 and abs(numbers[0]) > 10_000:
        return None
    try:
        result = _PYTHON[symbol](left.value, right.value)
    except Exception:
        return None
    return Constant(result, _traits(symbol, left, right))


def _for_each(symbol: str, left: Value, right: Value) -> Constant | None:
    """What a comparison with one of several constants gives, where it is the same for each of them."""
    first = left.among if isinstance(left, Unknown) and left.among else (left,)
    second = right.among if isinstance(right, Unknown) and right.among else (right,)
    if len(first) * len(second) == 1 or symbol in ("is", "is not"):
        return None
    found = [
        _worked_out(symbol, one, other) if isinstance(one, Constant) and isinstance(other, Constant) else None
        for one in first
        for other in second
    ]
    known = [each for each in found if isinstance(each, Constant)]
    return known[0] if len(known) == len(found) and len({each.value for each in known}) == 1 else None


def _symbolic(symbol: str, left: Value, right: Value) -> Value:
    found = _named(symbol, left, right)
    if symbol in ("+", "-", "*", "/"):
        found.terms = (symbol, (left, right))
    if left.cuts or right.cuts:
        found.cuts = left.cuts | right.cuts
    if left.answers or right.answers:
        found.answers = left.answers | right.answers
    return found


def _named(symbol: str, left: Value, right: Value) -> Value:
    traits = _traits(symbol, left, right)
    if symbol in ("*", "/", "//"):
        factors = _product(symbol, left, right)
        if factors is not None:
            return Unknown(("product", factors), traits, plain=True, factors=factors)
    if left.key is None or right.key is None:
        return Unknown(None, traits, plain=symbol != "|")
    return Unknown((symbol, left.key, right.key), traits, plain=symbol != "|")


def _traits(symbol: str, left: Value, right: Value) -> Traits:
    traits = traits_of(left, right) - WHOLE
    if symbol == "%" and text_of(left) is not None:  # a text with what is filled in
        return (traits | traits_of(*right.items) if isinstance(right, Sequence) else traits) - ARRAYS
    if any(isinstance(each, Constant) and isinstance(each.value, str) for each in (left, right)):
        traits -= ARRAYS  # a text
    if symbol in ("*", "/") and isinstance(left, Constant) and isinstance(right, Constant):
        return traits | {"scaled"}
    if not traits:
        return NO_TRAITS
    if symbol == "%":
        return traits | {"periodic"} if traits & _COUNTED else traits
    if symbol == "*" and {"batch-mean", "batch-size"} <= traits:
        return traits - {"batch-mean", "batch-size"} | {"batch-sum"}
    if symbol in ("/", "//", "*"):
        traits -= {"samples", "batches", "batch-size"}
    elif symbol == "-":
        traits -= {"batch-size"}
    return traits


def factors_of(value: Value) -> tuple[tuple[Hashable, int], ...] | None:
    """A number as a product: keys with powers, sorted; None where it is none."""
    if isinstance(value, Constant):
        if isinstance(value.value, (int, float)) and not isinstance(value.value, bool):
            return () if value.value == 1 else ((("number", value.value), 1),)
        return None
    if isinstance(value, Unknown):
        return value.factors if value.factors is not None else (((value.key, 1),) if value.key is not None else None)
    return None


def is_number_key(key: Hashable) -> bool:
    """Whether a factor is a number that is written down."""
    return isinstance(key, tuple) and key[:1] == ("number",)


def _is_of_loss(value: Value) -> bool:
    """Whether a loss function gave a tensor, or the one whose number this is."""
    if isinstance(value, Tensor):
        return value.criterion
    return isinstance(value.key, tuple) and value.key[:1] == ("item",) and bool(value.traits & _OF_LOSSES)


_OF_LOSSES = frozenset(["batch-mean", "batch-sum"])


def _length_in(value: Value) -> Hashable:
    """The key of the length of something that a number is, or a written multiple of; None for another number."""
    found = [key for key, power in factors_of(value) or () if not is_number_key(key)]
    is_length = len(found) == 1 and isinstance(found[0], tuple) and found[0][:1] == ("length",)
    return found[0] if is_length and (found[0], 1) in (factors_of(value) or ()) else None


def _product(symbol: str, left: Value, right: Value) -> tuple[tuple[Hashable, int], ...] | None:
    first, second = factors_of(left), factors_of(right)
    if first is None or second is None:
        return None
    powers: Counter[Hashable] = Counter(dict(first))
    for key, power in second:
        powers[key] += power if symbol == "*" else -power
    return tuple(sorted(((key, power) for key, power in powers.items() if power), key=repr))


def compare(machine: Machine, symbol: str, left: Value, right: Value, node: ast.AST) -> Value:
    """A comparison."""
    for each in (left, right):
        if isinstance(each, Unknown) and each.encoding is not None:
            each.encoding.asked = True
    _note_talk(machine, symbol, left, right, node)
    traits = traits_of(left, right) - BLENDED
    if (flag := _as_flag(symbol, left, right)) is not None:
        return flag
    if (agreed := _for_each(symbol, left, right)) is not None:
        return Constant(agreed.value, traits)
    if isinstance(left, Unknown) and "rank" in left.traits and not left.traits & _COUNTED and _is_first(right):
        left = Constant(machine.rank, left.traits)  # `local + node * count == 0`: of all ranks the first
    if machine.rank:
        left, right = _rank_of(machine, symbol, left, right), _rank_of(machine, symbol, right, left)
    if symbol in ("is", "is not", "==", "!=") and isinstance(right, Constant) and right.value is None:
        return _is_none(symbol in ("is", "=="), left, right, traits)
    if symbol in ("==", "!=", "in", "not in") and _is_device_among_constants(left, right):
        return Constant(symbol in ("!=", "not in"))
    if isinstance(left, Constant) and isinstance(right, Constant):
        found = _worked_out(symbol, left, right) if symbol not in ("is", "is not") else _same(symbol, left, right)
        if found is not None:
            return Constant(found.value, traits) if isinstance(found, Constant) else found
    if isinstance(left, Instance) and isinstance(right, Instance) and _are_told_apart(symbol, left, right):
        return Constant((left is right) == (symbol in ("is", "==")), traits)
    if symbol in ("is", "is not") and (isinstance(left, _OBJECTS) or isinstance(right, _OBJECTS)):
        if isinstance(left, (Library, Class)) and isinstance(right, (Library, Class)):
            return Constant((left.key == right.key) == (symbol == "is"), traits)
        if not isinstance(left, Unknown) and not isinstance(right, Unknown):
            return Constant((left is right) == (symbol == "is"), traits)
    if symbol in ("==", "!=") and _is_code(left) and _is_code(right):
        return Constant(_is_same_code(left, right) == (symbol == "=="), traits)
    if symbol in ("in", "not in"):
        if _is_code(left) and isinstance(right, Sequence) and not right.more and all(map(_is_code, right.items)):
            return Constant(any(_is_same_code(left, each) for each in right.items) == (symbol == "in"), traits)
        found_in = _contains(left, right) if isinstance(left, Constant) else _holds_found(machine, left, right)
        if found_in is not None:
            return Constant(found_in == (symbol == "in"), traits)
    if isinstance(left, Tensor) or isinstance(right, Tensor):
        found_tensor = machine.models.binary(machine, symbol, left, right, node)
        if found_tensor is not None:
            return found_tensor
    if symbol in ("==", "!=") and bool(left.traits & _COUNTED) != bool(right.traits & _COUNTED):
        traits = traits | {"periodic"}  # one turn among others, such as the last
    if symbol in ("<", "<=", ">", ">=") and not traits & _COUNTED:
        written = any(isinstance(each, Constant) or is_constant_key(each.key) for each in (left, right))
        traits = traits | ({"better", "better than written"} if written else {"better"})
        higher, lower = (left, right) if symbol[0] == ">" else (right, left)
        if (bar := _bar(higher, lower)) is not None:
            machine.emit(Passed(machine.where(node), bar, written=_has_written(node)))
            traits = traits | {"passed by any"}
    if symbol in ("==", "!=") and text_of(right) is not None:
        keys = (machine.text_key(left, node), right.key)
    elif symbol in ("==", "!=") and text_of(left) is not None:
        keys = (left.key, machine.text_key(right, node))
    elif symbol in ("in", "not in") and (listed := _listed(right)) is not None:
        is_text = any(text_of(each) is not None for each in right.items) if isinstance(right, Sequence) else False
        keys = (machine.text_key(left, node) if is_text else left.key, (ANY_OF, listed))
    else:
        keys = (identified(left).key, identified(right).key)
    key = (symbol, *keys) if None not in keys else None
    return Unknown(key, traits, plain=True)


def _note_talk(machine: Machine, symbol: str, left: Value, right: Value, node: ast.AST) -> None:
    """Write down that the messages of a talk are searched for a text, or compared with one."""
    compares = symbol in ("==", "!=") and isinstance(left, Sequence) and left.talk
    searched = left if compares else right
    other = right if compares else left
    asks = symbol in ("in", "not in", "==", "!=") and isinstance(searched, Sequence) and searched.talk
    if asks and not isinstance(other, (Sequence, Mapping)) and not is_constant(other, None):
        machine.emit(TalkAsked(machine.where(node), f"`{symbol}`", raises=False))


def _is_device_among_constants(left: Value, right: Value) -> bool:
    """Whether one is a `torch.device` and the other a text, or constants of which none is a device: it equals none of these."""
    device, other = (left, right) if is_device(left) else (right, left)
    if not is_device(device):
        return False
    if isinstance(other, Sequence) and device is left and not other.more:
        return all(isinstance(each, Constant) and not is_device(each) for each in other.items)
    return isinstance(other, Constant) and not is_device(other)


_HUGE = 999  # no value that is known to be good


def _bar(higher: Value, lower: Value) -> Value | None:
    """Of a test for the higher number the one that it passes if it is any at all."""
    least, most = number_of(lower), number_of(higher)
    if least is not None and least <= 0 and not isinstance(higher, Constant):
        return lower
    huge = is_constant_key(higher.key) if most is None else most >= _HUGE
    return higher if huge and not isinstance(lower, Constant) else None


def _has_written(test: ast.AST) -> bool:
    """Whether a number is written in a test, as in `-1 < step`."""
    sides = [test.left, *test.comparators] if isinstance(test, ast.Compare) else []
    inner = [each.operand if isinstance(each, ast.UnaryOp) else each for each in sides]
    return any(isinstance(each, ast.Constant) for each in inner)


def _holds_found(machine: Machine, value: Value, container: Value) -> bool | None:
    """Whether a written list of constants holds the one that an unknown was found to be."""
    found, listed = machine.equals.get(machine.texts.get(value, value.key)), _listed(container)
    return None if found is None or listed is None else found in listed


def _listed(container: Value) -> tuple[Hashable, ...] | None:
    """The keys of the constants that a written list holds, in an order of their own; None where it holds anything else."""
    if not isinstance(container, Sequence) or container.more:
        return None
    if not all(isinstance(each, Constant) for each in container.items):
        return None
    return tuple(sorted({each.key for each in container.items}, key=repr))


def _rank_of(machine: Machine, symbol: str, rank: Value, other: Value) -> Value:
    """A rank that is not the first as the one that a test names first, `rank == 1`; another value as it is."""
    if not isinstance(rank, Constant) or "rank" not in rank.traits or rank.value != UNNAMED_RANK:
        return rank
    number = other.value if isinstance(other, Constant) else None
    if machine.other_rank is None and symbol in ("==", "!=") and type(number) is int and number > 0:
        machine.other_rank = number
    return Constant(machine.other_rank or UNNAMED_RANK, rank.traits)


def _is_first(value: Value) -> bool:
    """Whether a value is the number of the first rank, or of none: 0, -1 or a list of these."""
    if isinstance(value, Sequence):
        return bool(value.items) and not value.more and all(map(_is_first, value.items))
    return is_constant(value, 0, -1)


def _are_told_apart(symbol: str, left: Instance, right: Instance) -> bool:
    by_value = left.kind in _BY_VALUE or right.kind in _BY_VALUE
    return symbol in ("is", "is not") or (symbol in ("==", "!=") and (left is right or not by_value))


def _is_code(value: Value) -> bool:
    """Whether it is a function or a class, of the program or of what is known well enough to tell it from others."""
    return isinstance(value, (Function, Class)) or (
        isinstance(value, Library)
        and (value.path.partition(".")[0] in ("builtins", "torch", "types") or value.path == "numpy.ndarray")
    )


def _is_same_code(left: Value, right: Value) -> bool:
    return left is right or (isinstance(left, Library) and isinstance(right, Library) and left.path == right.path)


def _as_flag(symbol: str, left: Value, right: Value) -> Value | None:
    """What asks whether an unknown is True, or False, as a test of it by itself, or of its opposite."""
    unknown, constant = (left, right) if isinstance(left, Unknown) else (right, left)
    if symbol not in ("is", "is not", "==", "!=") or not (is_constant(constant, True) or is_constant(constant, False)):
        return None
    if not isinstance(unknown, Unknown) or not isinstance(constant, Constant) or unknown.key is None:
        return None
    positive = (symbol in ("is", "==")) == constant.value
    return Unknown(unknown.key if positive else ("not", unknown.key), traits_of(left, right), plain=True)


def _is_none(positive: bool, left: Value, right: Value, traits: Traits) -> Value:
    if isinstance(left, Constant):
        return Constant((left.value is None) == positive, traits)
    open_name = isinstance(left, Library) and left.may_be_flag()
    surely_something = (isinstance(left, _OBJECTS) and not open_name) or (
        isinstance(left, Instance) and left.kind != "unknown"
    )
    if surely_something or (isinstance(left, Unknown) and left.plain):
        return Constant(not positive, traits)
    key = ("is" if positive else "is not", left.key, right.key) if identified(left).key is not None else None
    return Unknown(key, traits, plain=True)


def _same(symbol: str, left: Constant, right: Constant) -> Constant:
    same = left.value is right.value or (type(left.value) is type(right.value) and left.value == right.value)
    return Constant(same == (symbol == "is"))


def _contains(item: Constant, container: Value) -> bool | None:
    if isinstance(container, Instance):  # of a class that is a dict
        container = container.attributes.get("#items", container)
    try:
        if isinstance(container, Mapping):
            return True if item.value in container.items else (None if container.more else False)
        if isinstance(container, Sequence) and all(isinstance(each, Constant) for each in container.items):
            found = item.value in [each.value for each in container.items if isinstance(each, Constant)]
            return True if found else (None if container.more else False)
    except TypeError:
        return None
    return None
