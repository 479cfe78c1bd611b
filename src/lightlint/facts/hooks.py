"""Which functions the framework calls, and which helpers it reaches through them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import libcst as cst

from lightlint.facts.bindings import Kind
from lightlint.facts.classes import CALLBACK, DATA_MODULE, MODULE, Classes
from lightlint.facts.names import Names
from lightlint.facts.tree import Tree


class Owner(StrEnum):
    """Whose hook it is."""

    MODULE = "LightningModule"
    DATA_MODULE = "LightningDataModule"
    CALLBACK = "Callback"


TRAINING_STEP = "training_step"
STEPS = {"training_step", "validation_step", "test_step", "predict_step"}
LOADERS = {"train_dataloader", "val_dataloader", "test_dataloader", "predict_dataloader"}
ONCE_PER_NODE = {"prepare_data"}  # called on one rank of each node only: LightningDataModule.prepare_data
_OTHERS = {"setup", "teardown", "configure_optimizers", "configure_model", "configure_callbacks", "forward"}
_OTHERS |= {"state_dict", "load_state_dict", "backward", "optimizer_step", "optimizer_zero_grad", "lr_scheduler_step"}
_OTHERS |= {"transfer_batch_to_device", "configure_gradient_clipping"}


@dataclass(frozen=True, slots=True)
class Hook:
    """A hook by owner and name."""

    owner: Owner
    name: str

    @property
    def per_batch(self) -> bool:
        """Whether the framework calls it once a batch."""
        return self.name in STEPS or "_batch_" in self.name or self.name in {
            "on_before_backward", "on_after_backward", "on_before_zero_grad", "on_before_optimizer_step",
            "optimizer_step", "backward", "optimizer_zero_grad", "configure_gradient_clipping",
        }  # fmt: skip


class Hooks:
    """Hooks of the classes of one file and what they call in it."""

    def __init__(self, tree: Tree, names: Names, classes: Classes) -> None:
        self._tree = tree
        self._names = names
        self._classes = classes
        self._reached: dict[cst.FunctionDef, frozenset[Hook]] = {}

    def owner(self, node: cst.ClassDef | None) -> Owner | None:
        """Whether a class is a LightningModule, a data module or a callback."""
        for base, owner in ((MODULE, Owner.MODULE), (DATA_MODULE, Owner.DATA_MODULE), (CALLBACK, Owner.CALLBACK)):
            if self._classes.is_a(node, base):
                return owner
        return None

    def of(self, function: cst.FunctionDef) -> Hook | None:
        """The hook that a method is, None for any other function."""
        name = function.name.value
        if not (name.startswith("on_") or name in STEPS | LOADERS | ONCE_PER_NODE | _OTHERS):
            return None
        owner = self.owner(self._tree.class_of(function))
        return Hook(owner, name) if owner else None

    @cached_property
    def callers(self) -> dict[cst.FunctionDef, tuple[tuple[cst.FunctionDef, cst.Call], ...]]:
        """The functions of this file that call a function of it, with the call."""
        table: dict[cst.FunctionDef, list[tuple[cst.FunctionDef, cst.Call]]] = defaultdict(list)
        for call in self._tree.all(cst.Call):
            caller = self._tree.function(call)
            callee = self.callee(call)
            if caller is not None and callee is not None:
                table[callee].append((caller, call))
        return {function: tuple(calls) for function, calls in table.items()}

    @cached_property
    def calls_of(self) -> dict[cst.FunctionDef, tuple[cst.Call, ...]]:
        """Every call of a function of this file, from functions and from the module's own code."""
        table: dict[cst.FunctionDef, list[cst.Call]] = defaultdict(list)
        for call in self._tree.all(cst.Call):
            callee = self.callee(call)
            if callee is not None:
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

    def callee(self, call: cst.Call) -> cst.FunctionDef | None:
        """The function of this file that a call calls: by name, or a method through `self`, `cls` or `super()`."""
        func = call.func
        if isinstance(func, cst.Name):
            found = self._names.bindings.lookup(func)
            only = found[0].site if len(found) == 1 and found[0].kind is Kind.FUNCTION else None
            return only if isinstance(only, cst.FunctionDef) else None
        if not isinstance(func, cst.Attribute):
            return None
        node = self._tree.enclosing_class(call)
        if node is None:
            return None
        if self._classes.is_self(func.value):
            return self._classes.method(node, func.attr.value)
        if isinstance(func.value, cst.Call) and self._names.call(func.value) == "builtins.super":
            locals_above = filter(None, map(self._classes.local, self._classes.ancestors(node)))
            return next(
                (m[func.attr.value] for m in map(self._classes.methods, locals_above) if func.attr.value in m), None
            )
        return None

    def reached(self, function: cst.FunctionDef | None) -> frozenset[Hook]:
        """The hooks through which the framework gets to a function: its own, its callers', those it is nested in."""
        if function is None:
            return frozenset()
        if function not in self._reached:
            self._reached[function] = frozenset()  # a cycle of calls adds nothing
            own = self.of(function)
            found = {own} if own else set()
            for caller, _ in self.callers.get(function, ()):
                found |= self.reached(caller)
            found |= self.reached(self._tree.function(function))
            self._reached[function] = frozenset(found)
        return self._reached[function]

    def around(self, node: cst.CSTNode) -> frozenset[Hook]:
        """The hooks in which a node runs."""
        return self.reached(self._tree.function(node))

    def reachable(self, function: cst.FunctionDef) -> list[cst.FunctionDef]:
        """A function and the functions of this file that it calls, directly or not."""
        found = [function]
        for each in found:
            for call in self._tree.within(each, cst.Call):
                callee = self.callee(call)
                if callee is not None and callee not in found:
                    found.append(callee)
        return found
