"""What names of other packages a file uses, by what its imports bind."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_ASKS = re.compile(
    r"hasattr|getattr|find_spec|dir\(|TYPE_CHECKING|(?i:version|available|greater|at_least|\bhas_|_has_|support)"
)


@dataclass(frozen=True, slots=True)
class Use:
    """A use of a name.

    Attributes:
        name: the full name, such as `torch.nn.RMSNorm`.
        row: of the file's text, from 1.
        keywords: those of the call; None where it is not called, or with `**`.
    """

    name: str
    row: int
    keywords: frozenset[str] | None = None


def uses(tree: ast.Module) -> Iterator[Use]:
    """Imports and the names below them; nothing inside `try`, or under an `if` that asks what there is."""
    nodes = list(_unguarded(tree, frozenset(_answers(tree))))
    bound = {name: full for node in nodes for name, full in _bound(node)}
    called = {id(node.func): node for node in nodes if isinstance(node, ast.Call)}
    inner = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (Use(alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (Use(f"{node.module}.{alias.name}", node.lineno) for alias in node.names)
        elif isinstance(node, (ast.Attribute, ast.Name)) and id(node) not in inner:
            full = _full(node, bound)
            if full is not None:
                yield Use(full, node.lineno, _keywords(called.get(id(node))))


def _answers(tree: ast.Module) -> Iterator[str]:
    """Names that hold the answer to such a question: `has_norm = hasattr(nn, "RMSNorm")`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and _ASKS.search(ast.unparse(node.value)):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def _unguarded(node: ast.AST, answers: frozenset[str]) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.If, ast.IfExp)) and _asks(child.test, answers):
            if isinstance(child, ast.If) and isinstance(child.body[-1], (ast.Raise, ast.Return, ast.Continue)):
                return  # what follows is only reached where the answer is yes
        elif not isinstance(child, ast.Try):
            yield child
            yield from _unguarded(child, answers)


def _asks(test: ast.expr, answers: frozenset[str]) -> bool:
    named = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
    return bool(named & answers) or _ASKS.search(ast.unparse(test)) is not None


def _bound(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Local names and what they stand for."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            first = alias.name.partition(".")[0]
            yield (alias.asname, alias.name) if alias.asname else (first, first)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield from ((alias.asname or alias.name, f"{node.module}.{alias.name}") for alias in node.names)


def _full(node: ast.expr, bound: Mapping[str, str]) -> str | None:
    if isinstance(node, ast.Name):
        return bound.get(node.id) if isinstance(node.ctx, ast.Load) else None
    if isinstance(node, ast.Attribute):
        before = _full(node.value, bound)
        return f"{before}.{node.attr}" if before else None
    return None


def _keywords(call: ast.Call | None) -> frozenset[str] | None:
    if call is None or any(keyword.arg is None for keyword in call.keywords):
        return None
    return frozenset(keyword.arg for keyword in call.keywords if keyword.arg)
