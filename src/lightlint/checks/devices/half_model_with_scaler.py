from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Halved, Stepped
from lightlint.explore.queries import in_sight
from lightlint.facts.keywords import keywords
from lightlint.facts.updates import parameters_of
from lightlint.finding import Applicability
from lightlint.fixes.edits import Draft, drop_statement, replace
from lightlint.values.core import is_constant

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path

_HALF = {"torch.half", "torch.float16"}


class HalfModelWithScaler(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if not self._casts(call, _HALF, "half") or self.facts.conditions(call):
            return
        scaled = [key for key in self._modules(call) if self._is_scaled(call, key)]
        if not scaled or self._is_cast_back(scaled[0]):
            return
        key = scaled[0]
        self.report(
            call,
            f"`{key}` gets fp16 parameters, whose gradients the scaler refuses to unscale",
            repair=Repair("leave the parameters in float32", self._draft(call), Applicability.UNSAFE),
        )

    def _casts(self, call: cst.Call, dtypes: set[str], method: str) -> bool:
        """Whether a call casts its receiver by its method, or by `to` with the dtype."""
        if not isinstance(call.func, cst.Attribute) or self.names.of(call.func):
            return False
        spelled = call.func.attr.value
        if spelled != "to":
            return spelled == method and not call.args
        given = {self.names.of(arg.value) for arg in call.args if not arg.star}
        travelling = [each.value for each in keywords(self.facts, call) if each.name == "dtype"]
        return bool(dtypes & given) or (len(travelling) == 1 and self.names.of(travelling[0]) in dtypes)

    def _modules(self, call: cst.Call) -> list[str]:
        """The keys of what is cast: `net` of `net.half()`, `model` too of `model = net.half()`."""
        node: cst.CSTNode = call
        above = self.tree.parent(node)
        while isinstance(above, (cst.Call, cst.Attribute)):
            node, above = above, self.tree.parent(above)
        assigned = self.names.key(above.targets[0].target) if isinstance(above, cst.Assign) else ""
        receiver: cst.BaseExpression = call
        while (
            isinstance(receiver, cst.Call)
            and isinstance(receiver.func, cst.Attribute)
            and not self.names.of(receiver.func)
        ):
            receiver = receiver.func.value
        return [key for key in (assigned, self.names.key(receiver)) if key]

    def _is_cast_back(self, key: str) -> bool:
        casts = [
            each for each in self.tree.all(cst.Call) if self._casts(each, {"torch.float", "torch.float32"}, "float")
        ]
        return any(key in self._modules(each) for each in casts)

    def _is_scaled(self, call: cst.Call, key: str) -> bool:
        """Whether a scaler that is on steps, or unscales, an optimizer over the module's parameters."""
        for each in self.tree.all(cst.Call):
            if self.names.method(each) not in {"step", "unscale_"} or len(each.args) != 1:
                continue
            scaler = each.func.value if isinstance(each.func, cst.Attribute) else None
            if not self._is_on(scaler):
                continue
            origins = self.values.origins(each.args[0].value)
            made = [origin.call for origin in origins]
            if made and all(self._is_over(one, key, call) for one in made):
                return True
        return False

    def _is_on(self, scaler: cst.BaseExpression | None) -> bool:
        made = [origin.call for origin in self.values.origins(scaler)] if self.values.is_scaler(scaler) else []
        given = [self.names.argument(each, "enabled", 5) for each in made if each is not None]
        return bool(made) and all(arg is None or self.names.constant(arg.value) is True for arg in given)

    def _is_over(self, made: cst.Call | None, key: str, cast: cst.Call) -> bool:
        """Whether an optimizer is made over the parameters of the module, by the function or class that casts it."""
        params = self.names.argument(made, "params", 0) if made is not None else None
        if made is None or params is None or parameters_of(params.value) != key:
            return False
        together = self.tree.owner(made) is self.tree.owner(cast)
        node = self.tree.enclosing_class(made)
        return together or (key.startswith("self.") and node is not None and node is self.tree.enclosing_class(cast))

    def _draft(self, call: cst.Call) -> Draft | None:
        """The cast taken out, where autocast is there to choose the dtypes and no input is cast."""
        words = [name.value for name in self.tree.all(cst.Name)]
        if "autocast" not in words or words.count("half") != 1 or not isinstance(call.func, cst.Attribute):
            return None
        if len(call.args) > 1 or self.names.has_star(call):
            return None  # it moves the model, too
        statement = self.tree.statement(call)
        if isinstance(statement, cst.Expr) and statement.value is call:
            return drop_statement(self.code, statement)
        return replace(self.code, call, self.code.text_of(call.func.value))

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Modules made fp16 whose parameters a GradScaler steps, on each path that gets to such a step."""
        found = [_halved(path) for path in entry.paths if any(_scales(event) for event in path.of(Stepped))]
        if found and all(found):
            message = "the module gets fp16 parameters, whose gradients the scaler refuses to unscale"
            yield from (Fault.at(event, message) for event in found[0])


def _scales(event: Stepped) -> bool:
    """Whether a scaler that is surely on steps an optimizer in sight."""
    enabled = event.scaler.arguments.get("enabled") if event.scaler is not None else None
    is_on = enabled is None or is_constant(enabled, True)
    return event.via == "scaler" and is_on and in_sight([event.optimizer])


def _halved(path: Path) -> list[Halved]:
    scaled = {each for event in path.of(Stepped) if _scales(event) for each in event.parameters}
    return [event for event in path.of(Halved) if scaled & set(event.parameters) and not event.module.escaped]
