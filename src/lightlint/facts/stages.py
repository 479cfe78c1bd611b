"""Which attributes a data module's `setup` surely leaves unset in one stage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.names import UNKNOWN

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_OUT_OF_SIGHT = {"setattr", "hasattr", "getattr", "__dict__", "__getattr__", "vars"}


def unset(facts: FileFacts, node: cst.ClassDef, hook: str, stage: str) -> list[cst.Attribute]:
    """The attributes that a loader hook reads first thing and that `setup`, which alone sets them, does not set in a stage."""
    setup, loader = facts.classes.method(node, "setup"), facts.classes.method(node, hook)
    words = {each.value for each in facts.tree.within(node, cst.Name)}
    params = setup.params.params if setup is not None else ()
    if setup is None or loader is None or len(params) != 2 or not words.isdisjoint(_OUT_OF_SIGHT):
        return []
    if facts.tree.class_of(setup) is not node or facts.tree.class_of(loader) is not node or loader.decorators:
        return []
    found = []
    for read in facts.tree.own(loader.body, cst.Attribute):
        name = read.attr.value
        is_read = facts.classes.self_class(read.value) is node and not facts.classes.has_method(node, name)
        if is_read and not facts.conditions(read) and not isinstance(facts.tree.parent(read), cst.AssignTarget):
            sets = _settings(facts, name)
            if sets and all(facts.tree.contains(setup.body, each) for each in sets):
                parameter = params[1].name.value
                if not any(_may_run(facts, each, parameter, stage) for each in sets):
                    found.append(read)
    return found


def _settings(facts: FileFacts, name: str) -> list[cst.CSTNode]:
    """What may set an attribute of that name, on whatever object, in a file: all but reading it."""
    found: list[cst.CSTNode] = []
    for target in facts.tree.all(cst.AssignTarget):
        parts = facts.tree.within(target, cst.Attribute, cst.Name)
        found += [each for each in parts if isinstance(each, cst.Attribute) and each.attr.value == name]
        found += [
            each for each in parts if isinstance(each, cst.Name) and each.value == name and _in_class(facts, each)
        ]
    for assign in facts.tree.all(cst.AnnAssign):
        word = assign.target.attr.value if isinstance(assign.target, cst.Attribute) else ""
        word = assign.target.value if isinstance(assign.target, cst.Name) and assign.value is not None else word
        found += [assign.target] if word == name else []
    others = [each.target for each in facts.tree.all(cst.For, cst.AugAssign)]
    return found + [each for each in others if isinstance(each, cst.Attribute) and each.attr.value == name]


def _in_class(facts: FileFacts, name: cst.Name) -> bool:
    above = facts.tree.parent(name)
    return isinstance(facts.tree.scope(name), cst.ClassDef) and not isinstance(above, cst.Attribute)


def _may_run(facts: FileFacts, place: cst.CSTNode, parameter: str, stage: str) -> bool:
    """Whether a place in `setup` may run for a stage, as far as tests of its parameter tell."""
    return all(_truth(facts, test, parameter, stage) in (None, holds) for test, holds in facts.conditions(place))


def _truth(facts: FileFacts, test: cst.BaseExpression, parameter: str, stage: str) -> bool | None:
    """Whether a test holds for a stage; None where that is not known."""
    match test:
        case cst.Name(value=word) if word == parameter:
            return True
        case cst.UnaryOperation(operator=cst.Not()):
            inner = _truth(facts, test.expression, parameter, stage)
            return None if inner is None else not inner
        case cst.BooleanOperation():
            parts = {_truth(facts, each, parameter, stage) for each in (test.left, test.right)}
            decisive = isinstance(test.operator, cst.Or)
            return decisive if decisive in parts else None if None in parts else not decisive
        case cst.Comparison(left=cst.Name(value=word), comparisons=[only]) if word == parameter:
            return _compared(facts.names.constant(only.comparator), only.operator, stage)
    return None


def _compared(value: object, operator: cst.BaseCompOp, stage: str) -> bool | None:
    if value is UNKNOWN:
        return None
    if isinstance(operator, (cst.In, cst.NotIn)):
        if not isinstance(value, (list, tuple, set, str)):
            return None
        return (stage in value) is isinstance(operator, cst.In)
    if isinstance(operator, (cst.Equal, cst.Is)):
        return value == stage
    return value != stage if isinstance(operator, (cst.NotEqual, cst.IsNot)) else None
