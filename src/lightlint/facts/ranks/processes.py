"""What runs in the process of each rank, and which values may differ there."""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path

import libcst as cst

from lightlint.facts.code.bindings import Binding, Kind
from lightlint.facts.code.names import Names
from lightlint.facts.code.tree import Tree
from lightlint.facts.lightning.hooks import Hooks
from lightlint.facts.objects.classes import Classes
from lightlint.facts.project.project import Project
from lightlint.facts.values.values import Values

PROCESS_GROUP = "torch.distributed.init_process_group"
DATA_PARALLEL = "torch.nn.parallel.DistributedDataParallel"
FULLY_SHARDED = {
    "torch.distributed.fsdp.FullyShardedDataParallel",
    "torch.distributed.fsdp.fully_shard",
    "torch.distributed._composable.fsdp.fully_shard",
}
# what makes a rank of the place of a host among the hosts: each has one process and disks of its own, as on SageMaker
HOST_RANK = re.compile(r"\bhosts\.index\(")
# spelling that may mean a share of the ranks' work, or one process: enough to stay silent on, never enough to report
_SHARE = re.compile(r"rank|world|shard|replica|split_by|num_proc|process_(?:id|index|count)|is_(?:main|master)", re.I)
_OUTPUT = re.compile(
    r"(?:print|info|debug|warn|warning|error|critical|log|log_\w+|rank_zero_\w+|manual_seed|seed\w*|super)$"
)
_SAME_ON_ALL = {"trainer", "pl_module", "stage", "batch_idx", "dataloader_idx", "checkpoint"}  # parameters of hooks
_DEPTH = 5

Owner = cst.FunctionDef | cst.Module


