"""Command line options: what `args.name` is when the program is started without arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import Kind
from lightlint.facts.code.names import UNKNOWN, Names
from lightlint.facts.code.tree import Tree

if TYPE_CHECKING:
    from lightlint.facts.linked import Linked

_NAMES = {"args", "opt", "options"}  # what everybody calls the options that a parser found


def option_default(tree: Tree, names: Names, expression: cst.CSTNode | None) -> object:
    """The default of the argparse option that an expression such as `args.num_workers` reads; `UNKNOWN` if it reads none.

    One file's parser only, and only where one option of that name exists in the file.
    """
    if not isinstance(expression, cst.Attribute) or not isinstance(expression.value, cst.Name):
        return UNKNOWN
    made = [each.value for each in names.bindings.lookup(expression.value)]
    parsed = [each for each in made if names.method(each) == "parse_args"]
    parameter = all(each is None for each in made)
    if not parsed and not (parameter and expression.value.value in _NAMES):
        return UNKNOWN
    return _default_of(tree, names, expression.attr.value)


def project_default(facts: Linked, expression: cst.CSTNode | None) -> object:
    """As `option_default`, where the files that parse a command line and import this one hand the options on to it, or one
    that this one imports makes the parser.

    Their trees are read: ask only when a finding hangs on it. `UNKNOWN` where they do not agree.
    """
    own = option_default(facts.tree, facts.names, expression)
    held = expression.value if isinstance(expression, cst.Attribute) else None
    if own is not UNKNOWN or not isinstance(expression, cst.Attribute) or not _is_handed(facts, held):
        return own
    paths = facts.project.users(facts.path, "ArgumentParser")
    paths = paths or facts.project.imported_with(facts.path, "ArgumentParser")
    others = [facts.other(path) for path in paths if path != facts.path]
    values = [_default_of(each.tree, each.names, expression.attr.value) for each in others if each is not None]
    return values[0] if values and all(each == values[0] for each in values) else UNKNOWN


def _is_handed(facts: Linked, held: cst.CSTNode | None) -> bool:
    """Whether something may be the options that another file has parsed: a parameter `args`, or `self.args`, or what a parser
    from there gives."""
    match held:
        case cst.Name(value=name):
            found = facts.names.bindings.lookup(held)
            if any(facts.names.method(each.value) == "parse_args" for each in found):
                return True
            return name in _NAMES and len(found) == 1 and found[0].kind is Kind.PARAMETER
        case cst.Attribute(value=cst.Name(), attr=cst.Name(value=name)):
            return name in _NAMES
    return False


def _default_of(tree: Tree, names: Names, word: str) -> object:
    """The default of the one option of a name in a file."""
    calls = [call for call in tree.all(cst.Call) if _adds_argument(names, call)]
    mine = [call for call in calls if word in _destinations(names, call)]
    if len(mine) != 1 or names.argument(mine[0], "action") is not None:
        return UNKNOWN
    default = names.argument(mine[0], "default")
    return names.constant(default.value) if default is not None else None


def _adds_argument(names: Names, call: cst.Call) -> bool:
    """Whether a call adds an option, by a short name for it too: `arg = parser.add_argument`."""
    made = [each.value for each in names.bindings.lookup(call.func)] if isinstance(call.func, cst.Name) else []
    short = [isinstance(each, cst.Attribute) and each.attr.value == "add_argument" for each in made]
    return names.method(call) == "add_argument" or (bool(short) and all(short))


def command_default(names: Names, function: cst.FunctionDef, word: str) -> cst.BaseExpression | None:
    """The default of the click option that a command gets a parameter from."""
    for each in function.decorators:
        call = each.decorator
        if isinstance(call, cst.Call) and names.call(call) == "click.option" and word in _destinations(names, call):
            default = names.argument(call, "default")
            return default.value if default is not None else None
    return None


def _destinations(names: Names, call: cst.Call) -> set[str]:
    dest = names.argument(call, "dest")
    if dest is not None:
        return {str(names.constant(dest.value))}
    flags = [names.constant(arg.value) for arg in call.args if arg.keyword is None and not arg.star]
    return {flag.lstrip("-").replace("-", "_") for flag in flags if isinstance(flag, str)}
