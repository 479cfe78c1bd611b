"""The state of one rehearsal: heap, clock, open loops and calls, tests already answered, events."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from collections.abc import Mapping as Flips
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, cast

from lightlint.engine.arguments import Arguments
from lightlint.engine.bounds import Bounds, compared_with_number
from lightlint.engine.choices import (
    Asked,
    Choices,
    asked_for_constants,
    excludes,
    holds_between,
    holds_draw,
    plain_key,
    shared_truth,
)
from lightlint.engine.events import Collective, DrawDecided, Event, Where
from lightlint.engine.frames import Call, Condition, Iteration, Loop, Turn
from lightlint.values.core import (
    ITSELF,
    ON_SOME,
    OWN_DATA,
    Bound,
    Class,
    Constant,
    Function,
    Library,
    Mapping,
    Method,
    Namespace,
    Partial,
    Scope,
    Sequence,
    Site,
    Traits,
    Unknown,
    Value,
    identified,
    known_by,
)
from lightlint.values.training import Instance, Module, Tensor

Test = tuple[str, int, int]
"""A test by file, row and column."""


class BudgetSpentError(Exception):
    """The rehearsal has taken all the steps it may."""


class Sources(Protocol):
    """Where a rehearsal finds the project's modules."""

    def find(self, dotted: str, importer: str) -> str | None:
        """The file of a module as `importer` imports it (leading dots for relative ones), None for a library's."""

    def tree(self, file: str) -> ast.Module | None:
        """What `ast` makes of a file, None for one that cannot be read."""

    def is_generator(self, file: str, node: ast.AST) -> bool:
        """Whether a function of a file yields."""

    def registers(self, file: str) -> bool:
        """Whether running a module may do more than to give its names their values."""

    def uses(self, file: str, name: str) -> bool:
        """Whether a file names something that it imports once more."""

    def is_command(self, file: str, function: ast.AST) -> bool:
        """Whether a function of a file trains or evaluates, as one that a program does as it is told."""

    def is_idle(self, file: str, test: ast.If) -> bool:
        """Whether a test decides only about messages: rehearsing it the other way would show nothing."""

    def last_answers(self, file: str, function: ast.AST) -> frozenset[int]:
        """The tests (by id) behind which a function gives its last value: where they fail, it raises or gives none."""

    def settings(self, name: str, importer: str) -> tuple[str, object] | None:
        """The file of settings that a program opens by a name, and what it says; None where none is in sight."""

    def has_engine(self, file: str) -> bool:
        """Whether a file is launched with an engine that shards what is trained, as the settings beside it say."""

    def gives(self, cls: str, name: str) -> bool:
        """Whether settings of the project, as Hydra's, make objects of a class and say what an argument of it is."""


class Models(Protocol):
    """What libraries and the values of training do."""

    def attribute(self, machine: Machine, value: Value, name: str, node: ast.AST) -> Value: ...
    def set_attribute(self, machine: Machine, value: Value, name: str, new: Value, node: ast.AST) -> None: ...
    def item(self, machine: Machine, value: Value, index: Value, node: ast.AST) -> Value: ...
    def set_item(self, machine: Machine, value: Value, index: Value, new: Value, node: ast.AST) -> None: ...
    def iterate(self, machine: Machine, value: Value, node: ast.AST) -> Iteration: ...
    def part(self, machine: Machine, value: Value, index: int | str, node: ast.AST) -> Value: ...
    def enter(self, machine: Machine, value: Value, node: ast.AST) -> tuple[Value, object]: ...
    def leave(self, machine: Machine, value: Value, token: object, node: ast.AST) -> None: ...
    def binary(self, machine: Machine, operator: str, left: Value, right: Value, node: ast.AST) -> Value | None: ...
    def call_library(self, machine: Machine, function: Library, given: Arguments, node: ast.AST) -> Value: ...
    def parameters(self, path: str) -> tuple[str, ...]: ...
    def call_method(self, machine: Machine, method: Method, given: Arguments, node: ast.AST) -> Value: ...
    def call_object(self, machine: Machine, value: Value, given: Arguments, node: ast.AST) -> Value: ...
    def replace(self, machine: Machine, before: Value | None, new: Value, node: ast.AST) -> None: ...
    def make(self, machine: Machine, cls: Class, given: Arguments, node: ast.AST) -> Instance: ...
    def annotated(self, machine: Machine, value: Value, annotation: Value, name: str, node: ast.AST) -> Value: ...
    def names_builtin(self, name: str) -> bool: ...
    def told(self, machine: Machine, holder: Value | None, method: str, node: ast.AST) -> Value | None: ...
    def result_of(self, machine: Machine, hint: str, given: Arguments, node: ast.AST) -> Value | None: ...


