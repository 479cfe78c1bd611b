"""What a call gives, and how it meets the parameters of a function."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lightlint.values.core import Function, Mapping, Scope, Sequence, Unknown, Value

if TYPE_CHECKING:
    from lightlint.engine.machine import Machine


@dataclass(slots=True)
class Arguments:
    """The arguments of a call; `star` and `double_star` are `*` and `**` arguments that cannot be looked into."""

    positional: list[Value] = field(default_factory=list)
    keywords: dict[str, Value] = field(default_factory=dict)
    star: Value | None = None
    double_star: Value | None = None
    assumed: bool = False  # nobody in sight calls: `*args` and `**kwargs` may hold more

    @property
    def exact(self) -> bool:
        """Whether all that is given is in sight."""
        return self.star is None and self.double_star is None

    def get(self, position: int, name: str) -> Value | None:
        """An argument by position or name, None where it is not given in sight."""
        if name in self.keywords:
            return self.keywords[name]
        return self.positional[position] if 0 <= position < len(self.positional) else None

    def values(self) -> list[Value]:
        """All values given."""
        rest = [each for each in (self.star, self.double_star) if each is not None]
        return [*self.positional, *self.keywords.values(), *rest]

    def behind(self, count: int) -> Arguments:
        """The same without the first positional ones."""
        return Arguments(self.positional[count:], dict(self.keywords), self.star, self.double_star, self.assumed)

    def with_first(self, *values: Value) -> Arguments:
        """The same with values before the positional ones."""
        return Arguments([*values, *self.positional], dict(self.keywords), self.star, self.double_star, self.assumed)


def bind(machine: Machine, function: Function, given: Arguments, scope: Scope) -> None:
    """Give the parameters of a function their values in a new scope."""
    parameters = function.node.args
    names = [each.arg for each in (*parameters.posonlyargs, *parameters.args)]
    left = dict(given.keywords)
    unknown_rest = given.star is not None or given.assumed
    for index, name in enumerate(names):
        if index < len(given.positional):
            scope.names[name] = given.positional[index]
        elif name in left:
            scope.names[name] = left.pop(name)
        elif given.star is not None:
            scope.names[name] = machine.models.part(machine, given.star, index - len(given.positional), function.node)
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
        scope.names[parameters.kwarg.arg] = Mapping(
            dict(left.items()), more=given.double_star is not None or given.assumed
        )


def _maybe(default: Value, name: str, given: Arguments) -> Value:
    """A default, where nothing out of sight may have replaced it."""
    return default if given.double_star is None else Unknown(hint=name)
