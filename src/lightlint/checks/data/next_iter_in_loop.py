from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.hooks import Hook
from lightlint.facts.tree import Loop

_COUNTED = {"builtins.range", "tqdm.trange", "tqdm.auto.trange", "tqdm.notebook.trange"}

_STARTING = {"builtins.iter", "builtins.enumerate"}
_DEPTH = 3


class NextIterInLoop(Check):
    def visit_Call(self, call: cst.Call) -> None:
        iterator = self._iterator(call)
        loader = self._started(iterator) if iterator is not None else None
        if loader is None:
            return
        around = self.tree.loops(call)
        through = around[0] if around and self._goes_through(around[0], loader) else None
        place = through if through is not None else self._place(call)
        if place is None or not self.values.is_loader(loader) or self._is_new(loader, place) or self._is_rare(call):
            return
        if through is None and not isinstance(place, Hook) and not self.facts.steps.updates(place):
            return  # a batch to look at, as for a plot of the gradients of several models
        self.report(
            call, f"each step starts `{self.code.text_of(loader)}` anew for one batch: no step gets the second one"
        )

    def _place(self, call: cst.Call, depth: int = 0) -> Loop | Hook | None:
        """The batch loop or hook that a call runs in for every batch, through methods called on objects too."""
        found, function = self.loops.per_batch(call), self.tree.function(call)
        if found is not None or function is None or depth > _DEPTH or self.tree.loops(call) or self._is_rare(call):
            return found
        places = (self._place(each, depth + 1) for each in self.facts.steps.calls_of.get(function, ()))
        return next((each for each in places if each is not None), None)

    def _started(self, iterator: cst.Call) -> cst.BaseExpression | None:
        """The loader of `iter(loader)`, `enumerate(loader)` and `loader.__iter__()`."""
        if self.names.call(iterator) in _STARTING and iterator.args:
            inner = iterator.args[0].value
            return (self._started(inner) or inner) if isinstance(inner, cst.Call) else inner
        func = iterator.func
        return func.value if isinstance(func, cst.Attribute) and func.attr.value == "__iter__" else None

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
        """The iterator that a call takes one item of, made in the same iteration and used for nothing else."""
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
            return only.value if isinstance(only.value, cst.Call) else None
        return inner if isinstance(inner, cst.Call) else None

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
        names = [name for name in self.tree.within(loader, cst.Name) if not self.names.is_word(name)]
        bound = [binding.site for name in names for binding in self.names.bindings.lookup(name)]
        anew = isinstance(place, (cst.For, cst.While)) and any(self.facts.steps.comes_in(place, each) for each in made)
        return anew or any(self.tree.contains(place, site) for site in [*made, *bound])
