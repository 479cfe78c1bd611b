"""The options of a run: parsers, and the namespaces that they and files of settings fill."""

from __future__ import annotations

import ast
from collections.abc import Mapping as Names

from lightlint.engine.arguments import Arguments
from lightlint.engine.machine import Machine
from lightlint.models import objects
from lightlint.models.python.containers import chosen, is_table
from lightlint.models.ranks import groups
from lightlint.models.registry import FunctionModel, function, methods
from lightlint.values.core import (
    FALSE,
    NONE,
    TRUE,
    Bound,
    Constant,
    Function,
    Library,
    Mapping,
    Sequence,
    Unknown,
    Value,
    is_constant,
    text_of,
    unless_told,
)
from lightlint.values.training import Instance

_OPEN = "#open"
"""Under this name a namespace says that what is out of sight has filled it, too; its dict, which shares its names, says so with it."""

_COMMANDS = "#commands of "
"""Under such a name a parser keeps the functions that its subcommands give an option, as `set_defaults(run=train)` does."""


def _namespace(path: str) -> FunctionModel:
    def namespace(machine: Machine, given: Arguments, node: ast.AST) -> Value:
        made = objects.namespace(machine, node, given.keywords)
        made.cls = Library(path)
        if given.positional:
            _fill(machine, made, given.positional[0])
        if given.double_star is not None:
            made.attributes[_OPEN] = TRUE
        return made

    return namespace


for _path in ("types.SimpleNamespace", "argparse.Namespace", "easydict.EasyDict", "addict.Dict", "munch.Munch"):
    function(_path)(_namespace(_path))


def _fill(machine: Machine, value: Instance, told: Value) -> None:
    """Give a namespace the entries of a dict; of one out of sight nothing is known, so each name may have another value."""
    names = value.attributes
    if isinstance(told, Mapping):
        names.update({key: each for key, each in told.items.items() if isinstance(key, str)})
    if not isinstance(told, Mapping) or told.more:
        names.update({name: _opened(machine, name, each) for name, each in names.items()})
        names[_OPEN] = TRUE


def _opened(machine: Machine, name: str, value: Value) -> Value:
    """An option that what is out of sight may have given another value: nothing tells what it is by default."""
    plain = isinstance(value, Constant) or (isinstance(value, Unknown) and value.default is not None)
    return Unknown(("entry", machine.clock, name), hint=name, plain=plain) if plain else value


@function("argparse.ArgumentParser", "simple_parsing.ArgumentParser", "jsonargparse.ArgumentParser")
def _parser(machine: Machine, _: Arguments, node: ast.AST) -> Value:
    return machine.instance(Library("argparse.ArgumentParser"), "parser", node)


@methods("parser")
def parser_method(machine: Machine, parser: Value, name: str, given: Arguments, node: ast.AST) -> Value:
    """A method of `argparse.ArgumentParser`: what an option defaults to stays a name, for a run may be given another."""
    assert isinstance(parser, Instance)
    if name == "add_argument":
        option = text_of(next((each for each in reversed(given.positional)), None)) or ""
        key = (text_of(given.keywords.get("dest")) or option.lstrip("-")).replace("-", "_")
        kind = given.keywords.get("type")
        is_number = isinstance(kind, Library) and kind.last in ("int", "float")
        option_value = _option(key, given.keywords.get("default"), is_number=is_number)
        parser.attributes[key] = option_value
        usual = option_value.default or _FLAGS.get(text_of(given.keywords.get("action")) or "")
        if usual is not None and option_value.key is not None:
            machine.defaults[option_value.key] = usual
        return NONE
    if name == "set_defaults":
        for key, value in given.keywords.items():
            parser.attributes[key] = _option(key, value)
            if isinstance(value, (Function, Bound)):  # each subcommand, which shares its parser's options, has its own
                table = parser.attributes.setdefault(_COMMANDS + key, Mapping())
                assert isinstance(table, Mapping)
                table.items[len(table.items)] = value
        if given.double_star is not None:
            _fill(machine, parser, given.double_star)
        return NONE
    if name in ("parse_args", "parse_known_args"):
        found = _parsed(machine, parser, given.get(1, "namespace"), node)
        return found if name == "parse_args" else Sequence([found, Sequence([], more=True)], "tuple")
    if name in ("add_argument_group", "add_mutually_exclusive_group", "add_subparsers", "add_parser"):
        return parser
    return Unknown()


_FLAGS = {"store_true": FALSE, "store_false": TRUE}


def _option(key: str, default: Value | None, *, is_number: bool = False) -> Unknown:
    plain = is_number or (isinstance(default, Constant) and isinstance(default.value, (int, float)))
    if plain and default is not None and is_constant(default, None):
        plain = False
    written = default if isinstance(default, Constant) and (plain or text_of(default) is not None) else None
    return Unknown(("argument", key), unless_told(default), hint=key, plain=plain, default=written)


def _stays_option(name: str, held: Value) -> Value:
    """What a namespace holds under a name when options are parsed into it: the command line may still say otherwise."""
    return _option(name, held) if isinstance(held, Constant) and name != _OPEN else held


def _parsed(machine: Machine, parser: Instance, into: Value | None, node: ast.AST) -> Instance:
    """What `parse_args` gives: a default counts only for a name that the namespace it fills has not yet."""
    options: Names[str, Value] = parser.attributes
    if into is not None and not is_constant(into, None):
        known = isinstance(into, Instance) and not into.escaped and _OPEN not in into.attributes
        held = into.attributes if isinstance(into, Instance) else {}
        if not known:
            options = {name: _opened(machine, name, each) for name, each in options.items()}
        options = {**options, **{name: _stays_option(name, each) for name, each in held.items()}}
    tables = {key: each for key, each in options.items() if key.startswith(_COMMANDS) and isinstance(each, Mapping)}
    options = {key: each for key, each in options.items() if key not in tables}
    values = {
        key: groups.rank_value(machine, key) if key in groups.RANK_NAMES else value for key, value in options.items()
    }
    for name, table in tables.items():
        key = name.removeprefix(_COMMANDS)
        if key in values and is_table(machine, table):
            values[key] = chosen(machine, table, values[key]) or values[key]
    found = objects.namespace(machine, node, values)
    found.key = ("arguments",)
    return found


@methods("namespace")
def namespace_method(machine: Machine, value: Value, name: str, given: Arguments, node: ast.AST) -> Value:
    """A method of a namespace that is read and filled like a dict."""
    key = text_of(given.get(0, "key"))
    if name == "get" and key is not None and isinstance(value, Instance):
        return objects.attribute(machine, value, key, node)
    if name == "update" and isinstance(value, Instance):
        told = [*given.positional, *([given.double_star] if given.double_star is not None else [])]
        for each in told:
            _fill(machine, value, each)
        value.attributes.update(given.keywords)
        return NONE
    return Unknown()
