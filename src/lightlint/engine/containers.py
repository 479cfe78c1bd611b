"""What containers hold, and how values are taken apart into targets."""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable
from copy import copy
from itertools import takewhile
from typing import Any

from lightlint.engine.events import Called, EntryKept, ItemSet, Looped, PickedByTurn, Stepped
from lightlint.engine.execution import EXPRESSIONS, evaluate
from lightlint.engine.frames import Iteration, Loop, Reset
from lightlint.engine.machine import Machine
from lightlint.engine.misuse import ask
from lightlint.engine.training_loops import is_of_turn
from lightlint.values.core import ON_SOME, Constant, Mapping, Promised, Scope, Sequence, Unknown, Value
from lightlint.values.training import Instance, Module, Tensor, tensors_in

_MOST_ITEMS = 32  # of a container that is gone over
_MOST_HELD = 400  # by a container that is added to


def made(machine: Machine, container: Sequence, node: ast.AST) -> Sequence:
    """A container with the time, place and loop depth of its making."""
    machine.clock += 1
    container.made, container.site, container.depth = machine.clock, machine.site(node), len(machine.loops)
    return container


def listed(machine: Machine, value: Value, node: ast.AST) -> tuple[list[Value], bool]:
    """What a value holds when gone over, and whether that is all."""
    iteration = machine.models.iterate(machine, value, node)
    items: list[Value] = []
    for turn in range(min(iteration.turns, _MOST_ITEMS)):
        item = iteration.pull(turn)
        if item is None:
            break
        items.append(item)
    iteration.close()
    if isinstance(value, Sequence) and len(items) < len(value.items):
        return [*value.items], not value.more  # no turn is run for any of them
    return items, iteration.known and iteration.turns <= _MOST_ITEMS


def extend(container: Sequence, items: list[Value], *, known: bool) -> None:
    """Put several values into a list, set or deque."""
    room = max(0, _MOST_HELD - len(container.items))
    container.items += items[:room]
    container.more |= not known or len(items) > room


def key_of(value: Value, otherwise: Hashable) -> Hashable:
    """A value as the key of a dict."""
    if isinstance(value, Constant):
        try:
            hash(value.value)
        except TypeError:
            return otherwise
        constant: Hashable = value.value
        return constant
    return value.key if value.key is not None else otherwise


def assign_target(machine: Machine, target: ast.expr, value: Value, scope: Scope) -> None:
    """Bind a value to a target: a name, an attribute, an item, a pattern of these."""
    if isinstance(value, Unknown) and machine.split_ranks:
        value = copy(value)
        value.traits |= ON_SOME
    if isinstance(value, (Unknown, Tensor)) and not value.named:
        value.named = _name_of(target)
    if isinstance(target, (ast.Name, ast.Attribute)):
        note_entry(machine, value, target)
    if isinstance(target, ast.Name):
        if isinstance(value, Instance) and value.kind == "load result":
            before = scope.find(target.id)
            machine.models.replace(machine, None if isinstance(before, Promised) else before, value, target)
        scope.bind(target.id, value)
        _note_reset(machine, scope.names, target.id, value)
    elif isinstance(target, ast.Attribute):
        holder = evaluate(machine, target.value, scope)
        machine.models.set_attribute(machine, holder, target.attr, value, target)
        if isinstance(holder, Instance):
            _note_reset(machine, holder.attributes, target.attr, value)
    elif isinstance(target, ast.Subscript):
        holder = evaluate(machine, target.value, scope)
        machine.models.set_item(machine, holder, evaluate(machine, target.slice, scope), value, target)
    elif isinstance(target, (ast.Tuple, ast.List)):
        _unpack(machine, target, value, scope)
    elif isinstance(target, ast.Starred):
        assign_target(machine, target.value, value, scope)


def note_entry(machine: Machine, value: Value, node: ast.AST, *, back: bool = False) -> None:
    """Write down that an entry of a checkpoint is kept under a name or an attribute, or is read `back` from there."""
    if type(value) is Unknown and isinstance(value.loaded, tuple) and isinstance(value.loaded[0], Called):
        machine.emit(EntryKept(machine.where(node), value.loaded[0], value.loaded[1], value, back))


def _note_reset(machine: Machine, names: dict[str, Value], name: str, value: Value) -> None:
    """Let a loop know what one in several of its turns sets."""
    loop = machine.loops[-1] if machine.loops else None
    if loop is None or loop.known or names.get(name) is not value:
        return
    loop.reset = [each for each in loop.reset if each.names is not names or each.name != name]
    if isinstance(value, Constant) and any(
        each.outcome and "periodic" in each.traits for each in machine.conditions[loop.under :]
    ):
        loop.reset.append(Reset(names, name, value))


