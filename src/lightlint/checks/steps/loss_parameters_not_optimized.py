from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, Forward, OptimizerMade, StateLoaded, Stepped
from lightlint.explore.queries import identity, in_sight, is_held
from lightlint.facts.classes import NN_MODULE, OPTIMIZER
from lightlint.facts.learned import is_term_of_loss, learned_parameter
from lightlint.values.core import Class
from lightlint.values.training import Module, Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


_MOVES = {"to", "cuda", "cpu", "train", "float", "double", "half", "state_dict"}
_WHOLE = {"parameters", "named_parameters", "modules", "children", "named_children", "named_modules"}
_PASSING = {"builtins.list", "builtins.filter", "builtins.iter", "builtins.tuple", "itertools.chain", "builtins.dict"}

Place = cst.FunctionDef | cst.Module | cst.ClassDef


class LossParametersNotOptimized(Check):
    def visit_Call(self, call: cst.Call) -> None:
        name = self.names.of(call.func)
        key = self._key(call) if name and not name.startswith("torch.") and _is_class(name) else ""
        place = self._place(call, key) if key else None
        if place is None or not name or not self.classes.name_is_a(name, NN_MODULE):
            return
        uses = self._uses(key, place)
        calls = [above for each in uses if isinstance(above := self.tree.parent(each), cst.Call) and above.func is each]
        if not calls or not self._is_left_out(key, place):
            return
        if not any(is_term_of_loss(self.facts, each) for each in calls):
            return
        learned = learned_parameter(self.facts, name)
        if learned and all(self._is_harmless(each, learned) for each in uses):
            self.report(
                call,
                f"`{key}` has a parameter of its own, `{learned}`, and no optimizer gets it: it stays as it was made",
            )

    def _key(self, call: cst.Call) -> str:
        """The name or attribute of `self` that a constructor's result is kept under, through `.to(device)`."""
        node: cst.CSTNode = call
        above = self.tree.parent(node)
        while isinstance(above, cst.Attribute) and above.attr.value in _MOVES:
            node = self.tree.parent(above) or above
            above = self.tree.parent(node)
        if isinstance(above, cst.Element):  # `net, crit = Net(), Loss()`
            row = self.tree.parent(above)
            assign = self.tree.parent(row) if row is not None else None
            targets = assign.targets[0].target if isinstance(assign, cst.Assign) else None
            if not isinstance(row, cst.Tuple) or not isinstance(targets, cst.Tuple):
                return ""
            pairs = zip(row.elements, targets.elements, strict=False)
            return next((self.names.key(target.value) for each, target in pairs if each is above), "")
        single = isinstance(above, cst.Assign) and len(above.targets) == 1
        return self.names.key(above.targets[0].target) if isinstance(above, cst.Assign) and single else ""

    def _place(self, call: cst.Call, key: str) -> Place | None:
        """Where all uses of a name are in sight: the function or the class that makes its value, once."""
        owner = self.tree.owner(call)
        if "." not in key:
            found = self.names.bindings.lookup_in(key, owner)
            kept = [each for each in found if not self._is_moved(each.value, key)]
            return owner if len(kept) == 1 and all(each.scope is owner for each in found) else None
        node = self.tree.class_of(owner) if isinstance(owner, cst.FunctionDef) else None
        first, _, attribute = key.partition(".")
        known = node is not None and first == "self" and "." not in attribute and "[" not in attribute
        return (
            node if node is not None and known and len(self.classes.attribute_sources(node, attribute)) == 1 else None
        )

    def _is_moved(self, value: cst.CSTNode | None, key: str) -> bool:
        func = value.func if isinstance(value, cst.Call) else None
        return isinstance(func, cst.Attribute) and func.attr.value in _MOVES and self.names.key(func.value) == key

    def _uses(self, key: str, place: Place) -> list[cst.BaseExpression]:
        kind: type[cst.Name] | type[cst.Attribute] = cst.Attribute if "." in key else cst.Name
        found = [each for each in self.tree.within(place, kind) if self.names.key(each) == key]
        words = [each for each in found if not self.names.is_word(each)]
        return [each for each in words if not self._is_set(each)]

    def _is_set(self, node: cst.CSTNode) -> bool:
        above = self.tree.parent(node)
        while isinstance(above, (cst.Element, cst.Tuple)):
            above = self.tree.parent(above)
        return isinstance(above, cst.AssignTarget)

    def _is_harmless(self, use: cst.BaseExpression, learned: str) -> bool:
        """Whether a use only calls or moves a module, or reads its parameter, so that no optimizer gets it there."""
        above = self.tree.parent(use)
        if isinstance(above, cst.Call):
            return above.func is use
        if not isinstance(above, cst.Attribute) or isinstance(self.tree.parent(above), cst.AssignTarget):
            return False
        if above.attr.value == learned:
            further = self.tree.parent(above)
            return isinstance(further, cst.Attribute) and not further.attr.value.endswith(("grad", "_"))
        return above.attr.value in _MOVES

    def _is_left_out(self, key: str, place: Place) -> bool:
        """Whether an optimizer is made here, and none can get the module unless by a use of its name."""
        made = [each for each in self.tree.all(cst.Call) if self._is_optimizer(each)]
        inside = [each for each in made if self.tree.contains(place, each)]
        if not isinstance(place, cst.ClassDef):
            return bool(inside)
        of_self = [each for each in self.tree.within(place, cst.Name) if each.value == "self"]
        bare = [each for each in of_self if not isinstance(self.tree.parent(each), (cst.Attribute, cst.Param))]
        spelled = [each for each in self.tree.within(place, cst.Attribute) if self.names.key(each.value) == "self"]
        if bare or any(each.attr.value in _WHOLE for each in spelled):
            return False
        return len(inside) == len(made) > 0 and all(self._takes_others(each, key) for each in made)

    def _is_optimizer(self, call: cst.Call) -> bool:
        name = self.names.of(call.func)
        return name is not None and _is_class(name) and name != OPTIMIZER and self.classes.name_is_a(name, OPTIMIZER)

    def _takes_others(self, made: cst.Call, key: str) -> bool:
        params = self.names.argument(made, "params", 0)
        if params is None or params.star:
            return False
        calls = self.tree.within(params.value, cst.Call)
        over = [each for each in calls if self.names.method(each) in {"parameters", "named_parameters"}]
        owners = [self.names.key(each.func.value) for each in over if isinstance(each.func, cst.Attribute)]
        plain = all(each in over or self.names.of(each.func) in _PASSING for each in calls)
        loose = [
            each
            for each in self.tree.within(params.value, cst.Arg)
            if isinstance(each.value, (cst.Name, cst.Attribute))
        ]
        return bool(owners) and plain and not loose and all(o and o != "self" and not key.startswith(o) for o in owners)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Parameters that a module which gives a loss keeps for itself, reached by gradients and in no optimizer."""
        optimizers = [event.optimizer for event in entry.of(OptimizerMade)]
        if not optimizers or any(each.escaped for each in optimizers) or not any(True for _ in entry.of(Stepped)):
            return
        stepped = {identity(each) for optimizer in optimizers for each in optimizer.parameters}
        reached = {identity(each) for event in entry.of(Backward) for each in event.parameters}
        loaded = {id(event.object) for event in entry.of(StateLoaded)}
        kept = [path.machine.given_back for path in entry.paths]
        for event in entry.of(Forward):
            module = event.module
            if any(is_held(each, module) for each in kept):
                continue
            result = event.result
            if not isinstance(result, Tensor) or result.role != "loss" or id(module) in loaded or module.site is None:
                continue
            for name, each in _learned(module):
                if identity(each) in reached and identity(each) not in stepped and in_sight([module, each]):
                    message = f"`{module.name}` has a parameter of its own, `{name}`, and no optimizer gets it: it stays as it was made"
                    yield Fault(module.site, message)
                    break


def _learned(module: Module) -> list[tuple[str, Tensor]]:
    """The parameters that a class of the program makes for itself."""
    held = module.attributes.items() if isinstance(module.cls, Class) else ()
    return [
        (name, each)
        for name, each in held
        if isinstance(each, Tensor) and each.parameter and each.requires_grad and not each.table
    ]


def _is_class(name: str) -> bool:
    """Whether a name looks like that of a class, so that it is worth a search of the project."""
    return name.rpartition(".")[2][:1].isupper()
