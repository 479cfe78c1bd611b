from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.bindings import Kind

_DEPTH = 3


class ForwardOutsideNoSync(Check):
    def visit_With(self, block: cst.With) -> None:
        for item in block.items:
            context = self._context(item.item)
            model = self._model(context) if context is not None else ""
            if context is None or not model:
                continue
            if not self.facts.steps.runs(block.body, self.loops.is_backward):
                self._judge_backward(block, item.item, model)
                continue
            inside = any(self._may_run(each, model) for each in self.tree.within(block.body, cst.Call))
            if not inside and (self._forwards(block, model) or self._ran_before_calls(block, model, 0)):
                self.report(
                    item.item, f"`{model}` ran forward before this: gradients are exchanged in each step all the same"
                )

    def _judge_backward(self, block: cst.With, context: cst.BaseExpression, model: str) -> None:
        """A forward pass inside whose backward pass stands behind the block, where every iteration comes to it."""
        owner, loops = self.tree.owner(block), self.tree.loops(block)
        runs = [each for each in self.tree.within(block.body, cst.Call) if self.names.key(each.func) == model]
        behind = [
            each
            for each in self.tree.own(owner, cst.Call)
            if self.loops.is_backward(each) and self.tree.loops(each)[:1] == loops[:1] and loops
        ]
        behind = [each for each in behind if self.facts.flow(owner).reaches_in_same_iteration(loops[0], block, [each])]
        if runs and behind and not self.facts.gradients.may_be_off(runs[0]):
            self.report(
                context,
                f"`{model}` ran forward here and backward outside: such gradients are never exchanged, and the ranks part",
            )

    def _context(self, value: cst.BaseExpression) -> cst.Call | None:
        """The call of `no_sync` that a context is, or is where it is chosen: `nullcontext() if last else model.no_sync()`."""
        if isinstance(value, cst.Call) and isinstance(value.func, cst.Name) and not value.args:
            value = value.func  # `context = model.no_sync if ... else nullcontext`, then `with context():`
        for source in self.facts.reaching.sources(value):
            if isinstance(source, cst.Call) and self._model(source):
                return source
            if isinstance(source, cst.Attribute) and source.attr.value == "no_sync":
                return cst.Call(func=source)
        return None

    def _model(self, call: cst.Call) -> str:
        """The model that `model.no_sync()`, `accelerator.no_sync(model)` or `fabric.no_backward_sync(model)` speaks of."""
        method = self.names.method(call)
        if method not in {"no_sync", "no_backward_sync"} or not isinstance(call.func, cst.Attribute):
            return ""
        if call.args:
            return self.names.key(call.args[0].value)
        return self.names.key(call.func.value) if method == "no_sync" else ""

    def _runs(self, call: cst.Call, model: str) -> bool:
        """Whether a call surely runs a model forward; one of `self`, or one that is given, may be run by another function."""
        if self.facts.gradients.may_be_off(call):
            return False
        if self.names.key(call.func) == model or self._hands_on(call, model, 0, {}):
            return True
        return model.startswith("self.") and self.facts.steps.leads(
            call, lambda each: self.names.key(each.func) == model
        )

    def _hands_on(self, call: cst.Call, model: str, depth: int, known: dict[tuple[object, ...], bool]) -> bool:
        """Whether a call gives a model to a function of this file that runs it forward, in its own way about syncing."""
        handed = [arg.value for arg in call.args if not arg.star and self.names.key(arg.value) == model]
        callee = self.facts.steps.callee(call) if handed and depth < _DEPTH else None
        if callee is None or any(self._context(each) is not None for each in self.tree.within(callee.body, cst.Call)):
            return False
        params = [*callee.params.posonly_params, *callee.params.params, *callee.params.kwonly_params]
        words = [each.name.value for each in params]
        taken = {each for each in words if self.hooks.given(callee, call, each) in handed}
        taken = {each for each in taken if len(self.names.bindings.lookup_in(each, callee)) == 1}
        key = (id(callee), frozenset(taken), depth)
        if key not in known:
            calls = [each for each in self.tree.own(callee.body, cst.Call) if not self.facts.gradients.may_be_off(each)]
            known[key] = any(
                self.names.key(each.func) in taken
                or any(self._hands_on(each, name, depth + 1, known) for name in taken)
                for each in calls
            )
        return known[key]

    def _may_run(self, call: cst.Call, model: str) -> bool:
        given = any(self.names.key(arg.value) == model for arg in call.args)
        helped = self.facts.steps.callee(call) is not None and not self.loops.is_backward(call)
        return self._runs(call, model) or given or helped

    def _forwards(self, node: cst.CSTNode, model: str) -> list[cst.Call]:
        """The calls in front of a node, in the same iteration, that run a model forward outside of any `no_sync()`."""
        calls = [each for each in self.tree.own(self.tree.owner(node), cst.Call) if self._comes_before(each, node)]
        return [each for each in calls if self._runs(each, model) and not self._is_held_back(each, model)]

    def _ran_before_calls(self, node: cst.CSTNode, model: str, depth: int) -> bool:
        """Whether a model ran forward before each call of the function around a node, on every way to it."""
        function = self.tree.function(node)
        calls = self.facts.steps.calls_of.get(function, ()) if function is not None and depth < _DEPTH else ()
        return bool(calls) and all(self._ran_before_call(function, each, model, depth) for each in calls)

    def _ran_before_call(self, function: cst.FunctionDef | None, call: cst.Call, model: str, depth: int) -> bool:
        named = self._name_outside(function, call, model) if function is not None else ""
        if not named or self._is_held_back(call, named):
            return False
        ran = self._forwards(call, named)
        flow = self.facts.flow(self.tree.owner(call))
        return flow.always_before(call, ran) if ran else self._ran_before_calls(call, named, depth + 1)

    def _name_outside(self, function: cst.FunctionDef, call: cst.Call, model: str) -> str:
        """What a function's model is called where a call of it stands; empty for one that the function makes itself."""
        first, dot, rest = model.partition(".")
        found = self.names.bindings.lookup_in(first, function)
        if len(found) != 1 or found[0].kind is not Kind.PARAMETER:
            return model if found and found[0].scope is self.tree.module else ""
        given = self.hooks.given(function, call, first)
        above, first_site = self.classes.class_of(function), function.params.params[:1]
        if given is None and above is not None and found[0].site in first_site and isinstance(call.func, cst.Attribute):
            given = call.func.value
        key = self.names.key(given)
        return f"{key}{dot}{rest}" if key else ""

    def _is_held_back(self, node: cst.CSTNode, model: str) -> bool:
        """Whether a node stands in a block that is, or may be, the model's `no_sync()`."""
        blocks = [each for each in self.tree.ancestors(node) if isinstance(each, cst.With)]
        contexts = [self._context(item.item) for block in blocks for item in block.items]
        return any(self._model(each) == model for each in contexts if each is not None)

    def _comes_before(self, call: cst.Call, node: cst.CSTNode) -> bool:
        """Whether a call stands in front of a node, or among what is given to it, in the same iteration."""
        ours, theirs = self.tree.loops(node), self.tree.loops(call)
        given = isinstance(node, cst.Call) and node is not call and self.tree.contains(node, call)
        return ours[:1] == theirs[:1] and (given or self.tree.order(call) < self.tree.order(node))
