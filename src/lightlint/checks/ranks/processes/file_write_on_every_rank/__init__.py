from __future__ import annotations

import re

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.checks.ranks.processes.file_write_on_every_rank import tracking
from lightlint.checks.ranks.processes.file_write_on_every_rank.first_process import first_process_fills
from lightlint.checks.ranks.processes.file_write_on_every_rank.outer_guards import guarded_by_others, is_given_to_some
from lightlint.engine.events import GroupStarted, Written
from lightlint.explore.questions.queries import happens_once, may_be_alone
from lightlint.facts.lightning.hooks import ONCE_PER_NODE, Hook
from lightlint.facts.ranks.lone_process import runs_alone
from lightlint.facts.ranks.processes import FULLY_SHARDED
from lightlint.facts.ranks.rank_tests import leaves_many, meant, says_two
from lightlint.facts.ranks.world import FABRIC, Ranks
from lightlint.facts.ranks.writes import What, Write
from lightlint.finding import Applicability, Tier
from lightlint.fixes.edits import insert_argument
from lightlint.fixes.repairs.rank_zero import on_rank_zero
from lightlint.values.training import Instance

_ONE_RANK = re.compile(
    r"world_size|num_(?:devices|nodes|gpus|processes)|n_gpus?|fast_dev_run|distributed|is_initialized"
)
_JOINING = ("init_process_group", "DistributedDataParallel")
_SHARDED = {"torch.distributed.checkpoint", "deepspeed", "accelerate", "megatron"}


