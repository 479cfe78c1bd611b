from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events.huggingface import TrainerMade
from lightlint.frameworks.huggingface.values import replaces, setting
from lightlint.values.core import Bound, Class, Function, Partial, is_constant, number_of, written
from lightlint.values.training import Instance

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Value

_GIVEN = "num_items_in_batch"


class ItemsInBatchIgnored(Check):
    users_with = ("TrainingArguments",)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Functions for the loss of a Trainer that sums up gradients, and that leave the number of its items aside."""
        for event in entry.of(TrainerMade):
            function, bound = _function(event.trainer.arguments.get("compute_loss_func"))
            names = event.trainer.libraries()
            if function is None or not names or not names[0].startswith("transformers.") or _sums_itself(event.trainer):
                continue
            if _GIVEN in bound:
                continue
            number = number_of(written(setting(event.settings, "gradient_accumulation_steps")))
            taken = function.node.args
            named = [each.arg for each in (*taken.args, *taken.kwonlyargs)]
            if _GIVEN not in named and taken.kwarg is None:
                yield Fault(
                    function.name_site(),
                    f"the function takes no `{_GIVEN}`, which the Trainer gives it: a TypeError at the first step",
                )
            elif number is not None and number > 1 and not _reads(function, _GIVEN if _GIVEN in named else ""):
                message = f"`{_GIVEN}` is left aside, and the Trainer does not divide this loss: the gradients of {number} batches add up undivided"
                yield Fault(function.name_site(), message)


def _function(given: Value | None) -> tuple[Function | None, set[str]]:
    """The function of the program behind what is called, and the keywords that it was given before."""
    bound: set[str] = set()
    while isinstance(given, Partial):
        bound |= set(given.keywords)
        given = given.function
    if isinstance(given, Bound):
        given = given.function
    if isinstance(given, Instance) and isinstance(given.cls, Class):
        given = given.cls.find("__call__")
    known = isinstance(given, Function) and given.wrapped is None
    return (given if known and isinstance(given, Function) else None), bound


def _sums_itself(trainer: Instance) -> bool:
    """Whether the Trainer's class steps in its own way, or is told that its loss is divided."""
    cls = trainer.cls
    own = replaces(trainer, "training_step", "compute_loss", "get_batch_samples", "_inner_training_loop")
    asked = trainer.attributes.get("loss_is_scaled_for_ga")
    return (
        own or (asked is not None and not is_constant(asked, None)) or (isinstance(cls, Class) and not cls.sees_all())
    )


def _reads(function: Function, name: str) -> bool:
    """Whether the body reads a parameter, or what else it is given by keyword."""
    taken = function.node.args
    wanted = {name or (taken.kwarg.arg if taken.kwarg is not None else "")}
    body = [function.node.body] if isinstance(function.node, ast.Lambda) else function.node.body
    return any(isinstance(each, ast.Name) and each.id in wanted for part in body for each in ast.walk(part)) or any(
        isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id == "locals"
        for part in body
        for each in ast.walk(part)
    )
