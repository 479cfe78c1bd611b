"""Whether a program comes to the value of a next state only where there is one."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from lightlint.engine.events import Forward

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Path
    from lightlint.values.core import Site
    from lightlint.values.training import Tensor


def is_come_to(path: Path, site: Site, target: Tensor, is_end: Callable[[str], bool]) -> bool:
    """Whether a test of the end, further up the calls perhaps, let a network answer at a place, the last time before it became
    a target."""
    found = [each for each in path.of(Forward) if each.site == site and each.time <= target.made]
    tests = [each.site for each in found[-1].where.conditions] if found else []
    return any(_asks(path, each, is_end) for each in tests)


def _asks(path: Path, test: Site, is_end: Callable[[str], bool]) -> bool:
    """Whether a test names an end; that of a `while` is older than the step which the loop takes."""
    tree = path.machine.sources.tree(test[0])
    for each in ast.walk(tree) if tree is not None else ():
        if isinstance(each, (ast.If, ast.IfExp)) and _is_at(each.test, test):
            names = [one.id for one in ast.walk(each.test) if isinstance(one, ast.Name)]
            return any(map(is_end, names))
    return False


def _is_at(node: ast.expr, site: Site) -> bool:
    return (node.lineno, node.col_offset) <= site[1:3] and site[3:] <= (node.end_lineno or 0, node.end_col_offset or 0)
