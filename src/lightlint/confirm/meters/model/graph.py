"""Autograd graphs that hang on the program's variables: their nodes, and the bytes that saved tensors hold."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from lightlint.confirm.meters.numbers import is_tensor

if TYPE_CHECKING:
    from lightlint.confirm.boot.session import Session

_MOST_NODES = 5000
_MOST_NAMES = 60
_MOST_ITEMS = 200  # of a list or dict


def install(session: Session) -> None:
    """Compare the graphs behind the frame's variables around a finding's lines."""
    session.snapshots["graphs"] = behind


def behind(frame: Any) -> Mapping[str, Any]:
    """For each variable that holds tensors: [nodes of the graph, bytes saved in it]. Attributes of `self` count too."""
    if "torch" not in sys.modules:
        return {}
    return {name: list(size(tensors)) for name, tensors in _variables(frame)}


def _variables(frame: Any) -> Iterator[tuple[str, list[Any]]]:
    variables = list(frame.f_locals.items())
    holder = frame.f_locals.get("self")
    variables += [(f"self.{name}", value) for name, value in getattr(holder, "__dict__", {}).items()]
    found = 0
    for name, value in variables:
        tensors = list(_tensors(value, 2))
        if tensors and found < _MOST_NAMES:
            found += 1
            yield name, tensors


def _tensors(value: Any, depth: int) -> Iterator[Any]:
    if is_tensor(value):
        yield value
    elif depth and type(value).__name__ in {"list", "tuple", "deque"}:
        for each in list(value)[-_MOST_ITEMS:]:
            yield from _tensors(each, depth - 1)
    elif depth and issubclass(type(value), dict):
        for each in list(value.values())[-_MOST_ITEMS:]:
            yield from _tensors(each, depth - 1)


def size(tensors: list[Any]) -> tuple[int, int]:
    """Nodes of the graphs behind tensors and bytes of what they save; leaves that are trained belong to nobody."""
    waiting = [each.grad_fn for each in tensors if each.grad_fn is not None]
    seen = {id(node): node for node in waiting}
    storages: dict[int, int] = {}
    leaves: set[int] = set()
    while waiting and len(seen) < _MOST_NODES:
        node = waiting.pop()
        if hasattr(node, "variable"):
            leaves.add(node.variable.untyped_storage().data_ptr())
        for saved in _saved(node):
            storage = saved.untyped_storage()
            storages[storage.data_ptr()] = storage.nbytes()
        for following, _ in node.next_functions:
            if following is not None and id(following) not in seen:
                seen[id(following)] = following
                waiting.append(following)
    return len(seen), sum(count for address, count in storages.items() if address not in leaves)


def _saved(node: Any) -> Iterator[Any]:
    for name in _saved_names(type(node)):  # type: ignore[arg-type]  # a type hashes
        try:
            value = getattr(node, name)
        except RuntimeError:  # freed by a backward pass
            return
        for each in value if isinstance(value, list | tuple) else (value,):
            if is_tensor(each):
                yield each


@cache
def _saved_names(kind: type) -> tuple[str, ...]:
    return tuple(name for name in dir(kind) if name.startswith("_saved_") or name == "saved_tensors")


def root_of_pass(tensors: Any) -> dict[str, Any]:
    """What a backward pass starts from: whether it is a leaf, the operation behind it, by what a mean was divided."""
    root = tensors if hasattr(tensors, "grad_fn") else next(iter(tensors or ()), None)
    node = getattr(root, "grad_fn", None)
    return {
        "leaf": node is None,
        "root": type(node).__name__ if node is not None else "",
        "mean": _is_mean(node),
        "value": float(root.detach()) if root is not None and root.numel() == 1 else None,
    }


def _is_mean(node: Any) -> bool:
    """Whether an operation gives a mean over the batch: `mean()`, or a loss with its default reduction."""
    name = type(node).__name__
    return name.startswith("MeanBackward") or (
        "Loss" in name and getattr(node, "_saved_reduction", None) == 1  # torch's number for the mean
    )
