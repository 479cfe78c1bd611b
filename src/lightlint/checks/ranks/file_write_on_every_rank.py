from __future__ import annotations

import re

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.hooks import ONCE_PER_NODE, Hook, Owner
from lightlint.facts.processes import FULLY_SHARDED
from lightlint.facts.world import Ranks
from lightlint.facts.writes import What, Write
from lightlint.finding import Applicability, Tier
from lightlint.fixes.edits import insert_argument, wrap_statements

_ONE_RANK = re.compile(
    r"world_size|num_(?:devices|nodes|gpus|processes)|n_gpus?|fast_dev_run|distributed|is_initialized"
)
_SHARDED = {"torch.distributed.checkpoint", "deepspeed", "accelerate", "megatron"}
_REDUCING = {"callback_metrics", "logged_metrics", "progress_bar_metrics", "log_dir", "compute", "all_gather"}
_PURE = {"write", "writelines", "writerow", "writerows", "join", "format", "item", "cpu", "detach", "tolist", "numpy"}
_PURE |= {"isoformat", "items", "keys", "values", "strip", "mean", "sum"}
_PURE_CALLS = {"json.dump", "json.dumps", "yaml.dump", "pickle.dump", "csv.writer", "csv.DictWriter", "os.path.join"}
_PURE_CALLS |= {"pathlib.Path", "datetime.datetime.now", "time.time"}
_PURE_BUILTINS = {"str", "int", "float", "len", "round", "repr", "sorted", "list", "dict", "tuple", "print", "range"}
_RUNS = {
    "wandb.init",
    *(f"mlflow.{name}" for name in ("start_run", "log_metric", "log_metrics", "log_param", "log_params")),
}


