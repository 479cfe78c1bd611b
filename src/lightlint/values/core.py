"""What every value has, and the values Python itself has."""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any

Traits = frozenset[str]
NO_TRAITS: Traits = frozenset()
MODULE_NAME: Traits = frozenset({"module name"})  # `__name__`, and what it is compared with
OWN_DATA: Traits = frozenset({"own data"})  # of this rank's batch, of which the others have another
ON_SOME: Traits = frozenset({"on some ranks"})  # changed behind a test of the rank
IDS: Traits = frozenset({"ids"})  # token ids of which no text has been made
GATHERED: Traits = frozenset({"gathered"})  # of all processes, with what fills their last batches
INTEGERS: Traits = frozenset({"integers"})  # an array of whole numbers
WHOLE: Traits = frozenset({"whole"})  # one whole number, as `int` gives it
SUMMED: Traits = frozenset({"sum of ranks"})  # of what each rank has found
LEFT_OUT: Traits = frozenset({"left out"})  # labels, of which some are -100
END: Traits = frozenset({"end token"})  # the end token of a tokenizer, or a text that ends with it
TEMPLATED: Traits = frozenset({"chat template"})  # a text of a chat template, which has the special tokens in it
CHANCES: Traits = frozenset({"log probability"})  # of what a distribution drew, or of what was computed from that
OF_TOKENS: Traits = frozenset({"mean over tokens"})  # of one batch: others have another number of them
LISTED: Traits = frozenset({"listed"})  # a tensor of a list's numbers, or what was computed from one
ARRAYS: Traits = IDS | GATHERED | INTEGERS | LEFT_OUT
"""The traits that arrays keep whatever numpy does to them."""
LASTING: Traits = frozenset({"rank", "version", "fitted", "unbound", "part of a split", "blended"})
"""The traits that stay with whatever code out of sight makes of a value."""
PART: Traits = frozenset({"part of a split"})  # rows that a split at random gave: others are held back
BLENDED: Traits = frozenset(
    {"blended"}
)  # labels of places that were made larger or smaller by means of several of them
FITTED: Traits = frozenset({"fitted"})  # a transformer has made it, which has learnt from all of it
DEFAULT: Traits = frozenset({"default"})  # the default of a parameter, or what hangs on one: another call gives another
ASSUMED: Traits = frozenset({"assumed"})  # the default of what nobody in sight gives
UNBOUND: Traits = frozenset({"unbound"})  # a name that its file binds nowhere, so whoever reads it raises
RANKING: Traits = frozenset({"ranking"})  # of one batch: a metric that is no mean over examples
SHUFFLED: Traits = frozenset({"random order"})  # numbers, or rows, in a random order
SINGLE: Traits = frozenset({"single"})  # one number, in whatever shape
Site = tuple[str, int, int, int, int]
"""A place in the program: file, row from 1, column from 0 (in UTF-8 bytes, as `ast` counts), end row, end column."""


def site_of(file: str, node: ast.expr) -> Site:
    """The place of an expression in a file."""
    row, start = node.lineno, node.col_offset
    return file, row, start, node.end_lineno or row, node.end_col_offset or start


GATHERS = ("gather", "all_gather")
"""How a `Cut` is called that gathering made."""


class Cut:
    """A place where a value was taken out of its graph.

    Args:
        how: the method or function, "comparison" for an operator.
        parameters: which the gradient would have reached.
        graphs: the uses of parameters that it would have flowed through, of what was gathered.
    """

    __slots__ = ("graphs", "how", "made", "parameters", "site")

    def __init__(
        self, how: str, site: Site, made: int, parameters: frozenset[Any], graphs: frozenset[Any] = frozenset()
    ) -> None:
        self.how, self.site, self.made, self.parameters, self.graphs = how, site, made, parameters, graphs


