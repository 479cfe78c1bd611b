"""The devices that objects of this file's classes keep in their attributes: `self.device` of what was made with `device="cuda"`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.bindings import Kind
from lightlint.facts.cuda import is_gpu

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_DATACLASS = "dataclasses.dataclass"


def is_kept_gpu(facts: FileFacts, value: cst.CSTNode | None) -> bool:
    """Whether a value is an attribute of `self` that surely is a CUDA device, where there is one, in every object in sight."""
    node = facts.classes.self_class(value.value) if isinstance(value, cst.Attribute) else None
    if node is None or not isinstance(value, cst.Attribute):
        return False
    name = value.attr.value
    made = [each for each in facts.tree.all(cst.Call) if facts.classes.local(facts.names.call(each)) is node]
    if _is_dataclass(facts, node):
        return bool(made) and all(is_gpu(facts.names, _field(facts, node, name, call)) for call in made)
    sources = [
        source for each in facts.classes.line(node) for source, path in facts.classes.attribute_sources(each, name)
    ]
    return bool(sources) and all(_is_set(facts, each, made) for each in sources)


def _is_set(facts: FileFacts, source: cst.BaseExpression | None, made: list[cst.Call]) -> bool:
    """Whether what an attribute is set to is a CUDA device: by itself, or as each call that makes an object gives it."""
    found = facts.bindings.lookup(source) if isinstance(source, cst.Name) else []
    maker = found[0].scope if len(found) == 1 and found[0].kind is Kind.PARAMETER else None
    if not isinstance(maker, cst.FunctionDef):
        return is_gpu(facts.names, source)
    if maker.name.value != "__init__" or not made:
        return False
    given = [facts.values.given(maker, each, found[0].name) or found[0].value for each in made]
    return not any(map(facts.names.has_star, made)) and all(is_gpu(facts.names, each) for each in given)


def _is_dataclass(facts: FileFacts, node: cst.ClassDef) -> bool:
    decorators = [each.decorator for each in node.decorators]
    plain = [each.func if isinstance(each, cst.Call) else each for each in decorators]
    return any(facts.names.of(each) == _DATACLASS for each in plain)


def _field(facts: FileFacts, node: cst.ClassDef, name: str, made: cst.Call) -> cst.BaseExpression | None:
    """What a call that makes a dataclass gives for a field, or the field's default; None where it may be set otherwise."""
    targets = [each.target for each in facts.tree.all(cst.AssignTarget) if isinstance(each.target, cst.Attribute)]
    assigned = {each.attr.value for each in targets if facts.classes.self_class(each.value) in {None, node}}
    if node.bases or facts.names.has_star(made) or name in assigned:
        return None
    fields = [each for each in facts.tree.own(node.body, cst.AnnAssign) if isinstance(each.target, cst.Name)]
    position = next((index for index, each in enumerate(fields) if facts.names.key(each.target) == name), None)
    if position is None:
        return None
    given = facts.names.argument(made, name, position)
    return given.value if given is not None else fields[position].value
