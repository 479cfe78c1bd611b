"""What expressions give."""

from __future__ import annotations

import ast
from copy import copy

from lightlint.engine.arguments import Arguments
from lightlint.engine.calls import call
from lightlint.engine.choices import one_question
from lightlint.engine.containers import listed, note_entry
from lightlint.engine.events import UnboundRead
from lightlint.engine.execution import EXPRESSIONS, Raised, evaluate
from lightlint.engine.imports import kept
from lightlint.engine.language import operators
from lightlint.engine.language.bound import locals_of, may_bind, statements_bind, stored_in
from lightlint.engine.language.definitions import function_of
from lightlint.engine.language.signatures import refuses
from lightlint.engine.machine import Machine
from lightlint.engine.misuse import is_caught
from lightlint.values.core import (
    ARRAYS,
    DEFAULT,
    NO_TRAITS,
    NONE,
    UNBOUND,
    Class,
    Constant,
    Library,
    Mapping,
    Promised,
    Scope,
    Sequence,
    Super,
    Traits,
    Unknown,
    Value,
    identified,
    known_by,
    traits_of,
)
from lightlint.values.training import Instance, Tensor


def _constant(_: Machine, node: ast.Constant, __: Scope) -> Value:
    return Constant(node.value)


def _name(machine: Machine, node: ast.Name, scope: Scope) -> Value:
    value = scope.find(node.id)
    if value is not None:
        return kept(machine, value) if type(value) is Promised else _read(machine, value, node)
    if machine.models.names_builtin(node.id):
        return Library("builtins." + node.id)
    function = scope.function.node if scope.function is not None else None
    tree = machine.sources.tree(scope.file)
    if function is not None and node.id in stored_in(function):
        if isinstance(node.ctx, ast.Load) and node.id in locals_of(function):
            _note_unbound(machine, node)
            raise Raised(Library("builtins.UnboundLocalError"))
        machine.unbound = True
    if function is None and tree is not None and node.id in statements_bind(tree):
        _note_unbound(machine, node)
    bound = tree is None or may_bind(tree, node.id)
    return Unknown(("name", node.id), NO_TRAITS if bound else UNBOUND, hint=node.id)


def _note_unbound(machine: Machine, node: ast.Name) -> None:
    if isinstance(node.ctx, ast.Load) and not is_caught(machine, "NameError", "UnboundLocalError"):
        machine.emit(UnboundRead(machine.where(node), node.id))


def _attribute(machine: Machine, node: ast.Attribute, scope: Scope) -> Value:
    return _read(
        machine, machine.models.attribute(machine, evaluate(machine, node.value, scope), node.attr, node), node
    )


def _read(machine: Machine, value: Value, node: ast.AST) -> Value:
    """What a name or an attribute holds is, as far as it has turned out since."""
    if type(value) is not Unknown:
        return value
    if value.loaded is not None:
        note_entry(machine, value, node, back=True)
    return value.told or value


def _subscript(machine: Machine, node: ast.Subscript, scope: Scope) -> Value:
    value = evaluate(machine, node.value, scope)
    return machine.models.item(machine, value, evaluate(machine, node.slice, scope), node)


def _slice(machine: Machine, node: ast.Slice, scope: Scope) -> Value:
    parts = (node.lower, node.upper, node.step)
    return Sequence([evaluate(machine, part, scope) if part else NONE for part in parts], "slice")


def _text(machine: Machine, node: ast.JoinedStr, scope: Scope) -> Value:
    parts = [
        evaluate(machine, part.value, scope) if isinstance(part, ast.FormattedValue) else evaluate(machine, part, scope)
        for part in node.values
    ]
    traits = traits_of(*parts) - ARRAYS
    formatted = any(isinstance(part, ast.FormattedValue) and part.format_spec for part in node.values)
    if not formatted and all(isinstance(part, Constant) for part in parts):
        return Constant("".join(str(part.value) for part in parts if isinstance(part, Constant)), traits)
    known = all(part.key is not None for part in parts)
    return Unknown(("text", *(part.key for part in parts)) if known else None, traits, plain=True)


def _function(machine: Machine, node: ast.Lambda, scope: Scope) -> Value:
    return function_of(machine, node, scope)


