"""What a call may be given for one parameter, by itself or in a dict, which may be one of several: `DataLoader(data, **options)`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from lightlint.facts.basis import Basis
from lightlint.facts.code.bindings import Kind
from lightlint.facts.code.names import Names
from lightlint.facts.values.keywords import Keyword, entries, held

_READS = {"get", "items", "keys", "values", "copy"}
_LOOKS = {"builtins.print", "builtins.len"}


@dataclass(frozen=True, slots=True)
class Passed:
    """The values a call may give for a parameter.

    `always` says that it surely gives one, `whole` that it can give no other: no dict it takes is out of sight.
    """

    values: tuple[cst.BaseExpression, ...]
    always: bool
    whole: bool


@dataclass(frozen=True, slots=True)
class _Dict:
    """One dict that a call may take: the keys in sight, and whether it can have no others."""

    keys: tuple[Keyword, ...]
    whole: bool

    def sure(self, name: str) -> bool:
        """Whether it has a key from the start; one set later may be set under a condition."""
        return any(each.name == name and not isinstance(each.node, cst.Subscript) for each in self.keys)


Taken = tuple[tuple[_Dict, ...], ...]
"""The dicts that each `**` of a call may take."""


def taken(facts: Basis, call: cst.Call) -> Taken:
    """The dicts that a call takes, each of which may be one of several."""
    return tuple(tuple(_dicts(facts, arg.value, call)) for arg in call.args if arg.star == "**")


def passed(facts: Basis, call: cst.Call, dicts: Taken, name: str, position: int | None = None) -> Passed:
    """What a call, which takes those dicts, gives for a parameter of that name, or at that position."""
    given = facts.names.argument(call, name, position)
    if given is not None:
        return Passed((given.value,), always=True, whole=True)
    values = [each.value for choice in dicts for one in choice for each in one.keys if each.name == name]
    return Passed(
        tuple(values),
        always=any(all(one.sure(name) for one in choice) for choice in dicts),
        whole=not any(arg.star == "*" for arg in call.args) and all(one.whole for choice in dicts for one in choice),
    )


def _dicts(facts: Basis, value: cst.BaseExpression, call: cst.Call) -> Iterator[_Dict]:
    """The dicts that an expression can be when the call takes it."""
    if isinstance(value, cst.IfExp):
        for arm in (value.body, value.orelse):
            yield from _dicts(facts, arm, call)
    elif isinstance(value, cst.Name):
        yield from _named(facts, value, call)
    else:
        yield _Dict(tuple(entries(facts, value, call)), _is_display(facts.names, value))


def _named(facts: Basis, name: cst.Name, call: cst.Call) -> Iterator[_Dict]:
    """What each of a name's bindings gives, with the keys set on the way to the call."""
    found = facts.names.bindings.lookup(name)
    scope = found[0].scope if found else None
    near = isinstance(scope, (cst.FunctionDef, cst.Module)) and (
        scope is facts.tree.owner(call) or isinstance(scope, cst.Module)
    )
    plain = all(each.kind is Kind.ASSIGN and not each.path for each in found)
    if not near or not plain or not isinstance(scope, (cst.FunctionDef, cst.Module)):
        yield _Dict((), whole=False)
        return
    kept = all(_keeps(facts, each) for each in facts.tree.within(scope, cst.Name) if each.value == name.value)
    for binding in found:
        for made in _arms(binding.value):
            keys = tuple(held(facts, name.value, made, scope, call))
            yield _Dict(keys, whole=kept and _is_display(facts.names, made))


def _arms(value: cst.BaseExpression | None) -> Iterator[cst.BaseExpression]:
    if isinstance(value, cst.IfExp):
        yield from _arms(value.body)
        yield from _arms(value.orelse)
    elif value is not None:
        yield value


def _is_display(names: Names, value: cst.BaseExpression) -> bool:
    """Whether all keys of a dict are written where it is made."""
    if isinstance(value, cst.Dict):
        return all(
            isinstance(each, cst.DictElement) and isinstance(names.constant(each.key), str) for each in value.elements
        )
    return names.call(value) == "builtins.dict" and all(
        arg.keyword is not None for arg in (value.args if isinstance(value, cst.Call) else ())
    )


def _keeps(facts: Basis, use: cst.Name) -> bool:
    """Whether one use of a dict's name leaves its keys as they are, or tells which one it sets."""
    above = facts.tree.parent(use)
    match above:
        case cst.AssignTarget() | cst.StarredDictElement():
            return True
        case cst.AnnAssign():
            return above.target is use
        case cst.Arg(star="**"):
            return True
        case cst.Arg(star=""):
            return facts.names.call(facts.tree.parent(above)) in _LOOKS
        case cst.Subscript():
            sets = not isinstance(facts.tree.parent(above), (cst.Del, cst.AugAssign))
            return sets and "[" in facts.names.key(above)
        case cst.Attribute(attr=cst.Name(value=method)):
            called = facts.tree.parent(above)
            return method in _READS or (
                method == "update"
                and isinstance(called, cst.Call)
                and all(arg.keyword is not None or _is_display(facts.names, arg.value) for arg in called.args)
            )
    return False
