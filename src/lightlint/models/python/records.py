"""Classes that are fields and little more: data classes and named tuples."""

from __future__ import annotations

import ast
import re
from itertools import zip_longest
from typing import Any
from weakref import WeakKeyDictionary

from lightlint.engine.arguments import Arguments
from lightlint.engine.containers import listed, made
from lightlint.engine.machine import Machine
from lightlint.models.registry import function
from lightlint.values.core import Class, Constant, Library, Mapping, Sequence, Unknown, Value, text_of
from lightlint.values.training import Instance

_NO_FIELD = re.compile(r"(?:typing\.)?ClassVar\b|(?:dataclasses\.)?InitVar\b")  # what is annotated and no field
_DEEPEST = 8  # how far data classes may hold each other
_DEFINITIONS: WeakKeyDictionary[ast.AST, ast.ClassDef] = WeakKeyDictionary()


@function("collections.namedtuple", "typing.NamedTuple")
def _named_tuple(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    """`namedtuple("Player", "net opt")`: the class that a definition with these fields makes."""
    names = _field_names(machine, given.get(1, "field_names") or given.get(1, "fields"), node)
    cls = _class_of(machine, given, names, node)
    if cls is None:
        return Unknown()
    cls.bases = [Library("typing.NamedTuple")]
    defaults = given.get(4, "defaults")
    values = listed(machine, defaults, node)[0] if defaults is not None else []
    for field, value in zip_longest(reversed(cls.fields), reversed(values)):
        if field is None or value is None:
            break
        cls.names[field[0]] = value
    return cls


@function("dataclasses.make_dataclass")
def _made_data_class(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    cls = _class_of(machine, given, _field_names(machine, given.get(1, "fields"), node), node)
    if cls is None or not {*given.keywords} <= {"cls_name", "fields", "frozen", "eq", "order", "slots", "kw_only"}:
        return Unknown()
    cls.decorators = [Library("dataclasses.dataclass")]
    return cls


def _class_of(machine: Machine, given: Arguments, names: list[str] | None, node: ast.AST) -> Class | None:
    """A class with fields that a call makes; None where the fields are not all known."""
    name = text_of(given.get(0, "typename") or given.get(0, "cls_name"))
    if name is None or names is None or not given.exact or not isinstance(node, ast.Call):
        return None
    definition = _DEFINITIONS.get(node)
    if definition is None:
        definition = ast.copy_location(ast.ClassDef(name, [], [], [ast.Pass()], []), node)
        _DEFINITIONS[node] = definition
    cls = Class(name, [], {}, machine.file, definition)
    cls.fields = [(each, None, node) for each in names]
    return cls


def _field_names(machine: Machine, fields: Value | None, node: ast.AST) -> list[str] | None:
    """`"net opt"`, `["net", "opt"]` or `[("net", Module), ...]`; None where a name is not known."""
    written = text_of(fields)
    if written is not None:
        return written.replace(",", " ").split()
    items, known = listed(machine, fields, node) if isinstance(fields, Sequence) else ([], False)
    firsts = [each.items[0] if isinstance(each, Sequence) and each.items else each for each in items]
    names = [text_of(each) for each in firsts]
    return [each for each in names if each is not None] if known and None not in names else None


def row_method(machine: Machine, value: Instance, name: str, given: Arguments, node: ast.AST) -> Value:
    """`_asdict` and `_replace` of a named tuple."""
    if name == "_replace":
        return _with(machine, value, given, node)
    fields = value.cls.all_fields() if isinstance(value.cls, Class) else []
    found = Mapping({each: held for (each, *_), held in zip(fields, value.row() or [], strict=True)})
    machine.clock += 1
    found.made, found.site, found.depth = machine.clock, machine.site(node), len(machine.loops)
    return found


def _with(machine: Machine, value: Instance, given: Arguments, node: ast.AST) -> Instance:
    """A copy with other values in some fields."""
    twin = machine.instance(value.cls, value.kind, node)
    twin.attributes = {**value.attributes, **given.keywords}
    if given.double_star is not None:
        twin.attributes = {name: given.keywords.get(name) or Unknown() for name in twin.attributes}
    return twin


@function("dataclasses.field", "attr.ib", "attrs.field")
def _field(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    found = machine.instance(Library("dataclasses.field"), "field", node)
    found.arguments = dict(given.keywords)
    return found


@function("dataclasses.asdict")
def _fields(machine: Machine, given: Arguments, _: ast.AST) -> Value:
    """The attributes of an object as a dict."""
    value = given.get(0, "obj")
    return _as_dict(machine, value, 0) if isinstance(value, Instance) and value.kind == "object" else Unknown()


def _as_dict(machine: Machine, value: Value, depth: int) -> Value:
    """What `asdict` makes of a value: of data classes dicts, those in lists and dicts as well."""
    if depth > _DEEPEST:
        return Unknown()
    if isinstance(value, Instance) and value.kind == "object" and (not depth or _is_data(value)):
        return Unknown() if value.escaped else _mapping(machine, value.attributes, depth)
    if isinstance(value, Sequence) and value.kind in ("list", "tuple"):
        items = [_as_dict(machine, each, depth + 1) for each in value.items]
        if items != value.items:
            machine.clock += 1
            return Sequence(items, value.kind, more=value.more, made=machine.clock)
    if isinstance(value, Mapping) and any(isinstance(each, (Instance, Sequence)) for each in value.items.values()):
        return _mapping(machine, value.items, depth, more=value.more)
    return value


def _mapping(machine: Machine, items: dict[Any, Value], depth: int, *, more: bool = False) -> Mapping:
    machine.clock += 1
    made_at = machine.clock
    found = Mapping({name: _as_dict(machine, each, depth + 1) for name, each in items.items()}, more=more)
    found.made = made_at
    return found


def _is_data(value: Instance) -> bool:
    lineage = value.cls.lineage() if isinstance(value.cls, Class) else []
    decorators = [each for cls in lineage if isinstance(cls, Class) for each in cls.decorators]
    return any(isinstance(each, Library) and each.path == "dataclasses.dataclass" for each in decorators)


@function("dataclasses.fields", "attrs.fields")
def _names_of_fields(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    """The fields of a data class or of an object of one, in their order."""
    value = given.get(0, "class_or_instance")
    cls = value.cls if isinstance(value, Instance) else value
    if not isinstance(cls, Class) or not cls.sees_all():
        return Unknown()
    lineage = [each for each in reversed(cls.lineage()) if isinstance(each, Class)]
    annotated = {name: annotation for each in lineage for name, annotation, _ in each.fields}
    found: list[Value] = []
    for name, annotation in annotated.items():
        if annotation is None or not _NO_FIELD.match(ast.unparse(annotation)):
            one = machine.instance(Library("dataclasses.Field"), "field", node)
            one.attributes["name"] = Constant(name)
            found.append(one)
    return made(machine, Sequence(found, "tuple"), node)


@function("dataclasses.replace")
def _replace(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    first = given.get(0, "obj")
    if not isinstance(first, Instance):
        return Unknown()
    return _with(machine, first, given, node)
