"""Calls: functions of the program are run, the rest is asked of the models."""

from __future__ import annotations

import ast
from types import NoneType

from lightlint.engine.arguments import Arguments, of_partial
from lightlint.engine.events import Backward, Called, CalledUnknown, ClassesBlended, CudaUsed, LoadedUsed, StateLoaded
from lightlint.engine.execution import Returned, annotation_of, evaluate, run
from lightlint.engine.frames import Call, Condition
from lightlint.engine.generators import generator_of
from lightlint.engine.machine import WORKER, Machine
from lightlint.engine.training_loops import note_backward, note_step
from lightlint.values import arrays
from lightlint.values.core import (
    ASSUMED,
    BLENDED,
    DEFAULT,
    INTEGERS,
    LASTING,
    NO_TRAITS,
    NONE,
    SINGLE,
    Bound,
    Class,
    Constant,
    Device,
    Function,
    Library,
    Mapping,
    Method,
    OtherRanksNone,
    Partial,
    Scope,
    Sequence,
    Traits,
    Unknown,
    Value,
    names_cuda,
    names_integers,
    number_of,
    traits_of,
)
from lightlint.values.training import Instance, Module, Tensor

_DEEPEST = 28  # calls open at once
_RANK = frozenset({"rank"})
_RECURSION = 2  # of one function


def call(machine: Machine, function: Value, given: Arguments, node: ast.AST, scope: Scope | None = None) -> Value:
    """What a call gives."""
    machine.tick()
    if isinstance(function, Function):
        return call_function(machine, function, given, node)
    if isinstance(function, Bound):
        if _is_pass(machine, function):
            return machine.models.call_object(machine, function.receiver, given, node)
        return call_function(machine, function.function, given.with_first(function.receiver), node)
    if isinstance(function, Partial):
        return call(machine, function.function, of_partial(function, given), node, scope)
    if isinstance(function, Library):
        if machine.reads_settings and not function.path.startswith("builtins."):
            given = _as_set(given)
        given.names = machine.models.parameters(function.path)
        if not function.path.startswith("builtins.") or function.path == "builtins.sum":
            machine.emit(Called(machine.where(node), function.path, given))
        return machine.models.call_library(machine, function, given, node)
    if isinstance(function, Method):
        if isinstance(function.receiver, Instance):
            machine.emit(Called(machine.where(node), function.name, given, function.receiver))
        return machine.models.call_method(machine, function, given, node)
    if isinstance(function, Class):
        member = _member(function, given)
        if member is not None:
            return member
        machine.made.add(id(function.node))
        return machine.models.make(machine, function, given, node)
    if isinstance(function, (Instance, Tensor)):
        return machine.models.call_object(machine, function, given, node)
    return call_unknown(machine, function, given, node)


def _is_pass(machine: Machine, method: Bound) -> bool:
    """Whether a call of a module's `forward` by its name is a pass through it, and none of its own, as from a class below."""
    module = method.receiver
    if not isinstance(module, Module) or method.function.name != "forward" or module in machine.forwards:
        return False
    return isinstance(module.cls, Class) and module.cls.find("forward") is method.function


_ENUMS = frozenset(["enum.Enum", "enum.StrEnum", "enum.IntEnum"])


def _member(cls: Class, given: Arguments) -> Value | None:
    """What an enumeration gives for the value of one of its members, which stand for what they are set to."""
    value = given.positional[0] if len(given.positional) == 1 else None
    if not isinstance(value, Constant) or _ENUMS.isdisjoint(cls.libraries()):
        return None
    return next((each for each in cls.names.values() if isinstance(each, Constant) and each.key == value.key), None)


def _as_set(given: Arguments) -> Arguments:
    """The arguments of a library's call with what a file of settings says in the place of the options read from it."""
    made = Arguments([*map(_set, given.positional)], {}, given.star, given.double_star, given.assumed, given.said)
    made.keywords = {name: _set(each) for name, each in given.keywords.items()}
    return made


def _set(value: Value) -> Value:
    told = isinstance(value, Unknown) and isinstance(value.key, tuple) and value.key[:1] == ("setting",)
    return value.default or value if told and isinstance(value, Unknown) else value


_OF_ITSELF = frozenset(["to", "cuda", "cpu", "eval", "train", "state_dict", "load_state_dict"])
"""Methods that hand their object to nobody, whatever it is."""

_GRADIENT_PASSES = frozenset(
    ["abs", "exp", "flatten", "float", "log", "mean", "pow", "reshape", "squeeze", "sum", "view"]
)
"""Methods of tensors whose result hangs on the graph of their tensor."""

_ASKING_TEXTS = frozenset(["startswith", "endswith"])
"""Methods that only texts have, and that say the same of one each time."""


_SAME_NUMBERS = ("astype", "copy", "tolist", "numpy", "clone", "contiguous", "long", "to", "cuda")
"""Methods whose result has the numbers of their object, in the same order."""


