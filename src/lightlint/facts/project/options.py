"""Options: what `args.name` is when the program is started without arguments, and `config.name` when nobody sets it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import Kind
from lightlint.facts.code.names import UNKNOWN, Names
from lightlint.facts.code.tree import Tree
from lightlint.facts.objects.annotations import annotated

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
    """As `option_default`, where the files that parse a command line and import this one hand the options on to it, and of
    the field of a class of the project that an annotation tells.

    Their trees are read: ask only when a finding hangs on it. `UNKNOWN` where they do not agree.
    """
    own = option_default(facts.tree, facts.names, expression)
    own = field_default(facts, expression) if own is UNKNOWN else own
    held = expression.value if isinstance(expression, cst.Attribute) else None
    if own is not UNKNOWN or not isinstance(expression, cst.Attribute) or not _is_handed(facts, held):
        return own
    others = [facts.other(path) for path in facts.project.users(facts.path, "ArgumentParser")]
    values = [_default_of(each.tree, each.names, expression.attr.value) for each in others if each is not None]
    return values[0] if values and all(each == values[0] for each in values) else UNKNOWN


def field_default(facts: Linked, expression: cst.CSTNode | None) -> object:
    """The constant that a class gives the attribute that an expression such as `self.config.name` reads, where `config` is a
    parameter whose annotation names that class of the project, or an object of it that is made with nothing else for the
    attribute; else `UNKNOWN`."""
    name = _promised(facts, expression.value) if isinstance(expression, cst.Attribute) else None
    name = _made(facts, expression) if name is None and isinstance(expression, cst.Attribute) else name
    room = facts.of_class(name) if name else None
    if room is None or not isinstance(expression, cst.Attribute):
        return UNKNOWN
    home, node = room
    return home.classes.constant(node, expression.attr.value, UNKNOWN)


def _promised(facts: Linked, holder: cst.BaseExpression) -> str | None:
    """The class that the annotation of a parameter names, also of one that `self` keeps."""
    own = facts.classes.self_class(holder.value) if isinstance(holder, cst.Attribute) else None
    if own is not None and isinstance(holder, cst.Attribute):
        kept = facts.classes.attribute_values(own, holder.attr.value)
        holder = kept[0] if len(kept) == 1 else holder
    found = facts.names.bindings.lookup(holder) if isinstance(holder, cst.Name) else []
    told = found[0].annotation if len(found) == 1 and found[0].kind is Kind.PARAMETER else None
    return annotated(facts.names, told, facts.tree.scope(told)) if told is not None else None


def _made(facts: Linked, read: cst.Attribute) -> str | None:
    """The class of the objects whose attribute is read, where nobody in the file gives the attribute anything."""
    found, word = facts.values.origins(read.value), read.attr.value
    calls = [each.call for each in found]
    kept = all(
        call is not None and not any(arg.keyword is None and arg.star != "**" for arg in call.args) for call in calls
    )
    if not found or not kept or len({each.name for each in found}) > 1:
        return None
    given = any(arg.keyword is not None and arg.keyword.value == word for arg in facts.tree.all(cst.Arg))
    named = any(each.evaluated_value == word for each in facts.tree.all(cst.SimpleString))
    return None if given or named or _is_set(facts.tree, word) else found[0].name


def _is_set(tree: Tree, word: str) -> bool:
    """Whether a statement gives an attribute of some object another value."""
    found = (*tree.all(cst.AssignTarget), *tree.all(cst.AugAssign), *tree.all(cst.AnnAssign))
    targets = [each.target for each in found if isinstance(each, (cst.AssignTarget, cst.AugAssign, cst.AnnAssign))]
    return any(isinstance(each, cst.Attribute) and each.attr.value == word for each in targets)


def _is_handed(facts: Linked, held: cst.CSTNode | None) -> bool:
    """Whether something may be the options that another file has parsed: a parameter `args`, or `self.args`."""
    match held:
        case cst.Name(value=name):
            found = facts.names.bindings.lookup(held)
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
