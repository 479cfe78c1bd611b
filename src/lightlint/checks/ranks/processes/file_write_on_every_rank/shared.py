"""Which writes of a rehearsal go to one place from the processes of several ranks."""

from __future__ import annotations

import ast
import re
from collections.abc import Hashable
from typing import TYPE_CHECKING

from lightlint.engine.events import Called, CalledUnknown, Collective, DirectoryMade, GroupStarted, Where, Written
from lightlint.explore.questions.groups import in_same_process
from lightlint.explore.questions.queries import holds, may_be_alone, speaks_of
from lightlint.facts.lightning.hooks import ONCE_PER_NODE, Owner, is_hook
from lightlint.facts.ranks.guards import MAYBE_RANK
from lightlint.facts.ranks.trainers import ranks_of, written
from lightlint.facts.ranks.world import Ranks
from lightlint.models.names.kinds import kind_of_class
from lightlint.models.registry import LIGHTNING
from lightlint.values.core import OWN_DATA, Class, Value, number_of
from lightlint.values.training import Instance

if TYPE_CHECKING:
    from lightlint.engine.events import Event
    from lightlint.explore.rehearsals import Entry, Path

_JOINING = ("init_process_group", "DistributedDataParallel")
_ONE_RANK = re.compile(
    r"world_?size|num_?(?:devices|nodes|gpus|processes)|n_?gpus?|fast_dev_run|distributed|is_?initialized|strategy"
    r"|multi_?gpus?|(?:^|_)ddp(?:$|_)|SingleDevice",
    re.IGNORECASE,
)
SHARE = re.compile(
    r"rank|world|shard|replica|split_by|num_proc|process_(?:id|index|count)|is_(?:main|master)|(?:^|_|get)pid(?:$|_)|uuid|te?mp"
    r"|hostname",
    re.IGNORECASE,
)
_FIRST = re.compile(r"(?:^|_)first(?:$|_)")  # what libraries and projects call the context manager
_SAME_ON_ALL = {"trainer", "pl_module", "stage", "batch_idx", "dataloader_idx", "checkpoint"}  # parameters of hooks
_APART = frozenset({"rank", "process"}) | OWN_DATA


_CHOOSING = (MAYBE_RANK, _ONE_RANK)


def hook_of(where: Where) -> str:
    """The hook, run by several ranks, in which something happens; empty where none runs.

    A hook that calls `prepare_data` itself behind a test comes to what one process per node has made before.
    """
    owned = ((call.function.name, call.function.owner) for call in where.calls)
    found = [name for name, cls in owned if cls is not None and is_hook(_owner(cls), name)]
    asked = found if where.conditions else found[:1]
    return "" if {*asked, where.hook} & ONCE_PER_NODE else [*found, where.hook][0]


def _owner(cls: Class) -> Owner | None:
    """Whose hooks a class has."""
    if any(path.rpartition(".")[2] == LIGHTNING for path in cls.libraries()):
        return Owner.MODULE
    return {"callback": Owner.CALLBACK, "data module": Owner.DATA_MODULE}.get(kind_of_class(cls))


def is_by_hand(path: Path, event: Event) -> bool:
    """Whether a process group has been joined before, by the process itself."""
    before = [each for each in path.of(GroupStarted) if each.by in _JOINING and each.time < event.time]
    return any(in_same_process(path, each, event) for each in before)


def is_set_up_elsewhere(path: Path, event: Event) -> bool:
    """Whether a group is in use that nothing has joined on this path: what did so, in code out of sight, set up the ranks."""
    started = [each for each in path.of(GroupStarted) if each.time < event.time]
    before = {each.by for each in started if in_same_process(path, each, event)}
    return "DistributedDataParallel" in before and "init_process_group" not in before


def joins(path: Path) -> bool:
    """Whether a process group is joined on a path."""
    return any(each.by in _JOINING for each in path.of(GroupStarted))


