"""What `with` enters and leaves."""

from __future__ import annotations

import ast

from lightlint.engine.arguments import Arguments
from lightlint.engine.calls import call
from lightlint.engine.generators import Frame
from lightlint.engine.language.definitions import GRAD_MODES
from lightlint.engine.machine import Machine
from lightlint.models import tensors
from lightlint.models.registry import function, methods
from lightlint.values.core import NONE, TRUE, Bound, Class, Constant, Function, Library, Unknown, Value
from lightlint.values.training import Instance, Iterator


@function("contextlib.ExitStack", "contextlib.AsyncExitStack")
def _stack(machine: Machine, _: Arguments, node: ast.AST) -> Value:
    return machine.instance(Library("contextlib.ExitStack"), "exit stack", node)


@methods("exit stack")
def _stack_method(machine: Machine, stack: Value, name: str, given: Arguments, node: ast.AST) -> Value:
    assert isinstance(stack, Instance)
    context = given.get(0, "cm")
    if name == "enter_context" and context is not None:
        value, token = enter(machine, context, node)
        machine.stacks.setdefault(stack, []).append((context, token))
        return value
    if name == "close":
        _unwind(machine, stack, node)
        return NONE
    machine.escape(context)
    return Unknown()


def _unwind(machine: Machine, stack: Value, node: ast.AST) -> None:
    """Leave what was entered through a stack, the last first."""
    for context, token in reversed(machine.stacks.pop(stack, [])):
        leave(machine, context, token, node)


def enter(machine: Machine, value: Value, node: ast.AST) -> tuple[Value, object]:
    """What `with` binds, and what `leave` needs."""
    if isinstance(value, Iterator) and value.kind == "context" and isinstance(value.source, Frame):
        grad = len(machine.grad)
        entered = value.source.resume_context(machine)
        return (entered if entered is not None else NONE), grad
    if isinstance(value, Constant) and isinstance(value.value, str):  # `with torch.device(...)`
        before = machine.default_device
        machine.default_device = tensors.device_of(value)
        return value, ("device", before)
    if isinstance(value, Unknown) and (value.hint.startswith("assertRaises") or value.hint == "raises"):
        machine.awaited += 1
        return value, ("awaited",)
    if isinstance(value, Unknown) and value.hint in GRAD_MODES:  # `torch` itself came from a file out of sight
        machine.grad.append(value.hint == "enable_grad")
        return value, ("pop",)
    if not isinstance(value, Instance):
        return value, None
    if value.kind == "exit stack":
        return value, ("stack",)
    if value.kind == "autocast":
        machine.autocasts.append(value)
        return value, ("autocast",)
    if value.kind == "grad mode":
        if value.name == "set_grad_enabled":
            return value, ("restore", value.attributes.get("before"))
        machine.grad.append(value.name == "enable_grad")
        return value, ("pop",)
    if value.kind == "context" and value.name in ("no_sync", "no_backward_sync"):
        machine.held_back.append(value)
        value.entered_at = machine.site(node)
        return value, ("synced", value)
    if value.kind == "context" and value.name == "gathered":
        machine.summoned.append(value)
        return value, ("gathered", value)
    own = value.cls.find("__enter__") if isinstance(value.cls, Class) else None
    if isinstance(own, Function):
        return call(machine, Bound(value, own), Arguments(), node), None
    return value.attributes.get("value", value) if value.kind == "context" else value, None


def leave(machine: Machine, value: Value, token: object, node: ast.AST) -> None:
    """What happens at the end of a `with`."""
    if isinstance(value, Iterator) and value.kind == "context" and isinstance(value.source, Frame):
        value.source.resume_context(machine)
        if isinstance(token, int):
            del machine.grad[token:]
        return
    if isinstance(token, tuple):
        if token[0] == "stack":
            _unwind(machine, value, node)
        elif token[0] == "device":
            machine.default_device = token[1]
        elif token[0] == "restore" and isinstance(token[1], Constant):
            machine.grad[-1] = bool(token[1].value)
        elif token[0] == "pop":
            machine.grad.pop()
        elif token[0] == "synced":
            machine.held_back.remove(token[1])
        elif token[0] == "gathered":
            machine.summoned.remove(token[1])
        elif token[0] == "autocast":
            machine.autocasts.pop()
        elif token[0] == "awaited":
            machine.awaited -= 1
        return
    if isinstance(value, Instance) and value.kind == "handle":
        value.attributes["#closed"] = TRUE
    if isinstance(value, Instance) and isinstance(value.cls, Class):
        own = value.cls.find("__exit__")
        if isinstance(own, Function):
            call(machine, Bound(value, own), Arguments([NONE, NONE, NONE]), node)