class Value:
    """Something a name can hold.

    `traits` say where a number comes from: `rank`, `index` (a loop's variable), `count` (a counter), `periodic` (a test on
    one), `batch-size`, `batches`, `samples`, `batch-mean`, `batch-sum`, `better` (a test that one number is above another; `better than
    written`: above one that the program writes down),
    `last` (a test for the last batch), `summed` (a counter of the program), `restarted` (one that begins anew in each turn of
    an outer loop), `one` (an option that is 1 unless a run says otherwise), `default` (of a parameter that a call leaves out),
    `version` (of a library). `cuts`: where what it was computed from lost its
    graph. `escaped`: code out of sight has had it in its hands, so nothing that needs to know all that happens to it may be
    said. `terms`: the sum, difference, product or quotient, or the `exp`, `sum` or `log`, that gave it, and of what. `named`: of a tensor or something unknown
    the first name that it was given. `answers`: what calls out of sight gave that it
    was computed from.
    """

    escaped = False
    named = ""
    giver = ""  # the method of Lightning that gave it, where all is known that it may give
    terms: tuple[str, tuple[Value, ...]] | None = None
    traits: Traits = NO_TRAITS
    cuts: frozenset[Cut] = frozenset()
    answers: frozenset[Value] = frozenset()
    key: Hashable | None = None
    encoding: Any = None  # the call of a tokenizer that gave it, or what it is a part of
    added: frozenset[Any] = frozenset()  # in which turns of loops over batches something was added: place, loop, turn
    filled_by: Any = None  # the loop over batches each of which put something into it
    order_cut: tuple[Value, Value, Value] | None = None  # the random order it is a part of, from where and up to where
    cut_from: tuple[Value, Value | None] | None = (
        None  # the whole of which it is a slice in the last dimension, and from where
    )


@dataclass(frozen=True)
class Axes:
    """How many dimensions something has, and what it is: "array", "table" and "column" of pandas, "places" of one of these
    (`.iloc`), "methods" of a column's entries (`.str`), the "groups" of a table, its "rows", and a "pair" of one of these."""

    count: int
    kind: str = "array"


class Unknown(Value):
    """Nothing is known of it but, perhaps, its name.

    `loaded`: the call of `torch.load` that gave it, and under which key; `method_of`: the object of a class with bases out
    of sight that it was read from. `told`: what it has turned out to be since.
    `lent`: what the call out of sight that gave it was given; `given_by`: the object of whose method that was a call.
    `items`: the texts and flags that the program has put into it since.

    Args:
        key: what two reads of the same unknown share, None where even that is unknown.
        traits: see `Value`.
        hint: the name it was read under.
        plain: it is a number, a text or a flag, so never None and never an object that could be changed.
        factors: as a product of keys with powers, for a number that is one.
        default: the constant it is unless a run is told otherwise: a field of a configuration.
    """

    loaded: Any = None
    method_of: Value | None = None
    told: Value | None = None
    counted_from: Value | None = None  # what a counter was before a loop counted on
    lent: Iterable[Value] = ()
    given_by: Value | None = None
    by_one = False  # of a counter: it goes up by one
    made_by: Value | None = None  # the transform of pictures that gave it
    items: Mapping | None = None
    axes: Axes | None = None  # of an array, a table or a column: see `values.arrays`
    among: tuple[Constant, ...] = ()  # the constants of which it is one

    def __init__(
        self,
        key: Hashable | None = None,
        traits: Traits = NO_TRAITS,
        *,
        hint: str = "",
        plain: bool = False,
        factors: tuple[tuple[Hashable, int], ...] | None = None,
        default: Constant | None = None,
    ) -> None:
        self.key, self.traits, self.hint, self.plain, self.factors = key, traits, hint, plain, factors
        self.default = default

    def __repr__(self) -> str:
        return f"<unknown {self.hint or self.key}>"


ITSELF = "itself"
"""How the key of an unknown begins that nothing else tells from others, until code out of sight may have changed it."""


def identified(value: Value) -> Value:
    """A value; an unknown one without a key gets one by which tests of it agree."""
    if type(value) is Unknown and value.key is None:
        value.key = (ITSELF, object())
    return value


def known_by(key: Hashable | None) -> Hashable | None:
    """A key as others may compare it: None where it is, or holds, that of an unknown of this rehearsal alone."""
    return None if _is_of_one(key) else key


def _is_of_one(key: Hashable | None) -> bool:
    return isinstance(key, tuple) and (key[:1] == (ITSELF,) or any(map(_is_of_one, key)))


class Constant(Value):
    """A value that Python's own objects stand for: numbers, texts, None."""

    def __init__(self, value: Any, traits: Traits = NO_TRAITS) -> None:
        self.value, self.traits = value, traits

    @property
    def key(self) -> Hashable:  # type: ignore[override]
        """Equal constants of one type share it."""
        return ("constant", type(self.value).__name__, self.value)

    def __repr__(self) -> str:
        return f"<{self.value!r}>"


class Device(Constant):
    """A `torch.device` by its name, which is no text: it equals none."""


