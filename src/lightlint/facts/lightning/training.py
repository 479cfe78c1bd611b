"""How Lightning classes are put together: automatic or manual optimization, and which Trainer fits which module."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from lightlint.facts.code.names import Names
from lightlint.facts.code.tree import Tree
from lightlint.facts.lightning.hooks import Hooks
from lightlint.facts.objects.classes import MODULE, Classes
from lightlint.facts.ranks.world import TRAINER
from lightlint.facts.values.values import Values

ENTRY_POINTS = {"fit", "validate", "test", "predict"}


@dataclass(frozen=True, slots=True)
class Run:
    """One call of a Trainer's entry point. Classes are canonical names; what is out of sight is None."""

    call: cst.Call
    entry: str
    trainer: cst.Call | None
    module: str | None
    data_module: str | None


class Training:
    """Optimization modes and Trainer runs of one file."""

    def __init__(self, tree: Tree, names: Names, classes: Classes, hooks: Hooks, values: Values) -> None:
        self._tree = tree
        self._names = names
        self._classes = classes
        self._hooks = hooks
        self._values = values

    def automatic(self, node: cst.ClassDef) -> bool | None:
        """Whether a LightningModule optimizes automatically, None where the text does not tell."""
        if self._mode_set_outside:
            return None
        if self._classes.has_method(node, "automatic_optimization"):
            return self._of_property(node)
        value = self._classes.constant(node, "automatic_optimization", True)
        return value if isinstance(value, bool) else None

    def _of_property(self, node: cst.ClassDef) -> bool | None:
        """The one constant that a property `automatic_optimization` of this file returns."""
        method = self._classes.method(node, "automatic_optimization")
        given = [self._names.constant(each) for each in self._values.returns(method)] if method is not None else []
        return given[0] if len(given) == 1 and isinstance(given[0], bool) else None

    @cached_property
    def _mode_set_outside(self) -> bool:
        """Whether code that is no method of the module sets its mode: `model.automatic_optimization = False`."""
        targets = [target.target for assign in self._tree.all(cst.Assign) for target in assign.targets]
        return any(
            isinstance(each, cst.Attribute)
            and each.attr.value == "automatic_optimization"
            and not self._classes.is_self(each.value)
            for each in targets
        )

    @cached_property
    def trainers(self) -> tuple[cst.Call, ...]:
        """The calls of this file that make a Lightning Trainer."""
        return tuple(call for call in self._tree.all(cst.Call) if self._names.of(call.func) == TRAINER)

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """The calls of `fit`, `validate`, `test` and `predict` on what surely is a Lightning Trainer."""
        return tuple(run for call in self._tree.all(cst.Call) if (run := self._run(call)))

    def _run(self, call: cst.Call) -> Run | None:
        if not isinstance(call.func, cst.Attribute) or call.func.attr.value not in ENTRY_POINTS:
            return None
        trainer = self._values.constructor(call.func.value)
        if trainer is None or trainer.name != TRAINER:
            return None
        model = self._names.argument(call, "model", 0)
        data = self._names.argument(call, "datamodule")
        module = self._values.constructor(model.value) if model else None
        return Run(
            call,
            call.func.attr.value,
            trainer.call if trainer.call is not None and self._names.of(trainer.call.func) == TRAINER else None,
            module.name if module and self._classes.name_is_a(module.name, MODULE) else None,
            self._name(data.value) if data else None,
        )

    def _name(self, expression: cst.BaseExpression) -> str | None:
        origin = self._values.constructor(expression)
        return origin.name if origin else None