def _conditional(machine: Machine, node: ast.IfExp, scope: Scope) -> Value:
    test = evaluate(machine, node.test, scope)
    outcome = machine.decide(test, node.test)
    machine.conditions.append(machine.condition(test, outcome, node.test))
    try:
        chosen = evaluate(machine, node.body if outcome else node.orelse, scope)
    finally:
        machine.conditions.pop()
    if test.traits >= DEFAULT:
        if isinstance(chosen, Library) and chosen.names_tensor_type():
            return Unknown()  # a call that says otherwise gets the type of another device
        if isinstance(chosen, Tensor):
            chosen.sure_device = False
    return _with_traits(chosen, test.traits & DEFAULT) if isinstance(chosen, Constant) else chosen


def _logic(machine: Machine, node: ast.BoolOp, scope: Scope) -> Value:
    """`and` and `or`: what is sure decides, the rest makes one test of several."""
    stops = isinstance(node.op, ast.Or)
    open_tests: list[Value] = []
    passed = NO_TRAITS  # of what is sure and leaves the answer to the rest: it hangs on that, too
    depth = len(machine.conditions)
    try:
        for position, part in enumerate(node.values):
            value = evaluate(machine, part, scope)
            known = machine.truth(value)
            if known is None and stops and isinstance(value, Instance) and not open_tests:
                known = True  # an object in sight, perhaps with a length, that is 0 for none who hands it on
            last = position == len(node.values) - 1
            if known is stops or (last and not open_tests):
                return _answer(machine, node, [*open_tests, value], passed)
            if known is None:
                open_tests.append(value)
            else:
                passed |= value.traits
            if not last:
                machine.conditions.append(machine.condition(value, not stops, part))
    finally:
        del machine.conditions[depth:]
    return _answer(machine, node, open_tests, passed)


def _answer(machine: Machine, node: ast.BoolOp, tests: list[Value], passed: Traits) -> Value:
    """What several tests come to, of which the last may be sure; where they have no key for all, or a tensor stands for them,
    a condition is known by each."""
    answer = _with_traits(_joined(machine, isinstance(node.op, ast.Or), tests), passed)
    if isinstance(answer, Tensor) or (known_by(answer.key) is None and len(tests) > 1):
        machine.tests_of[node] = tests, passed
    else:
        machine.tests_of.pop(node, None)
    return answer


def _with_traits(value: Value, traits: Traits) -> Value:
    """A number or test that hangs on others, too."""
    if not isinstance(value, (Constant, Unknown)) or traits <= value.traits:
        return value
    made = copy(value)
    made.traits = value.traits | traits
    return made


def _joined(machine: Machine, is_or: bool, tests: list[Value]) -> Value:
    last = tests[-1]
    if len(tests) == 1:
        return last
    if isinstance(last, (Instance, Tensor, Sequence, Mapping)):
        return last if is_or or machine.truth(last) is None else tests[0]
    known = machine.truth(last)
    traits = traits_of(*tests)
    if known is is_or:  # some other test decides before, or this one does
        is_flag = last.plain if isinstance(last, Unknown) else isinstance(last, Constant) and last.value is is_or
        return Constant(is_or, traits) if is_flag else Unknown(None, traits)
    keys = tuple(identified(test).key for test in tests if machine.truth(test) is None)
    if None in keys:
        return Unknown(None, traits)
    plain = keys if is_or else tuple(("not", key) for key in keys)  # `x != 1 and x != 2` is neither
    one = one_question(plain)
    return Unknown(("or" if is_or else "and", *keys) if one is None else one if is_or else ("not", one), traits)


def _unary(machine: Machine, node: ast.UnaryOp, scope: Scope) -> Value:
    return operators.unary(machine, node.op, evaluate(machine, node.operand, scope), node)


def _binary(machine: Machine, node: ast.BinOp, scope: Scope) -> Value:
    left = evaluate(machine, node.left, scope)
    return operators.binary(machine, operators.SYMBOLS[type(node.op)], left, evaluate(machine, node.right, scope), node)


def _compare(machine: Machine, node: ast.Compare, scope: Scope) -> Value:
    left = evaluate(machine, node.left, scope)
    results: list[Value] = []
    for operator, comparator in zip(node.ops, node.comparators, strict=True):
        right = evaluate(machine, comparator, scope)
        results.append(operators.compare(machine, operators.COMPARISONS[type(operator)], left, right, node))
        left = right
        if machine.truth(results[-1]) is False:
            return results[-1]
    open_tests = [each for each in results if machine.truth(each) is None]
    return results[-1] if not open_tests else _joined(machine, False, open_tests)