class FileWriteOnEveryRank(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if tracking.starts_run(self.names, call):
            every = not self._is_chosen(call) and tracking.starts_on_every_rank(self.facts, call)
            if every and not guarded_by_others(self.facts, call):
                self.report(call, f"`{self.names.call(call)}` starts a run on every rank")
            return
        write = self.facts.writes.of(call)
        if write is None or not (self._is_script(write) or self.hooks.around(call)) or self._is_chosen(call):
            return
        hook = self._hook(call)
        if hook is None and not self._is_raw(write, call) and not self._is_launched(call):
            return
        processes = self.facts.processes
        if processes.may_differ(write.path) or processes.follows_data(write.path) or self._is_skipped(call, write):
            return
        if first_process_fills(self.facts, call) or guarded_by_others(self.facts, call):
            return
        if is_given_to_some(self.facts, call):
            return
        if happens_once(self.happened(call, Written), _is_apart):
            return
        where = f" in `{hook.name}`" if hook is not None else ""
        done = "makes one directory" if write.what is What.DIRECTORY else "writes one file"
        tier = Tier.NOTE if hook is not None and self.facts.world.is_untold else None
        others = self._is_of_others(call)
        repair, who = (None, "several ranks") if others else (self._repair(call, write), "every rank")
        self.report(call, f"`{write.name}` {done} from {who}{where}", repair=repair, tier=tier)

    def _is_of_others(self, call: cst.Call) -> bool:
        """Whether a rank test leaves the call to several ranks, as an `else` does, where no rank zero comes."""
        return any(self._leaves_many(test, outcome) for test, outcome in self.facts.conditions(call))

    def _is_chosen(self, call: cst.Call) -> bool:
        """Whether a test around the call may let one rank only get to it, or is about a single process."""
        if self.guards.guarded(call, self._may_choose) or self._is_alone(call) or runs_alone(self.facts, call):
            return True
        tests = [test for test, outcome in self._tests(call) if not self._leaves_many(test, outcome)]
        return any(_ONE_RANK.search(name.value) for test in tests for name in self.tree.within(test, cst.Name))

    def _tests(self, call: cst.CSTNode) -> list[tuple[cst.BaseExpression, bool]]:
        """The tests around a call, flags and functions that answer taken for what they ask."""
        return [
            (each, outcome)
            for test, outcome in self.facts.conditions(call)
            for each in meant(self.tree, self.names, test) or [test]
        ]

    def _may_choose(self, test: cst.BaseExpression, outcome: bool) -> bool:
        return self.guards.may_be_test(test) and not self._leaves_many(test, outcome)

    def _leaves_many(self, test: cst.BaseExpression, outcome: bool) -> bool:
        return leaves_many(self.tree, self.names, self.guards, test, outcome) and not says_two(self.tree, self.names)

    def _is_alone(self, call: cst.Call) -> bool:
        """Whether a test lets the call run only where another outcome of it, here or elsewhere, starts the group."""
        starts = self.names.called("torch.distributed.init_process_group")
        joined = {
            (self.names.key(test), outcome) for start in starts for test, outcome in map(_plain, self._tests(start))
        }
        mine = {(self.names.key(test), outcome) for test, outcome in map(_plain, self._tests(call))}
        return any(key and (key, not outcome) in joined for key, outcome in mine)

    def _is_skipped(self, call: cst.Call, write: Write) -> bool:
        """Whether a loop leaves out what is there already: processes that share the files out among themselves."""
        loops = self.tree.loops(call)
        tests = [t for t, _ in self._tests(call) if loops and self.tree.contains(loops[0].body, t)]
        asked = [each for test in tests for each in self.tree.within(test, cst.Call)]
        exists = [each for each in asked if self.names.method(each) in {"exists", "isfile", "is_file"}]
        spelled = self.names.key(write.path)
        return any(
            self.names.key(part) == spelled
            for each in exists
            for part in (*self.tree.within(each, cst.Name), *self.tree.within(each, cst.Attribute))
        )

    def _hook(self, call: cst.Call) -> Hook | None:
        """The hook, run by several ranks, in which the call runs."""
        hooks = self.hooks.around(call)
        if any(hook.name in ONCE_PER_NODE for hook in hooks) or not hooks or self.facts.world.lightning is Ranks.ONE:
            return None
        return min(hooks, key=lambda hook: hook.name)

    def _is_script(self, write: Write) -> bool:
        """Whether a write may be one of a plain script's; of what a Fabric launches any is."""
        return write.name == "torch.save" or FABRIC in self.facts.world.called

    def _is_launched(self, call: cst.Call) -> bool:
        """Whether the processes of a Fabric all write."""
        return self.facts.world.lightning is not Ranks.ONE and self.facts.fabrics.per_rank(call)

    def _is_raw(self, write: Write, call: cst.Call) -> bool:
        """Whether a plain script saves on every rank; sharded checkpoints are saved by all of them together."""
        if write.name != "torch.save" or self.facts.world.raw is not Ranks.MANY:
            return False
        called = self.facts.world.called
        sharded = called & FULLY_SHARDED or any(name.startswith(tuple(_SHARDED)) for name in called)
        return not sharded and (self.facts.processes.per_rank(call) or self._is_rehearsed_by_all(call))

    def _is_rehearsed_by_all(self, call: cst.Call) -> bool:
        """Whether each rank of a process group that is there comes to a write, whoever calls its function."""
        found = self.happened(call, Written)
        ranks = {
            path.rank
            for _, path, each in found
            if any(e.time < each.time and e.by in _JOINING for e in path.of(GroupStarted))
        }
        return ranks == {0, 1}

    def _repair(self, call: cst.Call, write: Write) -> Repair | None:
        if write.what is What.DIRECTORY:
            draft = insert_argument(self.code, call, "exist_ok=True") if write.name != "os.mkdir" else None
            return Repair("let the directory exist", draft)
        guarded = on_rank_zero(self.facts, call, write)
        if guarded is None:
            return None
        applicability = Applicability.SAFE if guarded.is_safe else Applicability.UNSAFE
        return Repair("write on rank zero only", guarded.draft, applicability)


def _is_apart(event: Written) -> bool:
    """Whether a write goes to memory or under a name of the rank's own, or is left out where the file is there."""
    in_memory = isinstance(event.path, Instance) and event.path.kind == "file"
    named = event.path is not None and "rank" in event.path.traits
    left_out = bool(event.where.turns) and event.where.depends_on("there")
    return in_memory or named or left_out or may_be_alone(event.where)


def _plain(condition: tuple[cst.BaseExpression, bool]) -> tuple[cst.BaseExpression, bool]:
    """A condition without its `not`."""
    test, outcome = condition
    while isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        test, outcome = test.expression, not outcome
    return test, outcome
