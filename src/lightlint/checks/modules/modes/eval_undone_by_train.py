from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Forward, ModeSet
from lightlint.explore.questions.certain import held_anyhow
from lightlint.models.training.modules import by_mode
from lightlint.values.core import Class
from lightlint.values.training import Module

if TYPE_CHECKING:
    from lightlint.engine.frames import Condition
    from lightlint.explore.rehearsals import Entry


class EvalUndoneByTrain(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Parts that are put in eval mode, and in training mode with their whole before anything runs them."""
        found: dict[ModeSet, ModeSet] = {}
        for path in entry.paths:
            modes, runs = path.of(ModeSet), path.of(Forward)
            for made in modes:
                part = made.module
                if made.training or part.escaped or not _is_of_layers(made):
                    continue
                later = [each for each in modes if each.time > made.time and part in each.module.modules()]
                undone = next((each for each in later if each.training), None)
                again = any(not each.training for each in later) or undone is None or undone.module is part
                if again or undone is None or _is_told(undone) or _sets_modes(undone.module):
                    continue
                if _is_all_that_learns(made, undone.module) or _holds_for_another(made, undone, modes):
                    continue
                used = [run for run in runs if run.time > made.time and _runs(run, part)]
                if used and used[0].time > undone.time and any(run.training for run in used):
                    found[made] = undone
        message = "undone before it is used: `train()` puts the whole module in training mode"
        for made in held_anyhow(found, lambda each: [*_choosing(each), *found[each].where.conditions]):
            yield Fault.at(made, message)


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
    asked = made.where.conditions
    return [each for each in asked if not (isinstance(each.key, tuple) and each.key[0] == "is instance")]


def _sets_modes(module: Module) -> bool:
    """Whether a class of the program sets modes in a way of its own."""
    return any(isinstance(each.cls, Class) and each.cls.find("train") is not None for each in module.modules())


def _runs(run: Forward, part: Module) -> bool:
    return part in run.module.modules() or run.module in part.modules()