class FileWriteOnEveryRank(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if self.names.call(call) in _RUNS:
            self._judge_run(call)
            return
        write = self.facts.writes.of(call)
        if write is None or self._is_chosen(call):
            return
        hook = self._hook(call)
        if hook is None and not self._is_raw(write, call):
            return
        processes = self.facts.processes
        if processes.may_differ(write.path) or processes.follows_data(write.path) or self._is_skipped(call, write):
            return
        where = f" in `{hook.name}`" if hook is not None else ""
        done = "makes one directory" if write.what is What.DIRECTORY else "writes one file"
        tier = Tier.NOTE if hook is not None and self.facts.world.is_untold else None
        self.report(call, f"`{write.name}` {done} from every rank{where}", repair=self._repair(call, write), tier=tier)

    def _judge_run(self, call: cst.Call) -> None:
        """`wandb.init`, or the first use of mlflow, in a hook or in the script that makes a Trainer, which each rank runs from the top."""
        given = {arg.keyword.value for arg in call.args if arg.keyword is not None}
        if given & {"group", "mode"} or self.names.has_star(call) or self._is_chosen(call):
            return
        name = self.names.call(call) or ""
        others = [c for c in self.tree.all(cst.Call) if self.names.call(c) in _RUNS and not self.guards.guarded(c)]
        if any(self.tree.order(each) < self.tree.order(call) for each in others):
            return
        world = self.facts.world
        scripted = [each for each in self.tree.all(cst.Call) if self.names.call(each) == "lightning.Trainer"]
        if world.lightning is Ranks.MANY and not world.is_copied and (scripted or self._hook(call)):
            self.report(call, f"`{name}` starts a run on every rank")

    def _is_chosen(self, call: cst.Call) -> bool:
        """Whether a test around the call may let one rank only get to it, or is about a single process."""
        if self.guards.guarded(call) or self._is_alone(call):
            return True
        tests = [test for test, _ in self.facts.conditions(call)]
        return any(_ONE_RANK.search(name.value) for test in tests for name in self.tree.within(test, cst.Name))

    def _is_alone(self, call: cst.Call) -> bool:
        """Whether a test lets the call run only where another outcome of it, here or elsewhere, starts the group."""
        starts = [c for c in self.tree.all(cst.Call) if self.names.call(c) == "torch.distributed.init_process_group"]
        joined = {
            (self.names.key(test), outcome)
            for start in starts
            for test, outcome in map(_plain, self.facts.conditions(start))
        }
        mine = {(self.names.key(test), outcome) for test, outcome in map(_plain, self.facts.conditions(call))}
        return any(key and (key, not outcome) in joined for key, outcome in mine)

    def _is_skipped(self, call: cst.Call, write: Write) -> bool:
        """Whether a loop leaves out what is there already: processes that share the files out among themselves."""
        loops = self.tree.loops(call)
        tests = [t for t, _ in self.facts.conditions(call) if loops and self.tree.contains(loops[0].body, t)]
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
        if self.facts.world.lightning is Ranks.ONE or any(hook.name in ONCE_PER_NODE for hook in hooks):
            return None
        return min(hooks, key=lambda hook: hook.name, default=None)

    def _is_raw(self, write: Write, call: cst.Call) -> bool:
        """Whether a plain script saves on every rank; sharded checkpoints are saved by all of them together."""
        if write.name != "torch.save" or self.facts.world.raw is not Ranks.MANY:
            return False
        called = self.facts.world.called
        sharded = called & FULLY_SHARDED or any(name.startswith(tuple(_SHARDED)) for name in called)
        return not sharded and self.facts.processes.per_rank(call)

    def _repair(self, call: cst.Call, write: Write) -> Repair | None:
        if write.what is What.DIRECTORY:
            draft = insert_argument(self.code, call, "exist_ok=True") if write.name != "os.mkdir" else None
            return Repair("let the directory exist", draft)
        statement = self._whole_statement(call)
        test = self._zero_test(call)
        if statement is None or test is None or self._reads(statement, _REDUCING):
            return None
        in_hook = "get_rank" not in test
        pure = in_hook and self._is_pure(statement, call) and not self._is_needed(statement, write)
        draft = wrap_statements(self.code, [statement], f"if {test}:")
        return Repair("write on rank zero only", draft, Applicability.SAFE if pure else Applicability.UNSAFE)

    def _whole_statement(self, call: cst.Call) -> cst.SimpleStatementLine | cst.With | None:
        """The statement that does nothing but the write: the call alone, or the `with` that opens the file."""
        parent = self.tree.parent(call)
        above = self.tree.parent(parent) if parent is not None else None
        if isinstance(parent, cst.WithItem) and isinstance(above, cst.With) and len(above.items) == 1:
            return above
        alone = isinstance(parent, cst.Expr) and isinstance(above, cst.SimpleStatementLine) and len(above.body) == 1
        return above if alone and isinstance(above, cst.SimpleStatementLine) else None

    def _zero_test(self, call: cst.Call) -> str | None:
        """What is true on rank zero only, as code at this place can ask for it."""
        function = self.tree.function(call)
        above = self.tree.class_of(function) if function is not None else None
        if function is not None and above is not None:
            hook = self.hooks.of(function)
            parameters = [each.name.value for each in function.params.params]
            owner = self.hooks.owner(above)
            if owner is Owner.CALLBACK and hook is not None and len(parameters) > 1:
                return f"{parameters[1]}.is_global_zero"
            if owner in {Owner.MODULE, Owner.DATA_MODULE} and parameters:
                return f"{parameters[0]}.trainer.is_global_zero"
            if owner is not None:
                return None
        for binding in (b for found in self.facts.bindings.by_scope[self.tree.module].values() for b in found):
            if binding.dotted == "torch.distributed":
                return f"{binding.name}.get_rank() == 0"
        return None

    def _reads(self, statement: cst.CSTNode, words: set[str]) -> bool:
        return any(name.value in words for name in self.tree.within(statement, cst.Name))

    def _is_pure(self, statement: cst.CSTNode, write: cst.Call) -> bool:
        """Whether a statement does nothing but write: no name bound for later, no call that others may wait for."""
        binds = [*self.tree.within(statement, cst.Assign, cst.AugAssign), *self.tree.within(statement, cst.NamedExpr)]
        if binds:
            return False
        return all(each is write or self._is_pure_call(each) for each in self.tree.within(statement, cst.Call))

    def _is_needed(self, statement: cst.CSTNode, write: Write) -> bool:
        """Whether other ranks may miss the write: the file is named again behind it, or holds what each rank has of a batch."""
        function = self.tree.function(statement)
        if function is None or function.name.value == "setup" or self.facts.processes.follows_data(statement):
            return True
        spelled = self.code.text_of(write.path)
        behind = [
            each
            for each in self.tree.within(function, type(write.path))
            if self.tree.order(each) > self.tree.order(statement) and not self.tree.contains(statement, each)
        ]
        return any(self.code.text_of(each) == spelled for each in behind)

    def _is_pure_call(self, call: cst.Call) -> bool:
        name = self.names.call(call) or ""
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in _PURE:
            return True
        return name in _PURE_CALLS or name.removeprefix("builtins.") in _PURE_BUILTINS


def _plain(condition: tuple[cst.BaseExpression, bool]) -> tuple[cst.BaseExpression, bool]:
    """A condition without its `not`."""
    test, outcome = condition
    while isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        test, outcome = test.expression, not outcome
    return test, outcome
