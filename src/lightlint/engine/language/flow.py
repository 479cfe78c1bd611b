"""What statements do that hold others, as generators that stop at each `yield` of the program."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from collections.abc import Sequence as Statements

from lightlint.engine.arguments import Arguments
from lightlint.engine.calls import call
from lightlint.engine.containers import assign_target, leaves_rest
from lightlint.engine.events import Looped, RangeBegun
from lightlint.engine.execution import COMPOUND, LeaveLoop, NextTurn, Raised, Returned, Steps, block, evaluate
from lightlint.engine.frames import TURNS, Iteration, Loop
from lightlint.engine.language import operators
from lightlint.engine.language.counters import counts_inside
from lightlint.engine.language.narrowing import narrow
from lightlint.engine.machine import Machine
from lightlint.values.core import (
    MODULE_NAME,
    NONE,
    ON_SOME,
    Class,
    Constant,
    Library,
    Scope,
    Sequence,
    Unknown,
    Value,
    is_constant,
)
from lightlint.values.training import Instance

_LEAVES = (ast.Return, ast.Raise, ast.Break, ast.Continue)
_EXITS = (("sys", "exit"), ("os", "_exit"))
_MOST_TURNS = 24


def _yielding(
    machine: Machine, node: ast.Expr | ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Return, scope: Scope
) -> Steps:
    """A statement whose value is a `yield`: what is sent into the frame is out of sight."""
    if isinstance(node.value, (ast.Yield, ast.YieldFrom)):
        yield from _yield(machine, node.value, scope)
    for target in node.targets if isinstance(node, ast.Assign) else []:
        assign_target(machine, target, Unknown(), scope)


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
            _as_begun(loop, iteration)
            yield item
    finally:
        loop.ended = machine.clock
        if loop in machine.loops:  # not in a frame that is let go of while it is suspended
            machine.loops.remove(loop)


def _as_begun(loop: Loop, iteration: Iteration) -> None:
    """What a loop goes over is known once a generator has begun."""
    loop.kind, loop.bound, loop.over, loop.known = iteration.kind, iteration.bound, iteration.over, iteration.known


def _leaving(body: Statements[ast.stmt]) -> ast.stmt | None:
    """The statement by which a body is left on every way, the first of several; None where it may come to its end."""
    last = body[-1] if body else None
    if isinstance(last, _LEAVES) or _ends_program(last):
        return last
    if isinstance(last, ast.With):
        return _leaving(last.body)
    ways: list[Statements[ast.stmt]] = []
    if isinstance(last, ast.If):
        ways = [last.body, last.orelse]
    elif isinstance(last, ast.Try):
        ways = [last.orelse or last.body, *(each.body for each in last.handlers)]
    first = _leaving(ways[0]) if ways else None
    return first if first is not None and all(map(_leaving, ways[1:])) else None


def _ends_program(statement: ast.stmt | None) -> bool:
    """Whether nothing runs behind a statement, as behind one that raises: `sys.exit()`, `assert False`."""
    if isinstance(statement, ast.Assert):
        return isinstance(statement.test, ast.Constant) and not statement.test.value
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return False
    function = statement.value.func
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        return (function.value.id, function.attr) in _EXITS
    return isinstance(function, ast.Name) and function.id in ("exit", "quit")


def _is_last_answer(machine: Machine, node: ast.If) -> bool:
    return bool(machine.calls) and id(node) in machine.sources.last_answers(
        machine.file, machine.calls[-1].function.node
    )


def _branch(machine: Machine, node: ast.If, value: Value) -> tuple[Statements[ast.stmt], bool]:
    """Which side of an `if` runs, and whether its condition goes on to hold behind it."""
    end = _leaving(node.body)
    leaves, leaves_else = end is not None, _leaving(node.orelse) is not None
    skips = isinstance(end, ast.Continue)
    answers = isinstance(end, ast.Break) or (isinstance(end, ast.Return) and end.value is not None)
    default = not leaves or leaves_else or (answers and _is_last_answer(machine, node))
    asked = len(machine.asked)
    outcome = machine.decide(value, node.test, default=default, leaves=leaves and not skips)
    if len(machine.asked) > asked and machine.sources.is_idle(machine.file, node):
        machine.asked.popitem()
    if not value.traits >= MODULE_NAME:  # else it tells a script from an import, and nothing of what the script does
        machine.conditions.append(machine.condition(value, outcome, node.test))
    stays = (leaves and not outcome) or (leaves_else and outcome)
    return (node.body if outcome else node.orelse), stays


def _if(machine: Machine, node: ast.If, scope: Scope) -> Steps:
    depth = len(machine.conditions)
    body, stays = _branch(machine, node, evaluate(machine, node.test, scope))
    narrow(machine, node.test, body is node.body, scope)
    try:
        yield from block(machine, body, scope)
    finally:
        kept = machine.conditions[depth : depth + 1] if stays else []
        del machine.conditions[depth:]
        machine.conditions += kept


def _try(machine: Machine, node: ast.Try, scope: Scope) -> Steps:
    try:
        try:
            machine.tries.append(node)
            try:
                yield from block(machine, node.body, scope)
            finally:
                machine.tries.remove(node)
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
        if item is None and loop.turn == TURNS:
            loop.rest = loop.rest or leaves_rest(machine, loop)
        if item is None and (loop.again or loop.rest) and loop.turn == TURNS:
            item = iteration.pull(loop.turn)
            item = iteration.pull(loop.turn - 1) if item is None else item
        if item is None:
            return False
        loop.turn += 1
        known_to_train = loop.kind == "batch" and iteration.kind == "elements"
        kind = loop.kind if known_to_train else iteration.kind
        _as_begun(loop, iteration)
        loop.kind = kind
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
        _note_count(machine, node, test.left, scope)
    kind = "while" if bound is None else "count"
    loop = Loop(node, machine.site(node), kind, None if counts_inside(node) else bound, None, False)

    def next_turn() -> bool:
        value = evaluate(machine, test, scope)
        known = machine.truth(value)
        loop.split |= known is None and value.traits >= ON_SOME
        counted = known and not is_constant(value, True, 1) and loop.kind != "batch"  # batches come to an end unseen
        if known is False or loop.turn >= (_MOST_TURNS if counted else TURNS):
            return False
        loop.turn += 1
        return True

    yield from _loop(machine, node, loop, next_turn, scope)


def _note_count(machine: Machine, node: ast.While, counter: ast.expr, scope: Scope) -> None:
    """Note the number that a `while` counts on from, and where it does so."""
    first = evaluate(machine, counter, scope) if isinstance(counter, (ast.Name, ast.Attribute)) else None
    if isinstance(first, Constant):
        name = ast.unparse(counter)
        counted = (each for each in ast.walk(node) if isinstance(each, ast.AugAssign))
        rows = frozenset(each.lineno for each in counted if ast.unparse(each.target) == name)
        machine.emit(RangeBegun(machine.where(node.test), first, rows))


def _loop(
    machine: Machine, node: ast.For | ast.AsyncFor | ast.While, loop: Loop, next_turn: Callable[[], bool], scope: Scope
) -> Steps:
    machine.emit(Looped(machine.where(node), loop))
    loop.made = machine.clock
    machine.loops.append(loop)
    depth = loop.under = len(machine.conditions)
    try:
        while next_turn():
            machine.tick()
            loop.begun = machine.clock
            try:
                yield from block(machine, node.body, scope)
            except NextTurn:
                pass
            finally:
                del machine.conditions[depth:]
    except LeaveLoop:
        return
    finally:
        loop.ended = machine.clock
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
    if isinstance(pattern, ast.MatchClass):
        kind = evaluate(machine, pattern.cls, scope)
        test = call(machine, Library("builtins.isinstance"), Arguments([subject, kind]), pattern, scope)
        if machine.truth(test) is False or not (pattern.patterns or pattern.kwd_patterns):
            return test
    for inner in ast.walk(pattern):
        name = getattr(inner, "name", None) or getattr(inner, "rest", None)
        if isinstance(name, str):
            scope.bind(name, Unknown(hint=name))
    return Unknown()


COMPOUND.update(
    {
        ast.Yield: _yielding,
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
)
