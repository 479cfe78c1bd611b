"""The rehearsals of a file: each of its entries, along the default path and those that flip one test."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar, cast

from lightlint.engine.events import Called, E, Event, FitStarted
from lightlint.engine.execution import LeaveLoop, NextTurn, Raised, Returned
from lightlint.engine.imports import module_of
from lightlint.engine.language import expressions, flow, statements  # noqa: F401 - their handlers register themselves
from lightlint.engine.machine import BudgetSpentError, Machine, Test
from lightlint.explore import programs
from lightlint.explore.besides import Others
from lightlint.explore.parsed import Named, Words, functions_of
from lightlint.explore.programs import MOST_METHODS, Start
from lightlint.explore.sources import ProjectSources
from lightlint.frameworks import deepspeed, fabric, huggingface, lightning, parts, trainers  # noqa: F401 - their methods register themselves
from lightlint.models.library import LibraryModels
from lightlint.models.names.kinds import kind_of_class
from lightlint.values.core import Class, Function

A = TypeVar("A")

_MOST_PATHS = 8
_STEPS_PER_PATH = 3_500
_TIMES_WHOLE = 3  # so many of these for the file as the main program: nothing is known of what a path does not come to
_STEPS_PER_FILE = 5_000  # some 15 microseconds each (Python 3.11, AMD EPYC)
_STEPS_OF_PASSES, _MOST_PATHS_OF_PASSES = 1_600, 3
_STEPS_OF_REST, _STEPS_PER_PATH_OF_REST, _MOST_PATHS_OF_REST = 2_000, 1_000, 3
_MOST_CHOICES, _MOST_PATHS_OF_CHOICE = 6, 3
_MOST_FUNCTIONS = 10
_MOST_BEGINNINGS = 3  # paths of an entry that are tried at once until one does not end by an exception
_NOT_CALLED = ("__", "on_", "test_")  # what functions are called that others call: Python, Lightning, pytest


@dataclass(eq=False)
class Path:
    """One rehearsal: the events of one path as one rank."""

    events: list[Event]
    flips: Mapping[Test, bool]
    rank: int
    machine: Machine
    finished: bool
    raised: bool = False  # the program ended by an exception that it does not catch
    fails: bool = False  # this exception was no `SystemExit`

    def of(self, kind: type[E]) -> Sequence[E]:
        """The events of a kind, in order."""
        return cast("Sequence[E]", self._by_kind.get(kind, []))

    def agrees_with(self, other: Path) -> bool:
        """Whether what is unknown is the same on both: a test that one of two ranks alone comes to may have been turned."""
        mine, theirs = self.machine, other.machine
        answered = all(mine.answers.get(key, outcome) == outcome for key, outcome in theirs.answers.items())
        bounded = all(mine.bounds[key].meets(each) for key, each in theirs.bounds.items() if key in mine.bounds)
        chosen = all(mine.choices[key].meets(each) for key, each in theirs.choices.items() if key in mine.choices)
        return answered and bounded and chosen

    @property
    def kinds(self) -> set[str]:
        """The names of the kinds of events that happened."""
        return {kind.__name__ for kind in self._by_kind}

    @cached_property
    def _by_kind(self) -> dict[type[Event], list[Event]]:
        """Sorted once: some sixty rules ask."""
        found: dict[type[Event], list[Event]] = {}
        for event in self.events:
            found.setdefault(type(event), []).append(event)
        return found


@dataclass(eq=False)
class Entry:
    """All rehearsals of one entry of a file, the default path first.

    `turned`: each test of that was turned; `whole`: it is the file as the main program.
    """

    name: str
    paths: list[Path] = field(default_factory=list)
    turned: bool = True
    whole: bool = False
    _answers: dict[object, object] = field(default_factory=dict)

    def pairs(self) -> Iterator[tuple[Path, Path]]:
        """The rehearsals as rank 0 and as rank 1 that differ in nothing else, and whose tests agree."""
        firsts = {frozenset(path.flips.items()): path for path in self.paths if path.rank == 0}
        for path in self.paths:
            first = firsts[frozenset(path.flips.items())]
            if path.rank == 1 and path.finished and first.finished and path.agrees_with(first):
                yield first, path

    def of(self, kind: type[E]) -> Iterator[E]:
        """The events of a kind in all rehearsals."""
        for path in self.paths:
            yield from path.of(kind)

    @cached_property
    def calls(self) -> dict[str, list[Called]]:
        """The calls of libraries by canonical name, as in `lightning.Trainer`; of methods by `.fit`."""
        found: dict[str, list[Called]] = {}
        for event in self.of(Called):
            name = event.path if event.receiver is None else f".{event.path}"
            found.setdefault(name, []).append(event)
        return found

    def once(self, question: Callable[[Entry], A]) -> A:
        """The answer to a question that several rules ask, worked out for the first of them."""
        if question not in self._answers:
            self._answers[question] = question(self)
        return cast("A", self._answers[question])


@dataclass(eq=False)
class _Begun:
    """An entry being rehearsed: the tests that are still to be turned, and those that were.

    Where it can be told what to do, as by a table of commands or of presets, each choice is an entry by itself.
    """

    entry: Entry
    start: Start
    whole: bool
    left: list[dict[Test, bool]] = field(default_factory=lambda: [{}])
    choice: dict[Test, bool] = field(default_factory=dict)  # which commands and presets it leaves out
    offered: list[dict[Test, bool]] = field(default_factory=list)  # choices that leave out another one
    seen: set[frozenset[tuple[Test, bool]]] = field(default_factory=set)


class Rehearsals:
    """All rehearsals of a file.

    Args:
        sources: its project.
        file: the file.
        training: whether it holds words of training; of another only the forward passes can be rehearsed.
    """

    def __init__(self, sources: ProjectSources, file: str, *, training: bool = True) -> None:
        self.file = file
        self._sources = sources
        self._steps = 0
        self.entries: list[Entry] = []
        self._begun: list[_Begun] = []
        self._called: set[int] = set()
        self._made: set[int] = set()
        self._fitted: set[int] = set()
        self.failures: list[str] = []
        self._first: Machine | None = None  # of the default path of the file as the main program
        self._second: Machine | None = None  # the same as another rank, where that differs
        self._left_for_rest, self._steps_per_path = _STEPS_OF_REST, _STEPS_PER_PATH
        self._of_rest: dict[int, Entry] = {}  # by the id of the function's node
        self._of_top: list[Entry] = []  # of a file that does not train
        tree = sources.tree(file)
        self._words = Words(tree or ast.Module([], []))
        if tree is not None and training:
            self._explore(tree)

    @cached_property
    def passes(self) -> list[Entry]:
        """Each module of the file, made with assumed arguments and called in training, then in evaluation mode."""
        tree, before, self.entries = self._sources.tree(self.file), self.entries, []
        self._steps = _STEPS_PER_FILE - _STEPS_OF_PASSES
        if (
            self._first is None
        ):  # a file that does not train: what it imports, and what its classes do not name, would cost more than all the rest
            self._sources = self._sources.alone()
            self._rehearse("main", programs.main(self.file), whole=True, most=1)
            self.entries.clear()
        for node in tree.body if tree is not None else []:
            if isinstance(node, ast.ClassDef) and self._is_a(node, "module"):
                self._rehearse(node.name, programs.passing(self.file, node.name), most=_MOST_PATHS_OF_PASSES)
        found, self.entries = self.entries, before
        return found

    def rest(self, words: frozenset[str]) -> list[Entry]:
        """The functions and methods with one of some words that have not run yet; of a file that does not train the module
        itself, too."""
        if self._others is None:
            return []
        others, before, steps = [*self._others.with_words(words)], self.entries, self._steps
        self.entries, self._steps = [], _STEPS_PER_FILE - self._left_for_rest
        self._steps_per_path = _STEPS_PER_PATH_OF_REST
        if self._first is None and (others or self._others.stand_outside(words)):
            self._sources = self._sources.alone(self.file)  # as for passes
            self._rehearse("main", programs.main(self.file), whole=True, most=_MOST_PATHS_OF_REST)
            self._of_top = [*self.entries]
        begun: list[_Begun] = []
        for each in others:
            if id(each.node) not in self._of_rest and id(each.node) not in self._called:
                method = programs.running_method(self.file, each.cls, each.name)
                start = method if each.cls else programs.running(self.file, each.name)
                begun.append(self._begin(each.name, start))
                self._of_rest[id(each.node)] = begun[-1].entry
        for one in begun:
            self._go_on(one, _MOST_PATHS_OF_REST)
        self._left_for_rest, self._steps, self.entries = _STEPS_PER_FILE - self._steps, steps, before
        self._steps_per_path = _STEPS_PER_PATH
        found = (self._of_rest.get(id(each.node)) for each in others)
        return [*self._of_top, *(each for each in found if each is not None)]

    @cached_property
    def _others(self) -> Others | None:
        tree = self._sources.tree(self.file)
        return Others(tree, self._words) if tree is not None else None

    def _is_a(self, node: ast.ClassDef, kind: str) -> bool:
        cls = self._first.modules[self.file].scope.names.get(node.name) if self._first is not None else None
        return isinstance(cls, Class) and kind_of_class(cls) == kind

    def _explore(self, tree: ast.Module) -> None:
        self._rehearse("main", programs.main(self.file), whole=True)
        classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
        bases = {getattr(base, "id", "") for node in classes for base in node.bases}
        words = self._words
        functions = [each for each in functions_of(tree.body) if not each.name.startswith("test_")]
        drivers = words.driving([each for each in functions if not self._has_run(each)])
        begun = [*self._begin_functions(drivers)]
        for node in classes:
            if node.name not in bases:  # else what it does is rehearsed with the class that it is a part of
                self._rehearse_class(node)
        methods = {id(each.node): node for node in classes for each in functions_of(node.body)}
        left = [*functions, *(each for node in classes for each in functions_of(node.body))]
        left = [each for each in left if not self._has_run(each) and not each.name.startswith(_NOT_CALLED)]
        training = words.training(left)
        begun += self._begin_functions([each for each in training if id(each.node) not in methods])
        for node in classes:
            own = [each for each in training if methods.get(id(each.node)) is node and not self._has_run(each)]
            for method in own[:MOST_METHODS]:
                if not self._has_run(method):
                    begun.append(
                        self._begin(
                            f"{node.name}.{method.name}", programs.running_method(self.file, node.name, method.name)
                        )
                    )
            begun += self._begin_making(node)
        begun += [
            self._begin(f"{each.name} in a loader", programs.loading(self.file, each.name))
            for each in self._unloaded(classes)
        ]
        for each in begun:
            self._go_on(each, _MOST_PATHS)
        self._choose_others()

    def _has_run(self, function: Named) -> bool:
        return id(function.node) in self._called

    def _begin_functions(self, functions: list[Named]) -> Iterator[_Begun]:
        for function in functions[:_MOST_FUNCTIONS]:
            if not self._has_run(function):
                yield self._begin(function.name, programs.running(self.file, function.name))

    def _rehearse(self, name: str, start: Start, *, whole: bool = False, most: int = _MOST_PATHS) -> None:
        self._go_on(self._begin(name, start, whole=whole), most)

    def _begin(self, name: str, start: Start, *, whole: bool = False) -> _Begun:
        """The default path of an entry: each entry gets one ahead of the turned tests of any."""
        begun = _Begun(Entry(name, whole=whole), start, whole)
        self._begun.append(begun)
        self.entries.append(begun.entry)
        for most in range(1, _MOST_BEGINNINGS + 1):
            self._go_on(begun, most)
            if not begun.entry.paths or not begun.entry.paths[-1].raised:
                break
        return begun

    def _go_on(self, begun: _Begun, most: int) -> None:
        while begun.left and self._steps < _STEPS_PER_FILE and len(begun.seen) < most:
            flips = begun.left.pop(0)
            if frozenset(flips.items()) in begun.seen:
                continue
            begun.seen.add(frozenset(flips.items()))
            come_to = set(flips)
            for rank in (0, 1):
                path = self._path(begun, flips, rank)
                begun.entry.paths.append(path)
                machine = path.machine
                if not flips and not rank:
                    begun.offered = [
                        {**begun.choice, each: False} for each in machine.offered if each not in begun.choice
                    ]
                if len(flips) < 2:
                    asked = sorted(machine.asked.items(), key=lambda each: each[0] not in machine.of_ranks)
                    turned = [{**flips, test: not outcome} for test, outcome in asked if test not in come_to]
                    come_to |= machine.asked.keys()
                    if path.raised and rank == 0:  # the last test before is the likeliest cause
                        begun.left[:0] = turned[-1:]
                        del turned[-1:]
                    begun.left += turned
                if not (machine.uses_rank or machine.distributed):
                    break
        begun.entry.turned = all(len(flips) > 1 or frozenset(flips.items()) in begun.seen for flips in begun.left)

    def _choose_others(self) -> None:
        """Rehearse entries with other commands and other presets of their tables."""
        left = [(begun, choice) for begun in self._begun for choice in begun.offered]
        for _ in range(_MOST_CHOICES):
            if not left or self._steps >= _STEPS_PER_FILE:
                return
            begun, choice = left.pop(0)
            other = _Begun(Entry(begun.entry.name, whole=begun.whole), begun.start, begun.whole, choice=choice)
            self.entries.append(other.entry)
            self._go_on(other, _MOST_PATHS_OF_CHOICE)
            left += [(other, each) for each in other.offered]

    def _machine(self, flips: Mapping[Test, bool], rank: int, *, whole: bool) -> Machine:
        budget = self._steps_per_path * (_TIMES_WHOLE if whole else 1)
        machine = Machine(self._sources, LibraryModels(), flips=flips, rank=rank, budget=budget)
        machine.file = self.file
        first = self._second if rank and self._second is not None else self._first
        if rank and whole and first is self._first and first is not None and first.uses_rank:
            first = None  # what an imported module knows of the rank is another thing on this one
        if first is not None:
            kept = {file: each for file, each in first.modules.items() if not whole or file != self.file}
            machine.go_on_from(first, kept)
        return machine

    def _path(self, begun: _Begun, flips: Mapping[Test, bool], rank: int) -> Path:
        """One path; of the whole file that is run anew, else what it defines is at hand. Its imports are run once for all."""
        machine = self._machine({**begun.choice, **flips}, rank, whole=begun.whole)
        finished, raised, fails = True, False, False
        try:
            begun.start(machine)
        except (BudgetSpentError, RecursionError):
            finished = False
        except Raised as left:
            raised = True
            fails = getattr(left.value, "path", "") != "builtins.SystemExit"
        except (Returned, LeaveLoop, NextTurn):
            pass
        except Exception as error:  # a hole in the models must not cost the other rules their findings
            finished = False
            self.failures.append(f"{type(error).__name__}: {error}")
        self._first = self._first or machine
        self._second = self._second or (machine if rank else None)
        self._steps += min(machine.steps, self._steps_per_path)  # a longer main program costs no other path its turn
        self._called |= machine.called
        self._made |= machine.made
        self._fitted |= {
            id(e.module.cls.node)
            for e in machine.events
            if isinstance(e, FitStarted) and isinstance(e.module.cls, Class)
        }
        return Path(machine.events, flips, rank, machine, finished, raised, fails)

    def _rehearse_class(self, node: ast.ClassDef) -> None:
        """A LightningModule that nothing fits is fitted by a Trainer of its own; hooks of a callback, and a metric, are called."""
        machine = self._machine({}, 0, whole=False)
        try:
            cls = module_of(machine, self.file, self.file).scope.names.get(node.name)
        except Exception:
            return
        if not isinstance(cls, Class):
            return
        configure = cls.find("configure_optimizers")
        by_hand = isinstance(configure, Function) and id(configure.node) in self._called
        if (
            not by_hand
            and any(path.rpartition(".")[2] == "LightningModule" for path in cls.libraries())
            and id(node) not in self._fitted
        ):
            self._rehearse(node.name, programs.fitting(self.file, node.name))
        elif kind_of_class(cls) == "callback" and not any(id(each) in self._called for each in _hooks_in(node)):
            self._rehearse(node.name, programs.hooking(self.file, node.name))
        elif kind_of_class(cls) == "data module" and not any(id(each) in self._called for each in node.body):
            self._rehearse(node.name, programs.supplying(self.file, node.name))
        elif kind_of_class(cls) == "metric" and not any(id(each) in self._called for each in node.body):
            self._rehearse(node.name, programs.metering(self.file, node.name))

    def _begin_making(self, node: ast.ClassDef) -> Iterator[_Begun]:
        """An object is made of a class that nothing has made yet, and its methods are called in their order."""
        own = [each for each in node.body if isinstance(each, ast.FunctionDef)]
        start = next((each for each in own if each.name == "__init__"), None)
        if start is not None and id(start) not in self._called and self._words.trains(start):
            names = [each.name for each in own if not each.name.startswith(("__", "on_", "test_"))]
            yield self._begin(f"{node.name}.__init__", programs.making(self.file, node.name, names[:MOST_METHODS]))

    def _unloaded(self, classes: list[ast.ClassDef]) -> Iterator[ast.ClassDef]:
        """The data sets of a file that nothing makes: whoever imports them gives them to a loader."""
        if self._first is None or not self._steps < _STEPS_PER_FILE:
            return
        names = self._first.modules[self.file].scope.names
        left = [each for each in classes if id(each) not in self._made and id(each) not in self._called]
        found = [(each, cls) for each in left if isinstance(cls := names.get(each.name), Class)]
        sets = [each for each, cls in found if kind_of_class(cls) == "data set" and cls.find("__init__") is not None]
        yield from sets[:MOST_METHODS]


def _hooks_in(node: ast.ClassDef) -> list[ast.stmt]:
    """The methods of a class but those that Python calls itself, as it does where an object is made."""
    return [each for each in node.body if not getattr(each, "name", "__").startswith("__")]
