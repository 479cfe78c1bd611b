"""The layout of what a DataLoader draws: of the tensors of a TensorDataset, or of the samples that a data set's class gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.bindings import Kind
from lightlint.facts.layouts import Layout
from lightlint.facts.workers import LOADER

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_DEPTH = 14
_WRAPPERS = {"tqdm.tqdm", "tqdm.auto.tqdm", "tqdm.notebook.tqdm", "rich.progress.track", "itertools.islice"}
_TENSORS = {"torch.tensor", "torch.as_tensor", "torch.FloatTensor", "torch.from_numpy", "numpy.array", "numpy.asarray"}
_NUMBERS = {"builtins.float", "builtins.int", "numpy.float32", "numpy.float64", "numpy.int64"}
_RANDOM = {"numpy.random.rand", "numpy.random.randn"}
_RANGES = {"numpy.linspace", "numpy.arange", "builtins.range"}
_SIZED = {"numpy.zeros", "numpy.ones", "numpy.empty", "numpy.random.random"}
_ELEMENTWISE = {f"numpy.{name}" for name in ("sin", "cos", "tan", "tanh", "exp", "log", "sqrt", "abs", "square")}
_SAME = {"astype", "copy", "float", "double", "long", "to", "clone", "contiguous", "abs", "exp", "log", "sin", "cos"}
_FLAT = {"ravel", "flatten"}
_FRAMES = ("pandas.read_", "pandas.DataFrame")


class Samples:
    """The batches of one file's loaders."""

    def __init__(self, facts: FileFacts) -> None:
        self._facts = facts
        self._names = facts.names

    def layout(self, iterable: cst.BaseExpression, path: tuple[int, ...], depth: int) -> Layout | None:
        """The layout of what a loop variable is, which takes a part of each batch that a loader gives."""
        while isinstance(iterable, cst.Call) and iterable.args:
            name = self._names.call(iterable)
            if name == "builtins.enumerate" and path[:1] == (1,):
                iterable, path = iterable.args[0].value, path[1:]
            elif name in _WRAPPERS:
                iterable = iterable.args[0].value
            elif name == "builtins.zip" and path and 0 <= path[0] < len(iterable.args):
                if self._names.has_star(iterable):
                    return None
                iterable, path = iterable.args[path[0]].value, path[1:]
            else:
                break
        loader = self._facts.values.constructor(iterable)
        if loader is None or loader.name != LOADER or loader.call is None or len(path) != 1:
            return None
        given = self._names.argument(loader.call, "dataset", 0)
        made = self._facts.values.constructor(given.value) if given is not None else None
        if made is not None and made.name == "torch.utils.data.TensorDataset" and made.call is not None:
            tensors = [arg for arg in made.call.args if not arg.star and arg.keyword is None]
            whole = len(tensors) == len(made.call.args) and 0 <= path[0] < len(tensors)
            return self._facts.shapes.layout(tensors[path[0]].value, depth + 1) if whole else None
        return self._of_class(loader.call, path[0]) if self._collates_by_default(loader.call) else None

    def _collates_by_default(self, loader: cst.Call) -> bool:
        size = self._names.argument(loader, "batch_size", 1)
        alone = size is not None and self._names.constant(size.value) is None
        made_elsewhere = self._names.argument(loader, "collate_fn") or self._names.has_star(loader)
        return not alone and not made_elsewhere

    def _of_class(self, loader: cst.Call, place: int) -> Layout | None:
        """The layout of one part of the samples of a data set's class, put together in batches."""
        names = self._facts.datasets.names_of(loader)
        found = self._facts.of_class(next(iter(names))) if len(names) == 1 else None
        if found is None:
            return None
        facts, node = found
        method = facts.classes.method(node, "__getitem__")
        returns = facts.values.returns(method) if method is not None else []
        layouts = {_part(facts, each, place) for each in returns}
        return layouts.pop() if len(layouts) == 1 else None


def _part(facts: FileFacts, sample: cst.BaseExpression | None, place: int) -> Layout | None:
    match sample:
        case cst.Tuple(elements=elements) if not any(isinstance(each, cst.StarredElement) for each in elements):
            value = elements[place].value if 0 <= place < len(elements) else None
            if value is None:
                return None
            if _is_number(facts, value, 0):
                return Layout.FLAT
            return Layout.COLUMN if _is_single(facts, value, 0) else None
    return None


def _only(facts: FileFacts, name: cst.Name) -> cst.BaseExpression | None:
    """What a name was given, if that is one thing."""
    found = facts.reaching.bindings(name)
    plain = len(found) == 1 and found[0].kind is Kind.ASSIGN and not found[0].path
    return found[0].value if plain else None


