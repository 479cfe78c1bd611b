from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.checks.ranks.processes.file_write_on_every_rank.outer_guards import guarded_by_others
from lightlint.checks.ranks.processes.file_write_on_every_rank.runs import RUNS, starts_on_every_rank
from lightlint.checks.ranks.processes.file_write_on_every_rank.shared import (
    SHARE,
    hook_of,
    is_by_hand,
    is_launched,
    is_set_up_elsewhere,
    is_shared,
    on_every_rank,
)
from lightlint.engine.events import Called, DirectoryMade, Event, GroupStarted, Written
from lightlint.facts.ranks.guards import MAYBE_RANK
from lightlint.facts.ranks.processes import FULLY_SHARDED, HOST_RANK
from lightlint.facts.ranks.trainers import lightning_ranks, made_here
from lightlint.facts.ranks.world import Ranks
from lightlint.facts.ranks.writes import What
from lightlint.finding import Applicability, Tier
from lightlint.fixes.edits import insert_argument
from lightlint.fixes.repairs.rank_zero import on_rank_zero

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.explore.rehearsals import Path as Way
    from lightlint.values.core import Site

_WRITING = {
    "open", "write_text", "write_bytes", "to_csv", "to_parquet", "to_pickle", "to_excel", "savefig", "save_image", "savez",
    "savez_compressed", "savetxt", "dump", "makedirs", "mkdir", "save", "imwrite",
}  # fmt: skip
_SHARDED = {"torch.distributed.checkpoint", "deepspeed", "accelerate", "megatron"}


