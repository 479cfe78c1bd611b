"""Process groups: whether the ranks that a program speaks of can have found each other."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lightlint.engine.events import Called, CalledUnknown, Event, GroupStarted
from lightlint.values.core import Library, Unknown

if TYPE_CHECKING:
    from lightlint.engine.frames import Call
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Site

_STARTING = re.compile(r"init|dist|ddp|set_?up|launch|spawn|process|rank|parallel|accelerat|main|run", re.I)
"""What functions out of sight are called that may start a process group."""
_STARTERS = {
    "torch.multiprocessing.spawn",
    "torch.multiprocessing.start_processes",
    "torch.multiprocessing.Process",
    "multiprocessing.Process",
}
_PLAIN = ("torch.", "torchvision.", "numpy.", "builtins.", "argparse.", "os.", "random.")


def with_groups(entry: Entry) -> list[Path]:
    """The rehearsals that reach what lies behind DDP: where a program starts no process group before, the wrapper raises."""
    return [path for path in entry.paths if not entry.whole or not _lacks_group(path)]


def in_same_process(path: Path, one: Event, other: Event) -> bool:
    """Whether two things happen in one process: what `mp.spawn` runs leaves nothing in the program that waits for it."""
    starts = {each.site for each in path.of(Called) if each.path in _STARTERS}
    return not starts or _started_at(one, starts) == _started_at(other, starts)


def _started_at(event: Event, starts: set[Site]) -> list[Call]:
    """The calls of other processes in which something happens."""
    return [call for call in event.where.calls if call.site in starts]


def _lacks_group(path: Path) -> bool:
    started = path.of(GroupStarted)[:1]
    if not started or started[0].by != "DistributedDataParallel":
        return False
    before = path.events[: path.events.index(started[0])]
    return not any(_STARTING.search(_name(event)) for event in before)


def _name(event: Event) -> str:
    """What something out of sight that is called is called: a function of a library that this program may be a part of, too."""
    match event:
        case CalledUnknown(callee=Unknown(hint=name)):
            return name
        case CalledUnknown(callee=Library(path=path)) | Called(path=path) if not path.startswith(_PLAIN):
            return path
    return ""