def call_unknown(machine: Machine, function: Value, given: Arguments, node: ast.AST) -> Value:
    """A call of something out of sight: whatever it is given escapes."""
    hint = function.last if isinstance(function, Library) else getattr(function, "hint", "")
    told = machine.models.told(machine, getattr(function, "holder", None), hint, node)
    if told is not None:
        return call(machine, machine.models.attribute(machine, told, hint, node), given, node)
    values = given.values()
    for value in values:
        machine.escape(value)
    holder = getattr(function, "holder", None)
    if isinstance(holder, Value) and hint not in _OF_ITSELF:
        machine.escape(holder)
    if machine.pending and getattr(function, "hint", "").startswith(("wait", "synchronize", "barrier")):
        machine.pending.clear()
    if isinstance(function, Unknown) and function.method_of is not None:
        function.method_of.escaped = True
    machine.emit(CalledUnknown(machine.where(node), function, values))
    if values and getattr(function, "hint", "") == "load_state_dict":
        machine.emit(StateLoaded(machine.where(node), holder if isinstance(holder, Value) else Unknown(), values[0]))
    loaded = getattr(function, "loaded", None)
    if loaded is not None:
        load, key = loaded if isinstance(loaded, tuple) else (loaded, None)
        machine.emit(LoadedUsed(machine.where(node), load, key, "()"))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "backward":
        note_backward(machine)
        machine.emit(Backward(machine.where(node), [], None, "unknown"))
    if hint == "step":
        note_step(machine, holder if isinstance(holder, Value) else None)
    if machine.phases[-1] == WORKER and (hint == "cuda" or (hint == "to" and any(map(names_cuda, values)))):
        machine.emit(CudaUsed(machine.where(node)))
    if hint == "astype" and isinstance(holder, Value) and holder.traits & BLENDED and any(map(names_integers, values)):
        machine.emit(ClassesBlended(machine.where(node)))
    traits = (traits_of(*values) & LASTING) | (function.traits & {"fitted"})
    if hint == "reshape" and values and all(number_of(each) == 1 for each in values):
        traits |= SINGLE
    if hint in ("astype", "tolist", "copy", "numpy"):
        held = traits_of(holder) if isinstance(holder, Value) else traits_of()
        traits |= _integers(values[0]) if hint == "astype" and values else held & INTEGERS
        traits |= held & BLENDED
    key = None
    if isinstance(function, Unknown) and function.key is not None and (not values or hint in _ASKING_TEXTS):
        key = ("called", function.key, *(each.key for each in values))
        key = None if None in key else key
    found = machine.models.result_of(machine, hint, given, node)
    if found is None:
        found = Unknown(key, traits, hint=hint)
        found.lent = values
        found.given_by = holder if isinstance(holder, Value) else None
        found.axes = arrays.of_call(found.given_by, hint, given.positional, given.keywords)
        if hint in _SAME_NUMBERS and isinstance(holder, Value):
            found.cut_from = holder.cut_from
        found.answers = holder.answers if isinstance(holder, Value) and hint in _GRADIENT_PASSES else frozenset([found])
    return found


def _integers(dtype: Value) -> Traits:
    return INTEGERS if names_integers(dtype) else NO_TRAITS


def call_function(machine: Machine, function: Function, given: Arguments, node: ast.AST) -> Value:
    """Run a function of the program."""
    definition = function.node
    machine.called.add(id(definition))
    machine.files.add(function.file)
    if "rank_zero_only" in function.flags:
        machine.uses_rank = True
        if machine.rank:
            return OtherRanksNone(machine.site(node), function.name)
    if len(machine.calls) >= _DEEPEST or machine.entered[id(definition)] >= _RECURSION or _is_abstract(function):
        for value in given.values():
            machine.escape(value)
        return Unknown()
    scope = Scope(function.file, function.scope, function)
    if function.owner is not None and given.positional and "staticmethod" not in function.flags:
        scope.receiver = given.positional[0]
    _bind(machine, function, given, scope, node)
    _annotate(machine, function, scope)
    if not isinstance(definition, ast.Lambda) and machine.sources.is_generator(function.file, definition):
        return generator_of(machine, function, scope, node)
    state = _enter(machine, function, scope, node)
    if "rank_zero_only" in function.flags:
        first = Condition(("rank zero only",), True, machine.site(definition), _RANK, True, len(machine.calls))
        machine.conditions.append(first)
    machine.returned_at = None
    try:
        if isinstance(definition, ast.Lambda):
            value = evaluate(machine, definition.body, scope)
            machine.returned_at = machine.site(definition.body)
            return value
        run(machine, definition.body, scope)
    except Returned as returned:
        machine.returned_at = returned.site
        return _annotated_as(machine, definition, returned.value, function)
    finally:
        _leave(machine, function, state)
    machine.returned_at = None
    return NONE


