from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Passed, StateLoaded, Stepped, Written
from lightlint.explore.questions.checkpoints import counted_behind, idle_keys, read_keys, saves_of, unread
from lightlint.explore.questions.queries import in_sight, loops_again
from lightlint.facts.code.bindings import Kind
from lightlint.values.core import Constant, Mapping, number_of
from lightlint.values.training import Optimizer

if TYPE_CHECKING:
    from lightlint.engine.events import Event
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Value


class ResumedNumberNotRead(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Numbers that are saved with an optimizer's state, and not read by what loads this back to go on."""
        paths = [path for each in self.facts.rehearsed.entries for path in each.paths]
        read, idle = read_keys(paths), idle_keys(paths)
        for path in entry.paths:
            for load in path.of(StateLoaded):
                source = getattr(load.state, "loaded", None)
                if not isinstance(load.object, Optimizer) or not isinstance(source, tuple):
                    continue
                keys = read.get(source[0].site)
                if keys is None or not in_sight([load.object]):
                    continue
                saves, unused = [*saves_of(paths, load.object)], idle.get(source[0].site, set())
                for save in saves:
                    for key, value in unread(save, keys, unused):
                        found = _faults(path, load, save, (key, key in unused), value)
                        yield from (each for each in found if not self._starts_at_what_is_loaded(each, source[0]))
                if saves and not any(map(_holds_result, saves)):
                    yield from self._saved_nowhere(path, load)

    def _starts_at_what_is_loaded(self, fault: Fault, load: Event) -> bool:
        """Whether where a range starts has a name that says which file is loaded, or whether one is: `epoch{start}.pth`."""
        made = self.node_of(fault.site)
        first = made.args[0].value if isinstance(made, cst.Call) and len(made.args) > 1 else None
        name = getattr(first, "attr", first)
        asked = [self.node_of(each.site) for each in load.where.conditions]
        told = [each for each in (*asked, self.node_of(load.site)) if each is not None]
        return isinstance(name, cst.Name) and any(
            name.value == each.value for node in told for each in self.tree.within(node, cst.Name)
        )

    def _saved_nowhere(self, path: Path, load: StateLoaded) -> Iterator[Fault]:
        """Where a resumed run saves its first result as the best one, over the best of the run before."""
        passed = [event for event in path.of(Passed) if event.time > load.time]
        if not passed or not _is_trained(path, load):
            return
        again = loops_again(path)
        for event in passed:
            loop = event.where.turns[-1].loop if event.where.turns else None
            alone = sum(each.site == event.site for each in passed) == 1  # the next one has another to beat
            saves = (each for each in path.of(Written) if each.time > event.time and each.where.same_turn(event.where))
            found = loop in again and alone and any(map(_is_best_of_all, saves))
            if found and self._may_be_beaten(event):
                yield Fault.at(event, _MESSAGE.format(_shown(event.bar)))

    def _may_be_beaten(self, test: Passed) -> bool:
        """Whether what a number is compared with may be another one later: neither is written there, or set once for all."""
        node = self.node_of(test.site)
        sides = [node.left, *(each.comparator for each in node.comparisons)] if isinstance(node, cst.Comparison) else []
        return not test.written and not any(map(self._is_set_once, sides))

    def _is_set_once(self, value: cst.BaseExpression) -> bool:
        """Whether a name is set before the loops around its use only."""
        bound = self.names.bindings.lookup(value) if isinstance(value, cst.Name) else []
        loops = self.tree.loops(value)
        inside = any(self.tree.contains(loop.body, each.site) for loop in loops for each in bound)
        return bool(bound and loops) and not inside and all(each.kind is Kind.ASSIGN for each in bound)


def _is_trained(path: Path, load: StateLoaded) -> bool:
    """Whether the optimizer whose state is loaded steps behind that."""
    return any(event.optimizer is load.object and event.time > load.time for event in path.of(Stepped))


_RESULT = re.compile(
    r"best|loss|acc|score|metric|result|min|max|low|high|top|err|psnr|ssim|iou|dice|f1|map|auc|bleu|ppl|stop|patience|monitor",
    re.IGNORECASE,
)
"""What numbers are called that may be the best so far."""


def _holds_result(save: Written) -> bool:
    """Whether a checkpoint holds what may be the best result so far."""
    return isinstance(save.value, Mapping) and _holds(save.value)


def _holds(held: Mapping, depth: int = 0) -> bool:
    """Whether one of its names, or of the states within it, is that of a result; a state out of sight may have one."""
    named = any(isinstance(key, str) and _RESULT.search(key) for key in held.items)
    inner = [each for each in held.items.values() if isinstance(each, Mapping)] if depth < _DEPTH else []
    return named or any((each.more and each.source is None) or _holds(each, depth + 1) for each in inner)


_DEPTH = 4
"""How many states within each other are looked through."""


_MESSAGE = "a resumed run has {} to beat again, as no checkpoint says what the best one was: its first result is saved over that"
_NUMBERED = frozenset(["index", "count", "batch-mean", "batch-sum", "own data", "summed", "samples", "batches"])
"""What numbers in the names of files are that keep one file from being written over another."""


def _shown(bar: Value) -> str:
    return f"{bar.value:g}" if isinstance(bar, Constant) and isinstance(bar.value, (int, float)) else "nothing"


def _is_best_of_all(save: Written) -> bool:
    """Whether a file of one name is written because a result passes what there is to beat."""
    asked = [each for each in save.where.conditions if "passed by any" in each.traits]
    by_result = any(not each.traits & {"index", "count"} for each in asked)
    return by_result and save.name == "torch.save" and save.path is not None and not save.path.traits & _NUMBERED


def _faults(
    path: Path, load: StateLoaded, save: Written, entry: tuple[Hashable, bool], value: Value
) -> Iterator[Fault]:
    key, is_read = entry
    what = f"`{key}` is {'read from' if is_read else 'in'} its checkpoint and never {'used' if is_read else 'read'}"
    for begun in counted_behind(path, load, value) if _is_trained(path, load) else ():
        if (first := number_of(begun.first)) is not None:
            yield Fault.at(begun, f"a resumed run starts at {first} again: {what}")
    later = [each for each in path.of(Written) if each.site == save.site and each.time > load.time]
    if later and _is_best(later[0], key):
        yield Fault.at(load, f"a resumed run forgets what it has to beat: {what}")


def _is_best(save: Written, key: Hashable) -> bool:
    """Whether a checkpoint is written because a number that it holds is better than one that the program writes down."""
    value = save.value.items.get(key) if isinstance(save.value, Mapping) else None
    measured = value.traits - {"index", "count"} if value is not None else frozenset()
    asked = [each for each in save.where.conditions if "better than written" in each.traits]
    return bool(measured) and any(measured <= each.traits for each in asked)
