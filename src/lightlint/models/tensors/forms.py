"""What is known of a tensor's shape and dtype: whether it is a column or a row of numbers, and how these are stored."""

from __future__ import annotations

from lightlint.engine.arguments import Arguments
from lightlint.models.names.tables import SHORT_DTYPES
from lightlint.values.core import SINGLE, Constant, Sequence, Value, is_constant, number_of, text_of
from lightlint.values.training import Instance, Tensor

COLUMN, ROW = "column", "row"
SOFT = "soft"
"""The dtype of floats that are probabilities of the classes, one row for each example."""
_DTYPES = {
    **SHORT_DTYPES,
    "bfloat16": "bfloat16",
    "bool": "bool",
    "argmax": "int64",
    "argmin": "int64",
    "one_hot": "one-hot",
    "LongTensor": "int64",
    "IntTensor": "int32",
    "randint": "int64",
}
CASTS = frozenset(["long", "int", "short", "float", "double", "half", "bfloat16", "bool", "to", "type"])
_LAST = (-1, 1)  # the dimension behind the batch, as scripts spell it


def note(made: Value, name: str, given: Arguments) -> None:
    """Note shape and dtype of what a function or method called `name` gives, its tensor the first argument."""
    source = given.get(0, "input")
    if not isinstance(made, Tensor):
        return
    written = given.keywords.get("dtype") or (given.get(1, "dtype") if name in ("to", "type") else None)
    held = source.dtype if isinstance(source, Tensor) else None
    if name in ("to", "type") or written is not None:
        named = text_of(written) or ""
        keeps = written is None or (named and not named.startswith("torch.")) or "dev" in getattr(written, "hint", "")
        made.dtype = _named(named) if named.startswith("torch.") else held if keeps else None
    else:
        made.dtype = _DTYPES.get(name, made.dtype)
    made.form = _form(name, source, given.behind(1)) if source is not None else made.form
    made.as_given = made.as_given and (name in SAME_SHAPE or (name in _LEFT_IN_ROWS and made.form is None))
    if name == "gather":
        made.layer = ""  # a choice among outputs: how many there are it does not tell
    if name in ("view", "reshape") and _are_all_one(given.behind(1)):
        made.traits = made.traits | SINGLE


def forget(tensor: Tensor) -> None:
    """Its dimensions are others, or lie in another order, than was known."""
    tensor.form, tensor.as_given, tensor.mask = None, False, None


def is_single_output(value: Value | None) -> bool:
    """Whether it is what a linear layer with one output gave, in the shape that the layer gave it."""
    return isinstance(value, Tensor) and value.layer == "Linear" and value.as_given and value.form == COLUMN


def _named(path: str) -> str | None:
    last = path.rpartition(".")[2]
    return _DTYPES.get(last, last)


def _form(name: str, source: Value, given: Arguments) -> str | None:
    first = number_of(given.get(0, "dim"))
    held = source.form if isinstance(source, Tensor) else None
    if name == "squeeze":
        removes = not given.positional and not given.keywords
        if held != COLUMN or (first == 0 and not removes):
            return held
        flat = isinstance(source, Tensor) and source.rank in (None, 2)
        return ROW if flat and (removes or first in _LAST) else None  # `squeeze(2)` takes the last dimension of three
    if name == "unsqueeze":
        return COLUMN if first in _LAST and isinstance(source, Tensor) and _may_be_row(source) else None
    if name in ("view", "reshape"):
        return None if source.traits >= SINGLE else _viewed(_sizes(given))
    if name in ("flatten", "ravel"):
        return ROW if not source.traits >= SINGLE and not given.positional and not given.keywords else None
    if name in ("argmax", "argmin", "max", "min", "amax", "amin"):
        return _reduced(source, first, given.get(1, "keepdim")) if isinstance(source, Tensor) else None
    if name == "topk":
        along = given.get(1, "dim")
        return COLUMN if number_of(given.get(0, "k")) == 1 and (along is None or number_of(along) in _LAST) else None
    if name == "gather":
        return _gathered(source, given.get(1, "index")) if first in _LAST else None
    return held if name in SAME_SHAPE else None


def _may_be_row(tensor: Tensor) -> bool:
    """Whether nothing says that it has more than one dimension, as what a network gives has."""
    return tensor.form != COLUMN and not tensor.as_given and tensor.rank in (None, 1)


def _gathered(source: Value, index: Value | None) -> str | None:
    """The shape of what is picked along dimension 1: that of the index, which has as many dimensions as the scores have."""
    scores = isinstance(source, Tensor) and source.as_given and source.form is None
    form = index.form if isinstance(index, Tensor) else None
    return form or (COLUMN if scores else None)


def _reduced(source: Tensor, dimension: float | None, keepdim: Value | None) -> str | None:
    """The shape of the largest along a dimension; what a network gives counts as scores of classes."""
    if is_constant(keepdim, True):
        return COLUMN if dimension in _LAST else None
    drops = keepdim is None or is_constant(keepdim, False)
    return ROW if dimension == 1 and drops and source.as_given and source.form is None else None


def _sizes(given: Arguments) -> list[Value]:
    first = given.positional[0] if given.positional else None
    return first.items if isinstance(first, Sequence) else given.positional


def _are_all_one(given: Arguments) -> bool:
    """Whether sizes leave room for one number: `reshape(1, 1)`."""
    sizes = _sizes(given)
    return bool(sizes) and all(number_of(each) == 1 for each in sizes)


def _viewed(sizes: list[Value]) -> str | None:
    if len(sizes) == 1 and number_of(sizes[0]) == -1:
        return ROW
    return COLUMN if len(sizes) == 2 and number_of(sizes[1]) == 1 and number_of(sizes[0]) != 1 else None


def made_of_sizes(given: Arguments) -> str | None:
    """The shape of what `torch.randn(8)`, `torch.zeros(8, 1)` and their like give."""
    sizes = _sizes(given)
    if len(sizes) == 1 and isinstance(sizes[0], Instance):
        like = sizes[0].attributes.get("tensor")  # `other.size()`
        return like.form if isinstance(like, Tensor) else None
    if len(sizes) == 1:
        return ROW if number_of(sizes[0]) not in (None, 1) or getattr(sizes[0], "plain", False) else None
    return COLUMN if len(sizes) == 2 and number_of(sizes[1]) == 1 and number_of(sizes[0]) != 1 else None


def of_item(source: Tensor, index: Value) -> str | None:
    """The shape of `tensor[:, 0]` and `tensor[:, None]`."""
    parts = index.items if isinstance(index, Sequence) and index.kind == "tuple" else []
    whole = bool(parts) and isinstance(parts[0], Sequence) and parts[0].kind == "slice"
    if not whole or len(parts) != 2:
        return None
    if is_constant(parts[1], None):
        return COLUMN if _may_be_row(source) else None
    return ROW if isinstance(parts[1], Constant) and source.form == COLUMN else None


def differ(left: Value | None, right: Value | None) -> bool:
    """Whether one of two tensors is a column and the other a row: each number meets all of the other."""
    forms = {each.form for each in (left, right) if isinstance(each, Tensor) and not each.escaped}
    return forms == {COLUMN, ROW}


_LEFT_IN_ROWS = frozenset(["squeeze", "flatten", "view", "reshape"])
"""What a row of scores for each example is made with of the scores that a network gives."""
SAME_SHAPE = CASTS | {
    "detach",
    "clone",
    "contiguous",
    "cuda",
    "cpu",
    "abs",
    "exp",
    "log",
    "clamp",
    "relu",
    "sigmoid",
    "tanh",
    "round",
    "softplus",
    "requires_grad_",
    "type_as",
}
