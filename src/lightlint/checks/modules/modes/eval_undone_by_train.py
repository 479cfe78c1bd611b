from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Forward, ModeSet
from lightlint.explore.questions.certain import held_anyhow, wherever
from lightlint.models.training.modules import by_mode
from lightlint.values.core import Class, Constant
from lightlint.values.training import Module

if TYPE_CHECKING:
    from lightlint.engine.frames import Condition
    from lightlint.explore.rehearsals import Entry


class EvalUndoneByTrain(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Parts that are put in eval mode, and in training mode with their whole before anything runs them."""
        found: dict[ModeSet, ModeSet] = {}
        asked: list[ModeSet] = []
        for path in entry.paths:
            modes, runs = path.of(ModeSet), path.of(Forward)
            for made in modes:
                part = made.module
                if made.training or part.escaped or not _is_of_layers(made):
                    continue
                asked.append(made)
                later = [each for each in modes if each.time > made.time and part in each.module.modules()]
                undone = next((each for each in later if each.training), None)
                if undone is None or undone.module is part or _is_told(undone) or _sets_modes(undone.module):
                    continue
                if _is_all_that_learns(made, undone.module) or _holds_for_another(made, undone, modes):
                    continue
                used = [run for run in runs if run.time > made.time and _runs(run, part)]
                trained = next((run for run in used if run.training), None)
                if trained is None or used[0].time < undone.time:
                    continue
                if not any(_puts_back(each, part, trained) for each in later):
                    found[made] = undone
        message = "undone before it is used: `train()` puts the whole module in training mode"
        anyhow = {*held_anyhow(found, lambda each: [*_choosing(each), *found[each].where.conditions])}
        whenever = (
            {*wherever((each, each in found) for each in asked)} if entry.turned else set()
        )  # an option asks for it
        for made in found:
            if made in anyhow or made in whenever:
                yield Fault.at(made, message)


def _puts_back(mode: ModeSet, part: Module, trained: Forward) -> bool:
    """Whether a later `eval()` is for the part: one for the whole, behind the first run that trained it, is for a validation."""
    return not mode.training and (mode.module is part or mode.time < trained.time)


def _is_all_that_learns(made: ModeSet, whole: Module) -> bool:
    """Whether the whole has no parameter but those of the part and of wrappers around it: it is the same model, trained.

    What a test of its layer chose may stand for a few of the layers of a model out of sight.
    """
    if len(_choosing(made)) < len(made.where.conditions):
        return False
    part = made.module
    inside = part.modules()
    wrappers = [each for each in whole.modules() if each.unwrapped() is part]
    mine = {id(tensor) for each in wrappers for tensor in each.parameters()}
    hidden = any(each.opaque or each.more_items for each in whole.modules() if each not in [*inside, *wrappers])
    return bool(mine) and not hidden and all(id(each) in mine for each in whole.parameters())


def _holds_for_another(made: ModeSet, undone: ModeSet, modes: Sequence[ModeSet]) -> bool:
    """Whether the same line puts another module in eval mode, outside the whole, that no later line puts back."""
    inside = undone.module.modules()
    return any(
        each.site == made.site
        and not each.training
        and each.module not in inside
        and not any(
            later.training and later.time > each.time and each.module in later.module.modules() for later in modes
        )
        for each in modes
    )


def _is_told(undone: ModeSet) -> bool:
    """Whether a test that the program decides says when the whole is put in training mode."""
    return any(each.known for each in undone.where.conditions)


def _is_of_layers(made: ModeSet) -> bool:
    """Whether all known that decides about a call of `eval()` is what layer a part is, and the part may act by its mode."""
    return not any(each.known for each in _choosing(made)) and by_mode(made.module)


def _choosing(made: ModeSet) -> list[Condition]:
    """The tests around a call but for those of what layer a part is."""
    turns = made.where.turns
    one_by_one = bool(turns) and turns[-1].loop.kind in ("known", "elements") and not made.module.children()

    def asks_for_layer(key: Hashable | None) -> bool:
        told = isinstance(key, tuple) and key[0] == "is instance"
        return told or (one_by_one and key == Constant(True).key)  # of what is in sight it is no question

    return [each for each in made.where.conditions if not asks_for_layer(each.key)]


def _sets_modes(module: Module) -> bool:
    """Whether a class of the program sets modes in a way of its own."""
    return any(isinstance(each.cls, Class) and each.cls.find("train") is not None for each in module.modules())


def _runs(run: Forward, part: Module) -> bool:
    return part in run.module.modules() or run.module in part.modules()
