"""Command line options: what `args.name` is when the program is started without arguments."""

from __future__ import annotations

import libcst as cst

from lightlint.facts.names import UNKNOWN, Names
from lightlint.facts.tree import Tree


def option_default(tree: Tree, names: Names, expression: cst.CSTNode | None) -> object:
    """The default of the argparse option that an expression such as `args.num_workers` reads; `UNKNOWN` if it reads none.

    One file's parser only, and only where one option of that name exists in the file.
    """
    if not isinstance(expression, cst.Attribute) or not isinstance(expression.value, cst.Name):
        return UNKNOWN
    made = [each.value for each in names.bindings.lookup(expression.value)]
    parsed = [each for each in made if names.method(each) == "parse_args"]
    parameter = all(each is None for each in made)
    if not parsed and not (parameter and expression.value.value in {"args", "opt", "options"}):
        return UNKNOWN
    calls = [call for call in tree.all(cst.Call) if names.method(call) == "add_argument"]
    mine = [call for call in calls if expression.attr.value in _destinations(names, call)]
    if len(mine) != 1 or names.argument(mine[0], "action") is not None:
        return UNKNOWN
    default = names.argument(mine[0], "default")
    return names.constant(default.value) if default is not None else None


def _destinations(names: Names, call: cst.Call) -> set[str]:
    dest = names.argument(call, "dest")
    if dest is not None:
        return {str(names.constant(dest.value))}
    flags = [names.constant(arg.value) for arg in call.args if arg.keyword is None and not arg.star]
    return {flag.lstrip("-").replace("-", "_") for flag in flags if isinstance(flag, str)}
