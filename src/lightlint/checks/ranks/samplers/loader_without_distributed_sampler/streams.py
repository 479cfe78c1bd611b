"""Data sets that are gone over by their own `__iter__`, and what of them each rank gets."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.engine.events import Called, LoaderMade, SampleMade, WorkerAsked
from lightlint.explore.questions.queries import in_sight
from lightlint.explore.samples import is_stream
from lightlint.models.names.huggingface import ROWS
from lightlint.values.core import Class, Function, site_of, traits_of
from lightlint.values.training import Instance

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Path
    from lightlint.values.core import Site, Value

_SHARES = re.compile(
    r"rank|world|replica|\bnodes?\b|num_shards|shard_(?:id|index)|process|distributed|dist\b", re.IGNORECASE
)
_DRAWS = re.compile(r"(?:numpy\.)?random\.|torch\.rand|.*shuffle")
_REORDERS = re.compile(
    r"(?:.*\.)?(?:shuffle|permutation|randperm|Random|default_rng|RandomState|Generator|seed|manual_seed)$"
)
"""Of these, what puts all there is into another order, and what that is done by."""


def is_whole_stream(path: Path, event: LoaderMade) -> bool:
    """Whether a data set in sight goes over what it was given from the first to the last on each rank alike, as nothing in it
    knows of ranks, nor draws at random."""
    data, loader = event.loader.data, event.loader
    if not isinstance(data, Instance) or not is_stream(data) or not in_sight([loader, data]) or loader.open_arguments:
        return False
    if data.kind == ROWS:  # which a Trainer leaves as it is
        return "#apart" not in data.attributes
    if (
        not isinstance(data.cls, Class)
        or event.where.depends_on("rank")
        or _shares([*data.arguments.values(), *data.attributes.values()])
    ):
        return False
    made = [each for sample in path.of(SampleMade) if sample.loader is loader for each in sample.events]
    draws = [each.path for each in made if isinstance(each, Called) and _DRAWS.match(each.path)]
    drawn = not (takes_shares(path, event) and all(map(_REORDERS.match, draws))) if draws else False
    return bool(made) and not drawn and not _names_ranks(data.cls) and gone_over_at(data) is not None


def takes_shares(path: Path, event: LoaderMade) -> bool:
    """Whether a data set asks which worker it is in, and goes over a share."""
    made = [each for sample in path.of(SampleMade) if sample.loader is event.loader for each in sample.events]
    return any(isinstance(each, WorkerAsked) for each in made)


def _shares(held: list[Value]) -> bool:
    """Whether something that a data set holds may be this rank's share."""
    tables = [each for each in held if isinstance(each, Instance) and each.kind == ROWS]
    return "rank" in traits_of(*held) or any("#apart" in each.attributes for each in tables)


def _names_ranks(cls: Class) -> bool:
    code = (node for each in cls.lineage() if isinstance(each, Class) for node in ast.walk(each.node))
    names = (getattr(node, "id", getattr(node, "attr", getattr(node, "arg", None))) for node in code)
    texts = (
        node.value
        for each in cls.lineage()
        if isinstance(each, Class)
        for node in ast.walk(each.node)
        if isinstance(node, ast.Constant)
    )
    return any(_SHARES.search(each) for each in (*names, *texts) if isinstance(each, str) and "\n" not in each)


def gone_over_at(data: Instance) -> Site | None:
    """What the outermost loop of `__iter__` that gives samples goes over, as far as that is what the data set was given."""
    cls = data.cls
    names = ["__iter__", *cls.names] if isinstance(cls, Class) else []
    functions = (cls.find(each) for each in names) if isinstance(cls, Class) else ()
    for function in functions:
        if not isinstance(function, Function) or isinstance(function.node, ast.Lambda):
            continue
        own = _of_self(function.node.body)
        for loop in _giving(function.node.body):
            if _holds_own(loop.iter, own):
                return site_of(function.file, loop.iter)
    return None


def _of_self(body: list[ast.stmt]) -> set[str]:
    """The names of a function that are bound to what is made of attributes of the object."""
    own: set[str] = set()
    bound = [node for part in body for node in ast.walk(part) if isinstance(node, ast.Assign)]
    for node in sorted(bound, key=lambda each: each.lineno):
        if _holds_own(node.value, own):
            own |= {each.id for each in node.targets if isinstance(each, ast.Name)}
    return own


def _holds_own(expression: ast.expr, own: set[str]) -> bool:
    """Whether an expression asks for an attribute of the object, or for such a name."""
    nodes = [*ast.walk(expression)]
    held = any(isinstance(each, ast.Attribute) and getattr(each.value, "id", "") == "self" for each in nodes)
    return held or any(isinstance(each, ast.Name) and each.id in own for each in nodes)


def _giving(body: list[ast.stmt]) -> Iterator[ast.For]:
    """The loops of a function that yield, the outer ones first."""
    for part in body:
        for node in ast.walk(part):
            if isinstance(node, ast.For) and any(
                isinstance(each, (ast.Yield, ast.YieldFrom)) for each in ast.walk(node)
            ):
                yield node
