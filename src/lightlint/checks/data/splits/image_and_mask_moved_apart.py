from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import combinations
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Called, CalledUnknown, Forward, LossComputed, Picked, SampleMade, Transformed
from lightlint.explore.questions.queries import beside
from lightlint.explore.samples import part_of_batch, parts_in, parts_of
from lightlint.models.data.pictures.transforms import AS_TOLD, drawing
from lightlint.models.data.workers import NUMBER
from lightlint.values.core import Library, Mapping, Sequence, Unknown, is_constant, number_of
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Value

_MODES = ("1", "L", "P")  # of pictures with one number for each place
_FLAGS = ("ImageReadMode.GRAY", "cv2.IMREAD_GRAYSCALE")
_JOINING = ("torch.cat", "torch.concat", "torch.concatenate")
_SEEDING = ("manual_seed", "seed", "seed_everything", "set_rng_state", "setstate", "fork_rng")
_DEEPEST = 4
_TO_CLASSES = ("long", "bool", "int", "round", "byte")


class ImageAndMaskMovedApart(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Random moves that are drawn once for a picture, and once more for the mask, or the picture, that it is held against."""
        for path in entry.paths:
            for sample in path.of(SampleMade):
                seeded = any(isinstance(each, Called) and each.name in _SEEDING for each in sample.events)
                moved = [each for each in sample.events if isinstance(each, Transformed) and _moves(each)]
                if seeded or len(moved) < 2 or any(len(each.given) != 1 for each in moved):
                    continue
                masks = [each for each in moved if _is_mask(sample, each)]
                pictures = [each for each in moved if each not in masks]
                if masks and pictures:
                    covers = _covers(path, sample, moved, masks[0], pictures[0])
                    pairs = [] if covers else [(masks[0], pictures[0], "mask")]
                else:
                    by_part = _moved_parts(sample, moved)
                    pairs = [*_held_against(path, sample, moved, by_part), *_laid_upon(path, sample, by_part)]
                for mask, picture, what in pairs[:1]:
                    shared = {draw for each in moved if each is not mask for draw in _drawn_for(each)}
                    if mask.given[0] is not picture.given[0] and not _drawn_for(mask) & shared:
                        name = next((each.name for each in drawing(mask.transform, moving=True)), mask.transform.name)
                        message = f"`{name}` draws anew for the {what}: it is moved otherwise than its picture"
                        yield Fault(
                            beside(mask, picture), message, None, (mask.site, picture.site), mask.where.places[1:]
                        )


def _moves(event: Transformed) -> bool:
    """Whether things in a picture are moved at random: by a transform that draws, or by what was drawn before."""
    return next(drawing(event.transform, moving=True), None) is not None or bool(_drawn_for(event))


def _drawn_for(event: Transformed) -> set[Hashable]:
    """The draws that decide whether, or how far, a function moves a picture, or whether a transform surely does."""
    if event.transform.name not in AS_TOLD:
        told = [each for found in drawing(event.transform, moving=True) for each in found.arguments.values()]
        return {draw for each in told for draw in _draws(each.key)}
    keys = [each.key for each in event.where.conditions if not each.known]
    return {draw for key in (*keys, *(each.key for each in event.transform.arguments.values())) for draw in _draws(key)}


def _draws(key: Hashable) -> Iterator[Hashable]:
    if isinstance(key, tuple):
        if key[:1] == ("drawn",):
            yield key
        else:
            yield from (draw for each in key for draw in _draws(each))


def _is_mask(sample: SampleMade, event: Transformed) -> bool:
    """Whether what is moved is a map of classes: a picture of one channel, or something that is made classes of."""
    if any(is_constant(each, *_MODES) or _is_flag(each) for each in _origins(event.given[0])):
        return True
    results = [event.result, *(each.result for each in sample.events if isinstance(each, Transformed))]
    for each in sample.events:
        if isinstance(each, CalledUnknown) and getattr(each.callee, "hint", "") in _TO_CLASSES:
            holder = getattr(each.callee, "holder", None)
            if holder is event.result and holder in results:
                return True
    return False


def _is_flag(value: Value) -> bool:
    return isinstance(value, Library) and value.path.endswith(_FLAGS)


def _origins(value: Value, depth: int = 0) -> Iterator[Value]:
    yield value
    if isinstance(value, Unknown) and depth < _DEEPEST:
        terms = value.terms[1] if value.terms is not None else ()
        for each in (*value.lent, *terms, *([] if value.given_by is None else [value.given_by])):
            yield from _origins(each, depth + 1)


def _covers(path: Path, sample: SampleMade, moved: list[Transformed], mask: Transformed, picture: Transformed) -> bool:
    """Whether a mask is no answer to its picture, but covers what a model shall fill in: it is drawn or picked by a number of its own,
    multiplied with the picture, or given to a model, or the picture is what a loss asks for."""
    drawn, shared = ({draw for each in _origins(of.given[0]) for draw in _draws(each.key)} for of in (mask, picture))
    if drawn - shared - _drawn_for(mask) or _is_picked_apart(sample, mask, picture):
        return True
    by_part = {key: _moves_of(value, moved) for key, value in parts_of(sample.loader).items()}
    if any(mask in moves and picture in moves for moves in by_part.values()):
        return True
    holding = {key for key, moves in by_part.items() if mask in moves}
    asked = [(each.input, each.target) for each in path.of(LossComputed)]
    given = [one for each in path.of(Forward) if not any(one.graph for one in each.inputs) for one in each.inputs]
    factors = [side for each in (*given, *(one for pair in asked for one in pair)) for side in _factors(each)]
    wanted = {key for _, target in asked for each in _terms(target) if (key := _part_of(sample, each)) in by_part}
    if any(_part_of(sample, each) in holding for each in (*given, *factors)):
        return True
    return any(picture in by_part[key] for key in wanted) and not wanted & holding


def _is_picked_apart(sample: SampleMade, mask: Transformed, picture: Transformed) -> bool:
    """Whether a mask is taken by a number that wraps around or is drawn, and its picture by that of the sample."""
    of_mask, of_picture = ([*_picked_by(sample, each)] for each in (mask, picture))
    return NUMBER in of_picture and any(any(_draws(key)) or _wraps(key) for key in of_mask)


def _picked_by(sample: SampleMade, event: Transformed) -> Iterator[Hashable]:
    """The numbers by which that was taken which is moved."""
    origins = [*_origins(event.given[0])]
    for each in sample.events:
        if isinstance(each, Picked) and any(each.item is one for one in origins):
            yield each.index.key


def _wraps(key: Hashable) -> bool:
    return isinstance(key, tuple) and (key[:1] == ("%",) or any(map(_wraps, key)))


def _terms(value: Value | None, depth: int = 0) -> Iterator[Value]:
    """A tensor and what it was made of by adding, taking away and multiplying."""
    if value is not None:
        yield value
        for each in value.terms[1] if value.terms is not None and depth < _DEEPEST else ():
            yield from _terms(each, depth + 1)


def _factors(value: Value | None) -> Iterator[Value]:
    for each in _terms(value):
        if each.terms is not None and each.terms[0] == "*":
            yield from (one for side in each.terms[1] for one in _terms(side))


def _moved_parts(sample: SampleMade, moved: list[Transformed]) -> dict[Hashable, Transformed]:
    """The last move of each part of a sample that is moved."""
    found = {key: _moves_of(value, moved) for key, value in parts_of(sample.loader).items()}
    return {key: moves[0] for key, moves in found.items() if moves}


def _held_against(
    path: Path, sample: SampleMade, moved: list[Transformed], by_part: dict[Hashable, Transformed]
) -> Iterator[tuple[Transformed, Transformed, str]]:
    """What is moved by itself and is the target of a loss, whose input a model made of another picture of the same sample."""
    parts = parts_of(sample.loader)
    for loss in path.of(LossComputed) if len(by_part) > 1 else ():
        target, given = loss.target, loss.input
        key = _part_of(sample, target)
        if key not in by_part or not isinstance(given, Tensor):
            continue
        passes = [each for each in path.of(Forward) if each.graph & given.graph]
        seen = {part for each in passes for one in each.inputs if (part := _part_of(sample, one)) is not None}
        within = {each for each in seen if each in by_part and by_part[key] in _moves_of(parts[each], moved)}
        others = [by_part[each] for each in seen - within if each in by_part]
        if key not in seen and others and not within:
            yield by_part[key], others[0], "picture that it is held against"


def _laid_upon(
    path: Path, sample: SampleMade, by_part: dict[Hashable, Transformed]
) -> Iterator[tuple[Transformed, Transformed, str]]:
    """Pictures of a sample that are moved by themselves, and of which, or of what is made of them, the channels are put together:
    each place of one is taken for the same place of the other."""
    joins = [each for each in path.of(Called) if each.path in _JOINING] if len(by_part) > 1 else []
    for call in joins:
        items = call.argument("tensors", 0) if number_of(call.argument("dim", 1)) in (1, -3) else None
        held = items.items if isinstance(items, Sequence) else []
        of = [
            {key for loader, key in parts_in(each) if loader.data is sample.loader.data} & by_part.keys()
            for each in held
        ]
        for first, second in combinations((next(iter(each)) for each in of if len(each) == 1), 2):
            if first != second and by_part[first] is not by_part[second]:
                one, other = sorted((by_part[first], by_part[second]), key=lambda each: each.time)
                yield other, one, "picture that is laid upon another"


def _moves_of(value: Value, moved: list[Transformed]) -> list[Transformed]:
    """The moves that a value went through, and what it is made of; the last one first."""
    found = [each for each in reversed(moved) if any(_gave(each, one) for one in _origins(value))]
    before = [one for each in found if isinstance(each.result, Tensor) for one in _moves_of(each.given[0], moved)]
    return [each for each in reversed(moved) if each in found or each in before]


def _gave(event: Transformed, value: Value) -> bool:
    result = event.result
    return value is result or (isinstance(result, Mapping) and any(value is each for each in result.items.values()))


def _part_of(sample: SampleMade, value: Value | None) -> Hashable:
    """Which part of a loader's samples a tensor is, wherever it was moved; None for none."""
    found = part_of_batch(value)
    return found[1] if found is not None and found[0].data is sample.loader.data else None
