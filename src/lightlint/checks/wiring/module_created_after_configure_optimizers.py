from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import AttributeSet, Configured, OptimizerMade
from lightlint.facts.hooks import Owner
from lightlint.values.training import Module, Tensor

_LATE = {
    "on_train_start", "on_train_epoch_start", "on_train_batch_start", "training_step", "on_train_batch_end",
    "on_train_epoch_end", "on_validation_start", "on_validation_epoch_start", "validation_step",
}  # fmt: skip
_LATE_SINCE_2 = {"on_fit_start"}
_WITH_PARAMETERS = re.compile(
    r"torch\.nn\.(?:Lazy)?(?:Parameter|ParameterList|Linear|Bilinear|Conv\w+|Embedding\w*|LSTM|GRU|RNN|Transformer\w*"
    r"|MultiheadAttention|PReLU)$"
)

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
_REGISTERS = {"add_param_group", "setup_optimizers", "requires_grad_", "configure_optimizers", "eval", "freeze"}


class ModuleCreatedAfterConfigureOptimizers(Check):
    def visit_Assign(self, assign: cst.Assign) -> None:
        target = assign.targets[0].target
        if not isinstance(target, cst.Attribute) or not self.classes.is_self(target.value):
            return
        made = self._parametric(assign.value)
        function = self.tree.function(assign)
        hook = self.hooks.of(function) if function is not None else None
        if made is None or hook is None or hook.owner is not Owner.MODULE or function is None:
            return
        late = _LATE if self.facts.lightning.may_be_below("2.0") else _LATE | _LATE_SINCE_2
        if hook.name in late and not self._is_settled(function) and not self._may_exist(target):
            name = made.rpartition(".")[2]
            self.report(
                assign,
                f"`self.{target.attr.value}` gets its `{name}` after the optimizer got its parameters: it is never trained",
            )

    def _parametric(self, value: cst.BaseExpression) -> str | None:
        """The first layer with parameters of its own that an expression makes: `nn.Linear(...)`, also within `nn.Sequential`."""
        if not isinstance(value, cst.Call):
            return None
        name = self.names.of(value.func) or ""
        if _WITH_PARAMETERS.match(name):
            frozen = self.names.argument(value, "requires_grad", 1)
            return None if name.endswith("Parameter") and frozen is not None else name
        if name in {"torch.nn.Sequential", "torch.nn.ModuleList", "torch.nn.ModuleDict"}:
            inner = [self.names.of(each.func) or "" for each in self.tree.within(value, cst.Call)]
            return next((each for each in inner if _WITH_PARAMETERS.match(each)), None)
        receiver = value.func.value if isinstance(value.func, cst.Attribute) and value.func.attr.value == "to" else None
        return self._parametric(receiver) if receiver is not None else None

    def _is_settled(self, function: cst.FunctionDef) -> bool:
        """Whether the hook sees to it that the parameters get to an optimizer, or need none."""
        calls = {
            self.names.method(call)
            for body in self.hooks.reachable(function)
            for call in self.tree.within(body, cst.Call)
        }
        words = {each.attr.value for each in self.tree.within(function, cst.Attribute)}
        return bool(calls & _REGISTERS or words & {"requires_grad", "optimizers"})

    def _may_exist(self, target: cst.Attribute) -> bool:
        """Whether the object may have been made earlier: the hook asks for it first."""
        return any(
            target.attr.value in self.code.text_of(test) for test, _ in self.facts.conditions(target)
        ) and self._made_earlier(target)

    def _made_earlier(self, target: cst.Attribute) -> bool:
        node = self.tree.enclosing_class(target)
        values = self.classes.attribute_values(node, target.attr.value) if node is not None else []
        return any(
            self._parametric(value) for value in values if self.tree.function(value) is not self.tree.function(target)
        )

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        late = _LATE if self.facts.lightning.may_be_below("2.0") else _LATE | _LATE_SINCE_2
        copied = {event.site for event in entry.calls.get("copy.deepcopy", ())}
        for path in entry.paths:
            configured = {event.module.number: event.time for event in path.of(Configured)}
            given = {id(each) for event in path.of(OptimizerMade) for each in event.optimizer.parameters}
            for event in path.of(AttributeSet):
                made, since = event.value, configured.get(getattr(event.object, "number", 0))
                if since is None or event.where.hook not in late or event.before is not None:
                    continue
                if not isinstance(made, (Module, Tensor)) or made.made <= since or made.site in copied:
                    continue
                own = made.parameters() if isinstance(made, Module) else [made] if made.parameter else []
                if any(each.requires_grad and not each.escaped and id(each) not in given for each in own):
                    kind = made.name if isinstance(made, Module) else "Parameter"
                    late_part = f"`self.{event.name}` gets its `{kind}` after the optimizer got its parameters"
                    yield Fault.of(event, f"{late_part}: it is never trained")