class SomeDevice(Unknown):
    """A `torch.device` of which only that is known."""


class OtherRanksNone(Constant):
    """What a function of rank zero gives on the other ranks: None.

    Args:
        call: the place of the call.
        name: the function.
    """

    def __init__(self, call: Site, name: str) -> None:
        super().__init__(None, frozenset({"rank"}))
        self.call, self.name = call, name


class NoneOf(Constant):
    """None as what changes its object in place gives back.

    Args:
        name: the method or function.
    """

    def __init__(self, name: str) -> None:
        super().__init__(None)
        self.name = name


class NotYet(Constant):
    """None where Lightning has nothing to give, or nothing yet.

    Args:
        name: what it was asked for: `trainer`, `logger`, `train_dataloader`, `lr_schedulers`.
        holder: what was asked.
    """

    def __init__(self, name: str, holder: Any) -> None:
        super().__init__(None)
        self.name, self.holder = name, holder


NONE, TRUE, FALSE = Constant(None), Constant(True), Constant(False)


class Sequence(Value):
    """A list, tuple, set, deque or slice; `more` where it may hold other things besides `items`."""

    def __init__(
        self, items: Iterable[Value], kind: str = "list", *, more: bool = False, made: int = 0, site: Site | None = None
    ) -> None:
        self.items, self.kind, self.more, self.made, self.site = list(items), kind, more, made, site
        self.repeated: Site | None = None  # where `[item] * n` put one object into all places
        self.depth = 0  # how many loops were open where it was made
        self.taken: set[int] = set()  # the places that the program takes one by one
        self.talk = False  # the messages of one talk with a model
        self.grows = False  # it is added to in each turn of a loop of which a few are rehearsed
        self.places: dict[tuple[int, int], int] = {}  # of what was set by the number of a loop's turn
        self.gone_over = False
        self.another: Callable[[], Value] | None = None  # makes one more, where who takes them tells how many there are
        self.emptied_at: Site | None = None  # of a generator: who went over it
        self.rows_of: Mapping | None = None  # the dict whose `items()` it shows
        self.sorted = False

    def __repr__(self) -> str:
        return f"<{self.kind} {self.items}{'...' if self.more else ''}>"


class Mapping(Value):
    """A dict by constant keys; `more` where it may hold other keys, `source` the object whose state it shows."""

    def __init__(
        self, items: dict[Hashable, Value] | None = None, *, more: bool = False, source: Value | None = None
    ) -> None:
        self.items, self.more, self.source = dict(items or {}), more, source
        self.made, self.depth = 0, 0
        self.site: Site | None = None
        self.default: Value | None = None  # of a `defaultdict`: what makes the value of a new key
        self.said: dict[Hashable, Site] = {}  # the places of keys that are said elsewhere than at `site`
        self.copied: Value | None = None  # the optimizer whose group it is a copy of
        self.loaded: Any = None  # the call of `torch.load` that gave it
        self.batch_of: Value | None = None  # the Trainer that gives a batch to the program
        self.row_of = False  # and it is a row, of which it has left what the model takes
        self.made_over: Value | None = None  # what a comprehension, or `fromkeys`, that made it went over
        self.unsure: set[Hashable] = set()  # keys that what is out of sight may have given other values
        self.rewritten = False  # who knows which of its entries have another value than the source has

    def places(self) -> dict[Hashable, Site]:
        """Where its keys are said, as far as that is known."""
        return self.said if self.site is None else dict.fromkeys(self.items, self.site) | self.said

    def __repr__(self) -> str:
        return f"<dict {self.items}{'...' if self.more else ''}>"


class Scope:
    """The names of a module, class body, function call or comprehension, and the scope around it."""

    __slots__ = ("cls", "elsewhere", "file", "function", "names", "outer", "receiver", "top")

    def __init__(self, file: str, outer: Scope | None = None, function: Function | None = None) -> None:
        self.names: dict[str, Value] = {}
        self.file, self.outer, self.function = file, outer, function
        self.top: Scope = outer.top if outer is not None else self
        self.elsewhere: dict[str, str] = {}  # names declared `global` or `nonlocal`
        self.receiver: Value | None = None
        self.cls: Class | None = None  # of a class body the class being made

    def find(self, name: str) -> Value | None:
        """What a name means here, as Python looks it up: class bodies are seen only from their own statements."""
        scope: Scope | None = self
        while scope is not None:
            value = scope.names.get(name)
            if value is not None and (scope.cls is None or scope is self):
                return value
            scope = scope.outer
        return None

    def bind(self, name: str, value: Value) -> None:
        """Give a name a value where Python would."""
        declared = self.elsewhere.get(name) if self.elsewhere else None
        if declared == "global":
            self.top.names[name] = value
            return
        if declared == "nonlocal":
            scope = self.outer
            while scope is not None:
                if name in scope.names:
                    scope.names[name] = value
                    return
                scope = scope.outer
        self.names[name] = value


