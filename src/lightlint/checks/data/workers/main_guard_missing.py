from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from lightlint.check import Check
from lightlint.facts.data.workers import Method, Starter
from lightlint.facts.project.mentions import runs_where_processes_spawn
from lightlint.facts.ranks.world import FABRIC, TRAINER
from lightlint.finding import Tier

_LAUNCHES = {"fit", "validate", "test", "predict", "launch"}
_NO_SCRIPTS = re.compile(r"(?:__init__|__main__|conftest|setup|test_\w*|\w*_test)\.py")
_ASKS_FOR_MAIN = {"__name__", "__main__", "parent_process", "current_process"}


class MainGuardMissing(Check):
    def visit_Module(self, module: cst.Module) -> None:
        """One finding a file, since one guard cures all: at the first line that surely fails, else at the first."""
        source = self.facts.source
        if source.is_notebook or _NO_SCRIPTS.fullmatch(self.facts.path.name) or source.is_in_cells:
            return
        found = list(self._starts_at_top(module))
        sure = [each for each in found if each[1].pickles]
        for node, method in (sure or found)[:1]:
            how = (
                f"`{method}` imports" if method.pickles else "spawn and forkserver (macOS, Windows, Python 3.14) import"
            )
            message = f"nothing keeps the processes started here from running this line again: {how} the file in each"
            self.report(node, message, tier=self._tier(method))

    def _tier(self, method: Method) -> Tier:
        if method.pickles:
            return Tier.ERROR
        spawns = runs_where_processes_spawn(self.facts.project, self.facts.source)
        return Tier.WARNING if spawns else Tier.NOTE

    def _starts_at_top(self, module: cst.Module) -> Iterator[tuple[cst.CSTNode, Method]]:
        """What the module's own code starts, itself or in functions it calls, outside of a guard."""
        for node in self.tree.own(module, cst.Call, cst.For):
            if self._is_guarded(node) or self._is_switched_off(node):
                continue
            callee = self.hooks.callee(node) if isinstance(node, cst.Call) else None
            inside = [
                each
                for function in (self.hooks.reachable(callee) if callee is not None else [])
                for each in self.tree.own(function, cst.Call, cst.For)
                if not self._is_guarded(each)
            ]
            methods = [method for each in (node, *inside) for method in self._starts(each)]
            if methods:
                place = node.iter if isinstance(node, cst.For) else node
                yield place, next((each for each in methods if each.pickles), methods[0])

    def _is_switched_off(self, node: cst.CSTNode) -> bool:
        """Whether a constant of the file keeps a node from running."""
        tests = self.facts.conditions(node)
        return any(self.names.constant(test) is (not wanted) for test, wanted in tests) or self.facts.is_dead(node)

    def _starts(self, node: cst.Call | cst.For) -> Iterator[Method]:
        """The start methods by which a node starts processes that import the main module, or may."""
        if isinstance(node, cst.For):
            yield from self._loader(self.values.iterated(node.iter))
            return
        if self.names.call(node) in {"builtins.iter", "builtins.list", "builtins.enumerate"} and node.args:
            yield from self._loader(node.args[0].value)
            return
        starter = self.facts.workers.starter(node)
        method = self.names.method(node)
        receiver = node.func.value if isinstance(node.func, cst.Attribute) else None
        if starter in {Starter.SPAWN, Starter.POOL} or (starter is Starter.EXECUTOR and self._is_given_work(node)):
            yield from _imports(self.facts.workers.method(node))
        elif method == "start" and receiver is not None:
            made_all = self.facts.workers.all_made(receiver)
            if all(self.facts.workers.starter(each) is Starter.PROCESS for each in made_all):
                for process in made_all:
                    yield from _imports(self.facts.workers.method(process))
        elif method in _LAUNCHES and receiver is not None:
            made = self.facts.workers.made(receiver)
            if made is not None and self.names.call(made) in {TRAINER, FABRIC}:
                strategy = self.names.argument(made, "strategy")
                value = self.names.constant(strategy.value) if strategy else None
                if isinstance(value, str) and value.startswith("ddp_spawn"):
                    yield Method.SPAWN
                for arg in node.args:
                    yield from self._loader(arg.value)

    def _is_given_work(self, executor: cst.Call) -> bool:
        """Whether an executor, which starts no process before that, gets a task where it is made."""
        owner = self.tree.owner(executor)
        return any(
            self.names.method(each) in {"submit", "map"}
            and isinstance(each.func, cst.Attribute)
            and self.facts.workers.made(each.func.value) is executor
            for each in self.tree.own(owner, cst.Call)
        )

    def _loader(self, expression: cst.BaseExpression | cst.CSTNode) -> Iterator[Method]:
        for origin in self.values.origins(expression):
            if origin.call is None or self.facts.workers.starter(origin.call) is not Starter.LOADER:
                continue
            count = self.facts.datasets.workers(origin.call)
            if isinstance(count, int) and count > 0:
                yield from _imports(self.facts.workers.method(origin.call))

    def _is_guarded(self, node: cst.CSTNode) -> bool:
        """Whether a test that asks for the main process, in any spelling, decides whether a node runs."""
        for test, _ in self.facts.conditions(node):
            words = {name.value for name in self.tree.within(test, cst.Name)}
            words |= {str(text.evaluated_value) for text in self.tree.within(test, cst.SimpleString)}
            if words & _ASKS_FOR_MAIN:
                return True
        return False


def _imports(method: Method) -> Iterator[Method]:
    if method.pickles or method is Method.PLATFORM:
        yield method