def _is_number(facts: FileFacts, value: cst.BaseExpression | None, depth: int) -> bool:
    """Whether a value surely is one number, or a tensor without dimensions."""
    if depth > _DEPTH:
        return False
    match value:
        case cst.Integer() | cst.Float():
            return True
        case cst.Name():
            return _is_number(facts, _only(facts, value), depth + 1)
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Name()))]):
            return _is_item(facts, value, depth)
        case cst.BinaryOperation():
            return _is_number(facts, value.left, depth + 1) and _is_number(facts, value.right, depth + 1)
        case cst.Call(func=func):
            name = facts.names.of(func) or ""
            if name in _NUMBERS:
                return True
            if name in _TENSORS and value.args:
                return _is_number(facts, value.args[0].value, depth + 1)
            same = isinstance(func, cst.Attribute) and not name and func.attr.value in _SAME
            return same and isinstance(func, cst.Attribute) and _is_number(facts, func.value, depth + 1)
    return False


def _is_item(facts: FileFacts, value: cst.Subscript, depth: int) -> bool:
    """Whether `row[index]` takes one number of a row, by the index that `__getitem__` is given."""
    index = value.slice[0].slice
    word = index.value if isinstance(index, cst.Index) else None
    found = facts.reaching.bindings(word) if isinstance(word, cst.Name) else []
    given = bool(found) and all(each.kind is Kind.PARAMETER for each in found)
    return given and is_row(facts, value.value, depth + 1)


def _is_single(facts: FileFacts, value: cst.BaseExpression | None, depth: int) -> bool:
    """Whether a value surely is a tensor of one number in one dimension: `torch.tensor([y])`."""
    match value:
        case cst.Name() if depth < _DEPTH:
            return _is_single(facts, _only(facts, value), depth + 1)
        case cst.Call(func=func, args=[first, *_]):
            inner = first.value
            if facts.names.of(func) in _TENSORS - {"torch.from_numpy"} and isinstance(inner, cst.List):
                return len(inner.elements) == 1 and _is_number(facts, inner.elements[0].value, depth + 1)
    return False


def is_row(facts: FileFacts, value: cst.BaseExpression | None, depth: int = 0) -> bool:
    """Whether a value surely is an array, a tensor or a column of one dimension."""
    if depth > _DEPTH or value is None:
        return False
    if facts.shapes.layout(value, depth) is Layout.FLAT:
        return True
    match value:
        case cst.Name():
            return is_row(facts, _only(facts, value), depth + 1)
        case cst.Attribute(attr=cst.Name(value="values")) if _is_column(facts, value.value):
            return True
        case cst.Attribute():
            node = facts.classes.self_class(value.value)
            sources = facts.classes.attribute_sources(node, value.attr.value) if node is not None else []
            return bool(sources) and all(not path and is_row(facts, each, depth + 1) for each, path in sources)
        case cst.BinaryOperation(left=left, right=right):
            rows = [is_row(facts, each, depth + 1) for each in (left, right)]
            others = [each for each, row in zip((left, right), rows, strict=True) if not row]
            return any(rows) and all(_is_constant(facts, each) for each in others)
        case cst.Call():
            return _makes_row(facts, value, depth)
    return False


def _makes_row(facts: FileFacts, call: cst.Call, depth: int) -> bool:
    name, method = facts.names.of(call.func) or "", facts.names.method(call)
    plain = [arg.value for arg in call.args if arg.keyword is None and not arg.star]
    if name in _RANGES:
        return True
    if name in _RANDOM:
        return len(plain) == 1 == len(call.args)
    if name in _SIZED:
        return len(plain) == 1 and isinstance(facts.names.constant(plain[0]), int)
    if name in _ELEMENTWISE | _TENSORS:
        return bool(plain) and is_row(facts, plain[0], depth + 1)
    if isinstance(call.func, cst.Attribute) and not name:
        if method in {"to_numpy", "tolist"} and _is_column(facts, call.func.value):
            return True
        return (method in _FLAT and not call.args) or (method in _SAME and is_row(facts, call.func.value, depth + 1))
    return False


def _is_column(facts: FileFacts, value: cst.BaseExpression) -> bool:
    """Whether a value is the column of a table that `frame["name"]` gives."""
    if not isinstance(value, cst.Subscript) or not isinstance(value.slice[0].slice, cst.Index):
        return False
    found = facts.values.constructor(value.value)
    named = isinstance(facts.names.constant(value.slice[0].slice.value), str)
    return named and found is not None and found.name.startswith(_FRAMES)


def _is_constant(facts: FileFacts, value: cst.BaseExpression) -> bool:
    match value:
        case cst.Integer() | cst.Float():
            return True
        case cst.UnaryOperation():
            return _is_constant(facts, value.expression)
        case cst.BinaryOperation():
            return _is_constant(facts, value.left) and _is_constant(facts, value.right)
    return (facts.names.of(value) or "").startswith(("math.", "numpy.pi"))