class Function(Value):
    """A function or lambda of the program, with the scope it was made in."""

    def __init__(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, scope: Scope, file: str) -> None:
        self.node, self.scope, self.file = node, scope, file
        self.name = getattr(node, "name", "<lambda>")
        self.flags: set[str] = (
            set()
        )  # property, setter, staticmethod, classmethod, contextmanager, no_grad, enable_grad
        self.owner: Class | None = None
        self.defaults: list[Value] = []
        self.keyword_defaults: dict[str, Value] = {}
        self.wrapped: Value | None = None  # what a decorator of the program made of it

    def usual(self) -> dict[str, Value]:
        """What its parameters are where nobody gives them anything, by name."""
        parameters = self.node.args
        names = [each.arg for each in (*parameters.posonlyargs, *parameters.args)]
        return {**dict(zip(reversed(names), reversed(self.defaults), strict=False)), **self.keyword_defaults}

    def name_site(self) -> Site:
        """Where its name stands in its definition; a lambda as it is."""
        row, start = self.node.lineno, self.node.col_offset
        if isinstance(self.node, ast.Lambda):
            return site_of(self.file, self.node)
        start += len("def " if isinstance(self.node, ast.FunctionDef) else "async def ")
        return self.file, row, start, row, start + len(self.name.encode())

    def __repr__(self) -> str:
        return f"<function {self.name}>"


class Bound(Value):
    """A method of the program with the object it was taken from."""

    def __init__(self, receiver: Value, function: Function) -> None:
        self.receiver, self.function = receiver, function


class Method(Value):
    """A method of the library with the value it was taken from."""

    def __init__(self, receiver: Value, name: str) -> None:
        self.receiver, self.name = receiver, name

    def __repr__(self) -> str:
        return f"<method {self.name} of {self.receiver}>"


class Partial(Value):
    """A call that waits for the rest of its arguments; `said`: the places of its keywords."""

    def __init__(
        self, function: Value, args: list[Value], keywords: dict[str, Value], said: dict[Hashable, Site]
    ) -> None:
        self.function, self.args, self.keywords, self.said = function, args, keywords, said
        self.open = False  # it holds others, out of sight


class Library(Value):
    """A name of a library by its canonical path, such as `torch.nn.Linear`.

    `package`: as which of its two packages Lightning was imported, where no `try` chooses between them.
    """

    def __init__(self, path: str, package: str = "") -> None:
        self.path, self.package = path, package
        self.key = ("library", path)

    @property
    def last(self) -> str:
        """The name behind the last dot."""
        return self.path.rpartition(".")[2]

    def names_tensor_type(self) -> bool:
        """Whether it is a type that says on which device its tensors lie, as `torch.cuda.FloatTensor` does."""
        return self.path.startswith("torch.") and self.path.endswith("Tensor")

    def may_be_flag(self) -> bool:
        """Whether it may be any constant: a name in capitals out of a module of which nothing is known."""
        room, _, last = self.path.rpartition(".")
        return bool(room) and last.isupper() and len(last) > 1 and room.partition(".")[0] not in _KNOWN_ROOTS

    def __repr__(self) -> str:
        return f"<{self.path}>"


_KNOWN_ROOTS = frozenset(["builtins", "torch", "lightning", "numpy", "math", "os", "sys", "string", "typing"])


