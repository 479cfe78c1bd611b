"""Whether the last batch of a loop fills a window: because the program asks how many are left over, or by its numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import Kind, unpacked
from lightlint.facts.data.loading import LOADER
from lightlint.facts.steps.accumulation import Window

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_FACTORIES = {f"torch.{name}" for name in ("rand", "randn", "zeros", "ones", "empty")}
_SAME_ROWS = {"abs", "clone", "contiguous", "cpu", "cuda", "double", "float", "half", "int", "long", "to"}
_DEPTH = 4


def is_rest_asked(facts: FileFacts, call: cst.Call, window: Window) -> bool:
    """Whether the function around a step, or what makes its object, asks for the rest by the same modulo of a count."""
    sizes = {facts.tree.module.code_for_node(each) for each in (window.size, *facts.reaching.sources(window.size))}
    owner = facts.tree.owner(call)
    for each in facts.tree.own(owner, cst.BinaryOperation):
        if _is_rest(facts, each) and facts.tree.module.code_for_node(each.right) in sizes:
            return True
    node = facts.tree.enclosing_class(call)
    maker = facts.classes.method(node, "__init__") if node is not None else None
    if maker is None or maker is owner:
        return False
    return any(not sizes.isdisjoint(_spelled(facts, maker, each.right)) for each in _checked(facts, maker))


def _is_rest(facts: FileFacts, operation: cst.BinaryOperation) -> bool:
    """Whether an operation takes the modulo of what a call counted."""
    if not isinstance(operation.operator, cst.Modulo):
        return False
    return any(facts.tree.within(each, cst.Call) for each in facts.reaching.sources(operation.left))


def _checked(facts: FileFacts, function: cst.FunctionDef) -> Iterator[cst.BinaryOperation]:
    """The rests for which a function raises: it goes on only where there is none."""
    tests = [each.test for each in facts.tree.own(function.body, cst.Assert)]
    tests += [each.test for each in facts.tree.own(function.body, cst.If) if facts.tree.own(each.body, cst.Raise)]
    for test in tests:
        names = facts.tree.within(test, cst.Name)
        for source in (test, *(each for name in names for each in facts.reaching.sources(name))):
            yield from (each for each in facts.tree.within(source, cst.BinaryOperation) if _is_rest(facts, each))


def _spelled(facts: FileFacts, maker: cst.FunctionDef, size: cst.BaseExpression) -> set[str]:
    """How `__init__` spells a size, and how the other methods do, as it keeps that or what that is an attribute of."""
    text = facts.tree.module.code_for_node(size)
    found = {text}
    assigns = facts.tree.own(maker.body, cst.Assign)
    for target, value, path in (part for each in assigns for part in unpacked(each.targets[0].target, each.value)):
        kept = facts.names.key(target) if isinstance(target, cst.BaseExpression) else ""
        source = facts.names.key(value) if not path else ""
        if kept.startswith("self.") and source and (text == source or text.startswith(f"{source}.")):
            found.add(kept + text.removeprefix(source))
    return found


def is_filled(facts: FileFacts, loop: cst.For, window: Window) -> bool:
    """Whether the numbers in the text say that the last batch of a loop steps."""
    count, size = _batches(facts, loop), facts.names.constant(window.size)
    if count is None or not isinstance(size, int) or size < 1:
        return False
    first, target = _first(facts, loop, window), _target(facts, window, size)
    if first is None or target is None:
        return count % size == 0
    return (first + count - 1 + window.shift) % size == target


def _first(facts: FileFacts, loop: cst.For, window: Window) -> int | None:
    """What the counter of a window is for the first batch, where `enumerate` counts."""
    found = facts.bindings.lookup(window.counter) if isinstance(window.counter, cst.Name) else []
    inside = [each for each in found if facts.tree.contains(loop, each.site)]
    if len(inside) != 1 or inside[0].kind is not Kind.LOOP or not isinstance(loop.iter, cst.Call):
        return None
    start = facts.names.argument(loop.iter, "start", 1)
    value = facts.names.constant(start.value) if start is not None else 0
    return value if isinstance(value, int) and facts.names.call(loop.iter) == "builtins.enumerate" else None


def _target(facts: FileFacts, window: Window, size: int) -> int | None:
    """The rest at which a window is full: 0, or what it is compared with."""
    test = facts.tree.parent(window.modulo)
    if not isinstance(test, cst.Comparison):
        return 0
    other = test.comparisons[0].comparator if test.left is window.modulo else test.left
    value = facts.names.constant(other)
    if isinstance(other, cst.BinaryOperation) and isinstance(other.operator, cst.Subtract):
        one, two = facts.names.constant(other.left), facts.names.constant(other.right)
        value = one - two if isinstance(one, int) and isinstance(two, int) else value
    return value % size if isinstance(value, int) else None


def _batches(facts: FileFacts, loop: cst.For) -> int | None:
    """How many batches a loop draws from a DataLoader that is all numbers."""
    names = facts.names
    made = facts.values.constructor(facts.values.iterated(loop.iter))
    loader = made.call if made is not None and made.name == LOADER else None
    if loader is None or names.has_star(loader):
        return None
    samplers = (names.argument(loader, "sampler", 3), names.argument(loader, "batch_sampler", 4))
    size, last = names.argument(loader, "batch_size", 1), names.argument(loader, "drop_last", 8)
    number = names.constant(size.value) if size is not None else 1
    dropped = names.constant(last.value) if last is not None else False
    rows = rows_of_dataset(facts, facts.loading.dataset(loader))
    known = rows is not None and isinstance(number, int) and number > 0 and isinstance(dropped, bool)
    if not known or any(samplers) or rows is None or not isinstance(number, int):
        return None
    return rows // number if dropped else -(-rows // number)


def rows_of_dataset(facts: FileFacts, dataset: cst.BaseExpression | None) -> int | None:
    """The length of a TensorDataset: that of any of its tensors."""
    made = facts.values.constructor(dataset)
    if made is None or made.name != "torch.utils.data.TensorDataset" or made.call is None:
        return None
    found = (_rows(facts, arg.value, 0) for arg in made.call.args if not arg.star)
    return next((each for each in found if each is not None), None)


def _rows(facts: FileFacts, tensor: cst.BaseExpression, depth: int) -> int | None:
    """The first size of a tensor that one of torch's factories makes."""
    sources = facts.reaching.sources(tensor)
    made = sources[0] if len(sources) == 1 and depth <= _DEPTH else None
    if not isinstance(made, cst.Call):
        return None
    name = facts.names.call(made) or ""
    if name in _FACTORIES:
        given = facts.names.argument(made, "size", 0)
    elif name == "torch.randint":
        given = facts.names.argument(made, "size", 2)
    elif isinstance(made.func, cst.Attribute) and facts.names.method(made) in _SAME_ROWS:
        return _rows(facts, made.func.value, depth + 1)
    else:
        return None
    size = given.value if given is not None else None
    if isinstance(size, (cst.Tuple, cst.List)) and size.elements:
        size = size.elements[0].value
    first = facts.datasets.number(size) if size is not None else None
    return first if isinstance(first, int) else None
