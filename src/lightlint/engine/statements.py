"""What statements do: a block runs as a generator that stops at each `yield` of the program."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Generator
from collections.abc import Sequence as Statements
from typing import Any

from lightlint.engine import operators
from lightlint.engine.decorators import decorated, decorated_class
from lightlint.engine.events import Emptied, LeafChanged, Left, Looped, ResultDropped
from lightlint.engine.expressions import assign_target, evaluate, function_of
from lightlint.engine.frames import Loop
from lightlint.engine.imports import import_from, import_module
from lightlint.engine.machine import BudgetSpentError, Machine
from lightlint.values.core import (
    NONE,
    Class,
    Constant,
    Library,
    Mapping,
    Scope,
    Sequence,
    Site,
    Unknown,
    Value,
    is_constant,
    number_of,
    traits_of,
)
from lightlint.values.training import Instance, Tensor


class LeaveLoop(Exception):  # noqa: N818 - control flow of the program, no error
    """`break`."""


class NextTurn(Exception):  # noqa: N818
    """`continue`."""


class Returned(Exception):  # noqa: N818
    """`return`."""

    def __init__(self, value: Value, site: Site) -> None:
        self.value, self.site = value, site


class Raised(Exception):  # noqa: N818
    """The program raised something."""

    def __init__(self, value: Value) -> None:
        self.value = value


_LEAVES = (ast.Return, ast.Raise, ast.Break, ast.Continue)
_YIELDS = (ast.Yield, ast.YieldFrom)
_MAY_YIELD = (ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return)
_TURNS = 2  # of a loop whose number of turns is unknown
_MOST_TURNS = 24


Steps = Generator[Value, None, None]
"""The run of a block: it stops at each `yield` of the program with the value yielded."""


def run(machine: Machine, body: Statements[ast.stmt], scope: Scope) -> None:
    """Execute statements of a frame that does not yield."""
    for _ in block(machine, body, scope):
        pass


def block(machine: Machine, body: Statements[ast.stmt], scope: Scope) -> Steps:
    """Execute statements in order, stopping at each `yield`."""
    for statement in body:
        machine.steps += 1  # as `machine.tick`, without a call for each statement
        if machine.steps > machine.budget:
            raise BudgetSpentError
        kind = type(statement)
        simple = _SIMPLE.get(kind)
        if simple is not None:
            if isinstance(statement, _MAY_YIELD) and isinstance(statement.value, _YIELDS):
                yield from _yield(machine, statement.value, scope)
                if isinstance(statement, ast.Assign):
                    for target in statement.targets:
                        assign_target(machine, target, Unknown(), scope)
                continue
            simple(machine, statement, scope)
        elif kind in _COMPOUND:
            yield from _COMPOUND[kind](machine, statement, scope)


def _yield(machine: Machine, node: ast.Yield | ast.YieldFrom, scope: Scope) -> Steps:
    value = evaluate(machine, node.value, scope) if node.value is not None else NONE
    if isinstance(node, ast.Yield):
        yield value
        return
    iteration = machine.models.iterate(machine, value, node)
    loop = Loop(node, machine.site(node), iteration.kind, iteration.bound, iteration.over, iteration.known)
    machine.loops.append(loop)
    try:
        for turn in range(iteration.turns):
            item = iteration.pull(turn)
            if item is None:
                break
            loop.turn += 1
            yield item
    finally:
        if loop in machine.loops:  # not in a frame that is let go of while it is suspended
            machine.loops.remove(loop)


def _expression(machine: Machine, node: ast.Expr, scope: Scope) -> None:
    value = evaluate(machine, node.value, scope)
    if isinstance(value, Tensor) and value.moved_from is not None and value.site == machine.site(node.value):
        machine.emit(ResultDropped(machine.where(node.value), value))


def _assign(machine: Machine, node: ast.Assign, scope: Scope) -> None:
    value = evaluate(machine, node.value, scope)
    for target in node.targets:
        assign_target(machine, target, value, scope)


def _annotated(machine: Machine, node: ast.AnnAssign, scope: Scope) -> None:
    if scope.cls is not None and isinstance(node.target, ast.Name):
        scope.cls.fields.append((node.target.id, node.annotation, node.value))
    if node.value is not None:
        value = evaluate(machine, node.value, scope)
        if isinstance(value, Unknown):
            hint = node.target.id if isinstance(node.target, ast.Name) else ""
            annotation = annotation_of(machine, node.annotation, scope)
            value = machine.models.annotated(machine, value, annotation, hint, node)
        assign_target(machine, node.target, value, scope)


def annotation_of(machine: Machine, node: ast.expr, scope: Scope) -> Value:
    """What an annotation names; one in quotes is read, too."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            node = ast.parse(node.value, mode="eval").body
        except SyntaxError:
            return Unknown()
    return evaluate(machine, node, scope)


