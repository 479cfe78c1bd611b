from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import AttributeSet, Called
from lightlint.facts.monitors import STOPPING
from lightlint.facts.training import Run
from lightlint.values.core import Sequence
from lightlint.values.training import Instance

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_STATE = {"best_score", "wait_count", "stopped_epoch", "load_state_dict"}
_REPEATING = (cst.For, cst.ListComp, cst.DictComp, cst.SetComp, cst.GeneratorExp)


class CallbackSharedByFits(Check):
    def visit_Module(self, module: cst.Module) -> None:
        for run in self.facts.training.runs:
            if run.entry != "fit" or run.trainer is None or self.names.argument(run.call, "ckpt_path") is not None:
                continue
            made = self.facts.training.callbacks(run.trainer) or ()
            for stopper in made:
                if self.names.of(stopper.func) == STOPPING and self._is_shared(run, run.trainer, stopper):
                    given = self.names.argument(run.trainer, "callbacks")
                    self.report(
                        given.value if given is not None else run.trainer,
                        "every fit gets the same `EarlyStopping`: a later one is measured by the best score of those before",
                    )
                    break

    def _is_shared(self, run: Run, trainer: cst.Call, stopper: cst.Call) -> bool:
        """Whether a loop makes Trainers and models and fits them, and the stopper was made once before it."""
        words = {each.attr.value for each in self.tree.all(cst.Attribute)}
        given = self.names.argument(run.call, "model", 0)
        origin = self.values.constructor(given.value) if given is not None else None
        model = origin.call if origin is not None else None
        if not words.isdisjoint(_STATE) or model is None or self.names.method(model) == "load_from_checkpoint":
            return False  # a model that is trained on goes on with its best score
        loop = self._loop(trainer)
        if loop is not None:
            inside = all(self.tree.contains(loop, each) for each in (run.call, model))
            return inside and self._is_before(stopper, loop) and self._repeats(run.call, loop)
        function = self.tree.function(trainer)
        if (
            function is None
            or self.tree.function(run.call) is not function
            or self.tree.function(model) is not function
        ):
            return False
        if self._is_in_try(run.call) or self.facts.conditions(run.call) or self.facts.conditions(trainer):
            return False
        calls = self.hooks.calls_of.get(function, ())
        around = [(call, self._loop(call)) for call in calls]
        return any(
            loop is not None and self._is_before(stopper, loop) and self._repeats(call, loop) for call, loop in around
        )

    def _loop(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The innermost `for` or comprehension of the function around a node that repeats it."""
        function, below = self.tree.function(node), node
        for above in self.tree.ancestors(node):
            if above is function:
                return None
            if isinstance(above, _REPEATING) and (not isinstance(above, cst.For) or below is above.body):
                return above
            below = above
        return None

    def _is_before(self, stopper: cst.Call, loop: cst.CSTNode) -> bool:
        """Whether a stopper is made once for all turns: by the function of the loop, the module, or the object the loop is of."""
        maker, owner = self.tree.owner(stopper), self.tree.owner(loop)
        if self._loop(stopper) is not None:
            return False
        if maker is owner or isinstance(maker, cst.Module):
            return not self.tree.contains(loop, stopper)
        node = self.tree.class_of(owner)
        return node is not None and maker is self.classes.method(node, "__init__")

    def _repeats(self, call: cst.Call, loop: cst.CSTNode) -> bool:
        """Whether a call is surely reached again in a later turn."""
        if not isinstance(loop, cst.For):
            return True
        again = self.facts.flow(self.tree.owner(call)).reaches_in_later_iteration(loop, call, [call])
        tests = [test for test, _ in self.facts.conditions(call) if self.tree.contains(loop.body, test)]
        return again and not self._is_in_try(call) and not tests

    def _is_in_try(self, call: cst.Call) -> bool:
        return any(isinstance(each, cst.Try) for each in self.tree.ancestors(call))

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Early stoppers that a Trainer of each turn is given, for a model of its own."""
        for path in entry.paths:
            fits = [event for event in path.of(Called) if event.path == "fit" and _stopper(event) is not None]
            changed = {id(event.object) for event in path.of(AttributeSet)}
            for first, second in combinations(fits, 2):
                stopper, model = _stopper(second), second.argument("model", 0)
                shared = stopper is _stopper(first) and first.receiver is not second.receiver
                anew = model is not None and model is not first.argument("model", 0)
                if not shared or not anew or stopper is None or second.receiver is None or first.site != second.site:
                    continue
                asked = "load_from_checkpoint" in getattr(model, "hint", "") or second.argument("ckpt_path") is not None
                if not asked and not stopper.escaped and id(stopper) not in changed and not second.where.conditions:
                    message = "every fit gets the same `EarlyStopping`: a later one is measured by the best score of those before"
                    site = second.receiver.site
                    yield Fault(site or second.site, message, also=(second.site, second.receiver.site or second.site))


def _stopper(fit: Called) -> Instance | None:
    """The early stopper of the Trainer that fits."""
    trainer = fit.receiver
    given = trainer.arguments.get("callbacks") if trainer is not None and trainer.kind == "trainer" else None
    held = given.items if isinstance(given, Sequence) else [given]
    return next((each for each in held if isinstance(each, Instance) and each.name == "EarlyStopping"), None)