def _walrus(machine: Machine, node: ast.NamedExpr, scope: Scope) -> Value:
    value = evaluate(machine, node.value, scope)
    target = scope
    while target.function is None and target.outer is not None and target.cls is None and target is not target.top:
        target = target.outer  # out of comprehensions
    target.bind(node.target.id, value)
    return value


def _starred(machine: Machine, node: ast.Starred, scope: Scope) -> Value:
    return evaluate(machine, node.value, scope)


def _await(machine: Machine, node: ast.Await, scope: Scope) -> Value:
    return evaluate(machine, node.value, scope)


def _call(machine: Machine, node: ast.Call, scope: Scope) -> Value:
    if isinstance(node.func, ast.Name) and scope.find(node.func.id) is None:
        if node.func.id == "super":
            return _super(machine, node, scope)
        if node.func.id in ("locals", "vars") and not node.args:
            return Mapping({name: kept(machine, value) for name, value in scope.names.items()})
    function = evaluate(machine, node.func, scope)
    given = arguments(machine, node, scope)
    if not _is_spread(node) and refuses(function, given):
        raise Raised(Library("builtins.TypeError"))
    return call(machine, function, given, node, scope)


def _is_spread(node: ast.Call) -> bool:
    """Whether a call has `*` or `**` arguments."""
    return any(isinstance(each, ast.Starred) for each in node.args) or any(each.arg is None for each in node.keywords)


def _super(machine: Machine, node: ast.Call, scope: Scope) -> Value:
    if len(node.args) == 2:
        after, receiver = (evaluate(machine, each, scope) for each in node.args)
        return Super(receiver, after) if isinstance(after, Class) else Unknown()
    around: Scope | None = scope
    while around is not None and around.receiver is None:
        around = around.outer
    owner = around.function.owner if around is not None and around.function is not None else None
    if around is None or around.receiver is None or owner is None:
        return Unknown()
    return Super(around.receiver, owner)


def arguments(machine: Machine, node: ast.Call, scope: Scope) -> Arguments:
    """The arguments of a call, evaluated in order."""
    given = Arguments()
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            value = evaluate(machine, argument.value, scope)
            row = value.row() if isinstance(value, Instance) else None
            if given.star is None and row is not None:
                given.positional += row
            elif given.star is None and isinstance(value, Sequence) and not value.more:
                given.positional += value.items
            elif given.star is None and isinstance(value, Instance) and value.kind == "iterator":
                items, known = listed(machine, value, argument)
                given.positional += items
                given.star = None if known else Sequence(items[-1:], more=True)
            else:
                given.star = value
        else:
            given.positional.append(evaluate(machine, argument, scope))
    for keyword in node.keywords:
        value = evaluate(machine, keyword.value, scope)
        if keyword.arg is not None:
            given.keywords[keyword.arg] = value
        elif isinstance(value, Mapping):
            given.keywords.update({key: item for key, item in value.items.items() if isinstance(key, str)})
            given.said |= value.places()
            if value.more or value.escaped:
                given.double_star = value
        else:
            given.double_star = value
    return given


def _yield(machine: Machine, node: ast.Yield | ast.YieldFrom, scope: Scope) -> Value:
    """A yield outside of the forms that suspend a frame: its value is handed on, the frame goes on."""
    if node.value is not None:
        machine.escape(evaluate(machine, node.value, scope))
    return Unknown()


EXPRESSIONS.update(
    {
        ast.Constant: _constant,
        ast.Name: _name,
        ast.Attribute: _attribute,
        ast.Subscript: _subscript,
        ast.Slice: _slice,
        ast.JoinedStr: _text,
        ast.Lambda: _function,
        ast.IfExp: _conditional,
        ast.BoolOp: _logic,
        ast.UnaryOp: _unary,
        ast.BinOp: _binary,
        ast.Compare: _compare,
        ast.NamedExpr: _walrus,
        ast.Starred: _starred,
        ast.Await: _await,
        ast.Call: _call,
        ast.Yield: _yield,
        ast.YieldFrom: _yield,
    }
)