def leaves_rest(machine: Machine, loop: Loop) -> bool:
    """Whether the present turn has stepped an optimizer as one in several does, and set anew what tells how many batches
    came since: another turn is to show what is left over where the last window is not full."""
    if loop.known or not any(names.get(name) is value for names, name, value in loop.reset):
        return False
    since = takewhile(lambda event: event.time >= loop.begun, reversed(machine.events))
    return any(isinstance(event, Stepped) for event in since)


def _name_of(target: ast.expr) -> str:
    """The name that a target gives a value, in a dict the key."""
    if isinstance(target, ast.Name):
        return target.id
    if isinstance(target, ast.Attribute):
        return target.attr
    key = target.slice if isinstance(target, ast.Subscript) else None
    return key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else ""


def _unpack(machine: Machine, target: ast.Tuple | ast.List, value: Value, scope: Scope) -> None:
    star = next((index for index, each in enumerate(target.elts) if isinstance(each, ast.Starred)), None)
    row = value.row() if isinstance(value, Instance) else None
    value = Sequence(row, "tuple") if row is not None else value
    if isinstance(value, Sequence):
        value.taken |= {index for index, each in enumerate(target.elts) if not getattr(each, "id", "").startswith("_")}
    if isinstance(value, Sequence) and value.another is not None and star is None:
        value.items = value.items[: len(target.elts)]
        value.items += (value.another() for _ in range(len(target.elts) - len(value.items)))
        value.more = False
    if isinstance(value, Sequence) and not value.more:
        items = value.items
        if star is None and len(items) == len(target.elts):
            for each, item in zip(target.elts, items, strict=True):
                assign_target(machine, each, item, scope)
            return
        if star is not None and len(items) >= len(target.elts) - 1:
            behind = len(target.elts) - star - 1
            middle = items[star : len(items) - behind]
            parts = [*items[:star], Sequence(middle), *items[len(items) - behind :]]
            for each, item in zip(target.elts, parts, strict=True):
                assign_target(machine, each, item, scope)
            return
    ask(machine, value, "unpack", target, len(target.elts) if star is None else 0)
    if isinstance(value, Instance) and value.kind in ("iterator", "object", "loader"):
        items, _ = listed(machine, value, target)
        value = Sequence(items, "tuple", more=True) if items else Unknown()
    for index, each in enumerate(target.elts):
        part = machine.models.part(machine, value, index, target)
        assign_target(machine, each, Sequence([part], more=True) if index == star else part, scope)


def _display(kind: str) -> Callable[[Machine, Any, Scope], Value]:
    def display(machine: Machine, node: ast.List | ast.Tuple | ast.Set, scope: Scope) -> Value:
        items: list[Value] = []
        more = False
        for element in node.elts:
            if isinstance(element, ast.Starred):
                gone_over, known = listed(machine, evaluate(machine, element.value, scope), element)
                items += gone_over
                more |= not known
            else:
                items.append(evaluate(machine, element, scope))
        return made(machine, Sequence(items, kind, more=more), node)

    return display


def _dict(machine: Machine, node: ast.Dict, scope: Scope) -> Value:
    found = Mapping()
    for number, (key, item) in enumerate(zip(node.keys, node.values, strict=True)):
        value = evaluate(machine, item, scope)
        if key is not None:
            index = evaluate(machine, key, scope)
            found.items[key_of(index, ("?", number))] = value
            found.more |= not isinstance(index, Constant)
        elif isinstance(value, Mapping):
            found.unsure |= {*found.items} if value.more else set()
            found.items.update(value.items)
            found.said |= value.places()
            found.more |= value.more
        else:
            found.unsure |= {*found.items}
            found.more = True
    machine.clock += 1
    found.made, found.site, found.depth = machine.clock, machine.site(node), len(machine.loops)
    note_twins(machine, found, node)
    return found


def note_twins(machine: Machine, mapping: Mapping, node: ast.AST) -> None:
    """Write down the modules that a new dict holds under more than one key."""
    modules = [(key, each) for key, each in mapping.items.items() if isinstance(each, Module)]
    for key, module in modules if len({id(each) for _, each in modules}) < len(modules) else ():
        machine.emit(ItemSet(machine.where(node), mapping, key, module))


def note_filled(machine: Machine, container: Value, value: Value) -> None:
    """Let a container know the loop each batch of which puts tensors into it."""
    loop = machine.loops[-1] if machine.loops else None
    if loop is not None and loop.kind == "batch" and any(not each.scalar for each in tensors_in(value)):
        container.filled_by = loop


