"""The values that training knows: tensors, modules, optimizers, schedules, loaders and what stands around them."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from copy import copy
from typing import Any

from lightlint.values.core import Class, Constant, Library, Mapping, Sequence, Site, Unknown, Value


class Graph:
    """A piece of what autograd recorded: one use of parameters that require gradients.

    `saves`: it holds tensors for its backward pass, which the first pass frees; a move, a view or a sum holds none.
    """

    __slots__ = ("bypassed", "consumed", "escaped", "guess", "made", "saves", "site", "training", "used")

    def __init__(
        self, site: Site, made: int, training: bool | None, *, guess: bool = False, saves: bool = True
    ) -> None:
        self.site, self.made, self.training, self.saves = site, made, training, saves
        self.guess = guess  # stands for no use, but for the guess that a value is recorded: see `open`
        self.consumed = 0  # how many backward passes have freed it
        self.used = False  # whether anything has gone backward through it
        self.escaped = False
        self.bypassed: Module | None = None  # the module under DDP whose wrapper this forward went around

    @property
    def open(self) -> bool:
        """Whether it may be something else than it seems: code out of sight has it, or no backward pass has proved a guess."""
        return self.escaped or (self.guess and not self.used)

    def go_backward(self, *, keep: bool) -> None:
        """A backward pass comes through; it frees what was recorded unless it is to `keep` it."""
        self.used = True
        self.consumed += not keep


class Rearranged:
    """A view with the dimensions in another order, of which its tensor and what is cut out of that know.

    `shifted`: it lost its first row, or got one more, and was viewed again, which moves each row one place further than the
    one above, or back. `thin`: a layer takes it for one of a single feature, and no other dimension changed its place.
    """

    __slots__ = ("order", "shifted", "thin")

    def __init__(self, order: list[int]) -> None:
        self.order = order
        self.shifted = self.thin = False


class Weights:
    """What a softmax gave: where, over which dimension (from behind where that is known), and whether of products of vectors."""

    __slots__ = ("dimension", "scored", "site")

    def __init__(self, site: Site, dimension: int, *, scored: bool) -> None:
        self.site, self.dimension, self.scored = site, dimension, scored


class Mask:
    """Which elements of a tensor are true, or 1, and no others: those of the "future" (above the diagonal of attention), or of
    the "past" with the diagonal; of labels those that are "left out" by -100, or "counted"; of ids the "padding", or the "words".
    Where it was made; of ids, of which, what its dimensions count ("rows", "steps", or "one" for nothing), and whether the
    program says that they were compared with what fills up texts."""

    __slots__ = ("dimensions", "ids", "kind", "pads", "site")

    def __init__(
        self,
        site: Site,
        kind: str,
        ids: Tensor | None = None,
        dimensions: tuple[str, ...] = (),
        *,
        pads: bool = False,
    ) -> None:
        self.site, self.kind, self.ids, self.dimensions, self.pads = site, kind, ids, dimensions, pads

    def turned(self, kind: str) -> Mask:
        """The same of the other elements."""
        return Mask(self.site, kind, self.ids, self.dimensions, pads=self.pads)

    def shaped(self, dimensions: tuple[str, ...]) -> Mask:
        """The same in another shape."""
        return Mask(self.site, self.kind, self.ids, dimensions, pads=self.pads)


class Encoding:
    """One call of a tokenizer.

    `pads`: it fills up short texts; `several`: it was given several texts; `side`: on which it pads, "" where that is left
    to the tokenizer. None for unknown. `traits`: those of the texts. `asked`: a test has asked what single tokens are, or which
    of them are padding. `rows`: the lists that it gave.
    """

    __slots__ = ("asked", "given", "number", "pads", "rows", "several", "side", "site", "texts", "tokenizer", "traits")

    def __init__(self, site: Site, tokenizer: Instance, texts: Value | None, given: dict[str, Value]) -> None:
        self.site, self.tokenizer, self.texts, self.given = site, tokenizer, texts, given
        self.number = 0
        self.pads: bool | None = None
        self.several: bool | None = None
        self.side: str | None = None
        self.traits: frozenset[str] = frozenset()
        self.asked = False
        self.rows: tuple[Sequence, ...] = ()


_MOST_VIEWS = 4
ANY_PART = "?"
"""The part of a batch that stands for each of its values."""


class Tensor(Value):
    """A tensor.

    Attributes:
        graph: what its gradient would flow through; parameters: which it would reach.
        device: "cpu", "cuda", "meta", None for unknown.
        role: "batch", "logits", "probabilities", "sigmoid", "log-probabilities", "loss", "label", None for another.
        reduction: "mean" or "sum" of a loss over its batch.
        scaled: what it was multiplied with or divided by.
        scalar: it has no dimensions.
        form: "column" for a shape of (N, 1), "row" for (N,), None for unknown.
        dtype: "int64", "float32", ..., "one-hot" for integers of `one_hot`, None for unknown.
        layer: the class of the layer that gave it, "" where something else was done since.
        mixed: something of which nothing is known went into it, which may have a graph of its own.
        table: it was made of numbers that the program writes down or loads.
        blind: of a parameter, whether it was used in a forward pass while gradients were off.
        sums: the places where it was added to itself, and in which turns of the loops down to that over batches.
    """

    graph: frozenset[Graph] = frozenset()
    parameters: frozenset[Tensor] = frozenset()
    leaf, requires_grad, scalar = True, False, False
    device: str | None = None
    sure_device = False  # where it was made says where it is, nothing assumed
    role: str | None = None
    reduction: str | None = None
    form: str | None = None
    dtype: str | None = None
    stored = ""  # the dtype, where a cast, autocast or its making surely says so: see `models.numbers.halves`
    layer = ""
    as_given = False  # by its layer: it has the dimensions that this gave
    mixed = False
    table = False
    blind = False
    scaled: frozenset[Any] = frozenset()
    divided: frozenset[Any] = frozenset()  # what of that it was divided by
    sums: frozenset[tuple[Site, tuple[int, ...]]] = frozenset()
    parameter = False
    owner: Module | None = None
    managed_by: Instance | None = None  # of a parameter that no layer of a library owns: as a module's
    buffer = False
    data_of: Tensor | None = None  # the parameter whose `.data` it is: its memory, without its gradient
    gradient_of: Tensor | None = None
    gradient_changed = False  # its gradient was given other numbers by hand, or may have been
    gradient_touched = False  # its gradient was read or changed by hand
    changed_by_hand = False
    part: Any = None
    whole: Tensor | None = None  # the batch it is a part of
    moved_from: Tensor | None = None
    placed: Hashable | None = None  # what the device is known by that it was moved to last
    stays = False  # the move that gave it went to where it lay, and did nothing else
    shaped_from: Tensor | None = None  # by a method that gives a view or a copy, and leaves the tensor as it is
    part_of: Tensor | None = None  # of a part by places
    only_from: Tensor | None = None  # the one tensor that it was computed from
    taken_from: Tensor | None = None  # of a clone, of one with places filled and of a choice by a mask
    activation: tuple[str, Site] | None = None  # the last activation it went through, and where
    of_tokens = False  # a model gave it that was told labels, of texts that were filled up
    guessed = False  # a module out of sight gave it: it may be a tuple, and its parts anything
    answer = False  # a module gave it, and nothing but a choice among its numbers was made since
    criterion = False  # a loss function gave it, as it is or with other terms
    serial = 0  # tells parameters made at one place apart, in the order they were made
    stored_at: Site | None = None
    told_frozen = False  # its `requires_grad` was asked for while it was off
    unscaled_loss: Tensor | None = None
    gradient_read = 0  # when its `.grad` was last asked for
    clipped: Tensor | None = None  # the parameter whose gradient it is, clipped
    scaler: Value | None = None  # that scaled the loss
    metric: Value | None = None
    origin: Site | None = None
    filled = False  # numbers were written into it, or into what it was made of
    filler: Value | None = None  # what fills up short sequences in it, as `pad_sequence` puts them together
    edited = False  # a method changed its numbers in place
    uninitialised = False  # nobody has filled its memory
    steps: int | None = None  # of padded sequences: which dimension counts the steps
    rank: int | None = None  # how many dimensions it has
    least_rank = 0  # and at least
    dense = False  # it lies in memory as it is indexed
    order: tuple[int, ...] = ()  # in which its dimensions lay before `reordered_by`, where they were dense
    reordered_by = ""
    rearranged: Rearranged | None = None  # the view that gave it
    packed = False  # a PackedSequence, whose `data` is a field
    beheaded = False  # without its first row since, or with one more
    factors: list[Value] | None = None  # of a loss: with what it, and what that gives, is multiplied
    unreduced: list[str] | None = None  # of the terms of a loss: what it is reduced with later
    sizes: tuple[int, ...] = ()  # of a new tensor, where all are numbers
    sized_as: Tensor | None = None  # the one of whose numbers it was made one by one: it has the same sizes
    seen: frozenset[tuple[Loader, Any]] = frozenset()  # the parts of batches that it was computed from
    batch_of: Loader | None = None  # whose batch it is, or a part of
    stacked: tuple[Value, ...] = ()  # what was put one beside the other
    thin = False  # its last dimension has one element
    rows_first = False  # its first dimension counts the examples of a batch that a loader gave
    batch_second: Module | None = None  # the layer that has the second one count them
    rows_of: Loader | None = None  # the loader whose batch has as many rows, in a table of rows and columns
    angle = ""  # what it is to an angle between vectors: see `models.numbers.angles`
    places: tuple[Encoding, str] | None = (
        None  # what a model gave for each place of filled texts: see `sequences.pooled`
    )
    counts = False  # its elements are the numbers of their places
    embedded = False  # an embedding was given it: it holds ids
    looked_up: Module | None = None  # the embedding that was given these ids, and is told which one is padding
    compared = False  # a test has asked which of its elements are some number, or are not
    norm_of: Tensor | None = None  # of whose vectors it is the length
    mask: Mask | None = None
    filling: Any = None  # the number that all of its elements are
    binary = False  # they are zeros and ones
    cleared = False  # some were set to zero
    scored = False  # products of vectors, perhaps scaled and masked since
    weights: Weights | None = None  # a softmax gave it
    normed_first = False  # a softmax over its first dimension gave it
    states_of: Module | None = None  # the recurrent layer whose final states it is: layers and directions first

    def __init__(self, site: Site | None, made: int) -> None:
        self.site, self.made = site, made
        self.key = ("tensor", made)
        self.parts: dict[Any, Tensor] = {}

    @property
    def seen_of(self) -> Tensor | None:
        """What it is a move, a view or a part of."""
        return self.shaped_from or self.moved_from or self.part_of

    @property
    def gradient_seen(self) -> Tensor | None:
        """The tensor of whose gradient it is a move, a view or a part, or the gradient itself."""
        shown: Tensor | None = self
        for _ in range(_MOST_VIEWS):
            if shown is None or shown.gradient_of is not None:
                break
            shown = shown.seen_of
        return shown.gradient_of if shown is not None else None

    @property
    def made_of(self) -> Tensor | None:
        """The same, also of a clone, of one with places filled and of a choice by a mask."""
        return self.seen_of or self.taken_from

    @property
    def source(self) -> Tensor:
        """The tensor from whose numbers alone it was computed, with none left out by place; itself, if there is no other."""
        source = self
        while True:
            below = source.moved_from or source.shaped_from
            if below is None and source.part is None and source.part_of is None:
                below = source.only_from
            if below is None:
                return source
            source = below

    def __repr__(self) -> str:
        return f"<tensor {self.role or ''}{' parameter' if self.parameter else ''} on {self.device}>"


class Instance(Value):
    """An object: of a class of the program, or of a library's (`cls` is a `Library` then).

    `kind` says what it is to training: module, optimizer, schedule, loader, data set, sampler, metric, scaler, trainer, ...;
    "object" where it is none of these, "unknown" where a base is out of sight.
    """

    called_at: tuple[Site, ...] = ()  # of an open file: the calls that led to its opening
    entered_at: Site | None = None  # of a context: where it was entered
    opened_under: tuple[Any, ...] = ()  # the tests that let it be opened, or an iterator be made

    def __init__(self, cls: Class | Library, kind: str, site: Site | None, number: int) -> None:
        self.cls, self.kind, self.site, self.number = cls, kind, site, number
        self.key = ("object", number)
        self.attributes: dict[str, Value] = {}
        self.arguments: dict[str, Value] = {}  # of a library's object: what it was made with, by parameter name
        self.open_arguments = False  # and perhaps others
        self.initialised = True
        self.made = 0
        self.serial = 0

    @property
    def name(self) -> str:
        """The name of its class."""
        return self.cls.name if isinstance(self.cls, Class) else self.cls.last

    def argument(self, name: str, place: int) -> Value | None:
        """What it was made with under a name, or at a place; None where neither is in sight."""
        return self.arguments.get(name, self.arguments.get(f"#{place}"))

    def libraries(self) -> list[str]:
        """The canonical names of the library classes it is an instance of."""
        return self.cls.libraries() if isinstance(self.cls, Class) else [self.cls.path]

    def row(self) -> list[Value] | None:
        """The fields of a named tuple in their order; None of anything else."""
        if not isinstance(self.cls, Class) or not any(path.endswith(".NamedTuple") for path in self.cls.libraries()):
            return None
        return [self.attributes.get(name) or Unknown() for name, *_ in self.cls.all_fields()]

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name} {self.number}>"


_WITH_BIAS = re.compile(
    r"Linear|Bilinear|Conv(?:Transpose)?\dd|(?:Batch|Instance)Norm\dd|LayerNorm|GroupNorm|Embedding|PReLU"
)


class Module(Instance):
    """An `nn.Module`.

    Attributes:
        own: parameters of a library's layer, or the one that stands for all of a module out of sight.
        items: what a Sequential, ModuleList or ModuleDict holds.
        wraps: what DDP, DataParallel or Fabric wrapped.
        opaque: its layers are out of sight.
        whole: of an attribute of one out of sight, which most often is a module: that one.
        hint: what gave one out of sight was called, as its class.
    """

    def __init__(self, cls: Class | Library, site: Site | None, number: int) -> None:
        super().__init__(cls, "module", site, number)
        self.training = True
        self.device: str | None = "cpu"
        self.own: list[Tensor] = []
        self.items: list[Value] | dict[Any, Value] | None = None
        self.more_items = False
        self.wraps: Value | None = None
        self.wrapper = ""  # ddp, data-parallel, fsdp, fabric, accelerate, compiled
        self.within_ddp: Module | None = None
        self.process = 0  # of a DDP wrapper: the one that made it
        self.reduced: frozenset[Tensor] = frozenset()  # of a DDP wrapper: whose gradients it exchanges
        self.opaque = False
        self.whole: Module | None = None
        self.hint = ""
        self.assumed = False
        self.buffers: dict[str, Tensor] = {}
        self.reduction: str | None = None
        self.sharded = ""  # how: FSDP, fully_shard
        self.trainer: Instance | None = None
        self.optimizers: list[Value] | None = None
        self.schedules: list[Value] = []
        self.configured = False  # that these are all is known
        self.managed_by: Instance | None = None  # the Fabric or Accelerator that set it up
        self.calls = 0

    def children(self) -> list[Module]:
        """The modules directly below, as `nn.Module.children` tells them."""
        values = (value.told or value if type(value) is Unknown else value for value in self.attributes.values())
        found = [value for value in values if isinstance(value, Module)]
        if self.items:
            held = self.items.values() if isinstance(self.items, dict) else self.items
            found += [value for value in held if isinstance(value, Module)]
        if isinstance(self.wraps, Module):
            found.append(self.wraps)
        return list(dict.fromkeys(found)) if len(found) > 1 else found  # a part of a Sequential has a name as well

    def modules(self) -> list[Module]:
        """Itself and all below, each once."""
        seen: dict[int, Module] = {}
        left = [self]
        while left:
            each = left.pop()
            if each.number not in seen:
                seen[each.number] = each
                left += reversed(each.children())
        return list(seen.values())

    def parameters(self) -> list[Tensor]:
        """Its parameters and those of all below, each once."""
        found: dict[int, Tensor] = {}
        for module in self.modules():
            held = [*module.own, *module.attributes.values()]
            if module.items is not None:
                held += module.items.values() if isinstance(module.items, dict) else module.items
            for value in held:
                if isinstance(value, Tensor) and value.parameter:
                    found.setdefault(id(value), value)
        return list(found.values())

    def parameter_names(self) -> dict[int, tuple[str, ...]]:
        """What the parameters are called, by their ids, where that is known: one that stands for a layer's weight and bias
        has the names of both."""
        found: dict[int, tuple[str, ...]] = {}
        left: list[tuple[Module, str]] = [(self, "")]
        seen: set[int] = set()
        while left:
            module, prefix = left.pop()
            if module.number in seen:
                continue
            seen.add(module.number)
            for each in module.own:
                found.setdefault(id(each), tuple(prefix + name for name in module.own_names()))
            for name, value in module.named_items():
                if isinstance(value, Tensor) and value.parameter:
                    found.setdefault(id(value), (prefix + name,))
                elif isinstance(value, Module):
                    left.append((value, f"{prefix}{name}."))
        return found

    def named_items(self) -> list[tuple[str, Value]]:
        """What it holds, with the names under which `named_parameters` tells of it."""
        held = self.items.items() if isinstance(self.items, dict) else enumerate(self.items or ())
        found = [(str(name), value) for name, value in (*self.attributes.items(), *held)]
        return [*found, ("module", self.wraps)] if isinstance(self.wraps, Module) else found

    def own_names(self) -> tuple[str, ...]:
        """What the parameters of a layer of torch are called; nothing for those of others."""
        if not isinstance(self.cls, Library) or not _WITH_BIAS.fullmatch(self.name) or self.open_arguments:
            return ()
        bias = self.arguments.get("bias")
        plain = self.name in ("Embedding", "PReLU") or (isinstance(bias, Constant) and bias.value is False)
        return ("weight",) if plain else ("weight", "bias")

    def unwrapped(self) -> Module:
        """What does the work in wrappers, whose own mode tells nothing."""
        return self.wraps.unwrapped() if isinstance(self.wraps, Module) else self

    def sees_all(self) -> bool:
        """Whether all layers are in sight."""
        return not any(module.opaque or module.more_items for module in self.modules())


class Optimizer(Instance):
    """An optimizer, the parameters it was given, and whether it may hold others."""

    def __init__(self, cls: Class | Library, site: Site | None, number: int) -> None:
        super().__init__(cls, "optimizer", site, number)
        self.parameters: list[Tensor] = []
        self.groups: list[list[Tensor]] = []  # the parameters of each group
        self.own_rates = False  # a group has a learning rate of its own, or may have
        self.wraps: Optimizer | None = None  # what Lightning's `self.optimizers()` puts its counter around
        self.more = False
        self.of_one = False  # they are all those of one module, and no others
        self.told = False  # of other parameters, after it was made
        self.assumed = False
        self.steps = 0


class Schedule(Instance):
    """A learning-rate schedule."""

    def __init__(self, cls: Class | Library, site: Site | None, number: int) -> None:
        super().__init__(cls, "schedule", site, number)
        self.optimizer: Value | None = None
        self.length: Value | None = None
        self.length_name = ""
        self.factor: Value | None = None  # what the function of a LambdaLR gives
        self.factor_site: Site | None = None
        self.closed_over: list[Value] = []  # the numbers that this function finds around it
        self.steps = 0
        self.assumed = False


class Loader(Instance):
    """A DataLoader."""

    def __init__(self, cls: Class | Library, site: Site | None, number: int) -> None:
        super().__init__(cls, "loader", site, number)
        self.data: Value | None = None
        self.sampler: Value | None = None
        self.device: str | None = None  # where its batches come out, None for where the data set makes them
        self.assumed = False
        self.one_way = False  # no test of something unknown decided about the sample that it has made
        self.narrows: Callable[[Value], Value] | None = None  # what of a sample comes to the collator

    def prepared(self, by: Instance) -> Loader:
        """What Fabric or an Accelerator makes of it: one more loader of the same data; a loop over the first stays as it is."""
        made = copy(self)
        made.attributes, made.arguments = self.attributes | {"#managed": by}, dict(self.arguments)
        made.device = "cuda"
        return made


class Iterator(Instance):
    """What `iter`, `enumerate`, `zip`, `map` and generators give: it goes on where it stopped.

    `source` is what is gone over, `kind` stays "iterator".
    """

    def __init__(self, cls: Class | Library, site: Site | None, number: int, source: Any) -> None:
        super().__init__(cls, "iterator", site, number)
        self.source = source
        self.over: Value | None = None


def tensors_in(value: object, depth: int = 0) -> list[Tensor]:
    """The tensors a value is or holds, as far as containers are known."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, (Constant, Unknown, Library)):
        return []
    if depth < 4 and isinstance(value, Sequence):
        return [t for item in value.items for t in tensors_in(item, depth + 1)]
    if depth < 4 and isinstance(value, Mapping):
        return [t for item in value.items.values() for t in tensors_in(item, depth + 1)]
    if depth < 2 and isinstance(value, Instance) and value.kind in ("distribution", "object"):
        held = [*value.attributes.values(), *value.arguments.values()]
        return [t for item in held for t in tensors_in(item, depth + 1)]
    return []
