from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import AttributeRead, Called, GroupStarted, LoaderMade, LoaderWorked, Looped, WorkerAsked
from lightlint.engine.frames import Iteration, Loop
from lightlint.engine.generators import Frame
from lightlint.values.core import (
    NONE,
    Class,
    Constant,
    Function,
    Mapping,
    Sequence,
    Value,
    is_constant,
    number_of,
    traits_of,
    written,
)
from lightlint.values.training import Instance, Loader
from lightlint.values.training import Iterator as Generated

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Site

_SHARES = re.compile(
    r"worker|shard|split_by|stride|num_proc|partition|get_rank|rank$|world_size|replica", re.IGNORECASE
)
_SHARES_RANKS = re.compile(r"rank|world|replica|shard|split_by|node|process|num_proc|partition", re.IGNORECASE)
_DRAWS = re.compile(r"rand(?!om_?split|perm)(?!om$)|sample|choice|normal|uniform", re.IGNORECASE)
_REORDERS = re.compile(r"shuffle|perm", re.IGNORECASE)
_PICKS = (ast.Mod, ast.Slice)


class IterableDatasetUnsharded(Check):
    users_with = ("DataLoader",)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """IterableDatasets of which each worker, or each rank, goes through all there is."""
        told: dict[Function, tuple[int, str, Site | None]] = {}
        begun = {each.site for each in entry.of(LoaderMade) if _has_begin(each.loader)}
        for path in entry.paths:
            for event in path.of(LoaderWorked):
                data = event.loader.data
                start = _start(data)
                if start is None or not isinstance(data, Instance) or event.site in begun or not _is_free(event, data):
                    continue
                code = [node for function in _functions(event, data) for node in ast.walk(function)]
                names = {word for node in code for word in _words(node)}
                called = {word for node in code if isinstance(node, ast.Call) for word in _words(node.func)}
                called |= {each.name for each in event.events if isinstance(each, Called)}
                if not _is_whole_stream(event) or any(map(_DRAWS.search, called)):
                    continue
                workers = int(number_of(written(event.loader.arguments.get("num_workers"))) or 0)
                asked = any(isinstance(each, WorkerAsked) for each in event.events)
                if workers > 1 and not asked and not _picks(code) and not any(map(_SHARES.search, names)):
                    most, name, _ = told.get(start, (0, data.name, None))
                    told[start] = max(most, workers), name, None
                elif _is_on_ranks(path, event, data) and not _shares_ranks(names, called):
                    told.setdefault(start, (0, data.name, _share(event)))
        for start, (workers, name, share) in told.items():
            yield Fault(share or start.name_site(), _message(workers, name), None, (start.name_site(),))


def _share(event: LoaderWorked) -> Site | None:
    """Where a worker asks for its own share, which is where the rank's would be asked for, too."""
    asked = (each for each in event.events if isinstance(each, AttributeRead) and each.name in ("id", "num_workers"))
    return next((each.site for each in asked if getattr(each.object, "name", "") == "WorkerInfo"), None)


def _message(workers: int, name: str) -> str:
    if workers:
        return f"each of the {workers} workers yields every sample of `{name}`: none takes a share"
    return f"each rank draws every sample of `{name}`: an IterableDataset gets no DistributedSampler"


def _start(data: Value | None) -> Function | None:
    """`__iter__` of an IterableDataset of the program."""
    cls = data.cls if isinstance(data, Instance) else None
    found = cls.find("__iter__") if isinstance(cls, Class) else None
    streams = isinstance(cls, Class) and any(name.endswith("IterableDataset") for name in cls.libraries())
    return found if streams and isinstance(found, Function) else None


def _is_free(event: LoaderWorked, data: Instance) -> bool:
    """Whether nothing but the data set itself may give each worker its share."""
    loader = event.loader
    return not (_has_begin(loader) or loader.open_arguments or loader.assumed or data.escaped)


def _has_begin(loader: Loader) -> bool:
    """Whether a function of the program's may give each worker its share, or a sampler is given, with which the loader raises."""
    return any(not is_constant(loader.arguments.get(word, NONE), None) for word in ("worker_init_fn", "sampler"))


def _functions(event: LoaderWorked, data: Instance) -> list[ast.AST]:
    """The functions of the program that made a sample, and that made the data set."""
    cls = data.cls
    lineage = [each for each in cls.lineage() if isinstance(each, Class)] if isinstance(cls, Class) else []
    own = [value for each in lineage for value in each.names.values() if isinstance(value, Function)]
    around = [value for each in own for value in each.scope.top.names.values() if isinstance(value, Function)]
    ran = {id(each.node): each.node for each in (*own, *around) if id(each.node) in event.called}
    made = [each.node for each in own if each.name == "__init__"]
    return [*ran.values(), *made]


def _shares_ranks(names: set[str], called: set[str]) -> bool:
    return any(map(_SHARES_RANKS.search, names)) or any(map(_REORDERS.search, called))


def _words(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Attribute):
        return [node.attr]
    return [node.id] if isinstance(node, ast.Name) else [node.arg] if isinstance(node, ast.arg) else []


def _picks(code: list[ast.AST]) -> bool:
    """Whether some code may leave something out of what it goes through."""
    return any(isinstance(node, _PICKS) or "islice" in _words(node) for node in code)


def _is_whole_stream(event: LoaderWorked) -> bool:
    """Whether all that a worker goes over is in sight, and all there is: files, ranges, lists."""
    loops = [each for each in event.events if isinstance(each, Looped)]
    least = min((len(each.where.turns) for each in loops), default=0)
    over = [each.loop for each in loops if len(each.where.turns) == least]
    frame = event.stream.source if isinstance(event.stream, Generated) else None
    if isinstance(frame, Frame) and not loops:
        over = [frame.loop] if frame.loop is not None else []
    if over:
        return all(map(_is_whole, over))
    return not isinstance(frame, Frame) and _is_whole(event.stream)


def _is_whole(value: object) -> bool:
    if isinstance(value, (Loop, Iteration)):
        return value.kind in ("count", "known") or _is_whole(value.over)
    if isinstance(value, Generated):
        return isinstance(value.source, Frame) or _is_whole(value.source)
    if isinstance(value, Instance):
        return value.kind in ("handle", "file")
    return isinstance(value, (Sequence, Mapping)) or (isinstance(value, Constant) and isinstance(value.value, str))


def _is_on_ranks(path: Path, event: LoaderWorked, data: Instance) -> bool:
    """Whether each of several ranks makes the loader, with the same data."""
    given = traits_of(*data.attributes.values(), *data.arguments.values())
    return bool(path.of(GroupStarted)) and "rank" not in given and not event.where.depends_on("rank")
