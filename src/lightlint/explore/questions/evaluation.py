"""What a training program does nothing with but evaluate, and which weights it takes from elsewhere."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from lightlint.engine.events import BatchDrawn, Forward, StateLoaded, Stepped
from lightlint.explore.questions.queries import identity_of, in_sight
from lightlint.models.names.kinds import kind_of_class
from lightlint.values.core import Mapping
from lightlint.values.training import Loader

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path


def evaluated_loaders(entry: Entry) -> dict[Hashable, tuple[Loader, Forward]]:
    """The loaders whose batches go through modules that the program trains in evaluation alone, each with one such pass."""
    return entry.once(_evaluated_loaders)


def _evaluated_loaders(entry: Entry) -> dict[Hashable, tuple[Loader, Forward]]:
    found: dict[Hashable, tuple[Loader, Forward]] = {}
    trained: set[Hashable] = set()
    if not entry.turned or not all(path.finished for path in entry.paths):
        return found  # what trains on them may lie behind
    for path in entry.paths:
        stepped = {each for event in path.of(Stepped) for each in event.parameters}
        for event in path.of(Forward):
            evaluates = not event.training and not any(graph.used for graph in event.graph)
            for loader in {each.batch_of for each in event.inputs} - {None}:
                assert loader is not None
                if not evaluates or not in_sight([loader]) or loader.open_arguments:
                    trained.add(identity_of(loader))
                elif event.where.phase in ("val", "test") or (
                    stepped & set(event.parameters) and _goes_over(event, loader)
                ):
                    found.setdefault(identity_of(loader), (loader, event))
        trained |= _drawn_by_hand(path)
    return {each: pair for each, pair in found.items() if each not in trained}


def _drawn_by_hand(path: Path) -> set[Hashable]:
    """The loaders whose batches come out by no loop over them, and of no framework: of such anything may become."""
    found: set[Hashable] = set()
    pending: set[Loader] = set()
    for event in path.events:
        if pending:
            pending -= {turn.loop.over for turn in event.where.turns if isinstance(turn.loop.over, Loader)}
        if isinstance(event, BatchDrawn) and not event.where.phase:
            if event.loader in pending:
                found.add(identity_of(event.loader))
            pending.add(event.loader)
    return found | {identity_of(each) for each in pending}


def _goes_over(event: Forward, loader: Loader) -> bool:
    """Whether a pass is one of a loop over a loader, and none over a batch for show."""
    return any(turn.loop.kind == "batch" and turn.loop.over is loader for turn in event.where.turns)


_LIGHTNING = "LightningModule"


def is_saved_state(event: StateLoaded) -> bool:
    """Whether a state comes from a file, and no module loads it into itself or its parts: that one is trained elsewhere, but
    for a LightningModule, which says what is."""
    inside = [each.function.owner for each in event.where.calls if each.function.owner is not None]
    inside = [each for each in inside if _LIGHTNING not in {name.rpartition(".")[2] for name in each.libraries()}]
    other = isinstance(event.state, Mapping) and (event.state.source is not None or event.state.items)
    return not other and not any(kind_of_class(each) == "module" for each in inside)
