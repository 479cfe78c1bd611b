from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path as File
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import OptimizerMade, StateLoaded, Stepped
from lightlint.explore.questions.certain import held_anyhow
from lightlint.explore.questions.queries import in_sight
from lightlint.values.core import Mapping, Site, site_of
from lightlint.values.training import Optimizer

if TYPE_CHECKING:
    from lightlint.engine.frames import Condition
    from lightlint.explore.rehearsals import Entry, Path


class RestoredOptimizerReplaced(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Optimizers made anew over parameters whose optimizer has just got its state back and takes no step any more."""
        found: dict[OptimizerMade, StateLoaded] = {}
        for path in entry.paths:
            stepped = path.of(Stepped)
            loaded = [
                event for event in path.of(StateLoaded) if isinstance(event.object, Optimizer) and _is_kept(event)
            ]
            for made in path.of(OptimizerMade):
                for load in loaded:
                    old, new = load.object, made.optimizer
                    if not isinstance(old, Optimizer) or not in_sight([old, new]) or not load.time < made.time:
                        continue
                    if entry.name != "main" and not _is_one_run(path, load, made):
                        continue
                    same = set(old.parameters) & set(new.parameters)
                    again = any(each.object is new for each in loaded)
                    lost = same and not again and not any(s.optimizer is old and s.time > load.time for s in stepped)
                    if lost and any(s.optimizer is new for s in stepped) and not _is_left(path, load):
                        found[made] = load
        for made in held_anyhow(found, lambda each: _apart(each, found[each])):
            file, row = found[made].site[:2]
            line = f"line {row}" if file == made.site[0] else f"line {row} of {File(file).name}"
            yield Fault.at(made, f"the optimizer is made anew: the state that {line} loads into it is never used")


def _is_kept(event: StateLoaded) -> bool:
    """Whether a state is of an earlier run, not one that this run took and puts back."""
    return not isinstance(event.state, Mapping) or event.state.loaded is not None


def _is_left(path: Path, load: StateLoaded) -> bool:
    """Whether the program says that it has no use for the optimizer: of what the function gives that made and loaded it, some is
    bound to `_` or not taken at all."""
    calls = load.where.calls
    made = [event.where.calls for event in path.of(OptimizerMade) if event.optimizer is load.object]
    return any(
        calls[: depth + 1] == each[: depth + 1] and _takes_some(path, call.site)
        for each in made
        for depth, call in enumerate(calls)
    )


def _takes_some(path: Path, call: Site) -> bool:
    """Whether a place takes only some of what it calls for."""
    tree = path.machine.sources.tree(call[0])
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, (ast.Assign, ast.Subscript)) and site_of(call[0], node.value) == call:
            return isinstance(node, ast.Subscript) or any(_has_blank(each) for each in node.targets)
    return False


def _has_blank(target: ast.expr) -> bool:
    return any(isinstance(each, ast.Name) and each.id.startswith("_") for each in ast.walk(target))


def _apart(made: OptimizerMade, load: StateLoaded) -> Iterator[Condition]:
    """The tests that decide about an optimizer, and not about what is loaded."""
    tested = {each.site for each in load.where.conditions}
    yield from (each for each in made.where.conditions if each.site not in tested)


def _is_one_run(path: Path, load: StateLoaded, made: OptimizerMade) -> bool:
    """Whether a program that loads surely goes on to make the optimizer before anything else trains: in one function, or
    from `__init__` to the one method that steps."""
    first, second = load.where.calls[:1], made.where.calls[:1]
    if first == second:
        return True
    steps = [event for event in path.of(Stepped) if event.optimizer is made.optimizer]
    alone = all(event.where.calls == second for event in steps)
    return bool(first) and first[0].function.name == "__init__" and alone
