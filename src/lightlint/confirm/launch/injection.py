"""Where a fault is injected: the first statement of the `try` that a finding is about."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from pathlib import Path

from lightlint.confirm.plan import Target
from lightlint.confirm.verdict import Claim

_BROAD = {"BaseException", "Exception", "RuntimeError"}


def place(claim: Claim) -> Target | None:
    """The statement that is to fail, None where the claim's lines belong to no `try`."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(Path(claim.file).read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None
    tries = [node for node in ast.walk(tree) if isinstance(node, ast.Try | ast.TryStar)]
    around = [node for node in tries if node.lineno <= claim.first <= (node.end_lineno or node.lineno)]
    inside = [node for node in tries if claim.first <= node.lineno <= claim.last]
    found = max(around, key=lambda node: node.lineno, default=None) or min(
        inside, key=lambda node: node.lineno, default=None
    )
    if found is None:
        return None
    statement = found.body[0]
    last = statement.end_lineno or statement.lineno
    return Target(claim.index, claim.file, statement.lineno, last, tuple(_caught(found)))


def _caught(found: ast.Try | ast.TryStar) -> Iterator[str]:
    """The exception that is to be raised, as the first handler names it; none where a `RuntimeError` will do."""
    for handler in found.handlers:
        kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        names = [ast.unparse(kind) for kind in kinds if kind is not None]
        if not names or not _BROAD.isdisjoint(names):
            return
        yield names[0]
        return
