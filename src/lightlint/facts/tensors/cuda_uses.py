"""What surely uses CUDA when it runs: a call, or the import of a module of the project."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import dotted_name
from lightlint.facts.project.across import Place, runs_always
from lightlint.facts.tensors.cuda import asks_driver, starts_cuda

if TYPE_CHECKING:
    from pathlib import Path

    from lightlint.facts.linked import Linked

_MOST = 30  # files after which a search gives up
# with this variable, which Lightning sets, torch asks NVML whether there is a GPU, and leaves the driver alone
_BY_NVML = ("PYTORCH_NVML_BASED_CUDA_CHECK", "lightning")


def uses_cuda(facts: Linked, call: cst.Call) -> bool:
    """Whether a call surely uses CUDA, or calls a function of its file that does."""
    if starts_cuda(facts.names, call):
        return True
    callee = facts.hooks.callee(call) if isinstance(call.func, cst.Name) else None
    return callee is not None and any(starts_cuda(facts.names, each) for each in Place(facts, callee).calls())


def use_before(facts: Linked, run: cst.Call) -> cst.Call | None:
    """The first call of the same function, or of the module itself, that surely uses CUDA whenever a run gets so far."""
    owner = facts.tree.owner(run)
    calls = [each for each in facts.tree.own(owner, cst.Call) if facts.tree.order(each) < facts.tree.order(run)]
    known = {id(test) for test, _ in facts.conditions(run)}
    for call in sorted(calls, key=facts.tree.order):
        if uses_cuda(facts, call) and all(_holds(facts, *each, known) for each in facts.conditions(call)):
            return call
    return None


def _holds(facts: Linked, test: cst.BaseExpression, outcome: bool, known: set[int]) -> bool:
    return id(test) in known or (outcome and facts.names.call(test) == "torch.cuda.is_available")


def fixes_devices(facts: Linked, call: cst.Call) -> bool:
    """Whether a call surely makes CUDA's driver read which devices it may see."""
    return starts_cuda(facts.names, call) or (asks_driver(facts.names, call) and not asks_nvml(facts))


def asks_nvml(facts: Linked) -> bool:
    return any(word in facts.source.text for word in _BY_NVML)


def is_late(facts: Linked, node: cst.CSTNode) -> bool:
    """Whether its function, or the module's own code, surely has used CUDA whenever it comes to a node."""
    owner = facts.tree.owner(node)
    calls = [each for each in facts.tree.own(owner, cst.Call) if facts.tree.order(each) < facts.tree.order(node)]
    flow = facts.flow(owner)
    uses = (each for each in calls if _fixes_or_leads(facts, each))
    return any(flow.always_before(node, [each]) for each in uses)


def _leads_to_cuda(facts: Linked, call: cst.Call) -> bool:
    """Whether a call runs a function that surely uses CUDA: no loop that may have no turn stands around that."""
    callee = facts.hooks.callee(call)
    if callee is None or callee.asynchronous is not None or facts.tree.own(callee.body, cst.Yield):
        return False
    calls = Place(facts, callee).calls()
    return any(
        fixes_devices(facts, each) and all(_has_turns(facts, loop) for loop in facts.tree.loops(each)) for each in calls
    )


def _fixes_or_leads(facts: Linked, call: cst.Call) -> bool:
    return fixes_devices(facts, call) or _leads_to_cuda(facts, call)


def _has_turns(facts: Linked, loop: cst.CSTNode) -> bool:
    """Whether a loop goes through the GPUs there are."""
    counts = facts.tree.within(loop.iter, cst.Call) if isinstance(loop, cst.For) else []
    return any(facts.names.call(each) == "torch.cuda.device_count" for each in counts)


def module_using_cuda(facts: Linked, owner: cst.FunctionDef | cst.Module, before: cst.CSTNode) -> str:
    """The name of a module of the project that uses CUDA when it is imported, as a function or module surely does before a
    node; empty where there is none in sight."""
    imported = [path for node, path in _imports(facts, owner) if facts.tree.order(node) < facts.tree.order(before)]
    pending = [path for path in dict.fromkeys(imported) if path != facts.path]
    for number, path in enumerate(pending):
        other = facts.other(path) if number < _MOST else None
        if other is None:
            continue
        calls = at_import(other) if "cuda" in other.source.text else []
        uses = uses_cuda if asks_nvml(facts) else _fixes_or_leads
        if any(uses(other, call) and runs_always(other, call) for call in calls):
            return facts.project.module_name(path)
        found = dict.fromkeys(each for _, each in _imports(other, other.tree.module))
        pending += [each for each in found if each not in pending and each != facts.path]
    return ""


def at_import(facts: Linked) -> list[cst.Call]:
    """The calls that a module makes itself when it is imported, those in the bodies of its classes included."""
    classes = [each for each in facts.tree.all(cst.ClassDef) if isinstance(facts.tree.owner(each), cst.Module)]
    bodies = [facts.tree.module, *classes]
    return [call for body in bodies for call in facts.tree.own(body, cst.Call)]


def _imports(facts: Linked, owner: cst.FunctionDef | cst.Module) -> Iterator[tuple[cst.CSTNode, Path]]:
    """The files of the project that a function or module surely imports itself, with the statement."""
    for node in facts.tree.own(owner, cst.Import, cst.ImportFrom):
        if facts.conditions(node):
            continue
        for dotted in _named(facts, node):
            parts = dotted.split(".")
            rooms = (".".join(parts[:size]) for size in range(1, len(parts) + 1))
            found = (facts.project.find_module(room, facts.path.parent) for room in rooms)
            yield from ((node, path) for path in found if path is not None)


def _named(facts: Linked, node: cst.Import | cst.ImportFrom) -> list[str]:
    if isinstance(node, cst.Import):
        return [dotted_name(alias.name) for alias in node.names]
    origin = facts.bindings.origin(node)
    names = [] if isinstance(node.names, cst.ImportStar) else [dotted_name(alias.name) for alias in node.names]
    return [f"{origin}.{name}" for name in names] or [origin]
