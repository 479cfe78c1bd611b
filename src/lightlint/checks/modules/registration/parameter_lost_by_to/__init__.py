from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.checks.modules.registration.parameter_lost_by_to.moved_parameters import MOVING, VIEWING, MovedParameters
from lightlint.engine.events import AttributeSet, OptimizerMade, TensorMoved
from lightlint.facts.code.bindings import Kind
from lightlint.facts.objects.classes import NN_MODULE, OPTIMIZER
from lightlint.facts.tensors.tensor_types import changes_nothing
from lightlint.finding import Applicability, Tier
from lightlint.fixes.edits import replace
from lightlint.values.training import Module, Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Value


_DEPTH = 4
_TRAINING = ("DataLoader", "Trainer")  # words of files that make modules
_OF_OTHERS = {"torch.tensor", "torch.as_tensor", "torch.nn.Parameter"}  # they leave what they are given where it lies


class ParameterLostByTo(Check):
    asks_passes = True

    def visit_Assign(self, assign: cst.Assign) -> None:
        if len(assign.targets) != 1 or not isinstance(assign.targets[0].target, cst.Attribute):
            return
        target = assign.targets[0].target
        for changed, method in self._parameters.made_elsewhere(target, assign.value):
            if self._is_of_module(target):
                self.report(changed, self._message(target, method))
                return
        fixed = False
        match assign.value:
            case cst.Call(func=cst.Attribute(value=cst.Call() as made, attr=cst.Name(value=method))) as call:
                if (
                    method not in MOVING | VIEWING
                    or not self._parameters.is_made(made)
                    or not self._is_of_module(target)
                ):
                    return
                if changes_nothing(self.facts, call) or (method in MOVING and self._may_have_moved(target, made)):
                    return
                how, fixed = method, self._is_fixed(made)
                repair = self._repair(call, made)
            case cst.BinaryOperation() as operation if any(
                self._parameters.is_made(side) for side in (operation.left, operation.right)
            ) and self._is_of_module(target):
                how, repair = "", None
            case cst.Name() | cst.Call() | cst.BinaryOperation() | cst.IfExp() as value:
                for changed, method in self._parameters.named(target, value):
                    if self._is_of_module(target):
                        self.report(changed, self._message(target, method))
                return
            case _:
                return
        message = self._message(target, how)
        tier = Tier.NOTE if fixed and "TypeError" not in message else None
        self.report(assign.value, message, repair=repair, tier=tier)

    def _is_fixed(self, made: cst.Call) -> bool:
        """Whether a parameter is made that is not to learn: a kernel that is written down, and needs no checkpoint."""
        flag = self.names.argument(made, "requires_grad", 1)
        return flag is not None and self.names.constant(flag.value) is False

    def _message(self, target: cst.Attribute, method: str) -> str:
        how = f"`.{method}()` returns another tensor" if method else "the result of the arithmetic is another tensor"
        before = [each.before for _, _, each in self.happened(target, AttributeSet)]
        return _told(target.attr.value, how, before)

    @property
    def _parameters(self) -> MovedParameters:
        return MovedParameters(self.facts)

    def _is_of_module(self, target: cst.Attribute) -> bool:
        node = self.classes.self_class(target.value)
        if node is None or not self.classes.is_a(node, NN_MODULE):
            return False
        return not self._lies_there(target) and not self._lies_there_for_users(target)

    def _lies_there(self, target: cst.Attribute) -> bool:
        """Whether the rehearsals came here with a parameter each time, which lay, or may have lain, where it was moved to."""
        found = self.happened(target, AttributeSet)
        return bool(found) and all(
            isinstance(each.value, Tensor) and _may_lie_there(each.value, p) for _, p, each in found
        )

    def _lies_there_for_users(self, target: cst.Attribute) -> bool:
        """Whether every file that makes objects of the class names the place where the parameter lies anyhow: the CPU."""
        assign = self.tree.statement(target)
        names = self.tree.within(assign, cst.Name) if assign is not None else ()
        bound = [each for name in names for each in self.names.bindings.lookup(name)]
        if not any(each.kind is Kind.PARAMETER and each.name != "self" for each in bound):
            return False
        rehearsed, span = self.facts.rehearsed, self.facts.positions.span(target)
        found = rehearsed.at(*span, AttributeSet, entries=rehearsed.of_users(_TRAINING))
        values = [(event.value, path) for _, path, event in found if isinstance(event.value, Tensor)]
        return bool(values) and all(_may_lie_there(value, path) for value, path in values)

    def _may_have_moved(self, target: cst.Attribute, made: cst.Call) -> bool:
        """Whether a parameter is made of what others computed, and no rehearsal tells where that lies."""
        data = self.names.argument(made, "data", 0)
        if data is None or not self._is_given(data.value):
            return False
        happened = self.happened(target, AttributeSet)
        return all(isinstance(each.value, Tensor) and _may_lie_there(each.value, p) for _, p, each in happened)

    def _is_given(self, value: cst.BaseExpression, depth: int = 0) -> bool:
        """Whether a tensor is computed of what a function was given: it lies wherever that does."""
        sources = self.facts.reaching.sources(value)
        if any(isinstance(each, cst.BinaryOperation) for each in sources):
            return True
        elsewhere = [each for each in sources or [value] if not self.facts.tensors.is_made_here(each, any_size=True)]
        names = [name for each in elsewhere for name in self.tree.within(each, cst.Name)]
        bound = {each for name in names for each in self.names.bindings.lookup(name) if each.name != "self"}
        if any(each.kind is Kind.PARAMETER for each in bound):
            return True
        made = [each.value for each in bound if isinstance(each.value, cst.BaseExpression)]
        return depth < _DEPTH and any(self._is_given(each, depth + 1) for each in made if each is not value)

    def visit_Call(self, call: cst.Call) -> None:
        """`Adam([torch.zeros(n, requires_grad=True).to(device)])`: an optimizer takes leaves only."""
        params = self.names.argument(call, "params", 0)
        if params is None or not isinstance(params.value, (cst.List, cst.Tuple)):
            return
        if not self.classes.name_is_a(self.names.call(call), OPTIMIZER):
            return
        for item in params.value.elements:
            for source in self.facts.reaching.sources(item.value):
                match source:
                    case cst.Call(func=cst.Attribute(value=cst.Call() as made, attr=cst.Name(value=method))):
                        if method in MOVING and self._is_leaf(made) and not changes_nothing(self.facts, source):
                            self.report(
                                source,
                                f"`.{method}()` returns another tensor, which is no leaf: the optimizer raises where it moves",
                            )

    def _is_leaf(self, made: cst.Call) -> bool:
        """Whether a call makes a leaf that lies on the CPU as far as can be seen: not where what it is made of lies."""
        flag = self.names.argument(made, "requires_grad")
        name = self.names.call(made) or ""
        is_leaf = self._parameters.is_made(made) or (
            name.startswith("torch.") and flag is not None and self.names.constant(flag.value) is True
        )
        if not is_leaf or name.endswith("_like"):
            return False
        data = self.names.argument(made, "data", 0) if name in _OF_OTHERS else None
        return data is None or all(map(self._is_new, self.facts.reaching.sources(data.value)))

    def _is_new(self, value: cst.BaseExpression) -> bool:
        """Whether a value is written down, or a library makes it here."""
        called = self.names.call(value) if isinstance(value, cst.Call) else None
        made = called is not None and called.startswith(("torch.", "numpy."))
        return made or not isinstance(value, (cst.Call, cst.Name, cst.Attribute, cst.Subscript, cst.BinaryOperation))

    def _repair(self, call: cst.Call, made: cst.Call) -> Repair | None:
        """The same call, made on the tensor before it becomes a parameter."""
        if not made.args or made.args[0].star:
            return None
        low, high = self.facts.span(made)
        start, end = self.facts.span(made.args[0].value)
        text, tail = self.facts.source.text, self.facts.source.text[high : self.facts.span(call)[1]]
        inner = text[start:end]
        if not isinstance(made.args[0].value, (cst.Call, cst.Name, cst.Attribute, cst.Subscript)):
            inner = f"({inner})"
        moved = f"{text[low:start]}{inner}{tail}{text[end:high]}"
        return Repair(
            "change the tensor before it becomes a parameter", replace(self.code, call, moved), Applicability.UNSAFE
        )

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Attributes computed from a parameter that no module has."""
        for path in entry.paths:
            known = {p for each in path.machine.objects if isinstance(each, Module) for p in each.parameters()}
            known |= {each for event in path.of(OptimizerMade) for each in event.optimizer.parameters}
            for event in path.of(AttributeSet):
                value = event.value
                if not isinstance(event.object, Module) or not isinstance(value, Tensor) or value.parameter:
                    continue
                lost = [each for each in value.parameters if each.parameter and each not in known and not each.escaped]
                if lost and not value.escaped and not event.where.module and not _may_lie_there(value, path):
                    target = self.node_of(event.site)
                    if isinstance(target, cst.Attribute) and self._lies_there_for_users(target):
                        continue
                    moved = value.moved_from is not None and value.moved_from.parameter
                    how = "moving it gives another tensor" if moved else "what was computed of it is another tensor"
                    message = _told(event.name, how, [event.before])
                    fixed = not any(each.requires_grad for each in lost) and "TypeError" not in message
                    yield Fault.at(event, message, tier=Tier.NOTE if fixed else None)


def _told(name: str, how: str, before: list[Value | None]) -> str:
    """What becomes of an attribute: an error where it holds a registered parameter already, in place of which torch takes
    parameters only."""
    if before and all(map(_is_parameter, before)):
        return f"`self.{name}` holds a parameter: {how}, and setting it raises a TypeError"
    return f"`self.{name}` is no parameter: {how}, which no optimizer gets and no checkpoint holds"


def _is_parameter(value: Value | None) -> bool:
    return isinstance(value, Tensor) and value.parameter


def _may_lie_there(value: Tensor, path: Path) -> bool:
    """Whether a move may have given the parameter itself: it was there, or made of what lies nobody knows where."""
    if value.moved_from is not None:
        return value.moved_from.parameter and value.moved_from.device is None
    return value.parameter and any(moved.tensor is value for moved in path.of(TensorMoved))