def _update(machine: Machine, node: ast.AugAssign, scope: Scope) -> None:
    """`+=` and its like."""
    symbol = operators.SYMBOLS[type(node.op)]
    before = evaluate(machine, node.target, scope)
    if isinstance(before, Tensor) and before.leaf and before.requires_grad and machine.grad[-1]:
        machine.emit(LeafChanged(machine.where(node), before))
    change = evaluate(machine, node.value, scope)
    if symbol == "+" and isinstance(before, Sequence) and before.kind == "list":
        from lightlint.engine.expressions import listed

        items, known = listed(machine, change, node)
        before.items += items[: max(0, 64 - len(before.items))]
        before.more |= not known
        return
    if symbol == "|" and isinstance(before, Mapping) and isinstance(change, Mapping):
        before.items.update(change.items)
        before.more |= change.more
        return
    result = operators.binary(machine, symbol, before, change, node)
    if machine.loops and isinstance(result, (Constant, Unknown)) and not isinstance(change, Tensor):
        result = _counted(machine, node, symbol, before, change, result)
    assign_target(machine, node.target, result, scope)


def _counted(
    machine: Machine, node: ast.AugAssign, symbol: str, before: Value, change: Value, result: Constant | Unknown
) -> Value:
    """A counter in a loop, widened: a known number would hide what happens in later turns."""
    if isinstance(result, Constant) and not isinstance(result.value, (int, float)):
        return result
    traits = traits_of(before, change)
    if symbol == "+" and "batch-size" in change.traits:
        traits = traits - {"batch-size"} | {"samples"}
    if symbol in ("+", "-") and number_of(change) is not None and all(not loop.known for loop in machine.loops[-1:]):
        traits = traits | {"count"}
        if isinstance(before, Constant) and any(loop.turn > 1 for loop in machine.loops[:-1]):
            traits = traits | {"restarted"}
    elif all(loop.known for loop in machine.loops):
        return result
    key = ("counter", node.lineno, node.col_offset, tuple(loop.turn for loop in machine.loops), machine.clock)
    found = Unknown(key, traits | {"summed"}, plain=True)
    found.cuts = before.cuts | change.cuts
    return found


def _delete(machine: Machine, node: ast.Delete, scope: Scope) -> None:
    for target in node.targets:
        if isinstance(target, ast.Name):
            scope.names.pop(target.id, None)
        elif isinstance(target, ast.Subscript):
            holder = evaluate(machine, target.value, scope)
            if isinstance(holder, Sequence):
                if isinstance(target.slice, ast.Slice):
                    holder.items.clear()
                    machine.emit(Emptied(machine.where(target), holder))
                else:
                    holder.more = True
            elif isinstance(holder, Mapping):
                index = evaluate(machine, target.slice, scope)
                if isinstance(index, Constant):
                    holder.items.pop(index.value, None)
        elif isinstance(target, ast.Attribute):
            holder = evaluate(machine, target.value, scope)
            if isinstance(holder, Instance):
                holder.attributes.pop(target.attr, None)