UNNAMED_RANK = 5
"""The number of a rank that is not the first and that no test names: behind those of `rank in (0, 1)` and `rank < 4`."""
WORKER = "worker"
"""The phase in which a loader's worker makes samples."""

E = TypeVar("E", bound=Event)
I_ = TypeVar("I_", bound=Instance)


_FRESH: dict[str, Callable[[], object]] = {
    **dict.fromkeys(("loops", "conditions", "calls", "scopes", "held_back", "summoned", "forwards", "autocasts"), list),
    **dict.fromkeys(("asked", "answers", "equals", "offered"), dict),
    "grad": lambda: [True],
    "phases": lambda: [""],
    "hooks": lambda: [""],
    "inside_ddp": int,
    "awaited": int,
    "returned_at": lambda: None,
}
"""What of a machine's state is as at the start while an imported module runs."""


@dataclass
class _Imports:
    """Of all rehearsals of a file: the time and the number of objects in the modules that it imports, below those of its own."""

    clock: int = -1_000_000_000
    made: int = -1_000_000_000
    running: bool = False


class Machine:
    """One path through a program.

    Args:
        sources: the project.
        models: what libraries do.
        flips: tests that are to come out another way than by default.
        rank: as which rank the program runs.
        budget: how many statements and calls may be rehearsed.
    """

    def __init__(
        self,
        sources: Sources,
        models: Models,
        *,
        flips: Flips[Test, bool] | None = None,
        rank: int = 0,
        budget: int = 40_000,
    ) -> None:
        self.sources, self.models, self.flips, self.rank, self.budget = sources, models, flips or {}, rank, budget
        self.steps = 0
        self.clock = 0
        self.file = ""
        self.events: list[Event] = []
        self.loops: list[Loop] = []
        self.conditions: list[Condition] = []
        self.calls: list[Call] = []
        self.scopes: list[Scope] = []  # the names of each function in `calls`
        self.grad: list[bool] = [True]
        self.phases: list[str] = [""]
        self.hooks: list[str] = [""]
        self.inside_ddp = 0
        self.worked: list[object] = []  # what loaders have let a worker do
        self.worker_data: Value | None = None  # the data set of the worker that runs
        self.pending: dict[int, tuple[Tensor, Collective, Instance]] = {}  # tensors that a collective is to fill
        self.held_back: list[Instance] = []  # the `no_sync` contexts that are open
        self.summoned: list[Instance] = []  # the `summon_full_params` contexts that are open
        self.stacks: dict[Value, list[tuple[Value, object]]] = {}  # what was entered through an `ExitStack`
        self.awaited = 0  # how many contexts are open that wait for an exception
        self.forwards: list[Module] = []
        self.autocasts: list[Instance] = []
        self.passes: dict[Hashable, Value] = {}  # what blocks that repeat gave the first time
        self.answers: dict[Hashable, bool] = {}
        self.defaults: dict[
            Hashable, Constant
        ] = {}  # what options of the command line are unless they are given, by their keys
        self.bounds: dict[Hashable, Bounds] = {}  # between which numbers an unknown was found to lie, by its key
        self.choices: dict[Hashable, Choices] = {}  # among which constants an unknown was found to be, by its key
        self.equals: dict[Hashable, Hashable] = {}  # which constant an unknown was found to be, by their keys
        self.tests_of: dict[ast.AST, tuple[list[Value], Traits]] = {}  # of an `and` or `or` that no key stands for
        self.texts: dict[Value, Hashable] = {}  # the keys of unknowns that have none of their own and may be texts
        self.of_unknown: dict[
            tuple[Hashable, str], Value
        ] = {}  # what unknowns, by their keys, were given that ranks tell apart
        self.asked: dict[Test, bool] = {}  # tests that nothing known decides, as they came out
        self.offered: dict[Test, bool] = {}  # what something unknown may choose, by its place, and whether it did
        self.guesses = 0  # how many tests something unknown has decided
        # a name, or an item of a dict, was read that nothing has bound: Python raises, unless this way through the code is none
        self.unbound = False
        self.assumptions = 0  # how many tests something that nobody in sight gives has decided
        self.of_ranks: set[Test] = set()  # those of them on the rank, among other things
        self.tries: list[ast.Try] = []  # whose bodies are being run
        self.modules: dict[str, Namespace] = {}
        self._imports = _Imports()
        self._imported = 0  # how many of the events are of imports
        self.made_before = 0  # how many objects other rehearsals put into the modules that this one goes on with
        self.objects: list[Instance] = []
        self.entered: Counter[int] = Counter()  # how often each function of the program is open
        self.called: set[int] = set()  # functions of the program that ran, by the id of their node
        self.files: set[str] = set()  # in which these stand
        self.made: set[int] = set()  # classes of the program that were instantiated
        self.lent: dict[Tensor, None] = {}  # parameters whose tensors went into code out of sight
        self.uses_rank = False
        self.reads_settings = False  # from a file beside the program
        self.other_rank: int | None = None  # which one a rank that is not the first is: the one that a test names first
        self.distributed = False
        self.process = 0  # which one runs: that of the program, or one that it starts
        self.group_ended = False  # whether a process group has been destroyed, and none started since
        self.default_device: str | None = "cpu"
        self.default_dtype = "float32"
        self.seed: Value | None = None  # of torch's own generator, where the program sets one
        self.given_back: list[Value] = []  # by functions that nobody calls, to whoever may
        self.returned_at: Site | None = (
            None  # the value of the last `return`, None where the last function ended without
        )
        self._serials: Counter[Site | None] = Counter()

    def tick(self) -> None:
        """Count a step.

        Raises:
            BudgetSpentError: all are taken.
        """
        self.steps += 1
        if self.steps > self.budget:
            raise BudgetSpentError

    def site(self, node: ast.AST | None) -> Site:
        """The place of a node in the file being run."""
        row: int | None = getattr(node, "lineno", None)
        if row is None:
            return (self.file, 0, 0, 0, 0)
        placed = cast("ast.expr", node)
        column, last, end = placed.col_offset, placed.end_lineno, placed.end_col_offset
        return (self.file, row, column, row if last is None else last, column if end is None else end)

    def where(self, node: ast.AST | None) -> Where:
        """The place and the time."""
        self.clock += 1
        return Where(
            self.site(node),
            self.clock,
            tuple([Turn(loop, loop.turn) for loop in self.loops]),
            tuple(self.conditions),
            tuple(self.calls),
            self.phases[-1],
            self.grad[-1],
            self.inside_ddp > 0,
            self.hooks[-1],
            self.forwards[-1] if self.forwards else None,
            self.forwards[-1].training if self.forwards else None,
            self.autocasts[-1] if self.autocasts else None,
            self.awaited > 0,
        )

    def emit(self, event: E) -> E:
        """Write an event down."""
        self.events.append(event)
        return event

    def new(self, kind: type[I_], cls: Class | Library, node: ast.AST | None, *rest: object) -> I_:
        """Put an object on the heap; `rest` is what its class takes between its own class and place."""
        self.clock += 1
        site = self.site(node)
        make: Callable[..., I_] = kind
        made = make(cls, *rest, site, self.number())
        made.made = self.clock
        made.serial = self.serial(site)
        self.objects.append(made)
        return made

    def number(self) -> int:
        """The number of the next object."""
        return self.made_before + len(self.objects) + 1

    def go_on_from(self, other: Machine, modules: Flips[str, Namespace]) -> None:
        """Start with modules that another rehearsal has run, and count on from where it stopped."""
        self.modules, self._imports = dict(modules), other._imports
        self.clock, self.made_before = other.clock, other.number()
        self.defaults |= other.defaults
        self.default_dtype = other.default_dtype

    @contextmanager
    def importing(self, file: str) -> Iterator[None]:
        """Run a module that is imported: ahead of all else, and outside of whatever asks for it."""
        imports = self._imports
        outside: dict[str, Any] = {name: getattr(self, name) for name in ("file", *_FRESH)}
        vars(self).update({"file": file, **{name: make() for name, make in _FRESH.items()}})
        first, imports.running = not imports.running, True
        if first:
            outside |= {name: getattr(self, name) for name in ("clock", "made_before", "events")}
            self.clock, self.made_before, self.events = imports.clock, imports.made - len(self.objects), []
        try:
            yield
        finally:
            if first:
                imports.clock, imports.made, imports.running = self.clock, self.number(), False
                outside["events"][self._imported : self._imported] = self.events
                self._imported += len(self.events)
            vars(self).update(outside)

    def instance(self, cls: Class | Library, kind: str, node: ast.AST | None) -> Instance:
        """Put an object of no class of its own on the heap."""
        return self.new(Instance, cls, node, kind)

    def tensor(self, node: ast.AST | None) -> Tensor:
        """A new tensor of which nothing is known."""
        self.clock += 1
        return Tensor(self.site(node), self.clock)

    def serial(self, site: Site | None) -> int:
        """How many things were made at a place, this one counted."""
        self._serials[site] += 1
        return self._serials[site]

    def escape(self, value: object, depth: int = 0) -> None:
        """Code out of sight may do anything to a value from now on, and to all it holds."""
        if isinstance(value, Unknown):
            value.escaped, value.items = True, None
            if isinstance(value.key, tuple) and value.key[:1] == (ITSELF,):
                value.key = None  # it may be another from now on
            return
        if isinstance(value, (Constant, Library)) or not isinstance(value, Value) or depth > 4:
            return
        if value.escaped and depth:
            return
        value.escaped = True
        held: list[Value] = []
        if isinstance(value, Tensor):
            if (of := value.gradient_seen) is not None:
                of.gradient_changed = True
            for graph in value.graph:
                graph.escaped = True
            self.lent.update(dict.fromkeys(value.parameters))
            held = [value.data_of] if value.data_of is not None else []
        elif isinstance(value, Instance):
            held = [*value.attributes.values(), *value.arguments.values()]
            held += [item for name in ("own", "parameters") for item in _listed(getattr(value, name, None))]
            items = getattr(value, "items", None)
            held += [*items.values()] if isinstance(items, dict) else _listed(items)
            held += [
                each for name in ("wraps", "optimizer", "data") if (each := getattr(value, name, None)) is not None
            ]
        elif isinstance(value, Sequence):
            held = value.items
        elif isinstance(value, Mapping):
            held = [*value.items.values()]
        elif isinstance(value, (Bound, Method)):
            held = [value.receiver]
        elif isinstance(value, Partial):
            held = [value.function, *value.args, *value.keywords.values()]
        elif isinstance(value, Function) and depth < 2:
            held = [*value.scope.names.values()][:20] if value.scope.function is not None else []
            depth += 1
        for each in held:
            self.escape(each, depth + 1)

    def truth(self, value: Value) -> bool | None:
        """Whether a value counts as true, None for unknown."""
        if isinstance(value, Constant):
            return bool(value.value)
        if isinstance(value, (Sequence, Mapping)):
            return True if value.items else (None if value.more else False)
        if isinstance(value, Library) and value.may_be_flag():
            return self.answers.get(value.key)
        if isinstance(value, (Function, Bound, Class, Library, Method, Partial, Namespace)):
            return True
        if isinstance(value, Instance) and _counts_as_true(value):
            return True
        answers_alike = isinstance(value, Unknown) or getattr(value, "kind", "") in ("data set", "loader")
        if answers_alike and value.key is not None:
            key, negated = plain_key(value.key)
            known = self.answers.get(key)
            if known is None:
                asked = asked_for_constants(key)
                known = self._chosen(asked) if asked is not None else shared_truth(self._left(key))
            if known is None and self.bounds:
                known = self._bounded(key)
            return None if known is None else known != negated
        return None

    def _chosen(self, asked: Asked) -> bool | None:
        """How a test for constants comes out by what other tests told of its unknown."""
        if asked.unknown in self.equals:
            return self.equals[asked.unknown] in asked.constants
        known = self.choices[asked.unknown].decides(asked) if asked.unknown in self.choices else None
        truth = self.answers.get(asked.unknown) if known is None else None
        return False if truth is not None and excludes(truth, asked) else known

    def _left(self, unknown: Hashable) -> frozenset[Hashable]:
        """The constants one of which an unknown is found to be, by their keys; none where it may be anything."""
        if unknown in self.equals:
            return frozenset([self.equals[unknown]])
        return (self.choices[unknown].left if unknown in self.choices else None) or frozenset()

    def text_key(self, value: Value, node: ast.AST) -> Hashable:
        """What an unknown is known by that is compared with a text at `node`: it stays the same, whatever gave it."""
        if known_by(value.key) is not None or not isinstance(value, Unknown):
            return value.key
        if value not in self.texts:
            site = self.site(node)
            self.texts[value] = ("text", site, self.serial(site))
        return self.texts[value]

    def decide(self, value: Value, node: ast.AST, *, default: bool = True, leaves: bool = False) -> bool:
        """How a test comes out: as known, as it did before, as flipped, else as by default.

        A test on a multiple of a counter is false in the first turn of its loop and true in the second, unless it leaves
        the loop, and false in a third that begins another window. Flipped it is true in both, and there is such a third.
        """
        known = self.truth(value)
        self.guesses += isinstance(value, Unknown)
        if isinstance(value, Unknown) and value.encoding is not None:
            value.encoding.asked = True
        self.assumptions += "assumed" in value.traits
        if known is not None:
            return known
        key, negated = plain_key(identified(value).key)
        if self.forwards and holds_draw(key):
            self.emit(DrawDecided(self.where(node), key))
        test = (self.file, getattr(node, "lineno", 0), getattr(node, "col_offset", 0))
        loop = self.loops[-1] if self.loops else None
        periodic = "periodic" in value.traits and not leaves
        if test in self.flips and not (periodic and loop is not None and loop.begins_window):
            outcome = self.flips[test]
            if periodic and loop is not None and loop.kind == "batch" and not loop.known:
                loop.rest |= "rank" not in value.traits and not self.split_ranks  # all ranks take as many turns
        elif self._asks_for_last(key) and not leaves:
            outcome = negated
        elif periodic:
            outcome = (loop is None or loop.fills_window) != (negated != holds_between(key))
        else:
            outcome = default
        self.asked.setdefault(test, outcome)
        if "rank" in value.traits:
            self.of_ranks.add(test)
        if key is not None:
            self._note(key, outcome != negated)
        return outcome

    def _asks_for_last(self, key: Hashable | None) -> bool:
        """Whether a test asks in the first turn of a loop over batches whether there is no other: `0 + 1 == len(loader)`."""
        if not self.loops or self.loops[-1].kind != "batch" or self.loops[-1].turn > 1 or not _is_equation(key):
            return False
        return (
            any(isinstance(each, tuple) and each[:1] == ("length",) for each in key)
            if isinstance(key, tuple)
            else False
        )

    def suppose(self, value: Value) -> None:
        """Take a test for true from now on, as behind an `assert`."""
        key, negated = plain_key(value.key)
        if key is not None:
            self._note(key, not negated)

    def _note(self, key: Hashable, outcome: bool) -> None:
        """Remember how a test without negations came out."""
        self.answers[key] = outcome
        if isinstance(key, tuple) and key[:1] == (("and",) if outcome else ("or",)):  # so does each of them
            for part, negated in map(plain_key, key[1:]):
                self._note(part, outcome != negated)
        if (asked := asked_for_constants(key)) is not None:
            known = self.choices.get(asked.unknown, Choices()).narrowed(asked, outcome)
            self.choices[asked.unknown] = known
            if known.left is not None and len(known.left) == 1:
                self.equals.setdefault(asked.unknown, *known.left)
        if (compared := compared_with_number(key)) is not None:
            self.bounds[compared.unknown] = self.bounds.get(compared.unknown, Bounds()).narrowed(compared, outcome)

    def _bounded(self, key: Hashable) -> bool | None:
        """How a test comes out by what other tests told of its unknown."""
        compared = compared_with_number(key)
        known = self.bounds.get(compared.unknown) if compared is not None else None
        return known.decides(compared) if known is not None and compared is not None else None

    def choose(
        self, unknown: Hashable, options: Iterable[Hashable], places: Flips[Hashable, Test | None] | None = None
    ) -> Hashable | None:
        """Which of some constants an unknown is, by their keys: as tests have found it, else the first that they allow.

        Of those with a place the first is taken that this rehearsal does not leave out: another is to take the next.
        """
        if unknown in self.equals:
            return self.equals[unknown]
        allowed = [each for each in options if self.answers.get(("==", unknown, each)) is not False]
        found = next((each for each in allowed[:-1] if self._takes((places or {}).get(each))), *allowed[-1:] or (None,))
        if found is not None and unknown is not None:
            self.equals[unknown] = found
        return found

    def _takes(self, place: Test | None) -> bool:
        """Whether what stands at a place is chosen here."""
        return place is None or self.offered.setdefault(place, self.flips.get(place, True))

    def condition(self, value: Value, outcome: bool, node: ast.AST) -> Condition:
        """A test that came out, as events remember it."""
        known = not (isinstance(value, Unknown) or value.key in self.answers) and self.truth(value) is not None
        traits = value.traits
        if isinstance(value, Tensor):
            traits = traits | OWN_DATA if value.role == "batch" else traits
            traits = traits - OWN_DATA - ON_SOME if value.escaped else traits
        key, site = known_by(value.key), self.site(node)
        if isinstance(node, ast.BoolOp) and node in self.tests_of:
            tests, passed = self.tests_of[node]
            traits = traits.union(passed, *(each.traits for each in tests if not isinstance(each, Tensor)))
            if len(tests) > 1:
                unnamed = ("test", site, self.serial(site))
                key = (
                    "or" if isinstance(node.op, ast.Or) else "and",
                    *(known_by(each.key) or unnamed for each in tests),
                )
        return Condition(key, outcome, site, traits, known, len(self.calls))

    @property
    def split_ranks(self) -> bool:
        """Whether a test of the rank let only some ranks come here."""
        return any("rank" in each.traits for each in self.conditions)

    def unknown(
        self, *values: Value, key: Hashable | None = None, hint: str = "", drop: Traits = frozenset()
    ) -> Unknown:
        """Something unknown that some values went into."""
        found: set[str] = set()
        for value in values:
            found |= value.traits
        return Unknown(key, frozenset(found) - drop, hint=hint)


def _counts_as_true(value: Instance) -> bool:
    """Whether an object counts as true: whoever hands on one that is gone over, such as a sampler, hands on no empty one."""
    if value.kind == "object" and isinstance(value.cls, Class) and value.cls.sees_all():
        plain = all(path in _PLAIN_BASES for path in value.cls.libraries())
        asked = {name for name in ("__bool__", "__len__", "__iter__") if value.cls.find(name) is not None}
        return plain and (not asked or ("__iter__" in asked and "__bool__" not in asked))
    return value.kind not in ("namespace", "unknown", "data set", "object", "loader", "iterator")


_PLAIN_BASES = frozenset(["builtins.object", "abc.ABC", "typing.Generic", "typing.Protocol"])


def _is_equation(key: Hashable | None) -> bool:
    """Whether a test without negations compares something with one constant."""
    return isinstance(key, tuple) and key[:1] == ("==",) and asked_for_constants(key) is not None


def _listed(value: object) -> list[Value]:
    return value if isinstance(value, list) else []