def note_part(machine: Machine, index: Value, part: Value) -> None:
    """Let a loop know what is taken out of a container in it by the number or element of a turn."""
    if machine.loops and isinstance(part, (Instance, Mapping, Sequence)) and is_of_turn(index.key):
        machine.loops[-1].taken.append((index.key, part))


def note_next(machine: Machine, value: Value, node: ast.AST) -> None:
    """Write down that each batch of a loop gets the next of what the batches of another one have left."""
    loop, before = machine.loops[-1] if machine.loops else None, value.filled_by
    if loop is None or loop.kind != "batch" or before is None or before in machine.loops:
        return
    if before.over is not None and loop.over is not None:
        machine.emit(PickedByTurn(machine.where(node), before.over, loop.over))


def _comprehension(kind: str) -> Callable[[Machine, Any, Scope], Value]:
    def comprehension(machine: Machine, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, scope: Scope) -> Value:
        found = Sequence([], kind)

        def add(inner: Scope) -> None:
            found.items.append(evaluate(machine, node.elt, inner))
            note_filled(machine, found, found.items[-1])

        whole, found.grows = _turns(machine, node, scope, add)
        found.more = not whole
        return made(machine, found, node)

    return comprehension


def _dict_comprehension(machine: Machine, node: ast.DictComp, scope: Scope) -> Value:
    found = Mapping()
    unchanged = _keeps_values(node)

    def add(inner: Scope) -> None:
        key = evaluate(machine, node.key, inner)
        found.items[key_of(key, ("?", len(found.items)))] = evaluate(machine, node.value, inner)
        over = found.made_over = machine.loops[-1].over
        whole = over.rows_of if unchanged and isinstance(over, Sequence) else None
        if whole is not None and whole.source is not None:
            found.source, found.made, found.depth = whole.source, whole.made, whole.depth

    whole, _ = _turns(machine, node, scope, add)
    found.more = not whole
    return found


def _keeps_values(node: ast.DictComp) -> bool:
    """Whether the values are those of the pairs that it goes over: `{k: v for k, v in state.items()}`."""
    match node.generators, node.value:
        case [ast.comprehension(target=ast.Tuple(elts=[_, ast.Name(id=name)]))], ast.Name(id=given):
            return name == given
    return False


def _shows_dict(over: Value | None) -> bool:
    """Whether it is a dict, or its entries: what is made of one is made of each."""
    return isinstance(over, Mapping) or (isinstance(over, Sequence) and over.rows_of is not None)


def _turns(machine: Machine, node: Any, scope: Scope, act: Callable[[Scope], None]) -> tuple[bool, bool]:
    """Go through the turns of a comprehension; gives whether they are all there are, and whether a test of which nothing is
    known decides how many of them count."""
    inner = Scope(scope.file, scope)
    inner.receiver = scope.receiver
    known, sifted = True, False

    def through(depth: int) -> None:
        nonlocal known, sifted
        if depth == len(node.generators):
            machine.tick()
            act(inner)
            return
        generator = node.generators[depth]
        iteration = machine.models.iterate(machine, evaluate(machine, generator.iter, inner), generator.iter)
        rows = iteration.everything
        if rows is not None:
            iteration = Iteration(lambda turn: rows[turn], iteration.kind, len(rows), True, iteration.bound)
        turns = iteration.turns if iteration.known or _shows_dict(iteration.over) else min(iteration.turns, 2)
        known &= iteration.known and turns <= _MOST_ITEMS
        loop = Loop(node, machine.site(node), iteration.kind, iteration.bound, iteration.over, iteration.known)
        machine.emit(Looped(machine.where(node), loop))
        machine.loops.append(loop)
        try:
            for turn in range(min(turns, _MOST_ITEMS)):
                item = iteration.pull(turn)
                if item is None:
                    break
                loop.turn += 1
                assign_target(machine, generator.target, item, inner)
                tests = [evaluate(machine, test, inner) for test in generator.ifs]
                sifted |= any(machine.truth(test) is None for test in tests)  # before it is decided how they come out
                outcomes = [machine.decide(test, at) for test, at in zip(tests, generator.ifs, strict=True)]
                if all(outcomes):
                    through(depth + 1)
        finally:
            machine.loops.pop()
            iteration.close()

    through(0)
    return known, sifted


EXPRESSIONS.update(
    {
        ast.List: _display("list"),
        ast.Tuple: _display("tuple"),
        ast.Set: _display("set"),
        ast.Dict: _dict,
        ast.ListComp: _comprehension("list"),
        ast.SetComp: _comprehension("set"),
        ast.GeneratorExp: _comprehension("generator"),
        ast.DictComp: _dict_comprehension,
    }
)