def _return(machine: Machine, node: ast.Return, scope: Scope) -> None:
    value = evaluate(machine, node.value, scope) if node.value is not None else NONE
    if machine.conditions:
        machine.emit(Left(machine.where(node), "return"))
    raise Returned(value, machine.site(node.value or node))


def _raise(machine: Machine, node: ast.Raise, scope: Scope) -> None:
    raise Raised(evaluate(machine, node.exc, scope) if node.exc is not None else Unknown())


def _break(machine: Machine, node: ast.Break, _: Scope) -> None:
    machine.emit(Left(machine.where(node), "break"))
    raise LeaveLoop


def _continue(machine: Machine, node: ast.Continue, _: Scope) -> None:
    machine.emit(Left(machine.where(node), "continue"))
    raise NextTurn


def _global(_: Machine, node: ast.Global, scope: Scope) -> None:
    scope.elsewhere.update(dict.fromkeys(node.names, "global"))


def _nonlocal(_: Machine, node: ast.Nonlocal, scope: Scope) -> None:
    scope.elsewhere.update(dict.fromkeys(node.names, "nonlocal"))


def _assert(machine: Machine, node: ast.Assert, scope: Scope) -> None:
    value = evaluate(machine, node.test, scope)
    known = machine.truth(value)
    if known is False and isinstance(value, Constant):
        raise Raised(Library("builtins.AssertionError"))
    if known is None:
        machine.suppose(value)


def _leaving(body: Statements[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], _LEAVES)


def _answers(body: Statements[ast.stmt]) -> bool:
    return isinstance(body[-1], ast.Return) and body[-1].value is not None


def _is_last_answer(machine: Machine, node: ast.If) -> bool:
    return bool(machine.calls) and id(node) in machine.sources.last_answers(
        machine.file, machine.calls[-1].function.node
    )


def branch(machine: Machine, node: ast.If, value: Value) -> tuple[Statements[ast.stmt], bool]:
    """Which side of an `if` runs, and whether its condition goes on to hold behind it."""
    leaves, leaves_else = _leaving(node.body), _leaving(node.orelse)
    skips = isinstance(node.body[-1], ast.Continue) if leaves else False
    default = not leaves or leaves_else or (_answers(node.body) and _is_last_answer(machine, node))
    outcome = machine.decide(value, node.test, default=default, leaves=leaves and not skips)
    machine.conditions.append(machine.condition(value, outcome, node.test))
    stays = (leaves and not outcome) or (leaves_else and outcome)
    return (node.body if outcome else node.orelse), stays


def _if(machine: Machine, node: ast.If, scope: Scope) -> Steps:
    depth = len(machine.conditions)
    body, stays = branch(machine, node, evaluate(machine, node.test, scope))
    try:
        yield from block(machine, body, scope)
    finally:
        kept = machine.conditions[depth : depth + 1] if stays else []
        del machine.conditions[depth:]
        machine.conditions += kept


def _try(machine: Machine, node: ast.Try, scope: Scope) -> Steps:
    try:
        try:
            yield from block(machine, node.body, scope)
        except Raised as raised:
            handler = _handler_for(machine, node, raised.value, scope)
            if handler is None:
                raise
            yield from block(machine, handler.body, scope)
        else:
            yield from block(machine, node.orelse, scope)
    except (Raised, Returned, LeaveLoop, NextTurn):
        yield from block(machine, node.finalbody, scope)
        raise
    else:
        yield from block(machine, node.finalbody, scope)


def _handler_for(machine: Machine, node: ast.Try, value: Value, scope: Scope) -> ast.ExceptHandler | None:
    """The handler that catches what was raised: the first that may."""
    for handler in node.handlers:
        if handler.type is None or _may_catch(evaluate(machine, handler.type, scope), value):
            if handler.name:
                scope.bind(handler.name, value if isinstance(value, Instance) else Unknown())
            return handler
    return None


