"""How Lightning classes are put together: automatic or manual optimization, and which Trainer fits which module."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from lightlint.facts.bindings import Kind
from lightlint.facts.classes import MODULE, Classes
from lightlint.facts.contents import Contents, spelled
from lightlint.facts.hooks import Hooks
from lightlint.facts.names import Names
from lightlint.facts.tree import Tree
from lightlint.facts.values import Values
from lightlint.facts.world import TRAINER

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
        self._contents = Contents(tree, names)

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

    def callbacks(self, trainer: cst.Call) -> tuple[cst.Call, ...] | None:
        """The callback constructors that a Trainer gets, None if one of them is out of sight."""
        given = self._names.argument(trainer, "callbacks")
        if given is None:
            return None if self._names.has_star(trainer) else ()
        items = self._listed(given.value, trainer)
        if items is None:
            return None
        calls = [origin.call if (origin := self._values.constructor(item)) else None for item in items]
        known = tuple(call for call in calls if call is not None)
        return known if len(known) == len(calls) else None

    def _listed(self, value: cst.BaseExpression, trainer: cst.Call) -> list[cst.BaseExpression] | None:
        """The items of a list that a Trainer gets, or the one value; of a name with those added before; None if some are out of sight."""
        if isinstance(value, (cst.List, cst.Tuple)):
            return [each.value for each in value.elements]
        if isinstance(value, cst.Call):
            return self._given_by(value) or [value]
        found = self._names.bindings.lookup(value) if isinstance(value, cst.Name) else []
        made = [each for each in found if each.kind is not Kind.AUGMENT]
        display = made[0].value if len(made) == 1 and not made[0].path else None
        held = self._given_by(display) if isinstance(display, cst.Call) else spelled(display)
        if display is None or held is None:
            return [value]
        takers = (self._names.argument(each, "callbacks") for each in self.trainers)
        several = sum(1 for each in takers if each is not None and self._names.key(each.value) == made[0].name) > 1
        if several and not self._contents.is_counted(display):
            return None  # what a condition adds may be meant for one of them
        later = self._contents.later(display, until=trainer)
        return None if later is None else [*held, *later]

    def _given_by(self, call: cst.Call) -> list[cst.BaseExpression] | None:
        """The items of the one list that a function of this file makes, the same for each of its calls; else None."""
        callees = self._hooks.callees(call)
        returns = self._values.returns(callees[0]) if len(callees) == 1 and not callees[0].decorators else []
        made = returns[0] if len(returns) == 1 else None
        if isinstance(made, cst.Name):
            found = [each for each in self._names.bindings.lookup(made) if each.kind is not Kind.AUGMENT]
            is_own = len(found) == 1 and found[0].scope is callees[0] and not found[0].path
            made = found[0].value if is_own and found[0].kind is Kind.ASSIGN else None
        if not isinstance(made, (cst.List, cst.Tuple)):
            return None
        # what a condition adds may be meant for the Trainer that another call is for
        several = len(self._hooks.calls_of.get(callees[0], ())) > 1
        return None if several and not self._contents.is_counted(made) else self._contents.items(made)
