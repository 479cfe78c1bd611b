from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.hooks import Hook

_COUNTED = {"builtins.range", "tqdm.trange", "tqdm.auto.trange", "tqdm.notebook.trange"}


class NextIterInLoop(Check):
    def visit_Call(self, call: cst.Call) -> None:
        inner = self._iterator(call)
        if inner is None or not inner.args:
            return
        loader, around = inner.args[0].value, self.tree.loops(call)
        through = around[0] if around and self._goes_through(around[0], loader) else None
        place = through if through is not None else self.loops.per_batch(call)
        if place is None or not self.values.is_loader(loader) or self._is_new(loader, place) or self._is_rare(call):
            return
        if through is None and not isinstance(place, Hook) and not self.facts.steps.updates(place):
            return  # a batch to look at, as for a plot of the gradients of several models
        self.report(
            call, f"each step starts `{self.code.text_of(loader)}` anew for one batch: no step gets the second one"
        )

    def _goes_through(self, loop: cst.For | cst.While, loader: cst.BaseExpression) -> bool:
        """Whether a loop has a step for each batch of a loader: it counts up to `len(loader)`, or draws from it itself."""
        exits = self.tree.own(loop.body, cst.Break, cst.Return)
        if not isinstance(loop, cst.For) or exits or not self.names.key(loader):
            return False
        source = self.values.iterated(loop.iter)
        drawn = self._measured(source) if isinstance(source, cst.Call) else [source]
        return [self.names.key(each) for each in drawn] == [self.names.key(loader)]

    def _measured(self, count: cst.Call) -> list[cst.BaseExpression]:
        """Of what `range(len(loader))` takes the length, also where the number has a name of its own."""
        up_to = count.args[0].value if self.names.call(count) in _COUNTED and len(count.args) == 1 else None
        sources = self.facts.reaching.sources(up_to) if up_to is not None else []
        lengths = [each for each in sources if isinstance(each, cst.Call) and self.names.call(each) == "builtins.len"]
        return [each.args[0].value for each in lengths if each.args] if len(lengths) == len(sources) else []

    def _iterator(self, call: cst.Call) -> cst.Call | None:
        """The `iter(...)` that a call takes one item of, made in the same iteration and used for nothing else."""
        match call:
            case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value="__next__"))):
                pass
            case cst.Call(args=[cst.Arg(value=inner), *_]) if self.names.call(call) == "builtins.next":
                pass
            case _:
                return None
        if isinstance(inner, cst.Name):
            found, loops = self.names.bindings.lookup(inner), self.tree.loops(call)
            only = found[0] if len(found) == 1 and not found[0].path else None
            if only is None or not loops or self.tree.loops(only.site) != loops:
                return None
            uses = [name for name in self.tree.within(self.tree.owner(call), cst.Name) if name.value == inner.value]
            if len(uses) != 2:
                return None
            return (
                only.value
                if self.names.call(only.value) == "builtins.iter" and isinstance(only.value, cst.Call)
                else None
            )
        return inner if isinstance(inner, cst.Call) and self.names.call(inner) == "builtins.iter" else None

    def _is_rare(self, call: cst.Call) -> bool:
        """Whether a test, or an exception (a new round after StopIteration), lets only some steps get to the call."""
        loops = self.tree.loops(call)
        tests = [test for test, _ in self.facts.conditions(call)]
        rescued = any(isinstance(above, cst.ExceptHandler) for above in self.tree.ancestors(call))
        return rescued or any(not loops or self.tree.contains(loops[0].body, test) for test in tests)

    def _is_new(self, loader: cst.BaseExpression, place: cst.CSTNode | Hook) -> bool:
        """Whether each step has a loader of its own: the loop binds its name, or makes it."""
        if isinstance(place, Hook):
            return isinstance(loader, cst.Call)
        made = [origin.call for origin in self.values.origins(loader) if origin.call is not None]
        names = self.tree.within(loader, cst.Name)
        bound = [binding.site for name in names for binding in self.names.bindings.lookup(name)]
        return any(self.tree.contains(place, site) for site in [*made, *bound])
