"""What one training step does, through the helpers it calls: backward passes, updates, gradients set to zero."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from types import MethodType
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.tree import Loop
from lightlint.facts.objects.optimizers import is_library_optimizer
from lightlint.facts.values.origins import Origin

if TYPE_CHECKING:
    from lightlint.facts.linked import Linked

Wanted = Callable[[cst.Call], bool]
Overrides = Mapping[cst.FunctionDef, cst.FunctionDef]
_DEPTH = 4
# out of sight, but by their names nothing that clears gradients although it is given the optimizer
_HARMLESS = re.compile(r"sched|warmup|save|load|checkpoint|resume|print|log|unscale|^lr|_lr", re.IGNORECASE)
_UPDATING = re.compile(r"step|update|optimi[sz]e(?!rs?$)|train(?!ing$|able$)|fit(?!ness)", re.IGNORECASE)
_OF_MODULES = {
    "clip_gradients",
    "toggle_optimizer",
    "untoggle_optimizer",
}  # Lightning's, which leave gradients in place


class Steps:
    """Training steps of one file."""

    def __init__(self, facts: Linked) -> None:
        self._facts = facts
        self._tree = facts.tree
        self._names = facts.names
        self._known: dict[Wanted, dict[int, bool]] = {}
        self._ran: dict[Wanted, dict[int, list[cst.Call]]] = {}
        self._called: dict[int, dict[int, cst.FunctionDef]] = {}
        self._callees: dict[int, list[tuple[cst.Call, cst.FunctionDef]]] = {}
        self._speaking: dict[Callable[[str], bool], set[int]] = {}

    def callee(self, call: cst.Call) -> cst.FunctionDef | None:
        """As `instances.callee`."""
        return self._facts.instances.callee(call)

    @property
    def calls_of(self) -> dict[cst.FunctionDef, tuple[cst.Call, ...]]:
        """As `instances.calls_of`."""
        return self._facts.instances.calls_of

    def runs(self, body: cst.CSTNode, wanted: Wanted) -> list[cst.Call]:
        """The calls in a body, not in functions nested in it, that are, or through helpers lead to, a wanted call."""
        if not isinstance(wanted, MethodType):
            return self._running(body, wanted)
        ran = self._ran.setdefault(wanted, {})
        if id(body) not in ran:
            ran[id(body)] = self._running(body, wanted)
        return [*ran[id(body)]]

    def _running(self, body: cst.CSTNode, wanted: Wanted) -> list[cst.Call]:
        inside = self._inside(wanted)
        known: dict[int, bool] = {}  # of helpers

        def leads(call: cst.Call) -> bool:
            if wanted(call) or (callee := self.callee(call)) is None:
                return wanted(call)
            if id(callee) not in known:
                known[id(callee)] = self._comes_to(callee, wanted, inside)
            return known[id(callee)]

        return [call for call in self._tree.own(body, cst.Call) if leads(call)]

    def leads(self, call: cst.Call, wanted: Wanted) -> bool:
        """Whether a call is, or through helpers of this file leads to, a wanted one; each helper is looked into once."""
        if wanted(call):
            return True
        callee = self.callee(call)
        return callee is not None and self._comes_to(callee, wanted, self._inside(wanted))

    def _inside(self, wanted: Wanted) -> dict[int, bool]:
        """Which helpers, by `id`, are known to have a wanted call in them or none; kept for a method, by its object."""
        return self._known.setdefault(wanted, {}) if isinstance(wanted, MethodType) else {}

    def _comes_to(self, helper: cst.FunctionDef, wanted: Wanted, inside: dict[int, bool]) -> bool:
        latest, seen = {id(helper): helper}, set[int]()
        for _ in range(_DEPTH):
            for key, each in latest.items():
                if key not in inside:
                    inside[key] = any(map(wanted, self._tree.own(each.body, cst.Call)))
                if inside[key]:
                    return True
            seen.update(latest)
            further = {key: inner for each in latest.values() for key, inner in self._helpers(each).items()}
            latest = {key: each for key, each in further.items() if key not in seen}
        return False

    def _helpers(self, function: cst.FunctionDef) -> dict[int, cst.FunctionDef]:
        """The functions of this file that a function calls, by `id`."""
        if id(function) not in self._called:
            callees = map(self.callee, self._tree.own(function.body, cst.Call))
            self._called[id(function)] = {id(each): each for each in callees if each is not None}
        return self._called[id(function)]

    def bodies(self, body: cst.CSTNode, overrides: Overrides | None = None) -> list[cst.CSTNode]:
        """A body and those of the functions of this file it calls, directly or not, as a class runs it that overrides some."""
        found, seen = [body], {id(body)}
        for each in found:
            for call, helper in self._calling(each):
                callee = overrides.get(helper, helper) if overrides and not self._is_of_super(call) else helper
                if id(callee.body) not in seen:
                    seen.add(id(callee.body))
                    found.append(callee.body)
        return found

    def _calling(self, body: cst.CSTNode) -> list[tuple[cst.Call, cst.FunctionDef]]:
        """The calls in a body of functions of this file."""
        if id(body) not in self._callees:
            calls = self._tree.within(body, cst.Call)
            self._callees[id(body)] = [(each, callee) for each in calls if (callee := self.callee(each)) is not None]
        return self._callees[id(body)]

    def speaks(self, body: cst.CSTNode, wanted: Callable[[str], bool]) -> bool:
        """Whether a name in a body, or in one of a function of this file it calls, directly or not, is a wanted word.

        Each function of the file is read once for all that ask for the same words.
        """
        if self._holds(body, wanted):
            return True
        if wanted not in self._speaking:
            self._speaking[wanted] = self._leading_to(lambda each: self._holds(each.body, wanted))
        return any(id(callee) in self._speaking[wanted] for _, callee in self._calling(body))

    def _holds(self, body: cst.CSTNode, wanted: Callable[[str], bool]) -> bool:
        return any(map(wanted, {name.value for name in self._tree.within(body, cst.Name)}))

    def _leading_to(self, wanted: Callable[[cst.FunctionDef], bool]) -> set[int]:
        """The functions of this file, by `id`, that are wanted or call a wanted one, directly or not."""
        callers: dict[int, list[cst.FunctionDef]] = defaultdict(list)
        functions = self._tree.all(cst.FunctionDef)
        for each in functions:
            for _, callee in self._calling(each.body):
                callers[id(callee)].append(each)
        pending = [each for each in functions if wanted(each)]
        found = set(map(id, pending))
        for each in pending:
            further = [caller for caller in callers[id(each)] if id(caller) not in found]
            found.update(map(id, further))
            pending += further
        return found

    def _is_of_super(self, call: cst.Call) -> bool:
        receiver = call.func.value if isinstance(call.func, cst.Attribute) else None
        return self._names.call(receiver) == "builtins.super"

    def overrides(self, node: cst.ClassDef, base: cst.ClassDef) -> dict[cst.FunctionDef, cst.FunctionDef]:
        """The methods of a class above that an object of another class does not have, with those it has in their place."""
        found = {
            each: self._facts.classes.method(node, name) for name, each in self._facts.classes.methods(base).items()
        }
        return {old: new for old, new in found.items() if new is not None and new is not old}

    def repeated(self, node: cst.CSTNode, wanted: Wanted, depth: int = 0) -> Iterator[tuple[Loop, cst.CSTNode]]:
        """The innermost loops that repeat both a node and a wanted call, with the node, or the call it runs in, in each.

        Loops around the calls of its function count; a loop that is always left before it comes to the wanted call
        again does not.
        """
        owner = self._tree.owner(node)
        for loop in self._tree.loops(node):
            others = self.runs(loop.body, wanted)
            if others:
                if self._facts.flow(owner).reaches_in_later_iteration(loop, node, others):
                    yield loop, node
                return
        if depth < _DEPTH and isinstance(owner, cst.FunctionDef):
            for call in self.calls_of.get(owner, ()):
                yield from self.repeated(call, wanted, depth + 1)

    def around(self, node: cst.CSTNode, depth: int = 0) -> Iterator[Loop]:
        """The loops that repeat a node, in its function or around the calls of that."""
        yield from self._tree.loops(node)
        function = self._tree.function(node)
        for call in self.calls_of.get(function, ()) if function is not None and depth < _DEPTH else ():
            yield from self.around(call, depth + 1)

    def comes_in(self, loop: Loop, node: cst.CSTNode, depth: int = 0) -> bool:
        """Whether a loop repeats a node, around a call of its function or around what makes an object of its class, too."""
        if self._tree.contains(loop, node):
            return True
        function = self._tree.function(node)
        if function is None or depth > _DEPTH:
            return False
        calls = (*self.calls_of.get(function, ()), *self._facts.hooks.constructions.get(function, ()))
        return any(self.comes_in(loop, each, depth + 1) for each in calls)

    def updates(self, loop: Loop) -> bool:
        """Whether an iteration may change the weights, by a call that steps, updates or optimizes something; errs to yes."""
        return bool(self.runs(loop.body, lambda call: bool(_UPDATING.search(self._names.method(call)))))

    def stepped(self, call: cst.Call) -> cst.BaseExpression | None:
        """What a call steps, whatever it is: `opt.step()` or `scaler.step(opt)`, without a closure; else None."""
        if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "step":
            return None
        if len(call.args) > 1 or (call.args and not self._facts.values.is_scaler(call.func.value)):
            return None
        return call.args[0].value if call.args else call.func.value

    def optimizer(self, call: cst.Call) -> cst.BaseExpression | None:
        """The optimizer of torch or another library that a call steps, None for what is not surely one."""
        stepped = self.stepped(call)
        origins = self._facts.values.origins(stepped)
        known = origins and all(map(self._is_library_class, origins))
        return stepped if known and self._facts.values.is_optimizer(stepped) else None

    def _is_library_class(self, origin: Origin) -> bool:
        """Whether no code of the project makes an optimizer, which might clear its gradients when it steps."""
        return origin.name.startswith("torch.optim.") or is_library_optimizer(origin.name)

    def _is_scaled(self, call: cst.Call) -> bool:
        return isinstance(call.func, cst.Attribute) and self._facts.values.is_scaler(call.func.value)

    def _is_same(self, one: cst.BaseExpression, other: cst.BaseExpression) -> bool:
        """Whether two expressions may be one optimizer: spelled alike in one function, or made by one call."""
        key = self._names.key(one)
        if not key:
            return False
        if key == self._names.key(other) and self._see_alike(one, other):
            return True
        made = {origin.call for origin in self._facts.values.origins(other)} - {None}
        return any(origin.call in made for origin in self._facts.values.origins(one))

    def _see_alike(self, one: cst.BaseExpression, other: cst.BaseExpression) -> bool:
        """Whether one spelling means one thing in two places: in one function, or behind `self` in one class."""
        if self._tree.owner(one) is self._tree.owner(other):
            return True
        node = self._facts.classes.self_class(one.value) if isinstance(one, cst.Attribute) else None
        return (
            node is not None
            and isinstance(other, cst.Attribute)
            and node is self._facts.classes.self_class(other.value)
        )


def _given(call: cst.Call) -> list[cst.BaseExpression]:
    """The arguments of a call, those in list, tuple and dict displays by themselves."""
    found: list[cst.BaseExpression] = []
    for arg in call.args:
        if isinstance(arg.value, (cst.List, cst.Tuple, cst.Dict)):
            found.extend(each.value for each in arg.value.elements)
        else:
            found.append(arg.value)
    return found
