from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Called
from lightlint.facts.bindings import Kind
from lightlint.facts.tree import Loop
from lightlint.values.core import Site, is_constant
from lightlint.values.training import Instance

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_PROGRESS = {
    "fit_loop",
    "max_epochs",
    "max_steps",
    "epoch_progress",
    "epoch_loop",
    "current_epoch",
    "reset",
    "should_stop",
}
_OPEN_ENDED = {"fast_dev_run", "max_time", "overfit_batches"}


class TrainerReusedAcrossFolds(Check):
    def visit_Call(self, call: cst.Call) -> None:
        run = next((each for each in self.facts.training.runs if each.call is call), None)
        if (
            run is None
            or run.entry != "fit"
            or run.trainer is None
            or self.names.argument(call, "ckpt_path") is not None
        ):
            return
        trainer = call.func.value if isinstance(call.func, cst.Attribute) else call
        if self._ends_itself(run.trainer) and self._lives_on(run.trainer, trainer, call) and not self._goes_on(call):
            name = self.code.text_of(trainer)
            self.report(call, f"`{name}` has reached its last epoch after the first `fit`: later ones train nothing")

    def _lives_on(self, made: cst.Call, trainer: cst.BaseExpression, place: cst.Call, depth: int = 0) -> bool:
        """Whether a place is reached again, in a loop around it or around a call of its function, with the same Trainer."""
        owner = self.tree.owner(place)
        loops = [each for each in self.tree.loops(place) if isinstance(each, cst.For)]
        mapped = self._comprehension(place)
        if loops or mapped is not None:
            kept = self._is_of_object(made, trainer) if isinstance(trainer, cst.Attribute) else False
            here = self.tree.owner(made) is owner and not self.tree.loops(made)
            again = self._repeats(place, loops[0]) if mapped is None else not self.tree.contains(mapped, made)
            return (here or kept) and again and not self._is_reset(trainer, place, owner)
        if depth or not isinstance(owner, cst.FunctionDef) or self._may_skip(owner, place):
            return False
        if self.facts.conditions(place) or self._is_reset(trainer, place, owner):
            return False
        for call in self.facts.instances.calls_of.get(owner, ()):
            given = self._given(trainer, made, owner, call)
            if given is not None and self._lives_on(*given, call, depth + 1):
                return True
        return False

    def _given(
        self, trainer: cst.BaseExpression, made: cst.Call, owner: cst.FunctionDef, call: cst.Call
    ) -> tuple[cst.Call, cst.BaseExpression] | None:
        """The Trainer of a function as a call of it has it, with what made it.

        It is what is given for a parameter, or `self.trainer`: of the same object, or of one that is made with its Trainer.
        """
        if isinstance(trainer, cst.Attribute):
            receiver = call.func.value if isinstance(call.func, cst.Attribute) else None
            if receiver is None or not self._is_of_object(made, trainer):
                return None
            if self.classes.is_self(receiver):
                return made, trainer
            origin = self.values.constructor(receiver)
            held = isinstance(receiver, cst.Name) and not self.values.parts.is_set_outside(trainer.attr.value)
            return (origin.call, receiver) if held and origin is not None and origin.call is not None else None
        found = self.names.bindings.lookup(trainer) if isinstance(trainer, cst.Name) else []
        if len(found) != 1 or found[0].kind is not Kind.PARAMETER or found[0].scope is not owner:
            return None
        given = self.hooks.given(owner, call, found[0].name)
        return (made, given) if isinstance(given, cst.Name) else None

    def _may_skip(self, owner: cst.FunctionDef, place: cst.Call) -> bool:
        """Whether a function may end, or go on, without what stands at a place."""
        early = [each for each in self.tree.own(owner, cst.Return) if not self.tree.contains(each, place)]
        return bool(self.tree.own(owner, cst.Try)) or any(
            self.tree.order(each) < self.tree.order(place) for each in early
        )

    def _comprehension(self, place: cst.Call) -> cst.CSTNode | None:
        """The list, set or dict that is made by doing a thing for each of some items."""
        for above in self.tree.ancestors(place):
            if isinstance(above, (cst.IfExp, cst.BooleanOperation, cst.CompFor, cst.BaseStatement, cst.Lambda)):
                return None
            if isinstance(above, (cst.ListComp, cst.SetComp, cst.DictComp)):
                return above
        return None

    def _is_of_object(self, made: cst.Call, trainer: cst.Attribute) -> bool:
        """Whether `self.trainer` is one Trainer, made when the object is, in a class that no other derives from here."""
        node = self.classes.self_class(trainer.value)
        sources = self.classes.attribute_sources(node, trainer.attr.value) if node is not None else []
        maker = self.tree.function(made)
        return (
            node is not None
            and node not in self.hooks.subclasses
            and sources == [(made, ())]
            and maker is self.classes.method(node, "__init__")
            and not self.tree.loops(made)
        )

    def _ends_itself(self, trainer: cst.Call) -> bool:
        """Whether the number of epochs ends a fit: a later one then ends at once."""
        given = {name: self.facts.dicts.argument(trainer, name) for name in (*_OPEN_ENDED, "max_epochs", "max_steps")}
        if not all(each.sure for each in given.values()) or any(given[name].value is not None for name in _OPEN_ENDED):
            return False
        written = given["max_epochs"].value
        if written is None:
            return given["max_steps"].value is None
        return self.names.constant(written) not in (-1, None)

    def _repeats(self, call: cst.Call, loop: Loop) -> bool:
        inside_try = any(isinstance(each, cst.Try) for each in self.tree.ancestors(call))
        again = self.facts.flow(self.tree.owner(call)).reaches_in_later_iteration(loop, call, [call])
        tests = [test for test, _ in self.facts.conditions(call) if self.tree.contains(loop.body, test)]
        return again and not inside_try and not tests

    def _is_reset(self, trainer: cst.BaseExpression, place: cst.Call, owner: cst.CSTNode) -> bool:
        """Whether code deals with the Trainer's progress, rebinds its name or gives it away."""
        name = self.names.key(trainer)
        if isinstance(trainer, cst.Name):
            around = owner
            found = self.names.bindings.lookup(trainer)
            if len(found) != 1 or found[0].kind is Kind.LOOP:
                return True
        else:
            around = self.tree.enclosing_class(place) or owner
        for attribute in self.tree.within(around, cst.Attribute):
            if attribute.attr.value in _PROGRESS and self.names.key(attribute).startswith(f"{name}."):
                return True
        calls = [each for each in self.tree.within(around, cst.Call) if each is not place]
        return not name or any(self.names.key(arg.value) == name for each in calls for arg in each.args)

    def _goes_on(self, call: cst.Call) -> bool:
        """Whether the rehearsals came to a fit with Trainers whose progress the program sets back, or that others have."""
        return self.runs_right(call, Called, lambda event: event.receiver is None or not event.receiver.escaped)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Trainers that end by their number of epochs and are told to fit again in a later turn."""
        for path in entry.paths:
            fits: dict[tuple[object, Site], Called] = {}
            for event in path.of(Called):
                trainer = event.receiver
                if event.path != "fit" or trainer is None or trainer.kind != "trainer" or event.where.conditions:
                    continue
                if (trainer, event.site) in fits and not trainer.escaped and _ends_itself(trainer):
                    message = "this Trainer has reached its last epoch after the first `fit`: later ones train nothing"
                    yield Fault.at(event, message)
                fits[trainer, event.site] = event


def _ends_itself(trainer: Instance) -> bool:
    """Whether the number of epochs ends a fit: a later one then ends at once."""
    given = trainer.arguments
    if trainer.open_arguments or any(name in given for name in _OPEN_ENDED):
        return False
    written = given.get("max_epochs")
    return "max_steps" not in given if written is None else not is_constant(written, -1, None)
