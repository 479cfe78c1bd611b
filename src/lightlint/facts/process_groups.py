"""With which backend the process groups of a file exchange tensors, and which tensors lie where nccl cannot reach them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.annotations import is_none
from lightlint.facts.bindings import Kind
from lightlint.facts.processes import PROCESS_GROUP
from lightlint.facts.tensors import FACTORIES, KEEPING

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_NEW_GROUP = "torch.distributed.new_group"
_WORLD = {"torch.distributed.group.WORLD", "torch.distributed.GroupMember.WORLD"}
_ELSEWHERE = {"torch.set_default_device", "torch.set_default_tensor_type"}
_DEPTH = 6


def is_nccl(facts: FileFacts, group: cst.BaseExpression | None) -> bool:
    """Whether a group surely exchanges with nccl; None, and what is made without a backend, stand for the default group."""
    if group is None or is_none(group) or facts.names.of(group) in _WORLD:
        return _default_is_nccl(facts)
    made = [each.call if each.name == _NEW_GROUP else None for each in facts.values.origins(group)]
    return bool(made) and all(each is not None and _is_made_with_nccl(facts, each) for each in made)


def _is_made_with_nccl(facts: FileFacts, made: cst.Call) -> bool:
    backend = facts.names.argument(made, "backend", 2)
    if backend is None or is_none(backend.value):
        return not facts.names.has_star(made) and _default_is_nccl(facts)
    return facts.names.constant(backend.value) == "nccl"


def _default_is_nccl(facts: FileFacts) -> bool:
    """Whether every default group of this file is made with nccl."""
    calls = [each for each in facts.tree.all(cst.Call) if facts.names.call(each) == PROCESS_GROUP]
    given = [facts.names.argument(each, "backend", 0) for each in calls]
    return bool(given) and all(each is not None and facts.names.constant(each.value) == "nccl" for each in given)


def is_on_cpu(facts: FileFacts, value: cst.BaseExpression, depth: int = 0) -> bool:
    """Whether a value surely is a tensor on the CPU: made there, or brought there, and not moved since."""
    if isinstance(value, cst.Name):
        found = facts.reaching.bindings(value) if depth < _DEPTH else []
        plain = all(each.kind is Kind.ASSIGN and not each.path for each in found)
        return bool(found) and plain and all(each.value and is_on_cpu(facts, each.value, depth + 1) for each in found)
    if not isinstance(value, cst.Call) or facts.names.has_star(value):
        return False
    name, method = facts.names.call(value) or "", facts.names.method(value)
    device = facts.names.argument(value, "device")
    if name in FACTORIES - {"torch.as_tensor"}:
        return _names_cpu(facts, device.value) if device is not None else not _makes_elsewhere(facts)
    if not isinstance(value.func, cst.Attribute) or name.startswith("torch."):
        return False
    if method == "to":
        device = device or (value.args[0] if value.args and value.args[0].keyword is None else None)
        return device is not None and _names_cpu(facts, device.value)
    return method == "cpu" or (method in KEEPING and is_on_cpu(facts, value.func.value, depth + 1))


def _names_cpu(facts: FileFacts, device: cst.BaseExpression) -> bool:
    if facts.names.call(device) == "torch.device" and isinstance(device, cst.Call) and device.args:
        device = device.args[0].value
    return facts.names.constant(device) == "cpu"


def _makes_elsewhere(facts: FileFacts) -> bool:
    """Whether something in the file makes tensors without a device on another one than the CPU."""
    return any(facts.names.call(each) in _ELSEWHERE for each in facts.tree.all(cst.Call))