def _is_abstract(function: Function) -> bool:
    """Whether a method leaves its work to subclasses, one of which is out of sight then."""
    body = function.node.body if not isinstance(function.node, ast.Lambda) and function.owner is not None else []
    last = body[-1] if len(body) == 1 or (len(body) == 2 and _is_docstring(body[0])) else None
    if not isinstance(last, ast.Raise):
        return False
    raised = last.exc.func if isinstance(last.exc, ast.Call) else last.exc
    return isinstance(raised, ast.Name) and raised.id == "NotImplementedError"


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _bind(machine: Machine, function: Function, given: Arguments, scope: Scope, node: ast.AST) -> None:
    """Give the parameters of a function their values in a new scope; `node` is the call."""
    parameters = function.node.args
    names = [each.arg for each in (*parameters.posonlyargs, *parameters.args)]
    left = dict(given.keywords)
    unknown_rest = given.star is not None or given.assumed
    usual = function.usual() if given.star is not None else {}
    for index, name in enumerate(names):
        if index < len(given.positional):
            scope.names[name] = given.positional[index]
        elif name in left:
            scope.names[name] = left.pop(name)
        elif given.star is not None:
            part = machine.models.part(machine, given.star, index - len(given.positional), function.node)
            scope.names[name] = _unless_given(part, usual.get(name), name)
    if parameters.vararg is not None:
        rest = given.positional[len(names) :]
        if given.star is not None:
            rest = [*rest, given.star] if not isinstance(given.star, Sequence) else [*rest, *given.star.items]
        scope.names[parameters.vararg.arg] = Sequence(rest, "tuple", more=unknown_rest)
    first_default = len(names) - len(function.defaults)
    for name, default in zip(names[first_default:], function.defaults, strict=True):
        if name not in scope.names:
            scope.names[name] = _maybe(default, name, given)
    for each in parameters.kwonlyargs:
        if each.arg in left:
            scope.names[each.arg] = left.pop(each.arg)
        elif each.arg in function.keyword_defaults:
            scope.names[each.arg] = _maybe(function.keyword_defaults[each.arg], each.arg, given)
    for argument in (*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs):
        if argument.arg not in scope.names:
            scope.names[argument.arg] = Unknown(
                ("parameter", function.file, function.node.lineno, argument.arg), hint=argument.arg
            )
    if parameters.kwarg is not None:
        named = Mapping(dict(left.items()), more=given.double_star is not None or given.assumed)
        named.site, named.said = machine.site(node), dict(given.said)
        scope.names[parameters.kwarg.arg] = named


def _unless_given(part: Value, default: Value | None, name: str) -> Value:
    """A parameter that `*args` out of sight may give another value than its default."""
    if (
        type(part) is not Unknown
        or not isinstance(default, Constant)
        or not isinstance(default.value, (str, int, float))
    ):
        return part
    return Unknown(part.key, part.traits, hint=part.hint or name, plain=part.plain, default=default)


def _maybe(default: Value, name: str, given: Arguments) -> Value:
    """A default, where nothing out of sight may have replaced it."""
    if given.assumed and isinstance(default, Library) and default.names_tensor_type():
        return Unknown(hint=name)  # on which device tensors are made, whoever calls says
    plain = type(default) in (Constant, Device)
    if isinstance(default, Constant) and plain and (given.assumed or isinstance(default.value, (str, NoneType))):
        default = type(default)(default.value, default.traits | (ASSUMED if given.assumed else NO_TRAITS) | DEFAULT)
    return default if given.double_star is None else Unknown(hint=name)


def _annotate(machine: Machine, function: Function, scope: Scope) -> None:
    """What annotations say of arguments of which nothing is known."""
    parameters = function.node.args
    for each in (*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs):
        value = scope.names[each.arg]
        if each.annotation is not None and isinstance(value, Unknown) and not value.plain:
            annotation = annotation_of(machine, each.annotation, function.scope)
            scope.names[each.arg] = machine.models.annotated(machine, value, annotation, each.arg, each)


def _annotated_as(machine: Machine, definition: ast.AST, value: Value, function: Function) -> Value:
    """What a function gives back: by its annotation where nothing else is known of it."""
    returns = getattr(definition, "returns", None)
    if returns is None or not isinstance(value, Unknown) or value.plain:
        return value
    return machine.models.annotated(
        machine, value, annotation_of(machine, returns, function.scope), value.hint, definition
    )


_State = tuple[str, int, int, int]


def _enter(machine: Machine, function: Function, scope: Scope, node: ast.AST) -> _State:
    machine.calls.append(Call(function, machine.site(node), len(machine.loops)))
    machine.scopes.append(scope)
    machine.entered[id(function.node)] += 1
    state = (machine.file, len(machine.loops), len(machine.conditions), len(machine.grad))
    machine.file = function.file
    if "no_grad" in function.flags:
        machine.grad.append(False)
    elif "enable_grad" in function.flags:
        machine.grad.append(True)
    return state


def _leave(machine: Machine, function: Function, state: _State) -> None:
    machine.file, loops, conditions, grad = state
    del machine.loops[loops:], machine.conditions[conditions:], machine.grad[grad:]
    machine.entered[id(function.node)] -= 1
    machine.calls.pop()
    machine.scopes.pop()


def call_flag(given: Arguments, name: str) -> bool:
    """Whether a keyword is given as True."""
    value = given.keywords.get(name)
    return isinstance(value, Constant) and value.value is True