class FileWriteOnEveryRank(Check):
    of_several_processes = True

    def wants_rest(self) -> frozenset[str]:
        """What writes in this file: hooks that no rehearsal of training calls do so, too."""
        calls = self.tree.all(cst.Call)
        runs = {self.names.method(each) for each in calls if self.names.call(each) in RUNS}
        return frozenset(runs | {self.names.method(each) for each in calls} & _WRITING)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Files, directories and runs of trackers that several ranks write, make or start at once."""
        found: dict[Site, list[tuple[Way, Event]]] = {}
        for path in entry.paths:
            events: list[Written | DirectoryMade] = [*path.of(Written), *path.of(DirectoryMade)]
            for event in events:
                if self._is_asked(path, event) and is_shared(path, event):
                    found.setdefault(event.site, []).append((path, event))
            for run in path.of(Called):
                if (
                    run.path in RUNS
                    and starts_on_every_rank(self.facts, path, run)
                    and not self._is_of_parent(path, run)
                ):
                    found.setdefault(run.site, []).append((path, run))
        for happened in found.values():
            happened = [(path, event) for path, event in happened if not self._is_left_to_callers(event)]
            who = on_every_rank(entry, happened)
            if not who or any(self._speaks_of_ranks(each) or self._is_told(path, each) for path, each in happened):
                continue
            if self._is_unguarded(happened[0][1]):
                yield self._told(happened, who)

    def _is_unguarded(self, event: Event) -> bool:
        """Whether no test in sight leaves an event to a subset of the ranks; a run that the code of another file starts is
        for its callers here to decide."""
        room, node = self._found(event.site)
        if room is not self and isinstance(event, Called):
            return True
        return node is not None and not room.facts.is_dead(node) and not guarded_by_others(room.facts, node)

    def _is_of_parent(self, path: Way, event: Event) -> bool:
        """Whether only the process that spawns the ranks comes to an event, before: each of them imports the file again,
        but runs nothing that a function or a test of `__name__` keeps."""
        spawned = [each for each in path.of(GroupStarted) if each.by == "spawn" and each.time > event.time]
        if not spawned:
            return False
        outer = event.where.calls[0].site if event.where.calls else event.site
        room, node = self._found(outer)
        if node is None or isinstance(node, cst.FunctionDef) or room.tree.function(node) is not None:
            return True
        asked = [test for test, _ in room.facts.conditions(node)]
        return any(name.value == "__name__" for test in asked for name in room.tree.within(test, cst.Name))

    def _found(self, site: Site) -> tuple[Check, cst.CSTNode | None]:
        """The node at a place, which may lie in another file of the project, and the check that would look at its file."""
        room: Check = self
        if self.facts.rehearsed.span(site) is None:
            other = self.facts.other(Path(site[0]))
            room = type(self)(self.page, other, lambda _: None) if other is not None else self
        return room, room.node_of(site)

    def _told(self, happened: list[tuple[Way, Event]], who: str) -> Fault:
        _, event = happened[0]
        if isinstance(event, Called):
            return Fault.at(event, f"`{event.path}` starts a run on every rank")
        hook = min(filter(None, (hook_of(each.where) for _, each in happened)), default="")
        done = "makes one directory" if isinstance(event, DirectoryMade) else "writes one file"
        tier = Tier.NOTE if hook and not self._are_many else None
        where = f" in `{hook}`" if hook else ""
        return Fault.at(event, f"`{getattr(event, 'name', '')}` {done} from {who}{where}", tier=tier)

    @property
    def _are_many(self) -> bool:
        """Whether a Trainer or Fabric is told to use several ranks, and not perhaps."""
        return Ranks.MANY in (self.facts.world.lightning, *made_here(self.facts))

    def _is_asked(self, path: Way, event: Written | DirectoryMade) -> bool:
        """Whether several processes run the code in which something is written: a hook's, what a Fabric has launched, or, if
        a plain script saves with `torch.save`, what stands behind the start of a process group."""
        if hook_of(event.where) or is_launched(path, event):
            return lightning_ranks(self.facts) is not Ranks.ONE
        saves = isinstance(event, Written) and event.name == "torch.save"
        several = self.facts.world.raw is Ranks.MANY and not HOST_RANK.search(self.facts.source.text)
        return saves and several and not self._shards and is_by_hand(path, event)

    def _speaks_of_ranks(self, event: Event) -> bool:
        """Whether names in a call, or in a test before it that no known rank decided, may mean a rank: all that tells of what
        comes from out of sight."""
        tests = [self._found(each.site) for each in event.where.conditions if "rank" not in each.traits]
        names = [each.value for room, node in tests if node for each in room.tree.within(node, cst.Name)]
        keys = [each.raw_value for room, node in tests if node for each in room.tree.within(node, cst.SimpleString)]
        room, call = self._found(event.site)
        given = [name.value for arg in getattr(call, "args", ()) for name in room.tree.within(arg, cst.Name)]
        if isinstance(call, cst.Call) and _appends(
            room, call
        ):  # rows of its own, perhaps, which it numbers by its rank
            names += [name.value for name in room.tree.within(room.tree.owner(call), cst.Name)]
        return any(map(MAYBE_RANK.search, names + keys)) or any(map(SHARE.search, given))

    def _is_told(self, path: Way, event: Event) -> bool:
        """Whether a flag decides, where code out of sight has started the group: it may have told each rank its own."""
        if hook_of(event.where) or not is_set_up_elsewhere(path, event):
            return False
        tests = [self._found(each.site)[1] for each in event.where.conditions]
        return any(isinstance(_plain(node), (cst.Attribute, cst.Call, cst.Name, cst.Subscript)) for node in tests)

    def _is_left_to_callers(self, event: Event) -> bool:
        """Whether an entry starts with a function, no hook, that others in the file may call: these decide who writes."""
        first = event.where.calls[0] if event.where.calls else None
        if first is None or hook_of(event.where) or first.site[:2] != (first.function.file, first.function.node.lineno):
            return False
        name = first.function.name
        read = any(each.attr.value == name for each in self.tree.all(cst.Attribute))
        return read or any(self.names.method(each) == name for each in self.tree.all(cst.Call))

    @property
    def _shards(self) -> bool:
        """Whether checkpoints may be sharded, which all ranks save together."""
        called = self.facts.world.called
        return bool(called & FULLY_SHARDED) or any(name.startswith(tuple(_SHARDED)) for name in called)

    def repair(self, node: cst.CSTNode, fault: Fault) -> Repair | None:
        write = self.facts.writes.of(node) if isinstance(node, cst.Call) else None
        if not isinstance(node, cst.Call) or write is None or "several ranks" in fault.message:
            return None
        if write.what is What.DIRECTORY:
            draft = insert_argument(self.code, node, "exist_ok=True") if write.name != "os.mkdir" else None
            return Repair("let the directory exist", draft)
        guarded = on_rank_zero(self.facts, node, write)
        if guarded is None:
            return None
        applicability = Applicability.SAFE if guarded.is_safe else Applicability.UNSAFE
        return Repair("write on rank zero only", guarded.draft, applicability)


def _appends(room: Check, call: cst.Call) -> bool:
    """Whether a call opens a file to write behind what is in it."""
    mode = room.names.argument(call, "mode", 1)
    told = room.names.constant(mode.value) if mode is not None else None
    return room.names.method(call) == "open" and isinstance(told, str) and told.startswith("a")


def _plain(test: cst.CSTNode | None) -> cst.CSTNode | None:
    """`flag` of `not flag`."""
    return test.expression if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not) else test
