from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, OptimizerMade
from lightlint.explore.queries import identity, in_sight
from lightlint.facts.bindings import dotted_name
from lightlint.facts.classes import NN_MODULE
from lightlint.facts.file import FileFacts
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from collections.abc import Hashable

    from lightlint.explore.rehearsals import Entry


_OFF = {"torch.no_grad", "torch.inference_mode"}
_ON = {"enable_grad", "set_grad_enabled", "is_grad_enabled", "grad", "requires_grad", "requires_grad_"}
# what asks a module for nothing that a gradient could come from
_PLAIN = {"parameters", "named_parameters", "train", "eval", "to", "cuda", "state_dict", "load_state_dict", "device"}


class TrainedModuleWithoutGrad(Check):
    def visit_Call(self, call: cst.Call) -> None:
        params = self.names.argument(call, "params", 0)
        if params is None or (self.names.call(call) or "").rpartition(".")[0] != "torch.optim":
            return
        for given in self._given(params.value):
            module = given.func.value if isinstance(given.func, cst.Attribute) else None
            if isinstance(module, (cst.Name, cst.Attribute)) and (name := self._without_grad(module)):
                self.report(given, f"`{name}.forward` runs without gradients: these parameters are never updated")

    def _given(self, params: cst.BaseExpression) -> list[cst.Call]:
        """The `module.parameters()` that stand in what an optimizer is given, by names too."""
        names = [each for each in self.tree.within(params, cst.Name) if not self.names.is_word(each)]
        sources = [params, *(source for each in names for source in self.facts.reaching.sources(each))]
        calls = [each for source in dict.fromkeys(sources) for each in self.tree.within(source, cst.Call)]
        return [each for each in dict.fromkeys(calls) if self.names.method(each) == "parameters" and not each.args]

    def _without_grad(self, module: cst.Name | cst.Attribute) -> str:
        """The class of a module that surely runs without autograd wherever it runs; empty for any other."""
        origin = self.values.constructor(module)
        if origin is None or origin.name.startswith("torch.") or self._is_frozen():
            return ""
        last = self.names.key(module).rpartition(".")[2]
        asked = {each.attr.value for each in self.tree.all(cst.Attribute) if dotted_name(each.value).endswith(last)}
        found = self.facts.of_class(origin.name)
        if found is None or not asked <= _PLAIN or self.hooks.subclasses.get(found[1]):
            return ""
        return found[1].name.value if _runs_without_grad(*found) else ""

    def _is_frozen(self) -> bool:
        """Whether the file may freeze parameters, which an optimizer may hold none the less."""
        return any(each.attr.value in {"requires_grad", "requires_grad_"} for each in self.tree.all(cst.Attribute))

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Parameters that an optimizer steps and no pass of any path reaches, used only while gradients are off."""
        reached = {identity(each) for event in entry.of(Backward) for each in (*event.parameters, *event.perhaps)}
        if not entry.turned or not all(path.finished for path in entry.paths) or not reached:
            return
        message = "a group of parameters is used without gradients alone: nothing updates it"
        for event in entry.of(OptimizerMade):
            optimizer = event.optimizer
            if optimizer.steps and in_sight([optimizer]) and any(_is_lost(each, reached) for each in optimizer.groups):
                yield Fault.at(event, message)


def _is_lost(group: list[Tensor], reached: set[Hashable]) -> bool:
    """Whether a group was used while gradients were off and no backward pass gets to it."""
    plain = all(each.requires_grad and not each.gradient_touched and in_sight([each]) for each in group)
    return any(each.blind for each in group) and plain and not any(identity(each) in reached for each in group)


def _runs_without_grad(facts: FileFacts, node: cst.ClassDef) -> bool:
    """Whether a class of modules has a `forward` without autograd, and no other way to its parameters."""
    methods = facts.classes.methods(node)
    forward = methods.get("forward")
    if facts.classes.base_names(node) != (NN_MODULE,) or forward is None or set(methods) - {"__init__", "forward"}:
        return False
    words = {each.value for each in facts.tree.within(node, cst.Name)}
    if words & _ON or _holds_given_module(facts, node):
        return False
    return _is_decorated(facts, forward) or _is_enclosed(facts, forward)


def _holds_given_module(facts: FileFacts, node: cst.ClassDef) -> bool:
    """Whether a class calls what it was given to keep, which may be trained by itself."""
    assigns = [each for each in facts.tree.within(node, cst.Assign) if isinstance(each.value, cst.Name)]
    kept = {dotted_name(each.targets[0].target) for each in assigns}
    called = {dotted_name(each.func) for each in facts.tree.within(node, cst.Call)}
    return any(each == name or each.startswith(f"{name}.") for each in called for name in kept if name)


def _is_decorated(facts: FileFacts, forward: cst.FunctionDef) -> bool:
    return any(_switches(facts, each.decorator) for each in forward.decorators)


def _is_enclosed(facts: FileFacts, forward: cst.FunctionDef) -> bool:
    """Whether a method does all in one `with torch.no_grad():`, but for docstring and return."""
    statements = [each for each in forward.body.body if isinstance(each, cst.BaseStatement)]
    blocks = [each for each in statements if isinstance(each, cst.With)]
    outside = [each for each in statements if not isinstance(each, cst.With)]
    off = len(blocks) == 1 and any(_switches(facts, each.item) for each in blocks[0].items)
    return off and not any(facts.tree.within(each, cst.Call) for each in outside)


def _switches(facts: FileFacts, value: cst.BaseExpression) -> bool:
    name = facts.names.call(value) if isinstance(value, cst.Call) else facts.names.of(value)
    return name in _OFF and not (isinstance(value, cst.Call) and value.args)
