from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Called, FitStarted, Halved, Stepped
from lightlint.explore.questions.certain import follows, wherever
from lightlint.explore.questions.queries import in_sight, scales
from lightlint.finding import Applicability
from lightlint.fixes.edits import Draft, drop_statement, replace
from lightlint.values.core import is_constant
from lightlint.values.training import Module

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path

_MIXED = (16, "16", "16-mixed")  # the first two before Lightning 2
_OTHER = ("float", "double", "bfloat16")


class HalfModelWithScaler(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Modules made fp16 whose parameters a GradScaler, or a Trainer with one, steps, on each path that gets to such a step."""
        message = "the module gets fp16 parameters, whose gradients the scaler refuses to unscale"
        runs = [path for path in entry.paths if [*_scaled(path)]]
        found = [[event for event in path.of(Halved) if _steps(path, event)] for path in runs]
        sure = found[0] if found and all(found) else [*wherever(_judged(entry))]
        yield from (Fault.at(event, message) for event in sure)

    def repair(self, node: cst.CSTNode, _fault: Fault) -> Repair | None:
        draft = self._draft(node) if isinstance(node, cst.Call) else None
        return Repair("leave the parameters in float32", draft, Applicability.UNSAFE)

    def _draft(self, call: cst.Call) -> Draft | None:
        """The cast taken out, where autocast is there to choose the dtypes and no input is cast."""
        words = [name.value for name in self.tree.all(cst.Name)]
        if (
            not {"autocast", "Trainer"} & {*words}
            or words.count("half") != 1
            or not isinstance(call.func, cst.Attribute)
        ):
            return None
        if len(call.args) > 1 or self.names.has_star(call):
            return None  # it moves the model, too
        statement = self.tree.statement(call)
        if isinstance(statement, cst.Expr) and statement.value is call:
            return drop_statement(self.code, statement)
        return replace(self.code, call, self.code.text_of(call.func.value))


def _scales(event: Stepped) -> bool:
    """Whether a scaler that is surely on steps an optimizer in sight."""
    return event.via == "scaler" and scales(event.scaler) is True and in_sight([event.optimizer])


def _is_mixed(path: Path, event: Stepped) -> bool:
    """Whether a Trainer in sight steps the optimizer through a scaler of its own: the one that trains last does."""
    before = [fit.trainer for fit in path.of(FitStarted) if fit.time < event.time]
    if event.via != "lightning" or not before or before[-1].open_arguments or "plugins" in before[-1].arguments:
        return False
    given = before[-1].arguments
    return is_constant(given.get("precision"), *_MIXED) and not is_constant(given.get("accelerator"), "cpu", "tpu")


def _scaled(path: Path) -> Iterator[Stepped]:
    return (event for event in path.of(Stepped) if _scales(event) or _is_mixed(path, event))


def _judged(entry: Entry) -> Iterator[tuple[Halved, bool]]:
    """The casts to fp16, each with whether a scaler steps the parameters whenever they are cast."""
    for path in entry.paths:
        for event in path.of(Halved):
            yield event, any(follows(event, each) for each in _steps(path, event))


def _steps(path: Path, event: Halved) -> list[Stepped]:
    """What steps the parameters of a module that got fp16 through a scaler, afterwards."""
    if event.module.escaped or _is_undone(path, event):
        return []
    own = set(event.parameters)
    later = (each for each in _scaled(path) if each.time > event.time)
    return [each for each in later if any(one.requires_grad and one in own for one in each.parameters)]


def _is_undone(path: Path, event: Halved) -> bool:
    """Whether the module, or one around it, gets another dtype afterwards."""
    later = [call.receiver for call in path.of(Called) if call.path in _OTHER and call.time > event.time]
    return any(isinstance(each, Module) and event.module in each.modules() for each in later)