class Class(Value):
    """A class of the program."""

    def __init__(self, name: str, bases: list[Value], names: dict[str, Value], file: str, node: ast.ClassDef) -> None:
        self.name, self.bases, self.names, self.file, self.node = name, bases, names, file, node
        self.fields: list[tuple[str, ast.expr | None, ast.expr | None]] = []  # annotated: name, annotation, default
        self.decorators: list[Value] = []
        self.key = ("class", file, node.lineno, name)
        self._lineage: list[Value] | None = None

    def lineage(self) -> list[Value]:
        """Itself and its bases, nearest first: classes of the program, names of libraries, unknown ones."""
        if self._lineage is None:
            found: list[Value] = [self]
            for base in self.bases:
                found += (each for each in (base.lineage() if isinstance(base, Class) else [base]) if each not in found)
            self._lineage = found
        return self._lineage

    def find(self, name: str, after: Class | None = None) -> Value | None:
        """What a name means in the class or, behind `after`, in its bases; None where no class in sight has it."""
        lineage = self.lineage()
        if after is not None and after in lineage:
            lineage = lineage[lineage.index(after) + 1 :]
        for cls in lineage:
            if isinstance(cls, Class) and name in cls.names:
                return cls.names[name]
        return None

    def all_fields(self) -> list[tuple[str, ast.expr | None, ast.expr | None]]:
        """The fields of its bases, then its own."""
        return [field for each in reversed(self.lineage()) if isinstance(each, Class) for field in each.fields]

    def name_site(self) -> Site:
        """Where its name stands in its definition."""
        row, start = self.node.lineno, self.node.col_offset + len("class ")
        return self.file, row, start, row, start + len(self.name.encode())

    def libraries(self) -> list[str]:
        """The canonical names of the library classes among its bases."""
        return [each.path for each in self.lineage() if isinstance(each, Library)]

    def sees_all(self) -> bool:
        """Whether every base is in sight or known."""
        return not any(isinstance(each, Unknown) for each in self.lineage())

    def __repr__(self) -> str:
        return f"<class {self.name}>"


class Super(Value):
    """What `super()` gives: the receiver, seen from behind a class."""

    def __init__(self, receiver: Value, after: Class) -> None:
        self.receiver, self.after = receiver, after


class Namespace(Value):
    """A module of the project."""

    def __init__(self, name: str, scope: Scope) -> None:
        self.name, self.scope = name, scope


class Promised(Value):
    """What an import binds a name to: the module is run when somebody first asks for it.

    Args:
        file: the module, None where only `dotted` and `name` together may be one.
        dotted: how the import calls the module.
        name: what it takes out of it, "" for the module itself.
        importer: the file that imports it.
    """

    def __init__(self, file: str | None, dotted: str, name: str, importer: str) -> None:
        self.file, self.dotted, self.name, self.importer = file, dotted, name, importer
        self.found: Value | None = None

    def __repr__(self) -> str:
        return f"<{self.dotted}.{self.name}, once asked for>"


def traits_of(*values: Value | None) -> Traits:
    """All traits of some values."""
    found = NO_TRAITS
    for value in values:
        if value is not None and value.traits:
            found = found | value.traits
    return found


def is_constant(value: Value | None, *wanted: object) -> bool:
    """Whether a value is one of some constants, of the same type."""
    return isinstance(value, Constant) and any(
        type(value.value) is type(each) and value.value == each for each in wanted
    )


def unless_told(default: Value | None) -> Traits:
    """What is known of an option, or a field of a configuration, by the constant that it is unless a run says otherwise."""
    return frozenset({"one"}) if is_constant(default, 1, 1.0) else NO_TRAITS


def written(value: Value | None) -> Constant | None:
    """The constant a value is, also one that a configuration gives by default; None for another or an unknown one."""
    if isinstance(value, Unknown):
        return value.default
    return value if isinstance(value, Constant) else None


def number_of(value: Value | None) -> int | float | None:
    """The number a value is, None for another or an unknown one; a flag is no number."""
    if isinstance(value, Constant) and isinstance(value.value, (int, float)) and not isinstance(value.value, bool):
        return value.value
    return None


def text_of(value: Value | None) -> str | None:
    """The text a value is, None for another or an unknown one."""
    return value.value if isinstance(value, Constant) and isinstance(value.value, str) else None


def places_of(index: Value) -> list[Value]:
    """What an index takes of each dimension that it speaks of."""
    return index.items if isinstance(index, Sequence) and index.kind == "tuple" else [index]


def is_device(value: Value | None) -> bool:
    """Whether a value is surely a `torch.device`."""
    return isinstance(value, (Device, SomeDevice))


def names_cuda(value: Value | None) -> bool:
    """Whether a value surely names a GPU."""
    return (text_of(value) or "").partition(":")[0] == "cuda"


def names_integers(value: Value | None) -> bool:
    """Whether a value is a dtype of whole numbers."""
    name = value.last if isinstance(value, Library) else (text_of(value) or "").rpartition(".")[2]
    return name in ("int", "int8", "int16", "int32", "int64", "long", "uint8", "short", "intp")
