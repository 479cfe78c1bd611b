from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.checks.devices.placement.model_moved_before_fit.forks import forks
from lightlint.engine.events import Called, CalledUnknown, Event, Forward
from lightlint.explore.questions.queries import is_held
from lightlint.facts.ranks.trainers import lightning_ranks
from lightlint.facts.ranks.world import Ranks
from lightlint.facts.tensors.cuda_uses import use_before
from lightlint.finding import Tier
from lightlint.fixes.edits import drop_statement, replace
from lightlint.values.core import Unknown, Value, text_of
from lightlint.values.training import Instance, Module

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path

_HARMLESS = {"train", "eval", "to", "cuda", "freeze", "unfreeze", "requires_grad_", "load_state_dict", "parameters"}
_MOVES = {"to", "cuda"}
_FORKED = "CUDA is in use from here on, and the processes that `fit` forks cannot use it any more"


class ModelMovedBeforeFit(Check):
    """A visitor, too: what uses CUDA before a fork is a question about calls of `torch.cuda` in the text."""

    def visit_Call(self, call: cst.Call) -> None:
        use = self._use_before_fork(call) if self.names.method(call) == "fit" else None
        if use is not None:
            self.report(use, _FORKED, tier=Tier.ERROR)

    def _use_before_fork(self, fit: cst.Call) -> cst.Call | None:
        """What uses CUDA in the main process first, where the Trainer forks it then."""
        trainer = self.values.constructor(fit.func.value) if isinstance(fit.func, cst.Attribute) else None
        made = trainer.call if trainer is not None else None
        return use_before(self.facts, fit) if made is not None and forks(self.facts, made) else None

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Moves of a model to a GPU that the next thing that needs it there, `fit`, makes itself."""
        for path in entry.paths:
            fits = [each for each in path.of(Called) if each.path == "fit" and _is_trainer(each.receiver)]
            for fit in fits:
                model = _meant(fit.argument("model", 0))
                if model is not None:
                    yield from map(self._fault, _needless(path, model, fit))

    def _fault(self, move: Called | CalledUnknown) -> Fault:
        one = lightning_ranks(self.facts) is Ranks.ONE
        message = f"`{_name(move)}()` before `Trainer.fit`, which moves the model itself"
        if not one:
            message += ": every rank first uses this GPU"
        return Fault.at(move, message, tier=Tier.NOTE if one else None)

    def repair(self, node: cst.CSTNode, _fault: Fault) -> Repair | None:
        if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
            return None
        statement = self.tree.statement(node)
        receiver = self.names.key(node.func.value)
        alone = isinstance(statement, (cst.Expr, cst.Assign)) and statement.value is node
        same = isinstance(statement, cst.Expr) or (
            isinstance(statement, cst.Assign)
            and [self.names.key(each.target) for each in statement.targets] == [receiver]
        )
        if receiver and alone and same and isinstance(statement, cst.BaseSmallStatement):
            return Repair("drop the move", drop_statement(self.code, statement))
        return Repair("leave the move to the Trainer", replace(self.code, node, self.code.text_of(node.func.value)))


def _is_trainer(value: Value | None) -> bool:
    return isinstance(value, Instance) and value.kind == "trainer"


def _meant(value: Value | None) -> Value | None:
    """A value as it is before a move of something out of sight, and as what it has turned out to be."""
    while isinstance(value, Unknown):
        before = value.given_by if value.hint in _MOVES else value.told
        if before is None:
            break
        value = before
    return value


def _name(event: Called | CalledUnknown) -> str:
    return event.path if isinstance(event, Called) else getattr(event.callee, "hint", "")


def _object(event: Event) -> Value | None:
    """The object whose method was called."""
    if isinstance(event, CalledUnknown):
        return _meant(getattr(event.callee, "holder", None))
    return event.receiver if isinstance(event, Called) else None


def _given(event: Event) -> list[Value]:
    return (
        event.given.values() if isinstance(event, Called) else event.values if isinstance(event, CalledUnknown) else []
    )


def _moves(path: Path, model: Value) -> Iterator[Called | CalledUnknown]:
    """The calls that surely put a model on a GPU."""
    calls: list[Called | CalledUnknown] = [*path.of(Called), *path.of(CalledUnknown)]
    for event in calls:
        if _name(event) in _MOVES and _object(event) is model:
            given = _given(event)
            if _name(event) == "cuda" or any((text_of(each) or "").startswith("cuda") for each in given):
                yield event


def _needless(path: Path, model: Value, fit: Called) -> Iterator[Called | CalledUnknown]:
    """The moves of a model before `fit` between which and that nothing needs it there."""
    for move in _moves(path, model):
        between = (each for each in path.events if move.time < each.time < fit.time)
        if move.time < fit.time and not any(_uses(each, model) for each in between):
            yield move


def _uses(event: Event, model: Value) -> bool:
    """Whether something runs a module, or hands it to something that may."""
    if isinstance(event, Forward):
        return isinstance(model, Module) and event.module in model.modules()
    if isinstance(event, CalledUnknown) and _meant(event.callee) is model:
        return True
    if not isinstance(event, (Called, CalledUnknown)):
        return False
    asked = _object(event) is model and _name(event) not in _HARMLESS
    return asked or any(is_held(_meant(each), model) for each in _given(event))
