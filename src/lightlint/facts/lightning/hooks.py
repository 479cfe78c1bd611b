"""Which functions the framework calls, and which helpers it reaches through them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import cast

import libcst as cst

from lightlint.facts.code.bindings import Kind
from lightlint.facts.code.names import Names
from lightlint.facts.code.tree import Tree
from lightlint.facts.objects.classes import CALLBACK, DATA_MODULE, MODULE, Classes
from lightlint.facts.values.calls import given


class Owner(StrEnum):
    """Whose hook it is."""

    MODULE = "LightningModule"
    DATA_MODULE = "LightningDataModule"
    CALLBACK = "Callback"


TRAINING_STEP = "training_step"
STEPS = {"training_step", "validation_step", "test_step", "predict_step"}
LOADERS = {"train_dataloader", "val_dataloader", "test_dataloader", "predict_dataloader"}
ONCE_PER_NODE = {"prepare_data"}  # called on one rank of each node only: LightningDataModule.prepare_data
_NOT_ASKED = object()
_EVERYWHERE = {"setup", "teardown", "state_dict", "load_state_dict"}
_OF_MODULES = {"configure_optimizers", "configure_model", "configure_sharded_model", "configure_callbacks", "forward"}
_OF_MODULES |= {"backward", "optimizer_step", "optimizer_zero_grad", "lr_scheduler_step", "configure_gradient_clipping"}
_STEP_ENDS = {"training_step_end", "validation_step_end", "test_step_end"}  # before Lightning 2.0
EPOCH_ENDS = {"training_epoch_end", "validation_epoch_end", "test_epoch_end"}  # before Lightning 2.0, too
_HOOKS = {
    Owner.MODULE: _EVERYWHERE
    | {*STEPS, *LOADERS, *ONCE_PER_NODE, *_OF_MODULES, *_STEP_ENDS, *EPOCH_ENDS, "transfer_batch_to_device"},
    Owner.DATA_MODULE: _EVERYWHERE | {*LOADERS, *ONCE_PER_NODE, "transfer_batch_to_device"},
    Owner.CALLBACK: _EVERYWHERE,
}


@dataclass(frozen=True, slots=True)
class Hook:
    """A hook by owner and name."""

    owner: Owner
    name: str

    @property
    def per_batch(self) -> bool:
        """Whether the framework calls it once a batch."""
        return self.name in STEPS | _STEP_ENDS or "_batch_" in self.name or self.name in {
            "on_before_backward", "on_after_backward", "on_before_zero_grad", "on_before_optimizer_step",
            "optimizer_step", "backward", "optimizer_zero_grad", "configure_gradient_clipping",
        }  # fmt: skip


def is_hook(owner: Owner | None, name: str) -> bool:
    """Whether a method of a class of this kind is called by Lightning."""
    return owner is not None and (name.startswith("on_") or name in _HOOKS[owner])


class Hooks:
    """Hooks of the classes of one file and what they call in it."""

    def __init__(self, tree: Tree, names: Names, classes: Classes) -> None:
        self._tree = tree
        self._names = names
        self._classes = classes
        self._reached: dict[cst.FunctionDef, frozenset[Hook]] = {}
        self._owners: dict[int, Owner | None] = {}
        self._callees: dict[int, object] = {}  # by `id`, which costs less than libcst's hash of a node

    def owner(self, node: cst.ClassDef | None) -> Owner | None:
        """Whether a class is a LightningModule, a data module or a callback."""
        if id(node) not in self._owners:
            bases = ((MODULE, Owner.MODULE), (DATA_MODULE, Owner.DATA_MODULE), (CALLBACK, Owner.CALLBACK))
            self._owners[id(node)] = next((owner for base, owner in bases if self._classes.is_a(node, base)), None)
        return self._owners[id(node)]

    def role(self, node: cst.ClassDef | None) -> Owner | None:
        """As `owner`; for a plain class, a mixin, what a class of this file that derives from it is."""
        heirs = () if node is None else self.subclasses.get(node, ())
        return self.owner(node) or next((owner for each in heirs if (owner := self.owner(each))), None)

    def of(self, function: cst.FunctionDef) -> Hook | None:
        """The hook that a method is, None for any other function."""
        name = function.name.value
        if not (name.startswith("on_") or name in _HOOKS[Owner.MODULE]):
            return None
        owner = self.role(self._tree.class_of(function))
        return Hook(owner, name) if owner and is_hook(owner, name) else None

    @cached_property
    def callers(self) -> dict[cst.FunctionDef, tuple[tuple[cst.FunctionDef, cst.Call], ...]]:
        """The functions of this file that call a function of it, with the call."""
        table: dict[cst.FunctionDef, list[tuple[cst.FunctionDef, cst.Call]]] = defaultdict(list)
        for call in self._tree.all(cst.Call):
            caller = self._tree.function(call)
            if caller is not None:
                for callee in self.callees(call):
                    table[callee].append((caller, call))
        return {function: tuple(calls) for function, calls in table.items()}

    @cached_property
    def calls_of(self) -> dict[cst.FunctionDef, tuple[cst.Call, ...]]:
        """Every call of a function of this file, from functions and from the module's own code."""
        table: dict[cst.FunctionDef, list[cst.Call]] = defaultdict(list)
        for call in self._tree.all(cst.Call):
            for callee in self.callees(call):
                table[callee].append(call)
        return {function: tuple(calls) for function, calls in table.items()}

    @cached_property
    def constructions(self) -> dict[cst.FunctionDef, tuple[cst.Call, ...]]:
        """The calls that make an instance of a class of this file, by the `__init__` they run."""
        table: dict[cst.FunctionDef, list[cst.Call]] = defaultdict(list)
        for call in self._tree.all(cst.Call):
            node = self._classes.local(self._names.call(call))
            method = self._classes.method(node, "__init__") if node is not None else None
            if method is not None:
                table[method].append(call)
        return {function: tuple(calls) for function, calls in table.items()}

    def given(self, function: cst.FunctionDef, call: cst.Call, parameter: str) -> cst.BaseExpression | None:
        """The expression a call of a function of this file gives for one of its parameters; None for its default."""
        return given(self._names, self._classes, function, call, parameter)

    def callee(self, call: cst.Call) -> cst.FunctionDef | None:
        """The function of this file that a call calls: by name, or a method through `self`, `cls`, `super()` or its class.

        Of a method that subclasses override it is the one that the class around the call sees; see `callees`.
        """
        known = self._callees.get(id(call), _NOT_ASKED)
        if known is _NOT_ASKED:
            known = self._callees[id(call)] = self._callee(call)
        return cast("cst.FunctionDef | None", known)

    def _callee(self, call: cst.Call) -> cst.FunctionDef | None:
        func = call.func
        if isinstance(func, cst.Name):
            found = self._names.bindings.lookup(func)
            only = found[0].site if len(found) == 1 and found[0].kind is Kind.FUNCTION else None
            return only if isinstance(only, cst.FunctionDef) else None
        if not isinstance(func, cst.Attribute):
            return None
        node = self._classes.self_class(func.value) or self._classes.local(self._names.of(func.value))
        if node is not None:
            return self._classes.method(node, func.attr.value)
        if isinstance(func.value, cst.Call) and self._names.call(func.value) == "builtins.super":
            node = self._tree.enclosing_class(call)
            return self._classes.inherited(node, func.attr.value) if node is not None else None
        return None

    def callees(self, call: cst.Call) -> tuple[cst.FunctionDef, ...]:
        """The functions of this file that a call can call: `callee`, and for a call through `self` what overrides it."""
        callee = self.callee(call)
        node = self._classes.self_class(call.func.value) if isinstance(call.func, cst.Attribute) else None
        found = [] if callee is None else [callee]
        if node is not None and isinstance(call.func, cst.Attribute):
            name = call.func.attr.value
            tables = [self._classes.methods(each) for each in self.subclasses.get(node, ())]
            found += [methods[name] for methods in tables if name in methods]
        return tuple(found)

    @cached_property
    def subclasses(self) -> dict[cst.ClassDef, list[cst.ClassDef]]:
        """The classes of this file below each of its classes."""
        table: dict[cst.ClassDef, list[cst.ClassDef]] = defaultdict(list)
        for node in self._tree.all(cst.ClassDef):
            for above in filter(None, map(self._classes.local, self._classes.ancestors(node))):
                table[above].append(node)
        return table

    def reached(self, function: cst.FunctionDef | None) -> frozenset[Hook]:
        """The hooks through which the framework gets to a function: its own, its callers', those it is nested in."""
        if function is None:
            return frozenset()
        if function not in self._reached:
            for each in self._callers_first(function):
                self._reached[each] = self._reached_anew(each)
        return self._reached[function]

    def _reached_anew(self, function: cst.FunctionDef) -> frozenset[Hook]:
        found = [function]
        seen = {id(function)}
        known: set[Hook] = set()
        for each in found:
            if each in self._reached:  # all ways to it have been gone
                known |= self._reached[each]
                continue
            new = {id(one): one for one in self._above(each) if id(one) not in seen}
            seen |= new.keys()
            found.extend(new.values())
        return frozenset(filter(None, map(self.of, found))) | known

    def _callers_first(self, function: cst.FunctionDef) -> Iterator[cst.FunctionDef]:
        """A function behind those through which it is reached, as far as they do not call in a circle."""
        stack, begun = [(function, iter(self._above(function)))], {id(function)}
        while stack:
            each, left = stack[-1]
            above = next((one for one in left if id(one) not in begun and one not in self._reached), None)
            if above is None:
                stack.pop()
                yield each
            else:
                begun.add(id(above))
                stack.append((above, iter(self._above(above))))

    def _above(self, function: cst.FunctionDef) -> list[cst.FunctionDef]:
        """The functions of this file that call a function, and the one that it is nested in."""
        outer = self._tree.function(function)
        return [caller for caller, _ in self.callers.get(function, ())] + ([outer] if outer is not None else [])

    def around(self, node: cst.CSTNode) -> frozenset[Hook]:
        """The hooks in which a node runs."""
        return self.reached(self._tree.function(node))

    def reachable(self, function: cst.FunctionDef) -> list[cst.FunctionDef]:
        """A function and the functions of this file that it calls, directly or not."""
        found = [function]
        for each in found:
            for call in self._tree.within(each, cst.Call):
                found.extend(callee for callee in self.callees(call) if callee not in found)
        return found
