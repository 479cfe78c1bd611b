"""What a loop really draws from: the loader inside of `enumerate`, `tqdm` and the like."""

from __future__ import annotations

import libcst as cst

from lightlint.facts.code.bindings import Binding, Kind
from lightlint.facts.code.names import Names
from lightlint.facts.code.reaching import Reaching
from lightlint.facts.code.tree import Tree
from lightlint.facts.lightning.hooks import Hooks
from lightlint.facts.objects.classes import Classes
from lightlint.facts.values.calls import given
from lightlint.facts.values.origins import DEPTH

# calls that hand on, item by item, what they are given first
_WRAPPERS = {f"builtins.{name}" for name in ("enumerate", "iter", "next", "list", "tuple")}
_WRAPPERS |= {
    "itertools.islice",
    "itertools.cycle",
    "tqdm",
    "tqdm.tqdm",
    "tqdm.tqdm_notebook",
    "tqdm.contrib.tenumerate",
}
_WRAPPERS |= {f"tqdm.{room}.tqdm" for room in ("auto", "autonotebook", "asyncio", "gui", "notebook", "rich", "std")}
_WRAPPERS |= {"rich.progress.track", "alive_progress.alive_it", "progressbar.progressbar"}
_WRAPPERS |= {"fastprogress.progress_bar", "fastprogress.fastprogress.progress_bar"}
_GIVEN = ("iterable", "sequence", "it")  # what the wrappers call it


class Iterables:
    """What the loops of one file go through."""

    def __init__(self, tree: Tree, names: Names, classes: Classes, hooks: Hooks, reaching: Reaching) -> None:
        self._tree = tree
        self._names = names
        self._classes = classes
        self._hooks = hooks
        self._reaching = reaching
        self._sources: dict[cst.FunctionDef, str] = {}

    def drawn(self, expression: cst.CSTNode, depth: int = 0) -> cst.CSTNode:
        """The innermost iterable whose items an expression hands on; the expression itself where it wraps none."""
        if depth > DEPTH:
            return expression
        match expression:
            case cst.Call():
                inner = self.wrapped(expression)
                return self.drawn(inner, depth + 1) if inner is not None else expression
            case cst.IfExp():
                return self._common(expression, [expression.body, expression.orelse], depth)
            case cst.Name():
                values = [self._bound(each) for each in self._reaching.bindings(expression)]
                known = [each for each in values if each is not None and not self.wraps_name(each, expression.value)]
                if len(known) == len(values) and any(map(self._is_wrapper, known)):
                    return self._common(expression, known, depth)
        return expression

    def wrapped(self, call: cst.Call) -> cst.BaseExpression | None:
        """The iterable whose items a call hands on, None for a call that is no wrapper."""
        if self._names.call(call) in _WRAPPERS:
            named = (self._names.argument(call, each) for each in _GIVEN)
            arg = next((each for each in (self._names.argument(call, "", 0), *named) if each is not None), None)
            return arg.value if arg is not None and not arg.star else None
        function = self._hooks.callee(call)
        source = self._handed_on(function) if function is not None else ""
        return given(self._names, self._classes, function, call, source) if function is not None and source else None

    def wraps_name(self, value: cst.CSTNode | None, name: str) -> bool:
        """Whether a value wraps what a name held before: `loader = tqdm(loader)`."""
        inner = self.wrapped(value) if isinstance(value, cst.Call) else None
        return (isinstance(inner, cst.Name) and inner.value == name) or (
            isinstance(inner, cst.Call) and self.wraps_name(inner, name)
        )

    def _is_wrapper(self, value: cst.BaseExpression) -> bool:
        sides = [value.body, value.orelse] if isinstance(value, cst.IfExp) else [value]
        return any(isinstance(each, cst.Call) and self.wrapped(each) is not None for each in sides)

    def _bound(self, binding: Binding) -> cst.BaseExpression | None:
        return binding.value if binding.kind in {Kind.ASSIGN, Kind.WITH} and not binding.path else None

    def _common(self, whole: cst.BaseExpression, values: list[cst.BaseExpression], depth: int) -> cst.CSTNode:
        """What all of some values draw from, where that is one thing: `tqdm(loader) if shown else loader`."""
        found = [self.drawn(each, depth + 1) for each in values]
        keys = {self._names.key(each) for each in found}
        return found[0] if found and (len(found) == 1 or (len(keys) == 1 and "" not in keys)) else whole

    def _handed_on(self, function: cst.FunctionDef) -> str:
        """The parameter whose items a function of this file hands on, each once and as it is; empty for any other function."""
        if function not in self._sources:
            self._sources[function] = ""  # of one that draws from itself
            drawn = (
                [self._yielded_from(function)] if self._tree.own(function.body, cst.Yield) else self._returned(function)
            )
            self._sources[function] = drawn[0] if len(set(drawn)) == 1 and not function.decorators else ""
        return self._sources[function]

    def _returned(self, function: cst.FunctionDef) -> list[str]:
        """What a function returns: `return tqdm(batches) if shown else batches`."""
        returns = self._tree.own(function.body, cst.Return) if function.asynchronous is None else []
        return [self._parameter(each.value, function) for each in returns]

    def _yielded_from(self, function: cst.FunctionDef) -> str:
        yields = self._tree.own(function.body, cst.Yield)
        loops = self._tree.loops(yields[0]) if len(yields) == 1 else []
        loop = loops[0] if len(loops) == 1 else None
        if not isinstance(loop, cst.For):
            return ""
        item = yields[0].value
        bound = self._names.bindings.lookup(item) if isinstance(item, cst.Name) else []
        drawn = len(bound) == 1 and self._tree.contains(loop.target, bound[0].site)
        return self._parameter(loop.iter, function) if drawn else ""

    def _parameter(self, value: cst.BaseExpression | None, function: cst.FunctionDef) -> str:
        """The parameter of a function that a value draws from."""
        source = self.drawn(value) if value is not None else None
        found = self._names.bindings.lookup(source) if isinstance(source, cst.Name) else []
        only = found[0] if len(found) == 1 and found[0].kind is Kind.PARAMETER else None
        return only.name if only is not None and only.scope is function else ""
