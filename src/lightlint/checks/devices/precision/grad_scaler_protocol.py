from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Backward, Called, Cleared, Stepped, Unscaled
from lightlint.explore.questions.queries import in_sight, scales
from lightlint.finding import Applicability
from lightlint.fixes.edits import drop_statement, replace
from lightlint.values.training import Instance, Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path

_TWICE = "steps the optimizer a second time, past the scaler that has stepped it on the same gradients"
_BEFORE = "steps the optimizer past the scaler, which then steps it once more on the same gradients"
_SCALED = "steps the optimizer on gradients that the scaler has multiplied by its scale, 65536 at first"
_NEVER_UPDATED = "the scaler is never told to `update()`: its second step raises"
_NEVER_SCALED = "the scaler scales no loss in this file: its step raises, as no gradients were scaled"
_UNSCALED_AGAIN = "raises where the iteration before has unscaled, too, and was left without `update()`"


class GradScalerProtocol(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Steps past a scaler, on gradients that it has scaled or behind its own; and scalers that are not told all."""
        for path in entry.paths:
            yield from _steps_past(path)
            yield from self._left_out(path)

    def repair(self, node: cst.CSTNode, fault: Fault) -> Repair | None:
        if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
            return None
        if fault.message in (_TWICE, _BEFORE):
            statement = self.tree.statement(node)
            plain = isinstance(statement, cst.Expr) and statement.value is node
            draft = drop_statement(self.code, statement) if plain and isinstance(statement, cst.Expr) else None
            return Repair("drop the call", draft, Applicability.UNSAFE)
        scaler = self._scaler(node) if fault.message == _SCALED else ""
        if not scaler:
            return None
        step = f"{scaler}.step({self.code.text_of(node.func.value)})"
        return Repair("step through the scaler", replace(self.code, node, step), Applicability.UNSAFE)

    def _scaler(self, node: cst.Call) -> str:
        """What a function calls the scaler of its losses."""
        calls = self.tree.own(self.tree.owner(node), cst.Call)
        scale = next((each.func for each in calls if self.names.method(each) == "scale"), None)
        return self.code.text_of(scale.value) if isinstance(scale, cst.Attribute) else ""

    def _left_out(self, path: Path) -> Iterator[Fault]:
        """Scalers that step and are never told to update or scale anything, or unscale twice with no update between."""
        unscaled: set[tuple[Instance, object]] = set()
        stepped: set[Instance] = set()
        trained = False
        for event in path.events:
            if isinstance(event, Backward):
                trained |= event.loss is None or event.loss.scaler is None
            elif isinstance(event, Stepped) and event.scaler is not None and scales(event.scaler):
                scaler = event.scaler
                if trained and not self._is_told(scaler, "scale"):
                    yield Fault.at(event, _NEVER_SCALED)
                elif scaler in stepped and not self._is_told(scaler, "update"):
                    yield Fault.at(event, _NEVER_UPDATED)
                stepped.add(scaler)
            elif isinstance(event, Called) and event.receiver is not None and event.receiver.kind == "scaler":
                scaler = event.receiver
                if event.name == "update":
                    unscaled = {each for each in unscaled if each[0] is not scaler}
                elif event.name == "unscale_":
                    pair = scaler, event.argument("optimizer", 0)
                    again = pair in unscaled and scales(scaler) and self._is_told(scaler, "update")
                    if again and not event.where.conditions:
                        yield Fault.at(event, _UNSCALED_AGAIN)
                    unscaled.add(pair)

    def _is_told(self, scaler: Instance, name: str) -> bool:
        """Whether any rehearsal, or code that none of them comes to, calls a method of a scaler."""
        calls = (event for entry in self.facts.rehearsed.entries for event in entry.calls.get(f".{name}", ()))
        if any(event.receiver is not None and event.receiver.site == scaler.site for event in calls):
            return True
        return self._is_held(scaler) and f".{name}(" in self.facts.source.text

    def _is_held(self, scaler: Instance) -> bool:
        """Whether an object keeps a scaler, any method of which may call it."""
        paths = (path for entry in self.facts.rehearsed.entries for path in entry.paths)
        return any(scaler in each.attributes.values() for path in paths for each in path.machine.objects)


def _steps_past(path: Path) -> Iterator[Fault]:
    """Plain steps beside one through the scaler on the same gradients, or on gradients that are still scaled."""
    plain: dict[Instance, Stepped] = {}
    scaled: dict[Tensor, Backward] = {}
    stepped: set[Instance] = set()
    for event in path.events:
        if isinstance(event, Backward):
            stepped.clear()
            plain.clear()
            for each in event.parameters or event.perhaps:
                scaled.pop(each, None)
                if event.loss is not None and event.loss.scaler is not None:
                    scaled[each] = event
        elif isinstance(event, Unscaled):
            scaled.clear()
        elif isinstance(event, Cleared):
            plain.clear()
        elif isinstance(event, Stepped) and event.via == "scaler":
            scaled.clear()
            if event.optimizer in plain and scales(event.scaler):
                yield Fault.at(plain[event.optimizer], _BEFORE, event.site)
            stepped |= {event.optimizer} if scales(event.scaler) else set()
        elif isinstance(event, Stepped) and event.via == "direct" and in_sight([event.optimizer]):
            if event.optimizer in stepped:
                yield Fault.at(event, _TWICE)
            elif any(_is_scaled(scaled[each]) for each in event.parameters if each in scaled):
                yield Fault.at(event, _SCALED)
            else:
                plain[event.optimizer] = event


def _is_scaled(event: Backward) -> bool:
    """Whether gradients surely were scaled, and nobody has changed them by hand."""
    scaler = event.loss.scaler if event.loss is not None else None
    touched = any(each.gradient_touched for each in (event.parameters or event.perhaps))
    return isinstance(scaler, Instance) and scales(scaler) is True and not touched