def _may_catch(caught: Value, raised: Value) -> bool:
    kinds = caught.items if isinstance(caught, Sequence) else [caught]
    cls = raised.cls if isinstance(raised, Instance) else raised
    if not isinstance(cls, (Library, Class)):
        return True
    lineage = cls.lineage() if isinstance(cls, Class) else [cls]
    names = [each.path for each in lineage if isinstance(each, Library)]
    return any(_catches(kind, [*lineage], names) for kind in kinds)


def _catches(kind: Value, lineage: list[Value], names: list[str]) -> bool:
    """Whether a handler's class may catch an exception of a class with such bases: no only where both are in sight."""
    if isinstance(kind, Class):
        return kind in lineage
    if not isinstance(kind, Library) or not all(name.startswith("builtins.") for name in (kind.path, *names)):
        return True
    wanted = getattr(builtins, kind.last, None)
    given = [getattr(builtins, name.rpartition(".")[2], None) for name in names]
    return isinstance(wanted, type) and any(isinstance(each, type) and issubclass(each, wanted) for each in given)


def _with(machine: Machine, node: ast.With | ast.AsyncWith, scope: Scope) -> Steps:
    entered: list[tuple[Value, object]] = []
    try:
        for item in node.items:
            context = evaluate(machine, item.context_expr, scope)
            value, token = machine.models.enter(machine, context, item.context_expr)
            entered.append((context, token))
            if item.optional_vars is not None:
                assign_target(machine, item.optional_vars, value, scope)
        yield from block(machine, node.body, scope)
    except GeneratorExit:  # a suspended frame is let go of: nothing of it happens any more
        entered.clear()
        raise
    finally:
        for context, token in reversed(entered):
            machine.models.leave(machine, context, token, node)


def _for(machine: Machine, node: ast.For | ast.AsyncFor, scope: Scope) -> Steps:
    over = evaluate(machine, node.iter, scope)
    before = over.emptied_at if isinstance(over, Sequence) else None
    iteration = machine.models.iterate(machine, over, node)
    if isinstance(over, Sequence) and over.emptied_at is not before and any(map(_leaves, ast.walk(node))):
        over.emptied_at = before  # it may leave some
    turns = min(iteration.turns, _MOST_TURNS)
    loop = Loop(node, machine.site(node), iteration.kind, iteration.bound, iteration.over, iteration.known)
    loop.once = iteration.once

    def next_turn() -> bool:
        item = iteration.pull(loop.turn) if loop.turn < turns else None
        if item is None:
            return False
        loop.turn += 1
        loop.kind, loop.over, loop.known = iteration.kind, iteration.over, iteration.known  # once a generator has begun
        assign_target(machine, node.target, item, scope)
        return True

    try:
        yield from _loop(machine, node, loop, next_turn, scope)
    finally:
        iteration.close()


def _leaves(node: ast.AST) -> bool:
    return isinstance(node, (ast.Break, ast.Return))


def _while(machine: Machine, node: ast.While, scope: Scope) -> Steps:
    bound = None
    test = node.test
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], (ast.Lt, ast.LtE, ast.NotEq)):
        bound = evaluate(machine, test.comparators[0], scope)
    loop = Loop(node, machine.site(node), "while" if bound is None else "count", bound, None, False)

    def next_turn() -> bool:
        value = evaluate(machine, test, scope)
        known = machine.truth(value)
        if known is False or loop.turn >= (_MOST_TURNS if known and not is_constant(value, True, 1) else _TURNS):
            return False
        loop.turn += 1
        return True

    yield from _loop(machine, node, loop, next_turn, scope)


def _loop(
    machine: Machine, node: ast.For | ast.AsyncFor | ast.While, loop: Loop, next_turn: Callable[[], bool], scope: Scope
) -> Steps:
    machine.emit(Looped(machine.where(node), loop))
    loop.made = machine.clock
    machine.loops.append(loop)
    depth = len(machine.conditions)
    try:
        while next_turn():
            machine.tick()
            try:
                yield from block(machine, node.body, scope)
            except NextTurn:
                pass
            finally:
                del machine.conditions[depth:]
    except LeaveLoop:
        return
    finally:
        if loop in machine.loops:  # not in a frame that is let go of while it is suspended
            machine.loops.remove(loop)
    yield from block(machine, node.orelse, scope)


