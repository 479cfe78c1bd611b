"""What surely uses CUDA when it runs: a call, or the import of a module of the project."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.across import Place, runs_always
from lightlint.facts.bindings import dotted_name
from lightlint.facts.cuda import starts_cuda

if TYPE_CHECKING:
    from pathlib import Path

    from lightlint.facts.file import FileFacts

_MOST = 30  # files after which a search gives up


def uses_cuda(facts: FileFacts, call: cst.Call) -> bool:
    """Whether a call surely uses CUDA, or calls a function of its file that does."""
    if starts_cuda(facts.names, call):
        return True
    callee = facts.hooks.callee(call) if isinstance(call.func, cst.Name) else None
    return callee is not None and any(starts_cuda(facts.names, each) for each in Place(facts, callee).calls())


def is_late(facts: FileFacts, node: cst.CSTNode) -> bool:
    """Whether its function, or the module's own code, surely has used CUDA whenever it comes to a node."""
    owner = facts.tree.owner(node)
    calls = [each for each in facts.tree.own(owner, cst.Call) if facts.tree.order(each) < facts.tree.order(node)]
    flow = facts.flow(owner)
    uses = (each for each in calls if starts_cuda(facts.names, each) or _leads_to_cuda(facts, each))
    return any(flow.always_before(node, [each]) for each in uses)


def _leads_to_cuda(facts: FileFacts, call: cst.Call) -> bool:
    """Whether a call runs a function that surely uses CUDA: no loop that may have no turn stands around that."""
    callee = facts.hooks.callee(call)
    if callee is None or callee.asynchronous is not None or facts.tree.own(callee.body, cst.Yield):
        return False
    calls = Place(facts, callee).calls()
    return any(
        starts_cuda(facts.names, each) and all(_has_turns(facts, loop) for loop in facts.tree.loops(each))
        for each in calls
    )


def _has_turns(facts: FileFacts, loop: cst.CSTNode) -> bool:
    """Whether a loop goes through the GPUs there are."""
    counts = facts.tree.within(loop.iter, cst.Call) if isinstance(loop, cst.For) else []
    return any(facts.names.call(each) == "torch.cuda.device_count" for each in counts)


def module_using_cuda(facts: FileFacts, owner: cst.FunctionDef | cst.Module, before: cst.CSTNode) -> str:
    """The name of a module of the project that uses CUDA when it is imported, as a function or module surely does before a
    node; empty where there is none in sight."""
    pending = [path for node, path in _imports(facts, owner) if facts.tree.order(node) < facts.tree.order(before)]
    for path in pending:
        other = facts.other(path) if path != facts.path and len(pending) <= _MOST else None
        if other is None:
            continue
        calls = other.tree.own(other.tree.module, cst.Call) if "cuda" in other.source.text else []
        if any(uses_cuda(other, call) and runs_always(other, call) for call in calls):
            return facts.project.module_name(path)
        pending.extend(each for _, each in _imports(other, other.tree.module) if each not in pending)
    return ""


def _imports(facts: FileFacts, owner: cst.FunctionDef | cst.Module) -> Iterator[tuple[cst.CSTNode, Path]]:
    """The files of the project that a function or module surely imports itself, with the statement."""
    for node in facts.tree.own(owner, cst.Import, cst.ImportFrom):
        if facts.conditions(node):
            continue
        for dotted in _named(facts, node):
            parts = dotted.split(".")
            rooms = (".".join(parts[:size]) for size in range(1, len(parts) + 1))
            found = (facts.project.find_module(room, facts.path.parent) for room in rooms)
            yield from ((node, path) for path in found if path is not None)


def _named(facts: FileFacts, node: cst.Import | cst.ImportFrom) -> list[str]:
    if isinstance(node, cst.Import):
        return [dotted_name(alias.name) for alias in node.names]
    origin = facts.bindings.origin(node)
    names = [] if isinstance(node.names, cst.ImportStar) else [dotted_name(alias.name) for alias in node.names]
    return [f"{origin}.{name}" for name in names] or [origin]