class Processes:
    """The code of one file that every rank runs in its own process."""

    def __init__(
        self, tree: Tree, names: Names, classes: Classes, hooks: Hooks, values: Values, project: Project, path: Path
    ) -> None:
        self._tree = tree
        self._names = names
        self._classes = classes
        self._hooks = hooks
        self._values = values
        self._project = project
        self._path = path

    @cached_property
    def wraps(self) -> bool:
        """Whether this file makes a model data parallel with DDP or FSDP."""
        return any(self._names.call(call) in {DATA_PARALLEL, *FULLY_SHARDED} for call in self._tree.all(cst.Call))

    def per_rank(self, node: cst.CSTNode) -> bool:
        """Whether plain PyTorch code surely runs on every rank, tests aside: its function, one that calls it, or
        another method of its class sets up a process group or wraps a model for several ranks."""
        return self._runs_per_rank(self._tree.owner(node), frozenset())

    def _runs_per_rank(self, owner: Owner, seen: frozenset[Owner]) -> bool:
        if owner in self._starters:
            return True
        if owner in seen or isinstance(owner, cst.Module):
            return False
        seen |= {owner}
        above = self._tree.class_of(owner)
        if above is not None and any(each in self._starters for each in self._classes.methods(above).values()):
            return True
        calls = self._hooks.calls_of.get(owner, ())
        return bool(calls) and all(self._runs_per_rank(self._tree.owner(call), seen) for call in calls)

    @cached_property
    def _starters(self) -> frozenset[Owner]:
        """The functions, and the module, that start or join a process group, directly or through what they call."""
        starts = {PROCESS_GROUP, DATA_PARALLEL, *FULLY_SHARDED}
        found: set[Owner] = {
            self._tree.owner(call) for call in self._tree.all(cst.Call) if self._names.call(call) in starts
        }
        pending = [each for each in found if isinstance(each, cst.FunctionDef)]
        while pending:
            for call in self._calls_of(pending.pop()):
                caller = self._tree.owner(call)
                if caller not in found:
                    found.add(caller)
                    if isinstance(caller, cst.FunctionDef):
                        pending.append(caller)
        return frozenset(found)

    def _calls_of(self, function: cst.FunctionDef) -> list[cst.Call]:
        return [*self._hooks.calls_of.get(function, ()), *self._hooks.constructions.get(function, ())]

    def may_be_share(self, expression: cst.CSTNode) -> bool:
        """Whether a value may be one rank's share of data: by a name in it, or in what it is made from, in the project's files
        that define the classes and functions it comes from, too. Errs towards yes."""
        if any(self._has_word(each, _SHARE) for each in self.made_from(expression)):
            return True
        names = {
            self._names.call(call) for part in self.made_from(expression) for call in self._tree.within(part, cst.Call)
        }
        own = f"{self._names.module}."  # what this file defines was followed already
        texts = [
            self._project.text_defining(name, self._path.parent) for name in names if name and not name.startswith(own)
        ]
        return any(_SHARE.search(text) for text in texts)

    def is_in_sight(self, data: cst.BaseExpression) -> bool:
        """Whether all that makes a value is known: no parameter that a caller elsewhere gives, spawned ones aside."""
        for part in self.made_from(data):
            above = self._tree.enclosing_class(part)
            if isinstance(part, cst.Attribute):
                own = above is not None and self._classes.is_self(part.value)
                if above is None or not own or not self._classes.attribute_values(above, part.attr.value):
                    return False
            if isinstance(part, cst.Name) and any(map(self._is_from_outside, self._names.bindings.lookup(part))):
                return False
        return True

    def _is_from_outside(self, binding: Binding) -> bool:
        function = binding.scope
        if binding.kind is not Kind.PARAMETER or not isinstance(function, cst.FunctionDef):
            return False
        called = self._hooks.calls_of.get(function) or self._hooks.constructions.get(function)
        return not called and not self.is_spawned(function)

    def may_share_in(self, node: cst.ClassDef, call: cst.Call) -> bool:
        """Whether a class may give each rank its share of what a call in it gets: a word for that in the methods that make
        data, other than to print, to log or to set a seed."""
        methods = self._classes.methods(node)
        entry = self._tree.function(call)
        making = [methods[name] for name in ("__init__", "prepare_data", "setup") if name in methods]
        making += [entry] if entry is not None else []
        functions = dict.fromkeys(each for function in making for each in self._hooks.reachable(function))
        words = [word for each in functions for word in self._tree.within(each.body, cst.Name, cst.SimpleString)]
        return any(_SHARE.search(word.value) and not self._is_output(word) for word in words)

    def _is_output(self, word: cst.CSTNode) -> bool:
        """Whether a word only says what is printed, logged or seeded, or on which rank."""
        statement = self._tree.statement(word)
        if isinstance(statement, cst.If) and statement.orelse is None:
            lines = statement.body.body
            inner = [small for line in lines if isinstance(line, cst.SimpleStatementLine) for small in line.body]
            return len(inner) >= len(lines) and all(map(self._prints, inner))
        return statement is not None and self._prints(statement)

    def _prints(self, statement: cst.CSTNode) -> bool:
        return isinstance(statement, cst.Expr) and bool(_OUTPUT.match(self._names.method(statement.value)))

    def is_spawned(self, function: cst.FunctionDef) -> bool:
        """Whether `torch.multiprocessing.spawn` starts a function, with the same arguments in every process."""
        spawns = [call for call in self._tree.all(cst.Call) if self._names.call(call) == "torch.multiprocessing.spawn"]
        targets = [self._names.argument(call, "fn", 0) for call in spawns]
        name = self._names.defined(function)
        return any(target is not None and self._names.of(target.value) == name for target in targets)

    def follows_data(self, expression: cst.CSTNode) -> bool:
        """Whether a value comes from what a hook was given besides the trainer, the module and an index: each rank has
        its own batch and outputs."""
        for source in self.made_from(expression):
            for name in self._tree.within(source, cst.Name):
                for binding in self._names.bindings.lookup(name):
                    function = binding.scope
                    if binding.kind is Kind.PARAMETER and isinstance(function, cst.FunctionDef):
                        given = self._hooks.of(function) is not None
                        if given and name.value not in _SAME_ON_ALL and not self._classes.is_self(name):
                            return True
        return False

    def made_from(self, expression: cst.CSTNode) -> list[cst.CSTNode]:
        """An expression and what its parts are made from, through names, attributes, parameters and calls."""
        found = [expression]
        pending = [expression]
        for _ in range(_DEPTH):
            sources = [source for each in pending for source in self._sources(each)]
            pending = [each for each in dict.fromkeys(sources) if each not in found]
            found.extend(pending)
        return found

    def _has_word(self, expression: cst.CSTNode, words: re.Pattern[str]) -> bool:
        return any(words.search(each.value) for each in self._tree.within(expression, cst.Name, cst.SimpleString))

    def _sources(self, expression: cst.CSTNode) -> list[cst.CSTNode]:
        """What the parts of an expression are made from; the bodies of functions and classes are not followed."""
        if isinstance(expression, (cst.FunctionDef, cst.ClassDef)):
            return []
        found: list[cst.CSTNode] = []
        for name in self._tree.within(expression, cst.Name):
            if self._names.is_word(name):
                continue
            for binding in self._names.bindings.lookup(name):
                if binding.kind is Kind.PARAMETER and isinstance(binding.scope, cst.FunctionDef):
                    calls = self._hooks.calls_of.get(binding.scope, ())
                    given = [self._values.given(binding.scope, call, binding.name) for call in calls]
                    found.extend(each for each in given if each is not None)
                elif binding.kind in {Kind.FUNCTION, Kind.CLASS}:
                    found.append(binding.site)
                elif binding.value is not None:
                    found.append(binding.value)
        for attribute in self._tree.within(expression, cst.Attribute):
            above = self._tree.enclosing_class(attribute)
            if above is not None and self._classes.is_self(attribute.value):
                found.extend(self._classes.attribute_values(above, attribute.attr.value))
                method = self._classes.methods(above).get(attribute.attr.value)
                found.extend([method] if method is not None else [])
        return found