def _match(machine: Machine, node: ast.Match, scope: Scope) -> Steps:
    subject = evaluate(machine, node.subject, scope)
    depth = len(machine.conditions)
    try:
        for case in node.cases:
            test = _matches(machine, case.pattern, subject, scope)
            if case.guard is not None and machine.truth(test) is not False:
                guard = evaluate(machine, case.guard, scope)
                test = guard if machine.truth(test) else machine.unknown(test, guard)
            outcome = machine.decide(test, case.pattern)
            machine.conditions.append(machine.condition(test, outcome, case.pattern))
            if outcome:
                yield from block(machine, case.body, scope)
                return
    finally:
        del machine.conditions[depth:]


def _matches(machine: Machine, pattern: ast.pattern, subject: Value, scope: Scope) -> Value:
    """A pattern as a test; what it binds is bound."""
    if isinstance(pattern, ast.MatchValue):
        return operators.compare(machine, "==", subject, evaluate(machine, pattern.value, scope), pattern)
    if isinstance(pattern, ast.MatchSingleton):
        return operators.compare(machine, "is", subject, Constant(pattern.value), pattern)
    if isinstance(pattern, ast.MatchAs):
        test = _matches(machine, pattern.pattern, subject, scope) if pattern.pattern is not None else Constant(True)
        if pattern.name is not None:
            scope.bind(pattern.name, subject)
        return test
    if isinstance(pattern, ast.MatchOr):
        tests = [_matches(machine, each, subject, scope) for each in pattern.patterns]
        if any(machine.truth(test) for test in tests):
            return Constant(True)
        left = [test for test in tests if machine.truth(test) is None]
        return machine.unknown(*left) if left else Constant(False)
    for inner in ast.walk(pattern):
        name = getattr(inner, "name", None) or getattr(inner, "rest", None)
        if isinstance(name, str):
            scope.bind(name, Unknown(hint=name))
    return Unknown()


def _def(machine: Machine, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
    function = function_of(machine, node, scope)
    function.owner = scope.cls
    value: Value = function
    for decorator in reversed(node.decorator_list):
        value = decorated(machine, value, function, decorator, scope)
    scope.bind(node.name, value)


def _class(machine: Machine, node: ast.ClassDef, scope: Scope) -> None:
    bases = [evaluate(machine, base, scope) for base in node.bases]
    cls = Class(node.name, bases, {}, machine.file, node)
    inner = Scope(scope.file, scope)
    inner.cls, inner.names = cls, cls.names
    run(machine, node.body, inner)
    value: Value = cls
    for decorator in reversed(node.decorator_list):
        value = decorated_class(machine, value, cls, decorator, scope)
    scope.bind(node.name, value)


def _import(machine: Machine, node: ast.Import, scope: Scope) -> None:
    import_module(machine, node, scope)


def _import_from(machine: Machine, node: ast.ImportFrom, scope: Scope) -> None:
    import_from(machine, node, scope)


_SIMPLE: dict[type[ast.stmt], Callable[[Machine, Any, Scope], None]] = {
    ast.Expr: _expression,
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _update,
    ast.Delete: _delete,
    ast.Return: _return,
    ast.Raise: _raise,
    ast.Break: _break,
    ast.Continue: _continue,
    ast.Global: _global,
    ast.Nonlocal: _nonlocal,
    ast.Assert: _assert,
    ast.FunctionDef: _def,
    ast.AsyncFunctionDef: _def,
    ast.ClassDef: _class,
    ast.Import: _import,
    ast.ImportFrom: _import_from,
}
_COMPOUND: dict[type[ast.stmt], Callable[[Machine, Any, Scope], Steps]] = {
    ast.If: _if,
    ast.Try: _try,
    ast.TryStar: _try,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.While: _while,
    ast.Match: _match,
}