def is_launched(path: Path, event: Event) -> bool:
    """Whether a Fabric has launched several processes before, each with the whole model."""
    before = [each for each in path.of(GroupStarted) if each.time < event.time]
    made = [each for each in before if each.by == "Fabric"]
    return bool(made) and any(each.by == "launch" for each in before) and _copies(made[-1])


def _copies(started: GroupStarted) -> bool:
    given = started.given
    if given is None or not given.exact:
        return False
    strategy = written(given).get("strategy", "auto")
    whole = isinstance(strategy, str) and (strategy == "auto" or strategy.startswith("ddp"))
    return whole and ranks_of(given) is Ranks.MANY


def is_shared(path: Path, event: Written | DirectoryMade) -> bool:
    """Whether what is written may be one file for all ranks: not in memory, not named after the rank or its data, not behind
    a test that may leave one process, and not left to those that find no file."""
    target, where = event.path, event.where
    if target is None or (isinstance(target, Instance) and target.kind == "file"):
        return False
    if is_apart(target) or _follows_batch(target.key, where):
        return False
    if where.turns and where.depends_on("there"):
        return False
    return not (may_be_chosen(where) or may_be_alone(where) or _goes_first(path, event))


def is_apart(name: Value) -> bool:
    """Whether a name may be another one in each process."""
    return bool(name.traits & _APART) or speaks_of(name.key, SHARE) or SHARE.search(name.named) is not None


def _follows_batch(key: Hashable, where: Where) -> bool:
    """Whether a name is made of what a hook is given besides the trainer, the module and an index: each rank has its own."""
    hook = next((call.function for call in where.calls if call.function.name == hook_of(where)), None)
    parameters = hook.node.args if hook is not None else ast.arguments([], [], None, [], [], None, [])
    given = {each.arg for each in (*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs)}
    return any(holds(key, ("parameter", name)) for name in given - _SAME_ON_ALL)


def may_be_chosen(where: Where) -> bool:
    """Whether a test of which nothing is known may leave one rank only, or ask whether there are several."""
    unsure = [each for each in where.conditions if not each.known]
    return any("rank" in each.traits or any(speaks_of(each.key, words) for words in _CHOOSING) for each in unsure)


def _goes_first(path: Path, event: Event) -> bool:
    """Whether one process may have come first, while the others waited in a barrier, and a test stops those that come later."""
    asked = any(not each.known for each in event.where.conditions)
    before = [each for each in path.events if each.time < event.time] if asked else []
    named = (getattr(each.callee, "hint", "") for each in before if isinstance(each, CalledUnknown))
    barriers = (each for each in before if isinstance(each, Collective) and "barrier" in each.name)
    waits = any(each.where.depends_on("rank") for each in barriers)
    return waits or any(map(_FIRST.search, named))


def on_every_rank(entry: Entry, happened: list[tuple[Path, Event]]) -> str:
    """Which ranks something happens on: "every rank", "several ranks", empty for one, and for what a test of the rank leaves
    to rank zero on some path: another test says how many there are."""
    ranks = {path.rank for path, _ in happened}
    here = {id(path) for path, _ in happened}
    if any(id(first) in here and id(other) not in here for first, other in entry.pairs()):
        return ""
    if ranks == {0}:
        return "" if any(path.rank or path.machine.uses_rank for path in entry.paths) else "every rank"
    if ranks == {0, 1}:
        return "every rank"
    single = any(path.machine.other_rank is not None or _says_two(path) for path, _ in happened) or not ranks
    return "several ranks" if not single and all(each.where.depends_on("rank") for _, each in happened) else ""


def _says_two(path: Path) -> bool:
    """Whether two processes are all there are, or seem to be, for they talk to each other."""
    given = [each.given for each in path.of(GroupStarted) if each.given is not None]
    counts = (each.keywords.get(name) for each in given for name in ("nprocs", "world_size"))
    talks = any(each.path.rpartition(".")[2] in _TO_ONE for each in path.of(Called))
    return talks or any(number_of(each) == 2 for each in (*counts, *(each.get(2, "nprocs") for each in given)))


_TO_ONE = {"send", "recv", "isend", "irecv"}
