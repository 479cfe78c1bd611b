"""Which part of a sequence a slice is: where it begins in the whole that it was cut out of."""

from __future__ import annotations

from lightlint.values.core import Constant, Sequence, Unknown, Value, is_constant, number_of, places_of


def begins(index: Value) -> Value | None:
    """Where an index begins in the last dimension, if it takes a slice of that, each of its places, and all of the others."""
    places = places_of(index)
    slices = [each.items for each in places if isinstance(each, Sequence) and each.kind == "slice"]
    whole = all(is_constant(part, None) for each in slices[:-1] for part in each)
    if not slices or len(slices) != len(places) or not whole:
        return None
    first, _, *step = slices[-1]
    return first if all(is_constant(each, None, 1) for each in step) else None


def note(part: Value, whole: Value, index: Value) -> None:
    """Keep of a part which slice of the whole it is, or of what the whole was cut out of where that can be told."""
    start = begins(index)
    if start is not None and part is not whole:
        part.cut_from = _in_source(whole, start) or (whole, start)


def _in_source(whole: Value, start: Value) -> tuple[Value, Value | None] | None:
    if whole.cut_from is None:
        return None
    source, before = whole.cut_from
    earlier, further = _number(before), _number(start)
    if further is None or further < 0 or (earlier is not None and earlier < 0):
        return None
    if earlier is not None:
        return source, Constant(earlier + further)
    if before is None or before.key is None:
        return None
    return source, before if further == 0 else Unknown(("+", before.key, Constant(further).key), plain=True)


def _number(start: Value | None) -> int | None:
    if start is None or is_constant(start, None):
        return 0
    number = number_of(start)
    return number if isinstance(number, int) else None


def keep(made: Value, source: Value | None) -> None:
    """Something has the numbers of a part, in another form."""
    if source is not None and source.cut_from is not None:
        made.cut_from = source.cut_from


def keep_all(made: Value, sources: list[Value]) -> None:
    """Parts that begin at the same place were put one beside the other."""
    held = [each.cut_from for each in sources]
    first = held[0] if held else None
    if first is not None and all(
        each is not None and each[0] is first[0] and _same(each[1], first[1]) for each in held
    ):
        made.cut_from = first


def _same(one: Value | None, other: Value | None) -> bool:
    if one is other:
        return True
    key = one.key if one is not None else None
    return key is not None and other is not None and key == other.key
