"""The one fact "runs on a subset of the ranks", used by every distributed rule."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property

import libcst as cst

from lightlint.facts.code.bindings import Binding, Kind, dotted_name, unpacked
from lightlint.facts.code.names import UNKNOWN, Names
from lightlint.facts.code.tree import Tree
from lightlint.facts.lightning.hooks import Hooks
from lightlint.facts.objects.decorations import decorations
from lightlint.facts.objects.instances import Instances
from lightlint.facts.ranks.comparisons import mirrored, outcomes

Conditions = Callable[[cst.CSTNode], list[tuple[cst.BaseExpression, bool]]]
Counts = Callable[[cst.BaseExpression, bool], bool]

_RANK_CALLS = {"torch.distributed.get_rank", "torch.distributed.get_node_local_rank"}
_RANK_ATTRIBUTES = {
    "global_rank",
    "local_rank",
    "is_global_zero",
    "is_main_process",
    "is_local_main_process",
    "process_index",
}
_RANK_VARIABLES = {"RANK", "LOCAL_RANK", "SLURM_PROCID", "SLURM_LOCALID", "OMPI_COMM_WORLD_RANK", "GLOBAL_RANK"}
# functions of a project's own that are imported from out of sight, by the names everybody gives them
_RANK_FUNCTIONS = {
    "get_rank",
    "get_local_rank",
    "get_global_rank",
    "is_main_process",
    "is_master_process",
    "is_rank_zero",
}
# arguments that say where something lies: what is computed on `cuda:{rank}` is no less the same on every rank
_PLACES = {"device", "device_ids", "output_device", "map_location"}
_PLACING = {"to", "cuda", "device", "set_device"}
_SPAWN = {"torch.multiprocessing.spawn", "torch.multiprocessing.start_processes"}
_ZERO_ONLY = (
    "rank_zero_only",
    "rank_zero_info",
    "rank_zero_experiment",
    "on_main_process",
    "master_only",
    "main_process_only",
)
# spelling that may mean a rank: enough to stay silent on, never enough to report
MAYBE_RANK = re.compile(
    r"(?:^|_)(?:rank|ranks|proc_id|procid)(?:$|_|[0-9])|(?:is|on)_(?:global_zero|main|master|primary|chief|leader|root|rank)"
    r"|^(?:gpu|device|local|node)_?(?:id|idx|index|num)$|^gpu$"
    r"|^(?:master|primary|chief|leader)$"
    r"|(?:main|master)_?(?:proc|process)|world_process_zero|process_index|rank_?zero|is_dist_avail"
    r"|(?-i:(?:^|_)(?:is|on)(?:Main|Master|Primary|Chief|Leader|Root)(?![a-z])|(?<=[a-z])Ranks?(?![a-z]))",
    re.IGNORECASE,
)


class Guards:
    """Rank tests of one file and what they guard."""

    def __init__(self, tree: Tree, names: Names, hooks: Hooks, instances: Instances, conditions: Conditions) -> None:
        self._tree = tree
        self._names = names
        self._hooks = hooks
        self._instances = instances
        self._conditions = conditions
        self._guarded: dict[tuple[int, Counts | None, int], bool] = {}

    def is_rank(self, expression: cst.CSTNode, depth: int = 0) -> bool:
        """Whether an expression surely is a rank, or a flag that is true on one rank only."""
        match expression:
            case cst.Call():
                name = self._names.of(expression.func)
                if name in _RANK_CALLS:
                    return True
                if name == "builtins.int" and expression.args:
                    return self.is_rank(expression.args[0].value, depth)
                if self._is_variable(expression) or self._names.method(expression) == "is_global_zero":
                    return True
                callee = self._instances.callee(expression)
                if callee is not None:
                    return depth < 4 and self._gives_rank(callee, depth + 1)
                return not expression.args and bool(name) and str(name).rpartition(".")[2] in _RANK_FUNCTIONS
            case cst.Attribute():
                full = self._names.of(expression) or ""
                known = expression.attr.value in _RANK_ATTRIBUTES or full.endswith("rank_zero_only.rank")
                if known or (depth < 4 and self._holds_rank(dotted_name(expression), depth + 1)):
                    return True
                read = self._instances.read(expression) if depth < 4 else None
                return read is not None and self._gives_rank(read, depth + 1)
            case cst.Subscript():
                return self._is_variable(expression) or self._is_entry(expression)
            case cst.Name() if depth < 4:
                found = self._names.bindings.lookup(expression)
                if len(found) == 1 and found[0].kind is Kind.PARAMETER:
                    return self._takes_rank(found[0], depth + 1)
                values = [each.value for each in found if each.kind is Kind.ASSIGN and not each.path]
                return (
                    bool(values)
                    and len(values) == len(found)
                    and all(
                        value is not None and (self.is_rank(value, depth + 1) or self.is_test(value, depth + 1))
                        for value in values
                    )
                )
        return False

    def _gives_rank(self, function: cst.FunctionDef, depth: int) -> bool:
        """Whether a function surely returns a rank or a test for one, constants for runs of one process aside."""
        returns = self._tree.own(function.body, cst.Return)
        return self._are_ranks([each.value for each in returns], depth)

    def _are_ranks(self, values: list[cst.BaseExpression | None], depth: int) -> bool:
        """Whether of some values all that are no constant are ranks or tests for one, and there is one of those."""
        known = [each for each in values if each is not None and self._names.constant(each) is UNKNOWN]
        return bool(known) and all(self.is_rank(each, depth) or self.is_test(each, depth) for each in known)

    def _holds_rank(self, attribute: str, depth: int) -> bool:
        """Whether an attribute, `args.rank` or `self.rank`, joins the process group, or is assigned nothing but ranks."""
        if attribute in self._joined:
            return True
        return attribute in self._assigned and self._are_ranks(self._assigned[attribute], depth)

    @cached_property
    def _assigned(self) -> dict[str, list[cst.BaseExpression | None]]:
        """What this file assigns to each attribute, by its spelling."""
        table: dict[str, list[cst.BaseExpression | None]] = {}
        for assign in self._tree.all(cst.Assign):
            for each in assign.targets:
                for target, value, path in unpacked(each.target, assign.value):
                    if isinstance(target, cst.Attribute):
                        table.setdefault(dotted_name(target), []).append(value if not path else target)
        return table

    def _takes_rank(self, binding: Binding, depth: int) -> bool:
        """Whether a parameter is a rank: `spawn` gives it first, or the function joins the process group with it."""
        function = binding.scope
        if not isinstance(function, cst.FunctionDef):
            return False
        first = function.params.params[:1]
        if first and first[0].name.value == binding.name and self._names.defined(function) in self._spawned:
            return True
        if any(each == binding.name and owner is function for each, owner in self._joined.items()):
            return True
        calls = (*self._hooks.calls_of.get(function, ()), *self._hooks.constructions.get(function, ()))
        values = [self._hooks.given(function, call, binding.name) for call in calls]
        return bool(values) and depth < 4 and all(each is not None and self.is_rank(each, depth) for each in values)

    @cached_property
    def _joined(self) -> dict[str, cst.CSTNode]:
        """What `init_process_group` is given as the rank, with the function that calls it."""
        calls = [c for c in self._tree.all(cst.Call) if self._names.call(c) == "torch.distributed.init_process_group"]
        given = [(call, self._names.argument(call, "rank", 4)) for call in calls]
        spelled = {dotted_name(arg.value): self._tree.owner(call) for call, arg in given if arg is not None}
        return {name: owner for name, owner in spelled.items() if name}

    @cached_property
    def _spawned(self) -> frozenset[str]:
        """The functions of this file that `torch.multiprocessing.spawn` starts with their index."""
        calls = [call for call in self._tree.all(cst.Call) if self._names.call(call) in _SPAWN]
        targets = [self._names.argument(call, "fn", 0) for call in calls]
        return frozenset(name for each in targets if each is not None and (name := self._names.of(each.value)))

    def _is_variable(self, expression: cst.Call | cst.Subscript) -> bool:
        """`os.environ["RANK"]`, `os.environ.get("LOCAL_RANK", 0)`, `os.getenv("RANK")`."""
        if isinstance(expression, cst.Subscript):
            index = expression.slice[0].slice
            key = self._names.constant(index.value) if isinstance(index, cst.Index) else UNKNOWN
            return self._names.of(expression.value) == "os.environ" and isinstance(key, str) and key in _RANK_VARIABLES
        name = self._names.of(expression.func)
        key = self._names.constant(expression.args[0].value) if expression.args else UNKNOWN
        return name in {"os.environ.get", "os.getenv"} and isinstance(key, str) and key in _RANK_VARIABLES

    def _is_entry(self, expression: cst.Subscript) -> bool:
        """`config["local_rank"]`."""
        index = expression.slice[0].slice
        key = self._names.constant(index.value) if isinstance(index, cst.Index) else UNKNOWN
        return isinstance(key, str) and key in _RANK_ATTRIBUTES

    def is_test(self, expression: cst.CSTNode, depth: int = 0) -> bool:
        """Whether an expression surely differs between ranks because it compares or is a rank."""
        match expression:
            case cst.Comparison():
                sides = [expression.left, *(each.comparator for each in expression.comparisons)]
                against_none = any(dotted_name(side) == "None" for side in sides)
                if against_none or self._is_same_on_all(expression):
                    return False
                return any(self.is_rank(side, depth) for side in sides)
            case cst.UnaryOperation(operator=cst.Not()):
                return self.is_test(expression.expression, depth)
            case cst.BooleanOperation():
                return self.is_test(expression.left, depth) or self.is_test(expression.right, depth)
        return self.is_rank(expression, depth)

    def _is_same_on_all(self, comparison: cst.Comparison) -> bool:
        """Whether a rank is compared with a number that tells no rank from another: `rank != -1` asks for a launcher."""
        if len(comparison.comparisons) != 1:
            return False
        only = comparison.comparisons[0]
        value, compared = self._names.constant(only.comparator), only.operator
        if value is UNKNOWN:
            value, compared = self._names.constant(comparison.left), mirrored(compared)
        return len(outcomes(compared, value)) == 1

    def may_be_test(self, expression: cst.BaseExpression) -> bool:
        """Whether an expression looks as if it asked for a rank: by fact or by any name in it, or bound to it.

        A rank that only says on which device a value is computed does not count; one that decides whether a name of the
        expression is set does.
        """
        if self.is_test(expression) or self._is_set_by_rank(expression):
            return True
        pending, seen = [expression], {expression}
        for _ in range(3):
            names = [name for each in pending for name in self._tree.within(each, cst.Name)]
            if any(MAYBE_RANK.search(name.value) and not self._is_place(name) for name in names):
                return True
            bound = [binding for name in names for binding in self._names.bindings.lookup(name)]
            values = [value for each in bound for value in (each.value, *self._answers(each))]
            held = [dotted_name(each) for part in pending for each in self._tree.within(part, cst.Attribute)]
            values += [value for each in held for value in self._assigned.get(each, ())]
            pending = [each for each in dict.fromkeys(values) if each is not None and each not in seen]
            seen.update(pending)
        return False

    def _answers(self, binding: Binding) -> list[cst.BaseExpression | None]:
        """What a function of this file gives back, for one that asks: `def is_main(): return rank == 0`."""
        if not isinstance(binding.site, cst.FunctionDef) or binding.kind is not Kind.FUNCTION:
            return []
        return [each.value for each in self._tree.own(binding.site.body, cst.Return)]

    def _is_place(self, name: cst.Name) -> bool:
        """Whether a name stands in an argument that says on which device: `.cuda(rank)`, `device_ids=[rank]`."""
        for above in self._tree.ancestors(name):
            if isinstance(above, cst.Arg):
                keyword = above.keyword.value if above.keyword is not None else ""
                return keyword in _PLACES or self._names.method(self._tree.parent(above)) in _PLACING
        return False

    def _is_set_by_rank(self, expression: cst.BaseExpression) -> bool:
        """Whether a test that looks like one for a rank decides whether a name of an expression is set."""
        names = self._tree.within(expression, cst.Name)
        sites = [each.site for name in names for each in self._names.bindings.lookup(name) if each.kind is Kind.ASSIGN]
        tests = {test for site in dict.fromkeys(sites) for test, _ in self._conditions(site)}
        words = [word for test in tests for word in self._tree.within(test, cst.Name)]
        return any(MAYBE_RANK.search(word.value) for word in words)

    def tests(self, node: cst.CSTNode) -> list[tuple[cst.BaseExpression, bool]]:
        """The sure rank tests that decide whether a node runs, with the outcome it needs, inside its function."""
        return [(test, outcome) for test, outcome in self._conditions(node) if self.is_test(test)]

    def guarded(self, node: cst.CSTNode, counts: Counts | None = None, depth: int = 0) -> bool:
        """Whether a node may run on a subset of the ranks only.

        Counts rank tests and early exits around it, `rank_zero_only` on the functions around it, and the same at every
        call of a helper. Errs towards yes: what merely looks like a rank test counts, or what `counts` says of a test
        and the outcome it needs.
        """
        if any(counts(*each) if counts else self.may_be_test(each[0]) for each in self._conditions(node)):
            return True
        function = self._tree.function(node)
        if function is None:
            return False
        key = (id(function), counts, depth)
        if key not in self._guarded:
            self._guarded[key] = self._runs_guarded(function, counts, depth)
        return self._guarded[key]

    def _runs_guarded(self, function: cst.FunctionDef, counts: Counts | None, depth: int) -> bool:
        """Whether a function may run on a subset of the ranks only, by what stands around it and around its calls."""
        if self.zero_only(function) or self.guarded(function, counts, depth):
            return True
        calls = (*self._hooks.calls_of.get(function, ()), *self._instances.calls_of.get(function, ()))
        return (
            bool(calls)
            and depth < 4
            and not self._hooks.of(function)
            and all(self.guarded(c, counts, depth + 1) for c in calls)
        )

    def zero_only(self, function: cst.FunctionDef) -> bool:
        """Whether a decorator lets a function run on rank zero only."""
        for decorator in decorations(self._tree, function):
            target = decorator.func if isinstance(decorator, cst.Call) else decorator
            last = dotted_name(target).rpartition(".")[2]
            if last in _ZERO_ONLY or MAYBE_RANK.search(last):
                return True
        return False
